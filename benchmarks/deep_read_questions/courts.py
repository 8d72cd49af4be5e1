"""Questions about the Cour de cassation and the cours d'appel: who decided, for whom, by what, and how much."""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence

from deep_read_questions.form import CASSATION, Question, Row, after, chamber, plain, question

QUESTIONS: list[Question] = []
FIRMS = ("Gatineau, Fattaccini et Rebeyrol", "Thouvenin, Coudray et Grévy")


def appeals(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["juridiction"].startswith("Cour d'appel")]


@question(
    QUESTIONS,
    """De quelles cours d'appel viennent les arrêts attaqués devant la chambre sociale (« l'arrêt rendu le … par la cour
    d'appel de … »), pour celles qui en comptent au moins deux ?""",
    r"""
    import re
    from collections import Counter
    ids = find_documents(juridiction="Cass. soc.")
    named = r"rendue? le [^()\n]{5,30} par la cour d['’]appel (?:de |d['’])[A-ZÀ-Ý]\w+(?:-\w+)*"
    found = grep_corpus(named, doc_ids=ids, max_docs=None, ignore_case=False)
    origins = Counter(re.split(r"appel (?:de |d['’])", some[0]["text"])[1] for some in found.values())
    print(len(ids), origins)
    """,
    """
    FINAL({court: n for court, n in origins.items() if n > 1})
    """,
)
def courts_that_the_labour_chamber_reviews(rows: Sequence[Row]) -> dict[str, int]:
    origins: Counter[str] = Counter()
    for row in chamber(rows):
        named = r"rendue? le [^()\n]{5,30} par la cour d'appel (?:de |d')([A-ZÀ-Ý]\w+(?:-\w+)*)"
        if found := re.search(named, plain(row["content"])):
            origins[found[1]] += 1
    return {court: n for court, n in origins.items() if n > 1}


@question(
    QUESTIONS,
    """Dans quels arrêts de la chambre sociale interviennent à la fois les cabinets Gatineau, Fattaccini et Rebeyrol et
    Thouvenin, Coudray et Grévy, et combien de ces pourvois ont abouti à une cassation, même partielle ?""",
    """
    firms = ["Gatineau, Fattaccini et Rebeyrol", "Thouvenin, Coudray et Grévy"]
    ids = find_documents(juridiction="Cass. soc.", entites=" ; ".join(f"avocat={firm}" for firm in firms))
    for doc_id in ids[:3]:
        print(doc_id, [one["extraction_text"] for one in get_entities(doc_id, ["avocat"])])
    """,
    """
    metas = get_doc_metas(ids).values()
    quashed = [meta for meta in metas if meta["solution"].startswith("Cassation")]
    FINAL({"arrêts": sorted(meta["number"] for meta in metas), "cassations": len(quashed)})
    """,
)
def cases_where_two_firms_met(rows: Sequence[Row]) -> dict[str, object]:
    met = [row for row in chamber(rows) if all(firm.lower() in row["content"].lower() for firm in FIRMS)]
    quashed = sum(row["solution"].startswith("Cassation") for row in met)
    return {"arrêts": sorted(row["number"] for row in met), "cassations": quashed}


@question(
    QUESTIONS,
    """Quelles sommes en euros les dispositifs des arrêts de la chambre sociale (de « PAR CES MOTIFS » à « Ainsi fait et
    jugé ») portent-ils : combien, quelle médiane, quelle est la plus fréquente et combien de fois, et la plus haute
    ?""",
    """
    import statistics
    from collections import Counter
    ids = find_documents(juridiction="Cour de cassation", formation="chambre sociale")
    opened = grep_corpus("PAR CES MOTIFS", doc_ids=ids, max_docs=None, ignore_case=False)
    closed = grep_corpus("Ainsi fait et jugé", doc_ids=ids, max_docs=None, ignore_case=False)
    print(len(ids), len(opened), len(closed))
    """,
    """
    sums = []
    for doc_id in ids:
        for one in get_entities(doc_id, ["montant"]):
            if opened[doc_id][0]["end"] <= one["char_start"] < closed[doc_id][0]["start"]:
                sums.append(float(one["attributes"]["valeur"]))
    FINAL([len(sums), statistics.median(sums), *Counter(sums).most_common(1)[0], max(sums)])
    """,
)
def sums_in_labour_rulings(rows: Sequence[Row]) -> list[float]:
    sums = []
    for row in chamber(rows):
        text = plain(row["content"])
        operative = text[text.index("PAR CES MOTIFS") : text.index("Ainsi fait et jugé")]
        for found in re.finditer(r"(\d[\d .]*(?:,\d+)?) ?(?:euros|€)", operative):
            sums.append(float(re.sub(r"[ .]", "", found[1]).replace(",", ".")))
    return [len(sums), statistics.median(sums), *Counter(sums).most_common(1)[0], max(sums)]


@question(
    QUESTIONS,
    """Quels sont les douze arrêts les plus récents de la Cour de cassation qui citent l'article L. 2314-30 du code du
    travail (un par numéro), et combien d'entre eux citent aussi l'article L. 2314-32 ?""",
    """
    found = find_documents(juridiction="Cour de cassation", article="L. 2314-30 du code du travail")
    by_number = {meta["number"]: meta for meta in get_doc_metas(found).values()}
    last = sorted(by_number.values(), key=lambda meta: (meta["date"], meta["number"]))[-12:]
    print([(meta["number"], meta["date"], meta["solution"]) for meta in last])
    """,
    """
    also = find_documents(article="L. 2314-32 du code du travail", doc_ids=[meta["doc_id"] for meta in last])
    FINAL([[meta["number"] for meta in last], len(also)])
    """,
)
def the_last_twelve_rulings_on_an_article(rows: Sequence[Row]) -> list[object]:
    def cites(row: Row, article: str) -> bool:
        return re.search(rf"L\. ?{article}(?![\d-])", plain(row["content"])) is not None

    found = [row for row in rows if row["juridiction"] == CASSATION and cites(row, "2314-30")]
    by_number = {row["number"]: row for row in found}
    last = sorted(by_number.values(), key=lambda row: (row["decision_date"], row["number"]))[-12:]
    return [[row["number"] for row in last], sum(cites(row, "2314-32") for row in last)]


@question(
    QUESTIONS,
    """Quelles formations de la Cour de cassation ont eu à connaître d'une « question prioritaire de constitutionnalité
    », combien de fois, et combien de ces arrêts la renvoient au Conseil constitutionnel (solution) ?""",
    """
    ids = find_documents(juridiction="Cour de cassation")
    found = grep_corpus("question prioritaire de constitutionnalité", doc_ids=ids, max_docs=None)
    table = {}
    for meta in get_doc_metas(found).values():
        row = table.setdefault(meta["formation"], [0, 0])
        row[0] += 1
        row[1] += meta["solution"].lower() in ("qpc renvoi", "qpc - renvoi au conseil constitutionnel")
    FINAL(table)
    """,
)
def constitutional_questions_by_chamber(rows: Sequence[Row]) -> dict[str, list[int]]:
    table: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        if row["juridiction"] == CASSATION and "question prioritaire de constitutionnalité" in row["content"]:
            sent = re.match(r"QPC (?:- )?renvoi", row["solution"], re.IGNORECASE) is not None
            table[row["formation"]][0] += 1
            table[row["formation"]][1] += sent
    return dict(table)


@question(
    QUESTIONS,
    """Dans les quatre cours d'appel qui comptent le plus d'arrêts, combien de dispositifs (après le dernier « PAR CES
    MOTIFS ») emploient « confirme », combien « infirme » ou « réforme » ?""",
    """
    from collections import defaultdict
    by_court = defaultdict(list)
    for doc_id, meta in get_doc_metas(find_documents(juridiction="cour d'appel")).items():
        by_court[meta["juridiction"]].append(doc_id)
    busiest = sorted(by_court, key=lambda court: -len(by_court[court]))[:4]
    print({court: len(by_court[court]) for court in busiest})
    """,
    r"""
    table = {}
    for court in busiest:
        opened = grep_corpus(r"par\s+ces\s+motifs", doc_ids=by_court[court])
        table[court] = []
        for words in (r"\bconfirme\b", r"\b(?:infirme|réforme)\b"):
            found = grep_corpus(words, doc_ids=list(opened))
            ruled = [one for one in found if found[one][-1]["start"] > opened[one][-1]["end"]]
            table[court].append(len(ruled))
    FINAL(table)
    """,
)
def outcomes_of_the_busiest_appeal_courts(rows: Sequence[Row]) -> dict[str, list[int]]:
    by_court: dict[str, list[str]] = defaultdict(list)
    for row in appeals(rows):
        by_court[row["juridiction"]].append(after(r"(?i)par\s+ces\s+motifs", row["content"]).lower())
    largest = sorted(by_court, key=lambda court: -len(by_court[court]))[:4]
    return {
        court: [
            sum(re.search(rf"\b(?:{words})\b", text) is not None for text in by_court[court])
            for words in ("confirme", "infirme|réforme")
        ]
        for court in largest
    }


@question(
    QUESTIONS,
    """Parmi les arrêts de cour d'appel qui parlent d'un piéton, d'un cycliste ou d'une motocyclette, quelle part (en
    pour cent arrondis) évoque une « faute inexcusable » de la victime ?""",
    """
    ids = find_documents(juridiction="cour d'appel")
    fault = grep_corpus("faute inexcusable", doc_ids=ids, max_docs=None)
    table = {}
    for victim in ("piéton", "cycliste", "motocyclette"):
        found = grep_corpus(victim, doc_ids=ids, max_docs=None)
        table[victim] = [len(found), round(100 * len(set(found) & set(fault)) / len(found))]
    FINAL(table)
    """,
)
def inexcusable_fault_by_victim(rows: Sequence[Row]) -> dict[str, list[int]]:
    table = {}
    for victim in ("piéton", "cycliste", "motocyclette"):
        texts = [row["content"].lower() for row in appeals(rows) if victim in row["content"].lower()]
        fault = sum("faute inexcusable" in text for text in texts)
        table[victim] = [len(texts), round(100 * fault / len(texts))]
    return table


@question(
    QUESTIONS,
    """Quelle juridiction cite le plus l'article L. 211-13 du code des assurances, et combien de ses décisions le citent
    ? Donner les trois premières.""",
    """
    from collections import Counter
    ids = documents_citing("article L. 211-13 du code des assurances")
    courts = Counter(meta["juridiction"] for meta in get_doc_metas(ids).values())
    FINAL(sorted(([court, n] for court, n in courts.items()), key=lambda pair: (-pair[1], pair[0]))[:3])
    """,
)
def courts_that_cite_an_article_most(rows: Sequence[Row]) -> list[list[object]]:
    courts = Counter(row["juridiction"] for row in rows if re.search(r"L\.? ?211-13(?![\d-])", plain(row["content"])))
    return sorted(([court, n] for court, n in courts.items()), key=lambda pair: (-pair[1], pair[0]))[:3]
