"""Files as DILA's archives hold them, twenty of each form: fictional decisions and articles, the odd ones among them.

A file is given by its fields, named as in `legal_rag/corpus/dila.toml`, and by the columns that its row must have.
"""

import io
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

SPECS = {"TEXTE_JURI_JUDI": "META_JURI_JUDI", "TEXTE_JURI_ADMIN": "META_JURI_ADMIN"}
SPECS |= {"TEXTE_JURI_CONSTIT": "META_JURI_CONSTIT"}
HOMES = {"JURI": "juri", "CETA": "jade", "CONS": "constit", "LEGI": "legi"}
LINK = "cidtexte datesignatexte id naturetexte nortexte num numtexte sens typelien".split()


class File(NamedTuple):
    """A file of an archive, and the columns that its row must have."""

    doc_id: str
    xml: str
    row: dict[str, Any]

    @property
    def path(self) -> str:
        """Its path in an archive."""
        pairs = "/".join(self.doc_id[place : place + 2] for place in range(8, 18, 2))
        return f"{HOMES[self.doc_id[:4]]}/global/{self.doc_id[:4]}/{self.doc_id[4:8]}/{pairs}/{self.doc_id}.xml"


def element(name: str, content: str = "", **attributes: str) -> str:
    """Write an element; what it holds is XML."""
    listed = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}{listed}>{content}</{name}>" if content else f"<{name}{listed}/>"


def link(title: str, **attributes: str) -> str:
    """Write a LIEN, with all its attributes as DILA writes them."""
    given = {"sens": "source", "typelien": "CITATION"} | attributes
    return element("LIEN", title, **{name: given.get(name, "") for name in LINK})


def meta(name: str, fields: dict[str, Any]) -> str:
    """Write a block of fields: a text; a text with attributes; a list of elements."""
    return element(name, "".join(_field(key, value) for key, value in fields.items()))


def _field(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return element(name, value[0], **value[1])
    if isinstance(value, list):
        return element(name, "".join(element("NUMERO_AFFAIRE", number) for number in value))
    return element(name, value)


def decision(root: str, doc_id: str, fields: dict[str, Any], row: dict[str, Any]) -> File:
    """Write a decision: `fields` by block, `text`, `sct`, `ana`, `citation`, `saisines`, `observations`, `links`."""
    origin = {"JURI": "JURI", "CETA": "CETAT", "CONS": "CONSTIT"}[doc_id[:4]]
    common = {"ID": doc_id, "ANCIEN_ID": "", "ORIGINE": origin, "URL": f"texte/{doc_id}.xml", "NATURE": "ARRET"}
    specific = SPECS[root]
    blocks = meta("META_JURI", fields["juri"]) + meta(specific, fields.get("spec", {}))
    metas = element("META", meta("META_COMMUN", common | fields.get("common", {})) + element("META_SPEC", blocks))
    text = element("BLOC_TEXTUEL", element("CONTENU", fields.get("text", "LA COUR<br/>REJETTE le pourvoi ;")))
    notes = "".join(element("SCT", sct, ID=str(at), TYPE=kind) for at, kind, sct in fields.get("sct", ()))
    notes += "".join(element("ANA", ana, ID=str(at)) for at, ana in enumerate(fields.get("ana", ()), 1))
    if root == "TEXTE_JURI_CONSTIT":
        parts = [
            element(name.upper(), element("CONTENU", fields.get(name, ""))) for name in ("saisines", "observations")
        ]
        text += "".join(parts)
    else:
        cited = "".join(element("CONTENU", one) for one in fields.get("citation", ()))
        text += element("SOMMAIRE", notes) + element("CITATION_JP", cited)
    content = metas + element("TEXTE", text) + element("LIENS", "".join(fields.get("links", ())))
    return File(doc_id, f'<?xml version="1.0" encoding="UTF-8"?>\n{element(root, content)}\n', row)


CASSATION = {
    "juri": {"DATE_DEC": "2018-05-03", "JURIDICTION": "Cour de cassation", "NUMERO": "51800666", "SOLUTION": "Rejet"},
    "spec": {
        "NUMEROS_AFFAIRES": ["16-26.437"],
        "PUBLI_BULL": ("", {"publie": "oui"}),
        "FORMATION": "CHAMBRE_SOCIALE",
        "FORM_DEC_ATT": "Cour d'appel de Rennes",
        "DATE_DEC_ATT": "2016-09-21",
        "SIEGE_APPEL": "",
        "JURI_PREM": "",
        "LIEU_PREM": "",
        "DEMANDEUR": "",
        "DEFENDEUR": "",
        "PRESIDENT": "M. Aubépin (président)",
        "AVOCAT_GL": "Mme Serpolet",
        "AVOCATS": "SCP Noirmont, SCP Vauclair et Estève",
        "RAPPORTEUR": "Mme Lavandin",
        "ECLI": "ECLI:FR:CCASS:2018:SO00666",
    },
}


def judicial(number: int, row: dict[str, Any], base: dict[str, Any] = CASSATION, **changes: Any) -> File:
    """Write a decision of CASS, INCA or CAPP: `juri`, `spec` and `common` change single fields."""
    fields = {"juri": base["juri"] | changes.pop("juri", {}), "spec": base["spec"] | changes.pop("spec", {})} | changes
    date, court = fields["juri"]["DATE_DEC"], fields["juri"]["JURIDICTION"]
    fields["juri"] = {"TITRE": f"{court}, {date}"} | fields["juri"]
    return decision("TEXTE_JURI_JUDI", f"JURITEXT{number:012}", fields, row)


CASS = [
    judicial(
        38000001,
        {
            "number": "16-26.437",
            "decision_number": "51800666",
            "formation": "Chambre sociale",
            "publication": "Publié au bulletin",
            "lower_court": "Cour d'appel de Rennes",
            "lower_date": "2016-09-21",
            "headnotes": ["CONTRAT DE TRAVAIL, RUPTURE - Licenciement - Cause", "CONTRAT DE TRAVAIL - Preuve"],
            "summary": "L'employeur qui se tait n'avoue pas.",
            "related_decisions": ["Sur la preuve, à rapprocher :", "Soc., 4 mai 2011, pourvoi n° 10-11.111"],
            "applied_laws": ["article L. 1232-1 du code du travail", "article 1353 du code civil"],
            "content": "LA COUR DE CASSATION\nA < B & C\nREJETTE le pourvoi ;",
            "advocate_general": "Mme Serpolet",
        },
        text="LA COUR DE CASSATION<br/>A &lt; B &amp; C<p>REJETTE le pourvoi ;</p>",
        sct=[
            (1, "PRINCIPAL", "CONTRAT DE TRAVAIL, RUPTURE - Licenciement - Cause"),
            (1, "REFERENCE", "CONTRAT DE TRAVAIL - Preuve"),
        ],
        ana=["L'employeur qui se tait n'avoue pas."],
        citation=["Sur la preuve, à rapprocher :<br/>Soc., 4 mai 2011, pourvoi n° 10-11.111"],
        links=[link("article L. 1232-1 du code du travail"), link("article 1353 du code civil")],
    ),
    judicial(  # several cases joined, one file each; older numbers without a dot
        38000002,
        {"number": "24-18856", "numbers": ["24-18856", "24-18857", "24-18858"], "decision_number": ""},
        juri={"NUMERO": ""},
        spec={"NUMEROS_AFFAIRES": ["24-18856", "24-18857", "24-18858"]},
    ),
    judicial(  # several numbers in one element
        38000003,
        {"number": "10-12.345", "numbers": ["10-12.345", "10-12.346", "10-12.347"]},
        spec={"NUMEROS_AFFAIRES": ["10-12.345 10-12.346, 10-12.347"]},
    ),
    judicial(  # the date of the decision attacked stands behind its court
        38000004,
        {"lower_court": "Cour d'appel de Paris", "lower_date": "2008-03-12"},
        spec={"FORM_DEC_ATT": "Cour d'appel de Paris , du 12 mars 2008", "DATE_DEC_ATT": ""},
    ),
    judicial(
        38000005,
        {"lower_court": "Cour d'appel Bordeaux", "lower_date": "1995-03-01"},
        spec={"FORM_DEC_ATT": "Cour d'appel Bordeaux 1995-03-01", "DATE_DEC_ATT": "1995-03-01"},
    ),
    judicial(  # two dates that differ are both kept
        38000006,
        {"lower_court": "Cour d'appel de Nancy, du 2 mai 2001", "lower_date": "2001-06-02"},
        spec={"FORM_DEC_ATT": "Cour d'appel de Nancy, du 2 mai 2001", "DATE_DEC_ATT": "2001-06-02"},
    ),
    judicial(
        38000007,
        {"bulletin": "Bulletin 2000 I N° 12 p. 8", "publication": "Publié au bulletin"},
        spec={"PUBLI_BULL": ("Bulletin 2000 I N° 12 p. 8", {"publie": "oui"})},
    ),
    judicial(
        38000008,
        {"formation": "Assemblée plénière", "solution": "Cassation partielle sans renvoi"},
        juri={"SOLUTION": "Cassation partielle sans renvoi"},
        spec={"FORMATION": "ASSEMBLEE_PLENIERE"},
    ),
    judicial(38000009, {"formation": "Chambre mixte"}, spec={"FORMATION": "CHAMBRE_MIXTE"}),
    judicial(38000010, {"nature": "AVIS"}, common={"NATURE": "AVIS"}),
    judicial(  # a court of its own among the decisions of the Cour de cassation
        38000011,
        {"juridiction": "Tribunal des conflits", "formation": "", "number": "06-03.486"},
        juri={"JURIDICTION": "Tribunal des conflits", "NUMERO": "C3486"},
        spec={
            "NUMEROS_AFFAIRES": ["06-03.486"],
            "FORMATION": "TRIBUNAL_CONFLIT",
            "AVOCAT_GL": "M. Cormier (commissaire du Gouvernement)",
        },
    ),
    judicial(
        38000012,
        {
            "lower_seat": "VERSAILLES",
            "first_court": "TGI",
            "first_seat": "NANTERRE",
            "claimant": "M. X...",
            "respondent": "société Y... & Cie",
        },
        spec={
            "SIEGE_APPEL": "VERSAILLES",
            "JURI_PREM": "TGI",
            "LIEU_PREM": "NANTERRE",
            "DEMANDEUR": "M. X...",
            "DEFENDEUR": "société Y... &amp; Cie",
        },
    ),
    judicial(  # what else cites this decision, and a decision that it cites, are no texts that it applies
        38000013,
        {"applied_laws": ["article 9 du code civil"]},
        links=[
            link("article 9 du code civil", id="LEGIARTI000006419288", cidtexte="LEGITEXT000006070721", num="9"),
            link("Soc., 2 octobre 2001, 99-42.942", id="JURITEXT000007046161", datesignatexte="2001-10-02"),
            link("Décret n°2001-1 du 3 janvier 2001", sens="cible", naturetexte="DECRET", numtexte="2001-1"),
        ],
    ),
    judicial(  # text escaped twice, and an apostrophe by number
        38000014,
        {"content": "L'arrêt dit « 3 < 4 »\nDÉCIDE"},
        text="L&amp;#39;arrêt dit «&#160;3 &amp;lt; 4&#160;»<br />DÉCIDE".replace("&#160;", " "),
    ),
    judicial(38000015, {"summary": "Premier.\n\nSecond."}, ana=["Premier.", "Second."]),
    judicial(38000016, {"summary": "Un\ndeux"}, ana=["Un<br/>deux"], sct=[(1, "PRINCIPAL", "A - B <br/>- C")]),
    judicial(38000017, {"related_decisions": ["I", "II"]}, citation=["I", "II"]),
    judicial(38000018, {"eli": "https://exemple.test/eli/1"}, common={"ID_ELI": "https://exemple.test/eli/1"}),
    judicial(38000019, {"former_id": "RCXCX1993X01X01X00001X000"}, common={"ANCIEN_ID": "RCXCX1993X01X01X00001X000"}),
    judicial(38000020, {"lower_court": "", "publication": ""}, spec={"FORM_DEC_ATT": "", "PUBLI_BULL": ""}),
]

NUMBERED = {"spec": CASSATION["spec"] | {"PUBLI_BULL": ("", {"publie": "non"})}, "juri": CASSATION["juri"]}
FORMATIONS = {
    "CHAMBRE_CIVILE_1": "Première chambre civile",
    "CHAMBRE_CIVILE_2": "Deuxième chambre civile",
    "CHAMBRE_CIVILE_3": "Troisième chambre civile",
    "CHAMBRE_COMMERCIALE": "Chambre commerciale",
    "CHAMBRE_CRIMINELLE": "Chambre criminelle",
    "CHAMBRES_REUNIES": "Chambres réunies",
    "ORDONNANCE_PREMIER_PRESIDENT": "ORDONNANCE_PREMIER_PRESIDENT",  # not in the table: as it is
}
INCA = [
    *(
        judicial(
            39000001 + at,
            {"formation": name, "publication": "Inédit", "solution": solution, "number": f"{at + 10}-81.00{at}"},
            NUMBERED,
            juri={"SOLUTION": solution},
            spec={"FORMATION": code, "NUMEROS_AFFAIRES": [f"{at + 10}-81.00{at}"]},
        )
        for at, ((code, name), solution) in enumerate(
            zip(
                FORMATIONS.items(),
                ["Cassation", "Cassation partielle", "Désistement", "Irrecevabilité", "Non-admission", "QPC", "Rejet"],
                strict=True,
            )
        )
    ),
    *(
        judicial(
            39000011 + at,
            {"lower_court": court, "lower_date": "2010-02-01"},
            NUMBERED,
            spec={"FORM_DEC_ATT": court, "DATE_DEC_ATT": "2010-02-01"},
        )
        for at, court in enumerate(
            [
                "Conseil de prud'hommes de Sète",
                "Tribunal de grande instance de Dol",
                "Tribunal d'instance du Mans",
                "Chambre de l'instruction de la cour d'appel de Pau",
                "Tribunal supérieur d'appel de Mamoudzou",
                "Cour nationale de l'incapacité et de la tarification de l'assurance des accidents du travail",
            ]
        )
    ),
    judicial(
        39000021, {"number": "", "decision_number": ""}, NUMBERED, juri={"NUMERO": ""}, spec={"NUMEROS_AFFAIRES": []}
    ),
    judicial(39000022, {"number": "51800666"}, NUMBERED, spec={"NUMEROS_AFFAIRES": []}),
    judicial(39000023, {"decision_number": ""}, NUMBERED, juri={"NUMERO": "16-26.437"}),
    judicial(39000024, {"content": "Un\n\ndeux\n\ntrois"}, NUMBERED, text="<p>Un</p>\n\n\n<div>deux</div><p>trois</p>"),
    judicial(
        39000025,
        {"content": "Nom Montant\n\nX 3 €"},
        NUMBERED,
        text="<table><tr><td>Nom</td><td>Montant</td></tr><tr><td>X</td><td>3 €</td></tr></table>",
    ),
    judicial(39000026, {"content": "A\nB"}, NUMBERED, text="<![CDATA[A<br/>B]]>"),
    judicial(39000027, {"content": "M. <X...> conteste"}, NUMBERED, text="M. &lt;X...&gt; conteste<!-- note -->"),
]

APPEAL = {
    "juri": {
        "DATE_DEC": "2007-06-12",
        "JURIDICTION": "Cour d'appel de Nîmes",
        "NUMERO": "06/01234",
        "SOLUTION": "Confirme la décision déférée dans toutes ses dispositions",
    },
    "spec": {
        "NUMEROS_AFFAIRES": ["06/01234"],
        "PUBLI_BULL": ("", {"publie": "non"}),
        "FORMATION": "CT0028",
        "FORM_DEC_ATT": "Tribunal de grande instance de Nîmes",
        "DATE_DEC_ATT": "2006-02-03",
        "PRESIDENT": "",
        "RAPPORTEUR": "",
        "ECLI": "",
    },
}
CAPP = [
    *(
        judicial(
            7000001 + at,
            {"juridiction": court, "number": "06/01234", "lower_court": "Tribunal de grande instance de Nîmes"},
            APPEAL,
            juri={"JURIDICTION": court},
        )
        for at, court in enumerate(  # one number at several courts
            [
                "Cour d'appel de Nîmes",
                "Cour d'appel d'Aix-en-Provence",
                "Cour d'appel de Saint-Denis de la Réunion",
                "Cour d'appel de Fort-de-France",
                "Cour d'appel",
                "Tribunal de grande instance de Brest",
                "Conseil de prud'hommes de Vannes",
                "Tribunal d'instance de Redon",
            ]
        )
    ),
    *(
        judicial(
            7000011 + at,
            {"solution": solution, "formation": formation},
            APPEAL,
            juri={"SOLUTION": solution},
            spec={"FORMATION": formation},
        )
        for at, (solution, formation) in enumerate(
            [
                (
                    "Infirme partiellement, réforme ou modifie certaines dispositions de la décision déférée",
                    "1ère chambre",
                ),
                ("Infirme la décision déférée dans toutes ses dispositions, à l'égard de toutes les parties", "CT0007"),
                ("Déclare la demande ou le recours irrecevable", "Chambre sociale"),
                ("Radie l'affaire du rôle", ""),
                ("", "CHAMBRE DES APPELS CORRECTIONNELS"),
            ]
        )
    ),
    judicial(
        7000021,
        {"number": "06/01234", "numbers": ["06/01234", "06/01235"]},
        APPEAL,
        spec={"NUMEROS_AFFAIRES": ["06/01234 06/01235"]},
    ),
    judicial(7000022, {"number": "2006/1234"}, APPEAL, juri={"NUMERO": ""}, spec={"NUMEROS_AFFAIRES": ["2006/1234"]}),
    judicial(7000023, {"decision_number": "123"}, APPEAL, juri={"NUMERO": "123"}),
    judicial(7000024, {"nature": "ORDONNANCE"}, APPEAL, common={"NATURE": "ORDONNANCE"}),
    judicial(7000025, {"decision_date": ""}, APPEAL, juri={"DATE_DEC": ""}),
    judicial(7000026, {"title": "CA Nîmes, 12 juin 2007"}, APPEAL, juri={"TITRE": "CA Nîmes,\n12 juin 2007"}),
    judicial(7000027, {"content": "ARRÊT N° 12\nAffaire n° 06/01234"}, APPEAL, text="ARRÊT N° 12\nAffaire n° 06/01234"),
]

STATE = {
    "juri": {"DATE_DEC": "2024-03-21", "JURIDICTION": "Conseil d'État", "NUMERO": "490536", "SOLUTION": ""},
    "spec": {
        "FORMATION": "2ème - 7ème chambres réunies",
        "TYPE_REC": "Excès de pouvoir",
        "PUBLI_RECUEIL": "B",
        "DEMANDEUR": "",
        "DEFENDEUR": "",
        "PRESIDENT": "M. Peuplier",
        "AVOCATS": "SCP MESANGE, ROITELET",
        "RAPPORTEUR": "Mme Armoise",
        "COMMISSAIRE_GVT": "M. Thym",
        "ECLI": "ECLI:FR:CECHR:2024:490536.20240321",
    },
    "common": {"NATURE": "Texte", "ANCIEN_ID": "JG_L_2024_03_000000490536"},
}


def administrative(number: int, row: dict[str, Any], **changes: Any) -> File:
    """Write a decision of JADE."""
    fields = {name: STATE[name] | changes.pop(name, {}) for name in STATE} | changes
    title = f"{fields['juri']['JURIDICTION']}, {fields['juri']['DATE_DEC']}, {fields['juri']['NUMERO']}"
    fields["juri"] = {"TITRE": title} | fields["juri"]
    return decision("TEXTE_JURI_ADMIN", f"CETATEXT{number:012}", fields, row)


JADE = [
    administrative(
        49000001,
        {
            "number": "490536",
            "nature": "",
            "former_id": "JG_L_2024_03_000000490536",
            "formation": "2ème - 7ème chambres réunies",
            "remedy": "Excès de pouvoir",
            "publication": "Mentionné aux tables du recueil Lebon",
            "public_rapporteur": "M. Thym",
            "lawyers": "SCP MESANGE, ROITELET",
            "headnotes": ["68-03 URBANISME ET AMÉNAGEMENT DU TERRITOIRE. PERMIS DE CONSTRUIRE. [RJ1]"],
            "summary": "68-03 Le maire qui se tait refuse.",
            "related_decisions": ["[RJ1] Comp. CE, 20 juin 2012, M. Ricard et autres, n° 344646, T. pp. 889-1023."],
        },
        sct=[(1, "PRINCIPAL", "68-03 URBANISME ET AMÉNAGEMENT DU TERRITOIRE. PERMIS DE CONSTRUIRE. [RJ1]")],
        ana=["68-03 Le maire qui se tait refuse."],
        citation=["[RJ1] Comp. CE, 20 juin 2012, M. Ricard et autres, n° 344646, T. pp. 889-1023."],
    ),
    *(
        administrative(49000002 + at, {"publication": form}, spec={"PUBLI_RECUEIL": letter})
        for at, (letter, form) in enumerate(
            [
                ("A", "Publié au recueil Lebon"),
                ("C", "Inédit au recueil Lebon"),
                ("", ""),
                ("Z", "Z"),  # unknown: as it is
            ]
        )
    ),
    administrative(49000006, {"number": "352894", "numbers": ["352894", "352895"]}, juri={"NUMERO": "352894, 352895"}),
    administrative(49000007, {"numbers": ["352894", "352895"]}, juri={"NUMERO": "352894;352895"}),
    *(
        administrative(
            49000008 + at, {"juridiction": court, "number": number}, juri={"JURIDICTION": court, "NUMERO": number}
        )
        for at, (court, number) in enumerate(
            [
                ("CAA de BORDEAUX", "24BX00910"),
                ("Cour administrative d'appel de Marseille", "24MA00910"),
                ("Tribunal administratif de Lille", "2400910"),
                ("Tribunal des conflits", "C4300"),
                ("Tribunal des Conflits", "4300"),
                ("Conseil d'Etat", "96802"),
            ]
        )
    ),
    *(
        administrative(49000015 + at, {"remedy": kind}, spec={"TYPE_REC": kind})
        for at, kind in enumerate(["Plein contentieux", "Avis contentieux", ""])
    ),
    administrative(49000019, {"claimant": "COMMUNE DE PORT-SARRAZIN"}, spec={"DEMANDEUR": "COMMUNE DE PORT-SARRAZIN"}),
    administrative(49000020, {"respondent": "PRÉFET DU CHER"}, spec={"DEFENDEUR": "PRÉFET DU CHER"}),
    administrative(49000021, {"president": "", "rapporteur": ""}, spec={"PRESIDENT": "", "RAPPORTEUR": ""}),
    administrative(
        49000022,
        {"content": "Vu la procédure suivante :\n\nDécide :\nArticle 1er : La requête est rejetée."},
        text="Vu la procédure suivante :<br/>\n<br/>\nDécide :<br/>Article 1er : La requête est rejetée.<br/>",
    ),
]

COUNCIL = {
    "juri": {
        "DATE_DEC": "2026-02-06",
        "JURIDICTION": "Conseil constitutionnel",
        "NUMERO": "2025-1180",
        "SOLUTION": "Conformité",
    },
    "spec": {
        "NOR": "CSCX2603749S",
        "NATURE_QUALIFIEE": "QPC",
        "LOI_DEF": ("", {"date": "2999-01-01", "nor": "SUPPRIME", "num": ""}),
        "TITRE_JO": "JORF n°0032 du 7 février 2026, texte n° 66",
        "URL_CC": "https://www.conseil-constitutionnel.fr/decision/2026/20251180QPC.htm",
        "ECLI": "ECLI:FR:CC:2026:2025.1180.QPC",
    },
    "common": {"NATURE": "QPC"},
}


def constitutional(number: int, row: dict[str, Any], **changes: Any) -> File:
    """Write a decision of CONSTIT."""
    fields = {name: COUNCIL[name] | changes.pop(name, {}) for name in COUNCIL} | changes
    fields["juri"] = {"TITRE": "Décision de février [Une disposition]"} | fields["juri"]
    return decision("TEXTE_JURI_CONSTIT", f"CONSTEXT{number:012}", fields, row)


CONSTIT = [
    constitutional(
        53000001,
        {
            "number": "2025-1180",
            "nature": "QPC",
            "qualified_nature": "QPC",
            "nor": "CSCX2603749S",
            "journal": "JORF n°0032 du 7 février 2026, texte n° 66",
            "source_url": "https://www.conseil-constitutionnel.fr/decision/2026/20251180QPC.htm",
            "reviewed_law": "",
            "reviewed_law_nor": "",
            "referral": "Saisine\ndu 3 novembre 2025",
            "observations": "Observations du Gouvernement",
        },
        saisines="Saisine<br/>du 3 novembre 2025",
        observations="Observations du Gouvernement",
    ),
    constitutional(
        53000002,
        {
            "reviewed_law": "Loi portant diverses mesures",
            "reviewed_law_date": "2025-12-24",
            "reviewed_law_number": "2025-1300",
            "reviewed_law_nor": "ECOX2500001L",
            "nature": "DC",
        },
        common={"NATURE": "DC"},
        spec={
            "LOI_DEF": (
                "Loi portant diverses mesures",
                {"date": "2025-12-24", "nor": "ECOX2500001L", "num": "2025-1300"},
            ),
            "NATURE_QUALIFIEE": "DC",
        },
    ),
    *(
        constitutional(
            53000003 + at, {"number": number, "nature": nature}, juri={"NUMERO": number}, common={"NATURE": nature}
        )
        for at, (number, nature) in enumerate(
            [
                ("93-1213/1215/1220", "AN"),  # joined decisions on one election: one number
                ("2001-2589 AN", "AN"),
                ("93-1213R", "AN"),  # a rectification
                ("58-1", "ELEC"),
                ("2012-23", "ORGA"),
                ("86-209", "L"),
                ("2004-1", "LOM"),
                ("2022-187", "PDR"),
                ("2008-24", "RAPP"),
                ("92-14", "REF"),
                ("2019-1", "RIP"),
                ("2011-4538", "SEN"),
                ("2008-1", "I"),
            ]
        )
    ),
    constitutional(53000021, {"ecli": ""}, spec={"ECLI": ""}),
    constitutional(
        53000022,
        {"solution": "Non conformité totale - effet différé - réserve transitoire"},
        juri={"SOLUTION": "Non conformité totale - effet différé - réserve transitoire"},
    ),
    constitutional(
        53000023,
        {"title": "Société des Bleuets & autres [Visite]"},
        juri={"TITRE": "Société des Bleuets &amp; autres [Visite]"},
    ),
    constitutional(
        53000024, {"applied_laws": ["article 62 de la Constitution"]}, links=[link("article 62 de la Constitution")]
    ),
    constitutional(
        53000025,
        {"content": "LE CONSEIL CONSTITUTIONNEL A ÉTÉ SAISI\n\n1. Un.\n2. Deux."},
        text="<p>LE CONSEIL CONSTITUTIONNEL A ÉTÉ SAISI</p><p>1. Un.<br/>2. Deux.</p>",
    ),
]

LABOUR = {"cid": "LEGITEXT000006072050", "nature": "CODE", "date_publi": "2999-01-01", "date_signature": "2999-01-01"}
DECREE = {"cid": "JORFTEXT000035607388", "nature": "DECRET", "date_publi": "2017-09-23", "nor": "MTRX1725192D"}
DECREE |= {"num": "2017-1387", "num_parution_jo": "0223", "autorite": "PREMIER MINISTRE", "ministere": "TRAVAIL"}
DECREE |= {"date_signature": "2017-09-22"}
CONTEXT = "autorite cid date_publi date_signature ministere nature nor num num_parution_jo".split()
LEGISLATIVE = ["Partie législative", "Livre II : Le contrat de travail", "Chapitre III : Licenciement"]


def text_title(title: str, short: str = "", begin: str = "2008-05-01", end: str = "2999-01-01") -> str:
    """Write a text's title and the days on which it is valid."""
    attributes = {"c_titre_court": short or title, "debut": begin, "fin": end, "id_txt": "LEGITEXT000006072050"}
    return element("TITRE_TXT", title, **attributes)


def sections(names: list[str], at: int = 1) -> str:
    """Write the sections that an article is in, from the outermost."""
    if not names:
        return ""
    title = element("TITRE_TM", names[0], debut="2008-05-01", fin="2999-01-01", id=f"LEGISCTA{at:012}")
    return element("TM", title + sections(names[1:], at + 1))


def version(doc_id: str, begin: str, end: str, state: str = "MODIFIE", origin: str = "LEGI") -> str:
    """Write one of an article's versions."""
    listed = element("LIEN_ART", debut=begin, etat=state, fin=end, id=doc_id, num="L1", origine=origin)
    return element("VERSION", listed, etat=state)


def article(number: int, row: dict[str, Any], **changes: Any) -> File:
    """Write a version of an article: `meta` changes fields of META_ARTICLE, `text` attributes of the text it is in."""
    doc_id = f"LEGIARTI{number:012}"
    common = {"ID": doc_id, "ANCIEN_ID": "", "ORIGINE": "LEGI", "URL": f"article/{doc_id}.xml", "NATURE": "Article"}
    fields = {"NUM": "L1233-4", "ETAT": "VIGUEUR", "DATE_DEBUT": "2018-04-01", "DATE_FIN": "2999-01-01"}
    fields |= {"TYPE": "AUTONOME"} | changes.get("meta", {})
    spec = element("META_SPEC", meta("META_ARTICLE", fields))
    attributes = {name: changes.get("text", LABOUR).get(name, "") for name in CONTEXT}
    context = changes.get("titles", text_title("Code du travail")) + changes.get("sections", sections(LEGISLATIVE))
    body = changes.get("body", "<p>Le licenciement est motivé.</p>")
    parts = [
        element("META", meta("META_COMMUN", common | changes.get("common", {})) + spec),
        element("CONTEXTE", element("TEXTE", context, **attributes)),
        element("VERSIONS", "".join(changes.get("versions", ()))),
        element("NOTA", element("CONTENU", changes.get("nota", ""))),
        element("BLOC_TEXTUEL", element("CONTENU", body)),
        element("LIENS", "".join(changes.get("links", ()))),
    ]
    return File(doc_id, f'<?xml version="1.0" encoding="UTF-8"?>\n{element("ARTICLE", "".join(parts))}\n', row)


LEGI = [
    article(
        36000001,
        {
            "number": "L1233-4",
            "title": "Code du travail, article L1233-4",
            "text_title": "Code du travail",
            "text_id": "LEGITEXT000006072050",
            "section": " > ".join(["Code du travail", *LEGISLATIVE]),
            "section_id": "LEGISCTA000000000003",
            "nature": "CODE",
            "state": "VIGUEUR",
            "valid_from": "2018-04-01",
            "valid_until": "",
            "article_id": "LEGIARTI000006901000",
            "article_type": "AUTONOME",
            "nota": "Voir la loi du 29 mars 2018.",
            "content": "Le licenciement est motivé.\n\nIl est notifié.",
        },
        body="<p>Le licenciement est motivé.</p><p>Il est notifié.</p>",
        nota="<p>Voir la loi du 29 mars 2018.</p>",
        versions=[
            version("LEGIARTI000036000001", "2018-04-01", "2999-01-01", "VIGUEUR"),
            version("LEGIARTI000006901000", "2008-05-01", "2018-04-01"),
            version("JORFARTI000000000001", "2008-01-01", "2008-05-01", origin="JORF"),
        ],
        links=[
            link(
                "LOI n°2018-217 du 29 mars 2018 - art. 11",
                typelien="MODIFIE",
                sens="cible",
                id="LEGIARTI000036750000",
                cidtexte="JORFTEXT000036755446",
                num="11",
                numtexte="2018-217",
                naturetexte="LOI",
                nortexte="MTRX1800001L",
                datesignatexte="2018-03-29",
            )
        ],
    ),
    article(36000002, {"number": "28 à 30", "title": "Code du travail, article 28 à 30"}, meta={"NUM": "28 à 30"}),
    article(
        36000003, {"number": "Annexe 1-2", "title": "Code du travail, article Annexe 1-2"}, meta={"NUM": "Annexe 1-2"}
    ),
    article(
        36000004,
        {
            "number": "3",
            "title": "Décret n°2017-1387 du 22 septembre 2017, article 3",
            "text_title": "Décret n° 2017-1387 du 22 septembre 2017 relatif à la médiation",
            "text_id": "JORFTEXT000035607388",
            "nature": "DECRET",
            "text_number": "2017-1387",
            "text_signed": "2017-09-22",
            "text_published": "2017-09-23",
            "nor": "MTRX1725192D",
            "journal": "0223",
            "authority": "PREMIER MINISTRE",
            "ministry": "TRAVAIL",
            "section": "Décret n° 2017-1387 du 22 septembre 2017 relatif à la médiation",
        },
        meta={"NUM": "3"},
        text=DECREE,
        titles=text_title(
            "Décret n° 2017-1387 du 22 septembre 2017 relatif à la médiation", "Décret n°2017-1387 du 22 septembre 2017"
        ),
        sections="",
    ),
    article(
        36000005,
        {"state": "MODIFIE", "valid_from": "2008-05-01", "valid_until": "2018-04-01"},
        meta={"ETAT": "MODIFIE", "DATE_DEBUT": "2008-05-01", "DATE_FIN": "2018-04-01"},
    ),
    article(  # postponed to a day not yet known
        36000006,
        {"state": "VIGUEUR_DIFF", "valid_from": "", "valid_until": ""},
        meta={"ETAT": "VIGUEUR_DIFF", "DATE_DEBUT": "2222-02-22"},
    ),
    article(
        36000007,
        {"state": "ABROGE_DIFF", "valid_from": "2018-04-01", "valid_until": ""},
        meta={"ETAT": "ABROGE_DIFF", "DATE_FIN": "2222-02-22"},
    ),
    *(
        article(36000008 + at, {"state": state}, meta={"ETAT": state, "DATE_FIN": "2020-01-01"})
        for at, state in enumerate(["ABROGE", "PERIME", "ANNULE", "TRANSFERE", "DISJOINT", "MODIFIE_MORT_NE"])
    ),
    article(  # titles that changed: that of the day this version began, not the first nor the undated one
        36000014,
        {"text_title": "Code rural et de la pêche maritime", "number": "R*123-4"},
        meta={"NUM": "R*123-4"},
        titles=text_title("Code rural", begin="1955-01-01", end="2010-05-08")
        + text_title("Sans date", begin="2999-01-01")
        + text_title("Code rural et de la pêche maritime", begin="2010-05-08"),
    ),
    article(36000015, {"text_title": "Code général des impôts"}, titles=text_title("Code général des impôts, CGI.")),
    article(36000016, {"number": "", "title": "Code du travail, Chapitre III : Licenciement"}, meta={"NUM": ""}),
    article(
        36000017,
        {"content": "A B\n\nC D"},
        body="<table><tr><td>A</td><td>B</td></tr><tr><td>C</td><td>D</td></tr></table>",
    ),
    article(36000018, {"article_type": "PARTIELLEMENT_MODIF"}, meta={"TYPE": "PARTIELLEMENT_MODIF"}),
    article(36000019, {"valid_from": "", "valid_until": ""}, meta={"DATE_DEBUT": "", "DATE_FIN": ""}),
    article(36000020, {"eli": "https://exemple.test/eli/2"}, common={"ID_ELI": "https://exemple.test/eli/2"}),
]
FORMS = {"CASS": CASS, "INCA": INCA, "CAPP": CAPP, "JADE": JADE, "CONSTIT": CONSTIT, "LEGI": LEGI}
EMPTY = article(36000099, {}, body="")  # abrogated, without a text
OTHERS = {  # files of LEGI that are not documents
    "legi/global/code/LEGITEXT000006072050/texte/struct/LEGITEXT000006072050.xml": b"<TEXTELR><STRUCT/></TEXTELR>",
    "legi/global/code/LEGITEXT000006072050/texte/version/LEGITEXT000006072050.xml": b"<TEXTE_VERSION/>",
    "legi/global/code/LEGITEXT000006072050/section_ta/LEGISCTA000006132319.xml": b"<SECTION_TA/>",
    "legi/global/eli/versions.xml": b"<VERSIONS/>",
}


def write_archive(path: Path, files: dict[str, bytes]) -> Path:
    """Write an archive, gzipped unless its name ends in .tar."""
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def members(files: list[File]) -> dict[str, bytes]:
    """Return files by their paths in an archive."""
    return {file.path: file.xml.encode() for file in files}
