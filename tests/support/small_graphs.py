"""Small invented decisions whose every edge is known, and a Library of them with its entities and graph."""

from legal_rag.corpus import Document
from legal_rag.extraction import ExtractionSettings
from legal_rag.extraction.schemas import RULES
from legal_rag.indexer import IndexConfig, build_index, extract_library
from legal_rag.library import Library

CASSATION = {
    "id": "CASS1",
    "title": "Cour de cassation, chambre sociale, 2021-03-03, 19-12.345",
    "decision_date": "2021-03-03",
    "juridiction": "Cour de cassation",
    "formation": "Chambre sociale",
    "solution": "Cassation",
    "number": "19-12.345",
    "content": """SOC.

COUR DE CASSATION

Pourvois n°
Q 19-12.345
R 19-12.346 JONCTION

AU NOM DU PEUPLE FRANÇAIS

ARRÊT DE LA COUR DE CASSATION, CHAMBRE SOCIALE, DU 3 MARS 2021

La société Lever, société anonyme, dont le siège est [Adresse 1], a formé le pourvoi n° Q 19-12.345 contre l'arrêt \
rendu le 12 mai 2018 par la cour d'appel de Lyon (chambre sociale), dans le litige l'opposant :

1°/ à M. Jean Martin, domicilié [Adresse 2],

2°/ à Mme Aline Martin, domiciliée [Adresse 2],

défendeurs à la cassation.

Sur le rapport de M. Huglo, conseiller, les observations de la SCP Gatineau et Fattaccini, avocat de la société Lever, \
après débats en l'audience publique du 13 janvier 2021.

Réponse de la Cour

Vu l'article L. 1152-1 du code du travail et l'article 2 de la loi n° 89-462 du 6 juillet 1989 :

1. La Cour de cassation juge que le salarié est protégé (Soc., 24 janvier 2018, pourvoi n° 16-22.168, Bull.).

2. La cour d'appel a aussi fait application de l'article 1240 du code civil et du décret n° 2010-39 du 5 janvier 2010.

PAR CES MOTIFS, la Cour :

CASSE ET ANNULE, en toutes ses dispositions, l'arrêt rendu le 12 mai 2018 par la cour d'appel de Lyon.
""",
}
EARLIER = {
    "id": "CASS0",
    "title": "Cour de cassation, chambre sociale, 2018-01-24, 16-22.168",
    "decision_date": "2018-01-24",
    "juridiction": "Cour de cassation",
    "formation": "Chambre sociale",
    "solution": "Rejet",
    "number": "16-22.168",
    "content": """COUR DE CASSATION

ARRÊT DE LA COUR DE CASSATION, CHAMBRE SOCIALE, DU 24 JANVIER 2018

M. Paul Martin, domicilié [Adresse 1], a formé le pourvoi n° K 16-22.168 contre l'arrêt rendu le 2 juin 2016 par la \
cour d'appel de Paris (pôle 6, chambre 3), dans le litige l'opposant à la société Leverrier,\
 défenderesse à la cassation.

Vu l'article L. 1152-1 du code du travail :

1. Ce texte protège le salarié contre le harcèlement moral, comme le Conseil constitutionnel l'a jugé dans sa décision \
n° 2010-39 QPC du 6 octobre 2010.

PAR CES MOTIFS, la Cour :

REJETTE le pourvoi.
""",
}
APPEAL = {
    "id": "CA1",
    "title": "Cour d'appel de Lyon, 14 mai 2009, 08/04378",
    "decision_date": "2009-05-14",
    "juridiction": "Cour d'appel de Lyon",
    "number": "08/04378",
    "content": """COUR D'APPEL DE LYON

ARRET DU 14 MAI 2009

APPELANT : Monsieur Pierre Duval, représenté par Me Anne Colin, avocat au barreau de Lyon

INTIMÉE : SARL Duval, représentée par la SCP BAUFUME-SOURBE, avoués à la Cour

Le conseiller a joint la procédure 04-05691 à la procédure 03-18833, enregistrée sous le n° 2009-7 QPC.

Vu les articles 1134 et 1147 du code civil, la SARL Duval demande à la cour de confirmer le jugement.

Le contrat rappelait : « Sur ce, la cour, selon l'arrêt n° 19-99.999,
Vu l'article 1382 du code civil,
dit que la société Tartuffe est partie à l'arrêt n° 19-99.998 ».

Le bail, d'un arrêté du 3 mars 2008, relève de l'article 4 du contrat et du décret n° 2010-39 ; le jugement n° 2007-123
est du tribunal de commerce.

PAR CES MOTIFS

Vu l'article 1709 du code civil,

CONFIRME le jugement.
""",
}
QPC = {
    "id": "QPC1",
    "title": "Décision n° 2010-39 QPC du 6 octobre 2010",
    "decision_date": "2010-10-06",
    "juridiction": "Conseil constitutionnel",
    "solution": "Conformité",
    "number": "2010-39",
    "nature": "QPC",
    "content": """LE CONSEIL CONSTITUTIONNEL,

Vu la Constitution, notamment son article 61-1 ;

Vu la requête présentée par M. Paul Martin, demeurant à Lyon, enregistrée sous le n° 2010-40 QPC ;

Vu la décision n° 2009-12 AN du 3 mars 2009 ;

1. Considérant que l'article 365 du code civil est conforme à la Constitution.
""",
}
DECISIONS = (CASSATION, EARLIER, APPEAL, QPC)


def document_of(row):
    """Return a row as the document that an index makes of it."""
    known = {name: row[name] for name in ("id", "title", "content", "decision_date", "juridiction") if name in row}
    rest = {name: row[name] for name in ("number", "nature", "ecli") if name in row}
    columns = {"formation": row.get("formation", ""), "solution": row.get("solution", "")}
    return Document(**known, **columns, extra=rest)


def library_of(folder, rows, encoder):
    """Index rows without vectors, extract their entities by rules, and open the Library."""
    build_index(IndexConfig(source=list(rows), n_bits=0, corpus_index=False, index_folder=str(folder)), encoder)
    extract_library(Library.open(folder), ExtractionSettings(model_id=RULES))
    return Library.open(folder)
