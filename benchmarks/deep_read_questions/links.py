"""Questions that join decisions: who cites whom, what was rectified, and one decision found by what it is about."""

import re
from collections.abc import Sequence
from datetime import date

from deep_read_questions.form import CASSATION, Question, Row, council, question

QUESTIONS: list[Question] = []
APPEAL = r"\b\d\d-\d\d[. ]?\d{3}\b"
REVISITED = ("93-1321/1498", "2017-5126")


def cites(row: Row, number: str) -> bool:
    """Tell whether a text holds a number that is no part of a longer one."""
    if number not in row["content"]:
        return False
    return re.search(rf"(?<![\d/-]){re.escape(number)}(?![\d/]|R\b)", row["content"]) is not None


@question(
    QUESTIONS,
    """Quels arrêts de la Cour de cassation sont cités, par leur numéro de pourvoi, dans un arrêt plus récent de la même
    Cour, et par lequel ? Donner les paires (cité, citant) dans l'ordre des numéros.""",
    """
    metas = get_doc_metas(find_documents(juridiction="Cour de cassation"))
    pairs = []
    for doc_id, meta in metas.items():
        for cited in get_links(doc_id)["cites"]:
            if cited in metas and metas[cited]["date"] < meta["date"]:
                pairs.append([metas[cited]["number"], meta["number"]])
    FINAL(sorted(pairs))
    """,
)
def rulings_cited_by_later_rulings(rows: Sequence[Row]) -> list[list[str]]:
    rulings = [row for row in rows if row["juridiction"] == CASSATION]
    own = {re.sub(r"\W", "", row["number"]): row for row in rulings}
    pairs = set()
    for row in rulings:
        for found in re.findall(APPEAL, row["content"]):
            cited = own.get(re.sub(r"\W", "", found))
            if cited and cited["decision_date"] < row["decision_date"]:
                pairs.add((cited["number"], row["number"]))
    return sorted(map(list, pairs))


@question(
    QUESTIONS,
    """Quelles décisions ont été rectifiées pour erreur matérielle par une décision de cette solution, et combien de
    jours après avoir été rendues ? Donner rectifiée, rectificative et délai.""",
    """
    from datetime import date
    ids = find_documents(juridiction="Conseil constitutionnel", solution="rectification")
    links = {doc_id: get_links(doc_id)["cites"] for doc_id in ids}
    print(links)
    """,
    """
    metas = get_doc_metas(ids + [one for some in links.values() for one in some])
    found = []
    for doc_id, some in links.items():
        for one in some:
            days = date.fromisoformat(metas[doc_id]["date"]) - date.fromisoformat(metas[one]["date"])
            found.append([metas[one]["number"], metas[doc_id]["number"], days.days])
    FINAL(sorted(found))
    """,
)
def rectified_decisions_and_the_delay(rows: Sequence[Row]) -> list[list[object]]:
    found = []
    for rectifying in council(rows, solution="rectification"):
        for row in council(rows):
            if row is not rectifying and cites(rectifying, row["number"]):
                days = date.fromisoformat(rectifying["decision_date"]) - date.fromisoformat(row["decision_date"])
                found.append([row["number"], rectifying["number"], days.days])
    return sorted(found)


@question(
    QUESTIONS,
    """Quelles décisions citent celle qui a déclaré inéligible M. Pierre-Bloch (n° 93-1321/1498) et celle qui a annulé
    une élection pour 54 voix (n° 2017-5126), et quelle fut leur solution ?""",
    """
    table = {}
    for number in ("93-1321/1498", "2017-5126"):
        citing = get_doc_metas(documents_citing(f"décision n° {number}")).values()
        table[number] = sorted([meta["number"], meta["solution"]] for meta in citing if meta["number"] != number)
    FINAL(table)
    """,
)
def what_became_of_two_decisions(rows: Sequence[Row]) -> dict[str, list[list[str]]]:
    return {
        number: sorted(
            [row["number"], row["solution"]] for row in rows if row["number"] != number and cites(row, number)
        )
        for number in REVISITED
    }


@question(
    QUESTIONS,
    """Quelle décision a annulé une élection à cause d'un tract imputant à l'ancien ministre de la santé le drame de la
    transfusion sanguine ? Citer ce que le tract contenait.""",
    """
    question = "tract imputant à l'ancien ministre de la santé le drame de la transfusion sanguine"
    hits = search_passages(question, k=2, solution="annulation")
    for hit in hits:
        print(hit["doc_id"], hit["text"])
    """,
    """
    doc_id = hits[0]["doc_id"]
    (place,) = grep_document(doc_id, "allégation nouvelle imputant à l'action ministérielle de M. Evin")
    FINAL(f"Le tract contenait une « {place['text']} » [Source: {doc_id}, chars {place['start']}-{place['end']}].")
    """,
)
def the_decision_on_a_slanderous_leaflet(rows: Sequence[Row]) -> str:
    (row,) = (row for row in council(rows, solution="annulation") if "transfusion sanguine" in row["content"])
    words = "allégation nouvelle imputant à l'action ministérielle de M. Evin"
    start = row["content"].index(words)
    return f"Le tract contenait une « {words} » [Source: {row['id']}, chars {start}-{start + len(words)}]."
