"""Questions about the elections that the Conseil constitutionnel judged: annulments, grounds, sessions, presidents."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from deep_read_questions.form import Question, Row, after, council, plain, question

QUESTIONS: list[Question] = []
OPERATIVE = r"(?:D ?É ?C ?I ?D ?E|Décide) ?[:;]"


@question(
    QUESTIONS,
    """Quelles décisions de 1993 annulent une élection ou déclarent l'élu démissionnaire d'office (solution Annulation,
    seule ou avec inéligibilité), et pour quel motif : compte de campagne (le dispositif déclare inéligible), tract,
    ou liste d'émargement ?""",
    """
    ids = find_documents(juridiction="Conseil constitutionnel", solution="annulation", date_from="1993", date_to="1993")
    numbers = {doc_id: meta["number"] for doc_id, meta in get_doc_metas(ids).items()}
    for doc_id in ids:
        print(numbers[doc_id], get_doc_sections(doc_id)[-5:])
    """,
    r"""
    grounds = {}
    for doc_id in ids:
        ground = "autre"
        if "inéligible" in read_doc_section(doc_id, "Dispositif"):
            ground = "compte de campagne"
        elif grep_document(doc_id, r"\btract\b"):
            ground = "tract"
        elif grep_document(doc_id, "listes? d['’]émargement"):
            ground = "liste d'émargement"
        grounds.setdefault(ground, []).append(numbers[doc_id])
    FINAL({ground: sorted(some) for ground, some in grounds.items()})
    """,
)
def annulments_of_1993_by_ground(rows: Sequence[Row]) -> dict[str, list[str]]:
    grounds: dict[str, list[str]] = defaultdict(list)
    for row in council(rows, "1993", solution="annulation"):
        if "inéligible" in after(OPERATIVE, row["content"]):
            ground = "compte de campagne"
        else:
            ground = "tract" if " tract " in row["content"] else "liste d'émargement"
            assert ground == "tract" or "listes d'émargement" in plain(row["content"])
        grounds[ground].append(row["number"])
    return {ground: sorted(numbers) for ground, numbers in grounds.items()}


@question(
    QUESTIONS,
    """Dans quelles circonscriptions (titre de la décision, département et numéro) l'élection a-t-elle été annulée plus
    d'une fois, et quels jours ?""",
    r"""
    import re
    ids = find_documents(juridiction="Conseil constitutionnel", solution="annulation")
    days = {}
    for meta in get_doc_metas(ids).values():
        place = re.match(r"A\.N\., ?(.+?),? \(?(\d+)\D*circ", meta["title"])
        if place:
            days.setdefault(f"{place[1]} {place[2]}", []).append(meta["date"])
    FINAL({place: sorted(some) for place, some in days.items() if len(some) > 1})
    """,
)
def constituencies_annulled_twice(rows: Sequence[Row]) -> dict[str, list[str]]:
    days: dict[str, list[str]] = defaultdict(list)
    for row in council(rows, solution="annulation"):
        if found := re.match(r"A\.N\.,\s*([^,(]+?)[\s,(]+(\d+)\s*(?:ère|er|ème|e)\s+circ", row["title"]):
            days[f"{found[1]} {found[2]}"].append(row["decision_date"])
    return {place: sorted(some) for place, some in days.items() if len(some) > 1}


@question(
    QUESTIONS,
    """Quelles décisions d'annulation chiffrent l'écart des voix (« écart de 54 voix ») et quel est cet écart, du plus
    petit au plus grand ?""",
    r"""
    ids = find_documents(juridiction="Conseil constitutionnel", solution="annulation")
    found = grep_corpus(r"écart de \d+\s(?:voix|suffrages)", doc_ids=ids)
    print({doc_id: [one["text"] for one in some] for doc_id, some in found.items()})
    """,
    """
    margins = []
    for doc_id, meta in get_doc_metas(found).items():
        for one in found[doc_id]:
            margins.append([meta["number"], int(one["text"].split()[2])])
    FINAL(sorted(margins, key=lambda pair: pair[1]))
    """,
)
def margins_in_annulments(rows: Sequence[Row]) -> list[list[object]]:
    margins = [
        [row["number"], int(found[1])]
        for row in council(rows, solution="annulation")
        for found in re.finditer(r"[ÉEée]cart de (\d+) (?:voix|suffrages)", plain(row["content"]))
    ]
    return sorted(margins, key=lambda pair: pair[1])


@question(
    QUESTIONS,
    """Où les décisions d'annulation rendues depuis le 1er janvier 2012 parlent-elles pour la première fois de la «
    sincérité du scrutin » ? Donner pour chacune les positions de début et de fin.""",
    """
    ids = find_documents(juridiction="Conseil constitutionnel", solution="annulation", date_from="2012-01-01")
    found = grep_corpus("sincérité du scrutin", doc_ids=ids)
    first = {doc_id: some[0] for doc_id, some in found.items()}
    metas = get_doc_metas(found)
    FINAL({metas[doc_id]["number"]: [one["start"], one["end"]] for doc_id, one in first.items()})
    """,
)
def where_sincerity_is_first_named(rows: Sequence[Row]) -> dict[str, list[int]]:
    places = {}
    for row in council(rows, solution="annulation"):
        found = re.search("sincérité du scrutin", row["content"])
        if row["decision_date"] >= "2012" and found:
            places[row["number"]] = [found.start(), found.end()]
    return places


@question(
    QUESTIONS,
    """Mois par mois, combien de décisions de 2018 du Conseil constitutionnel déclarent un candidat inéligible, et
    combien disent qu'il n'y a pas lieu de le faire (d'après leur solution) ?""",
    """
    table = {}
    for place, solution in enumerate(["Inéligibilité", "Non lieu à prononcer l'inéligibilité"]):
        ids = find_documents(juridiction="Cons. const.", date_from="2018", date_to="2018", solution=solution)
        for meta in get_doc_metas(ids).values():
            if meta["solution"] == solution:
                table.setdefault(meta["date"][:7], [0, 0])[place] += 1
    FINAL({month: table[month] for month in sorted(table)})
    """,
)
def outcomes_by_month_of_2018(rows: Sequence[Row]) -> dict[str, list[int]]:
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for row in council(rows, "2018"):
        table[row["decision_date"][:7]][row["solution"]] += 1
    kinds = ("Inéligibilité", "Non lieu à prononcer l'inéligibilité")
    return {month: [table[month][kind] for kind in kinds] for month in sorted(table) if table[month][kinds[0]]}


@question(
    QUESTIONS,
    """Comparer 1993 et 1998 : pour chaque année, combien de décisions du Conseil constitutionnel par solution (« non
    indiquée » où la source n'en donne pas) ?""",
    """
    from collections import Counter
    table = {}
    for year in ("1993", "1998"):
        ids = find_documents(juridiction="Conseil constitutionnel", date_from=year, date_to=year)
        table[year] = Counter(meta["solution"] or "non indiquée" for meta in get_doc_metas(ids).values())
        print(year, len(ids), sum(table[year].values()))
    FINAL(table)
    """,
)
def solutions_of_1993_and_1998(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    return {
        one: dict(Counter(row["solution"] or "non indiquée" for row in council(rows, one))) for one in ("1993", "1998")
    }


@question(
    QUESTIONS,
    """Quelles sont les cinq séances où le Conseil constitutionnel a rendu le plus de décisions, et quelle part de
    déclarations d'inéligibilité (solution Inéligibilité, en pour cent arrondis) chacune compte-t-elle ?""",
    """
    from collections import Counter
    metas = get_doc_metas(find_documents(juridiction="Conseil constitutionnel")).values()
    days = Counter(meta["date"] for meta in metas)
    busiest = days.most_common(5)
    print(busiest)
    """,
    """
    ineligible = Counter(meta["date"] for meta in metas if meta["solution"] == "Inéligibilité")
    FINAL([[day, n, round(100 * ineligible[day] / n)] for day, n in busiest])
    """,
)
def busiest_sessions(rows: Sequence[Row]) -> list[list[object]]:
    days = Counter(row["decision_date"] for row in council(rows))
    ineligible = Counter(row["decision_date"] for row in council(rows) if row["solution"] == "Inéligibilité")
    return [[day, n, round(100 * ineligible[day] / n)] for day, n in days.most_common(5)]


@question(
    QUESTIONS,
    """Qui a présidé les séances depuis 1986 (« …, président » à la fin des décisions : Robert Badinter, Roland Dumas,
    Yves Guéna, Pierre Mazeaud, Jean-Louis Debré, Laurent Fabius) ? Pour chacun, combien de décisions, la première et
    la dernière.""",
    """
    names = "Robert BADINTER|Roland DUMAS|Yves GUÉNA|Pierre MAZEAUD|Jean-Louis DEBRÉ|Laurent FABIUS"
    ids = find_documents(juridiction="Conseil constitutionnel", date_from="1986")
    found = grep_corpus(rf"(?:{names}), ?[Pp]résident", doc_ids=ids, max_docs=None, ignore_case=False)
    print(search_status())
    """,
    """
    metas = get_doc_metas(found)
    sessions = {}
    for doc_id, some in found.items():
        for name in {one["text"].split(",")[0] for one in some}:
            sessions.setdefault(name, []).append(metas[doc_id]["date"])
    FINAL({name: [len(days), min(days), max(days)] for name, days in sessions.items()})
    """,
)
def presidents_and_their_sessions(rows: Sequence[Row]) -> dict[str, list[object]]:
    sessions: dict[str, list[str]] = defaultdict(list)
    names = "Robert BADINTER|Roland DUMAS|Yves GUÉNA|Pierre MAZEAUD|Jean-Louis DEBRÉ|Laurent FABIUS"
    for row in council(rows):
        for name in set(re.findall(rf"({names}), ?[Pp]résident\b", row["content"])):
            sessions[name].append(row["decision_date"])
    return {name: [len(days), min(days), max(days)] for name, days in sessions.items()}
