"""Questions about campaign accounts: who was declared ineligible, why, for how long, how fast, and how often."""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date

from deep_read_questions.form import MONTHS, Question, Row, after, council, plain, question, year

QUESTIONS: list[Question] = []
OPERATIVE = r"(?:D ?É ?C ?I ?D ?E|Décide) ?[:;]"
INELIGIBLE = "Inéligibilité"


@question(
    QUESTIONS,
    """Sur les décisions de 1993 de solution Inéligibilité, combien retiennent que le candidat « n'avait pas fait
    parvenir de compte de campagne », combien que le compte « n'a pas été présenté par un membre de l'ordre des
    experts-comptables », et combien ni l'un ni l'autre ?""",
    """
    ids = find_documents(solution="inéligibilité", date_from="1993", date_to="1993")
    ids = [one for one, meta in get_doc_metas(ids).items() if meta["solution"] == "Inéligibilité"]
    missing = grep_corpus("n['’]avait pas fait parvenir de compte de campagne", doc_ids=ids, max_docs=None)
    audit = "n['’]a pas été présenté par un membre de l['’]ordre des experts[- ]comptables"
    unaudited = grep_corpus(audit, doc_ids=ids, max_docs=None)
    print(len(ids), len(missing), len(unaudited), search_status())
    """,
    """
    only_unaudited = set(unaudited) - set(missing)
    rest = len(ids) - len(missing) - len(only_unaudited)
    FINAL({"sans compte": len(missing), "sans expert-comptable": len(only_unaudited), "autre": rest})
    """,
)
def grounds_of_ineligibility_in_1993(rows: Sequence[Row]) -> dict[str, int]:
    count: Counter[str] = Counter()
    for row in (row for row in council(rows, "1993") if row["solution"] == INELIGIBLE):
        text = plain(row["content"])
        missing = "n'avait pas fait parvenir de compte de campagne" in text
        unaudited = re.search("n'a pas été présenté par un membre de l'ordre des experts[- ]comptables", text)
        count["sans compte" if missing else "sans expert-comptable" if unaudited else "autre"] += 1
    return dict(count)


@question(
    QUESTIONS,
    """Quels candidats (nom entier) ont été déclarés inéligibles par le dispositif de décisions d'années différentes, et
    en quelles années ?""",
    r"""
    import re
    ids = find_documents(juridiction="Conseil constitutionnel", solution="inéligibilité")
    found = grep_corpus(r"(?:M\.|Mme|Mlle) [^.,;\n]{5,60}? est déclarée? inéligible", doc_ids=ids, max_docs=None)
    years = {}
    for doc_id, meta in get_doc_metas(found).items():
        for one in found[doc_id]:
            name = re.sub(r"^\S+ | est déclarée? inéligible$", "", one["text"]).upper().replace("’", "'")
            years.setdefault(name, set()).add(meta["date"][:4])
    FINAL({name: sorted(some) for name, some in years.items() if len(some) > 1})
    """,
)
def candidates_sanctioned_in_two_years(rows: Sequence[Row]) -> dict[str, list[str]]:
    years: dict[str, set[str]] = defaultdict(set)
    for row in council(rows, solution="inéligibilité"):
        for found in re.finditer(r"(?:M\.|Mme|Mlle) ([^.,;\n]{5,60}?) est déclarée? inéligible", plain(row["content"])):
            years[found[1].upper()].add(year(row))
    return {name: sorted(some) for name, some in years.items() if len(some) > 1}


@question(
    QUESTIONS,
    """Comparer 2018 et 2023 : pour chaque année, combien de dispositifs fixent une inéligibilité d'un an, combien une
    inéligibilité de trois ans ?""",
    r"""
    table = {}
    for year in ("2018", "2023"):
        table[year] = {"d'un an": 0, "de trois ans": 0}
        ids = find_documents(juridiction="Conseil constitutionnel", date_from=year, date_to=year)
        heads = grep_corpus("CONSEIL CONSTITUTIONNEL DÉCIDE", doc_ids=ids, max_docs=None)
        terms = grep_corpus(r"inéligible[^\n]* pour une durée (?:d['’]un an|de trois ans)", doc_ids=ids, max_docs=None)
        for doc_id, some in terms.items():
            ruled = [one["text"] for one in some if one["start"] > heads[doc_id][-1]["end"]]
            for term in table[year]:
                table[year][term] += any(text.replace("’", "'").endswith(term) for text in ruled)
    FINAL(table)
    """,
)
def terms_of_ineligibility_in_2018_and_2023(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    terms: dict[str, Counter[str]] = defaultdict(Counter)
    for row in council(rows, "2018", "2023"):
        operative = plain(after(OPERATIVE, row["content"]))
        if found := re.search(r"inéligible[^\n]* pour une durée (d'un an|de trois ans)", operative):
            terms[year(row)][found[1]] += 1
    return {one: dict(count) for one, count in terms.items()}


@question(
    QUESTIONS,
    """Combien de jours, en médiane, séparent la saisine (« Le Conseil constitutionnel a été saisi le … ») de la
    décision, pour les décisions de 2017, 2018, 2022 et 2023 qui donnent ce jour ?""",
    r"""
    import re, statistics
    from datetime import date
    MONTHS = "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split()
    days = {}
    for year in ("2017", "2018", "2022", "2023"):
        ids = find_documents(juridiction="Conseil constitutionnel", date_from=year, date_to=year)
        seizure = r"\ALE CONSEIL CONSTITUTIONNEL A ÉTÉ SAISI le \d+(?:er)?\s\w+\s\d{4}"
        found = grep_corpus(seizure, doc_ids=ids, max_docs=None)
        for doc_id, meta in get_doc_metas(found).items():
            day, month, of_year = re.search(r"(\d+)(?:er)?\s(\w+)\s(\d{4})$", found[doc_id][0]["text"]).groups()
            seized = date(int(of_year), MONTHS.index(month) + 1, int(day))
            days.setdefault(year, []).append((date.fromisoformat(meta["date"]) - seized).days)
    FINAL({year: statistics.median(some) for year, some in days.items()})
    """,
)
def median_days_to_a_decision(rows: Sequence[Row]) -> dict[str, float]:
    days: dict[str, list[int]] = defaultdict(list)
    for row in council(rows, "2017", "2018", "2022", "2023"):
        seizure = r"LE CONSEIL CONSTITUTIONNEL A ÉTÉ SAISI le (\d+)(?:er)? (\w+) (\d{4})"
        found = re.match(seizure, plain(row["content"]), re.IGNORECASE)
        if found:
            seized = date(int(found[3]), MONTHS.index(found[2]) + 1, int(found[1]))
            days[year(row)].append((date.fromisoformat(row["decision_date"]) - seized).days)
    return {one: statistics.median(some) for one, some in days.items()}


@question(
    QUESTIONS,
    """Dans quelles décisions Yves Conroy est-il partie, avec leur date et leur solution, dans l'ordre du temps ?""",
    """
    ids = find_documents(entites="partie=Yves Conroy")
    print(len(ids), len(search_by_entity("Conroy")))
    FINAL(sorted([meta["date"], meta["number"], meta["solution"]] for meta in get_doc_metas(ids).values()))
    """,
)
def decisions_on_one_candidate(rows: Sequence[Row]) -> list[list[str]]:
    found = [row for row in rows if re.search(r"\byves conroy\b", row["content"], re.IGNORECASE)]
    return sorted([row["decision_date"], row["number"], row["solution"]] for row in found)


@question(
    QUESTIONS,
    """Quelles décisions que leur source range sous la solution Inéligibilité disent au contraire, dans leur dispositif,
    qu'il n'y a pas lieu de déclarer le candidat inéligible ?""",
    r"""
    ids = find_documents(juridiction="Conseil constitutionnel", solution="inéligibilité")
    metas = get_doc_metas(ids)
    filed = {doc_id: meta["number"] for doc_id, meta in metas.items() if meta["solution"] == "Inéligibilité"}
    denied = r"n['’]y a pas lieu de (?:déclarer|prononcer)[^.\n]*inéligib"
    found = grep_corpus(denied, doc_ids=list(filed), max_docs=None)
    print(len(filed), len(found))
    """,
    """
    wrong = []
    for doc_id in found:
        begins = min(one["char_start"] for one in get_entities(doc_id, ["dispositif"]))
        if any(one["start"] >= begins for one in found[doc_id]):
            wrong.append(filed[doc_id])
    FINAL(sorted(wrong))
    """,
)
def decisions_filed_under_the_wrong_outcome(rows: Sequence[Row]) -> list[str]:
    denied = r"n'y a pas lieu de (?:déclarer|prononcer)[^.\n]*(?:inéligib)"
    ineligible = [row for row in council(rows) if row["solution"] == INELIGIBLE]
    found = [row for row in ineligible if re.search(denied, plain(after(OPERATIVE, row["content"])))]
    return sorted(row["number"] for row in found)


@question(
    QUESTIONS,
    """En 1993, 2018 et 2023, combien de décisions de solution Inéligibilité notent que le candidat « n'a pas produit
    d'observations », et quelle part est-ce (en pour cent, une décimale) ?""",
    """
    table = {}
    for year in ("1993", "2018", "2023"):
        ids = find_documents(solution="inéligibilité", date_from=year, date_to=year)
        ids = [one for one, meta in get_doc_metas(ids).items() if meta["solution"] == "Inéligibilité"]
        silent = grep_corpus("n['’]a pas produit d['’]observations", doc_ids=ids, max_docs=None)
        table[year] = [len(silent), round(100 * len(silent) / len(ids), 1)]
    FINAL(table)
    """,
)
def candidates_who_kept_silent(rows: Sequence[Row]) -> dict[str, list[float]]:
    table = {}
    for one in ("1993", "2018", "2023"):
        texts = [plain(row["content"]) for row in council(rows, one) if row["solution"] == INELIGIBLE]
        silent = sum("n'a pas produit d'observations" in text for text in texts)
        table[one] = [silent, round(100 * silent / len(texts), 1)]
    return table


@question(
    QUESTIONS,
    """Les décisions de 2008 rapportent souvent les sommes irrégulières au plafond des dépenses (« 3,93 % du plafond »).
    Combien de ces pourcentages donnent-elles, quelle est leur médiane, quel est le plus grand et dans quelle
    décision ?""",
    r"""
    import statistics
    ids = find_documents(juridiction="Conseil constitutionnel", date_from="2008", date_to="2008")
    found = grep_corpus(r"\d+(?:,\d+)?\s?% du plafond", doc_ids=ids, max_docs=None)
    print([one["text"] for some in found.values() for one in some][:10])
    """,
    """
    shares = []
    for doc_id, meta in get_doc_metas(found).items():
        for one in found[doc_id]:
            shares.append((float(one["text"].split("%")[0].replace(",", ".")), meta["number"]))
    FINAL([len(shares), statistics.median(share for share, _ in shares), *max(shares)])
    """,
)
def shares_of_the_ceiling_in_2008(rows: Sequence[Row]) -> list[object]:
    shares = [
        (float(found[1].replace(",", ".")), row["number"])
        for row in council(rows, "2008")
        for found in re.finditer(r"(\d+(?:,\d+)?) ?% du plafond", plain(row["content"]))
    ]
    return [len(shares), statistics.median(share for share, _ in shares), *max(shares)]


@question(
    QUESTIONS,
    """Combien de décisions du Conseil constitutionnel citent les articles L. 49, L. 52-1 et L. 62-1 du code électoral
    en 2002, 2007, 2012, 2017 et 2022 ?""",
    """
    table = {}
    for article in ("L. 49", "L. 52-1", "L. 62-1"):
        table[article] = []
        for year in ("2002", "2007", "2012", "2017", "2022"):
            citing = find_documents(article=f"{article} du code électoral", date_from=year, date_to=year)
            courts = [meta["juridiction"] for meta in get_doc_metas(citing).values()]
            table[article].append(courts.count("Conseil constitutionnel"))
    FINAL(table)
    """,
)
def articles_of_the_electoral_code_by_year(rows: Sequence[Row]) -> dict[str, list[int]]:
    table = {}
    for article in ("49", "52-1", "62-1"):
        named = re.compile(rf"(?<![\w-])L\.? ?{article}(?![\d-])")
        table[f"L. {article}"] = [
            sum(bool(named.search(plain(row["content"]))) for row in council(rows, one))
            for one in ("2002", "2007", "2012", "2017", "2022")
        ]
    return table


@question(
    QUESTIONS,
    """Quels élus ont été déclarés démissionnaires d'office par le Conseil constitutionnel, et par quelle décision ?""",
    r"""
    import re
    resigned = r"(?:M\.|Mme|Mlle) [^.,;\n]{3,40}? est(?: également)? déclarée? démissionnaire d['’]office"
    found = grep_corpus(resigned, max_docs=None)
    lost = []
    for doc_id, meta in get_doc_metas(found).items():
        for one in found[doc_id]:
            lost.append([meta["number"], re.match(r"\S+ (.+?) est(?: également)? déclaré", one["text"])[1]])
    FINAL(sorted(lost))
    """,
)
def members_who_lost_their_seat(rows: Sequence[Row]) -> list[list[str]]:
    found = [
        [row["number"], named[1]]
        for row in council(rows)
        for named in re.finditer(
            r"(?:M\.|Mme|Mlle) ([^.,;\n]{3,40}?) est(?: également)? déclarée? démissionnaire d'office",
            plain(row["content"]),
        )
    ]
    return sorted(found)
