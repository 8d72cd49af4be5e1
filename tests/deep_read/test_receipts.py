"""Which answers of programs are the values of receipts: those that name what they are, and never a disguise."""

import re
import textwrap
import time

import pytest
from support.indexed_corpora import indexed

from legal_rag.base.text import normalized
from legal_rag.citations.markers import NOT_A_RECEIPT, check_receipts
from legal_rag.citations.plain import read_plain, without_hidden
from legal_rag.corpus_index import CorpusIndex
from legal_rag.deep_read import Limits, Sandbox, create_multi_doc_env
from legal_rag.deep_read.prompts import Sizes, answer_text, system_prompt


class Model:
    """A sub-model that names true documents, dates and numbers."""

    name = "m"

    def __init__(self, library):
        self._library = library

    def query(self, prompt):
        known = self._library.document(list(self._library)[4])
        return {"id": known.id, "date": known.decision_date}.get(prompt, "37")


@pytest.fixture
def account(tiny_library):
    """Run a program over the small Library, and judge what it gives to FINAL."""

    def running(program, *, is_cited=lambda text: False, index=None):
        env = create_multi_doc_env(index or CorpusIndex.open(tiny_library), Model(tiny_library))
        given = []
        functions = {**env.functions, "FINAL": lambda value="": given.append(value)}
        with Sandbox(functions, values={**env.values, "context": "42 décisions, dont 17 de 1985"}) as sandbox:
            result = sandbox.run(program)
        if not given:
            pytest.fail(result.error)

        def bears_out(before, name):
            found = env.receipts.bears_out(before, name)
            return found and found.shown

        running.shown = check_receipts(answer_text(given[0]), bears_out)  # as the enricher does at last
        return env.receipts.account_for(given[0], is_cited)

    return running


METAS = "metas = get_doc_metas()\nfrom collections import Counter\n"

COURT = "ids = find_documents(juridiction='Cour de cassation')\n"
# Twenty programs that count by the functions: what each of its answer's values is, in the words of a receipt.
FOUND = "décisions rendues par find_documents(juridiction~'cassation')"
BY_FUNCTIONS = {
    "FINAL(count(list_documents()))": "nombre des documents du corpus",
    "FINAL(total_docs)": "nombre de documents du corpus",
    "FINAL(count(doc_ids))": "nombre des documents du corpus",
    COURT + "FINAL(count(ids))": f"nombre des {FOUND}",
    COURT + "FINAL(count(ids[::-1]))": f"nombre des {FOUND}",
    COURT + "FINAL({'réponse': count(ids), 'reçus': [receipt()]})": f"nombre des {FOUND}",
    COURT + "FINAL([count(ids), ids])": f"nombre des {FOUND}",
    COURT + "FINAL(table(ids, 'solution'))": f"nombre par solution des {FOUND}",
    COURT + "FINAL(table(get_doc_metas(ids), 'année', 'solution'))": f"nombre par année et solution des {FOUND}",
    COURT + "FINAL(most_common(ids, 'formation', 2))": "les 2 valeurs les plus fréquentes (et 1 à égalité",
    COURT + "g = group_by(ids, 'solution')\nFINAL([count(g[s]) for s in g])": "dont le champ solution est « ",
    COURT + "g = group_by(ids, 'solution')\nFINAL({'réponse': g[max(g)], 'reçus': [receipt(g)]})": "dont le champ",
    COURT + "g = group_by(ids, 'solution')\nFINAL(sorted(g[max(g)]))": "décisions dont le champ solution est « ",
    "d = doc_ids[3]\nm = get_doc_meta(d)\nFINAL({'réponse': m['solution'], 'reçus': [receipt(m)]})": "solution : fiche",
    COURT + "FINAL(earliest(ids))": f"décision la plus ancienne parmi les {FOUND}",
    COURT + "e = latest(ids)\nFINAL({'réponse': e['date'], 'reçus': [receipt(e)]})": f"parmi les {FOUND}",
    COURT + "FINAL(share(ids, doc_ids))": f"part, parmi les documents du corpus, des {FOUND}",
    "f = grep_corpus('élection', max_docs=None)\nFINAL(count(f))": "nombre des décisions rendues par grep_corpus(",
    "FINAL(count(grep_corpus('compte', max_docs=None, max_matches_per_doc=None), 'occurrences'))": "occurrences des",
    COURT + "FINAL(count(list(grep_corpus('licenciement', doc_ids=ids, max_docs=None))))": f"parmi les {FOUND}",
    COURT + "t = table(ids, 'année')\nFINAL({'réponse': t[0], 'reçus': [receipt(t)]})": f"nombre par année des {FOUND}",
    "FINAL(get_topics())": "thèmes rendus par get_topics()",
}


@pytest.mark.parametrize("program", BY_FUNCTIONS)
def test_what_the_functions_counted_is_computed_and_says_what_it_is(account, program):
    judged = account(METAS + program)
    assert judged.is_computed, judged
    assert BY_FUNCTIONS[program] in judged.receipts[0].said


# What a program counts by hand may be right: it is computed only where it is a receipt's own value all the same.
BY_HAND = [
    "FINAL(len(list_documents()))",
    "FINAL(total_docs)",
    "FINAL({'nombre': len(find_documents(juridiction='Cour de cassation'))})",
    "FINAL({str(y): len(find_documents(date_from=f'{y}-01-01', date_to=f'{y}-12-31')) for y in range(1980, 1995)})",
    METAS + "FINAL(Counter(m['date'][:4] for m in metas.values()))",
    METAS + "FINAL(sorted(Counter(m['juridiction'] for m in metas.values()).items()))",
    METAS + "FINAL(min(m['date'] for m in metas.values() if m['date']))",
    METAS + "FINAL(sorted({m['solution'] for m in metas.values() if m['solution']}))",
    METAS + "FINAL(sum(m['char_count'] for m in metas.values()))",
    METAS + "FINAL([{'doc_id': i, 'titre': m['title'], 'date': m['date']} for i, m in metas.items()])",
    METAS + "FINAL([i for i, m in metas.items() if m['date'][:4] == '1993' and m['doc_type'] == 'AN'])",
    METAS
    + "c = {}\nfor m in metas.values():\n    c.setdefault(m['juridiction'], Counter())[m['date'][:4]] += 1\nFINAL(c)",
    "FINAL(find_documents(juridiction='Cour de cassation'))",
    "FINAL([i for i, *_ in rank_documents('compte de campagne', top_k=8)][:3])",
    "f = grep_corpus('élection', max_docs=None, max_matches_per_doc=None)\nFINAL(sum(map(len, f.values())))",
    "f = grep_corpus('élection', max_docs=None, max_matches_per_doc=None)\nFINAL({i: len(m) for i, m in f.items()})",
    "n = {i: len(get_links(i)['cited_by']) for i in list_documents()}\nFINAL(max(n, key=lambda i: n[i]))",
    "a, b = set(search_by_keyword('élection')), set(find_documents(date_from='1988'))\nFINAL({'nombre': len(a & b)})",
    "a, b = grep_corpus('élection', max_docs=None), find_documents(date_from='1988')\nFINAL([i for i in a if i in b])",
    "FINAL(get_doc_meta(doc_ids[3])['date'])",
    "FINAL(get_topics())",
    METAS + "FINAL(sorted(m['number'] for m in metas.values() if m['number']))",
    METAS + "some = [i for i, m in metas.items() if m['juridiction'] == 'Cour de cassation']\n"
    "FINAL({'nombre': len(grep_corpus('licenciement', doc_ids=some, max_docs=None))})",
    "FINAL(find_documents(date_from='2099'))",
    "FINAL({'passages': 1} and [{'doc_id': p['doc_id'], 'date': p['date'], 'score': p['score']} for p in "
    "search_passages('élection', k=3)][:1])",
]


# Of these forty and more some give a whole receipt's value: the corpus's size, a list in its own order.
SAME_AS_A_RECEIPT = {
    "FINAL(len(list_documents()))",
    "FINAL(total_docs)",
    METAS + "FINAL(sum(m['char_count'] for m in metas.values()))",
    "FINAL(find_documents(juridiction='Cour de cassation'))",
    "a, b = grep_corpus('élection', max_docs=None), find_documents(date_from='1988')\nFINAL([i for i in a if i in b])",
    "FINAL(get_topics())",
    "FINAL(find_documents(date_from='2099'))",
}


@pytest.mark.parametrize("program", BY_HAND)
def test_what_a_program_counts_by_hand_is_computed_only_as_the_value_of_a_receipt(account, program):
    judged = account(program)
    assert judged.is_computed == (program in SAME_AS_A_RECEIPT), judged


# `ID`, `OTHER`: two documents of unlike dates; `N` and `M`: their lengths. Everything is in reach of each program.
SETUP = METAS + (
    "ids = list_documents()\n"
    "ID, *_, OTHER = sorted(ids, key=lambda i: metas[i]['date'])\n"
    "N, M = metas[ID]['char_count'], metas[OTHER]['char_count']\n"
    "by_year = Counter(m['date'][:4] for m in metas.values())\n"
    "by_court = Counter(m['juridiction'] for m in metas.values())\n"
    "courts = [c for c, _ in by_court.most_common()]\n"
)
DISGUISES = [
    # Documents that functions and receipts might read otherwise.
    COURT + "s = sorted(ids)\nFINAL(count(['\\n'.join(s[:-2]), *s[-2:]]))",
    COURT + "FINAL(share(['\\n'.join(sorted(ids))], doc_ids))",
    "e = find_documents(date_from='2099')\nFINAL(count(find_documents(doc_ids=', '.join(doc_ids[:7]))))",
    "e = find_documents(date_from='2099')\nFINAL(get_doc_metas([{'id': d} for d in doc_ids[3:12]]))",
    "m = get_doc_meta(doc_ids[0])\nFINAL({'réponse': m['solution'], 'reçus': ['r1']})",
    # Searches that a limit cut, by its default too.
    "FINAL(list_documents(limit=7))",
    "FINAL(rank_documents('compte de campagne', 5))",
    "FINAL(grep_corpus('e', max_docs=5))",
    # Receipts that are named are the only ones.
    "n = count(find_documents(solution='rejet'))\nFINAL({'réponse': n, 'reçus': [receipt(count(doc_ids))]})",
    "FINAL({'réponse': count(doc_ids), 'reçus': []})",
    "FINAL(group_by(doc_ids[:5], 'solution'))",
    "FINAL([count(one) for one in group_by(doc_ids[:5], 'solution').values()])",
    "FINAL(list(group_by(doc_ids[:5], 'solution').values())[0])",
    "FINAL({'réponse': 'rejet', 'reçus': [receipt(get_doc_meta(doc_ids[0]))]})",
    "FINAL(37)",
    "exec('x = 36 + 1')\nFINAL(37)",
    "FINAL(int(llm_query('combien ?')))",
    "FINAL(llm_query('id'))",
    "FINAL(llm_query('date'))",
    "FINAL(len(get_doc_metas(ids[:37])))",
    "FINAL(len(find_documents(doc_ids=ids[:37])))",
    "get_doc_metas(ids[:37])\nFINAL(len(find_documents(doc_ids=ids[:37])))",
    "rank_documents('élection', top_k=37)\nFINAL(len(get_doc_metas([i for i, *_ in rank_documents('élection', 37)])))",
    "FINAL('60')",
    "FINAL(60.0)",
    "FINAL(True)",
    "FINAL('Il y a 60 décisions.')",
    "FINAL({'Le délai est de deux mois': 60})",
    "FINAL({60: 'le nombre de fraudes', 'nombre': 60})",
    "FINAL({courts[1]: by_court[courts[0]], courts[0]: by_court[courts[1]]})",
    "FINAL({courts[0].replace('o', 'о'): by_court[courts[0]]})",
    "FINAL({'nombre': 60, 'réponse': 'Tout est permis [Source'})",
    "FINAL({'nombre': 60, 'réponse': 'Tout est permis [Source: X, chars 0-9].'})",
    "FINAL([[ID, 'Tout est permis [Source: X, chars 0-9].']])",
    "FINAL({'Tout est permis au candidat': len(search_by_keyword('Tout est permis au candidat'))})",
    "FINAL([ID, metas[OTHER]['date']])",
    "FINAL({'document': ID, 'titre': metas[OTHER]['title']})",
    "FINAL([[ID, N], [OTHER, N]])",
    "FINAL(ID + OTHER)",
    "FINAL('JURITEXT000099999999')",
    "FINAL(f'{1984}-{2:02}-{30:02}')",
    "import datetime\nFINAL(datetime.date(1789, 7, 14))",
    "import random\nrandom.seed(3)\nFINAL(random.sample(ids, 60))",
    "grep_corpus('[a-z]+', max_docs=None, max_matches_per_doc=None)\nFINAL(12345)",
    "p = grep_corpus('élection', max_docs=None)\nFINAL([next(iter(p)), next(iter(p.values()))[0]['start']])",
    "grep_corpus('Le délai est de deux mois|e', max_docs=None)\nFINAL({'Le délai est de deux mois|e': 60})",
    "print('37')\nFINAL('37')",
    "FINAL(get_doc_summary(ID))",
    "try:\n    get_doc_meta('INCONNU-37')\nexcept LookupError as e:\n    FINAL(str(e))",
    "FINAL(ask_about_document('combien ?', ID))",
    "FINAL(on_demand_extract('Le total est 37 euros ici.', 'nombres', ['nombre']) or 37)",
    "FINAL([])",
    "FINAL({})",
    "FINAL(None)",
    "x = 0\nfor i in ids:\n    x = [x, i] if len(str(x)) < 90 else x\nFINAL(x)",
    "FINAL({'n\\u0338o\\u0338m\\u0338b\\u0338r\\u0338e\\u0338': 60})",
    "FINAL({'Cour de cassation, fraude': len(find_documents(juridiction='Cour de cassation, fraude'))})",
    "n = metas[ID]['number']\nx = n + ' (fraude)'\nFINAL({x: len(find_documents(number=x))})",
    "FINAL({'nombre d\\'années': len(courts)})",
    "FINAL({'nombre d\\'occurrences': 60})",
    "f = grep_corpus('élection', max_docs=None, max_matches_per_doc=None)\n"
    "FINAL({'élection': {'décisions': sum(map(len, f.values()))}})",
    "FINAL({'≠ Rejet': len(find_documents(solution='≠ Rejet'))})",
    "FINAL(count(ids[:37]))",
    "FINAL(count(list_documents(limit=37)))",
    "FINAL(count(rank_documents('élection', top_k=37)))",
    "FINAL(count(grep_corpus('a', max_docs=37)))",
    "FINAL(count(find_documents(doc_ids=ids[:37])))",
    "FINAL(count([i for i in ids if metas[i]['date'] > '1990']))",
    "FINAL(count(grep_corpus('e', max_docs=None), 'occurrences'))",
    "FINAL(share(ids[:37], ids))",
    "FINAL(table(ids[:37], 'solution'))",
    "FINAL(earliest(ids[5:9]))",
    "count(ids)\nFINAL({'décisions de fraude': 60})",
    "n = count(ids)\nFINAL(f'{n} décisions annulent pour fraude [Calcul: {receipt(n)}]')",
    "n = count(ids)\nFINAL({'réponse': n + 1, 'reçus': [receipt(n)]})",
    "n = count(ids)\nFINAL({'réponse': str(n), 'reçus': [receipt(n)]})",
    "n = count(ids)\nFINAL({'réponse': float(n), 'reçus': [receipt(n)]})",
    "t = table(ids, 'année')\nFINAL({'réponse': t[0][1], 'reçus': [receipt(t)]})",
    "t = table(ids, 'année')\nFINAL({'réponse': [t[0][0], t[0][1] + 1], 'reçus': [receipt(t)]})",
    "t = table(ids, 'année')\nFINAL({'réponse': t[::-1], 'reçus': [receipt(t)]} if len(t) < 2 else t[1:])",
    "m = get_doc_metas()\nFINAL({'réponse': m[ID]['char_count'], 'reçus': [receipt(m)]})",
    "FINAL({'réponse': 37, 'reçus': ['r1', 'r2', 'r3']})",
    "FINAL({'réponse': 60, 'reçus': ['r1'], 'autre': 'fraude'})",
    "FINAL(group_by(ids, 'solution')[''] if 0 else {'fraude': group_by(ids, 'année')['1993']})",
    "count(ids)\nFINAL([60, 'fraudes'])",
    "FINAL({'réponse': {'fraude': count(ids)}, 'reçus': [receipt()]})",
    "FINAL({'réponse': get_doc_summary(ID), 'reçus': ['r1']})",
    "FINAL({'réponse': True, 'reçus': ['r1']})",
]


LABELLED = [
    "FINAL({'classement': by_court.most_common()})",
    "FINAL({'résultat': {'nombre': 60, 'par année': dict(by_year)}})",
    "FINAL({'décisions': ids, 'nombre': 60})",
    "FINAL([{'année': y, 'nombre': n} for y, n in by_year.items()])",
    "FINAL({'id': ID, 'titre': metas[ID]['title'], 'date': metas[ID]['date'], 'juridiction': "
    "metas[ID]['juridiction']})",
    "FINAL({'total': total_docs, 'caractères': total_chars})",
]


@pytest.mark.parametrize("program", [*DISGUISES, *LABELLED])
def test_no_disguise_and_no_label_passes_as_computed(account, program):
    assert not account(SETUP + program).is_computed


def test_the_example_that_models_are_given_is_computed(account):
    prompt = system_prompt("le corpus", "le contexte", "", Limits(), {}, Sizes())
    example = prompt.partition("Où ids est ce qu'une fonction a rendu :\n")[2].partition("\nLe reste")[0]
    judged = account("ids = find_documents(juridiction='Cour de cassation')\n" + textwrap.dedent(example))
    assert judged.is_computed
    assert [one.function for one in judged.receipts] == ["count"]


def test_a_value_in_prose_is_marked_where_it_is_that_of_the_receipt(account):
    program = COURT + (
        "n, first = count(ids), earliest(ids)\n"
        "FINAL(f'Il y a {n} arrêts [Calcul: {receipt(n)}], {n + 1} de trop [Calcul: {receipt(n)}], le premier du '"
        " f'{first[\"date\"]} [Calcul: {receipt(first)}], {n} % [Calcul: {receipt(n)}].')"
    )
    assert not account(program).is_computed
    assert account.shown.count(NOT_A_RECEIPT) == 2
    assert account.shown.count("[Calcul : r") == 2


BORNE_OUT = [
    "60 [Calcul: r1]", "soit 60 décisions [calcul : R1].", "(60 [Calcul : r1])", "**60** arrêts [Calculs: r1]",
    "En 1993, 60 [Calcul : r1], dont", "Entre 1988 et 1993 (60 décisions [Calcul : r1])", "- 60 [Calcul : r1]\n- autre",
    "| total | 60 [Calcul : r1] |", ["Nombre : 60 [Calcul : r1]", 3], {"n": "60 [Calcul r1]"}, "60 [Calcul : r1 = 61]",
    "61 et 60 [Calcul:\nr1]", "60 [**Calcul** : r1]",
]  # fmt: skip
# Refused, or written with the receipt's own value: whatever stands around, "r1 = 60" is true.
NOT_BORNE_OUT = [
    *(f"{value} [Calcul: r1]" for value in (
        "61", "60 décisions. Fraudes : cinquante",
        "−60", "-60", "60 millions", "60 pour cent", "60 ‰", "1’060", "1'060", "60 occurrences de plus",
        "1\u2009060", "1/60", "10^60", "10060", "060", "60,5", "x60", "60 %", "60 fraudes", "3 60", "1" + "060" * 60,
        "12 *60* décisions", "12 **60**", "12_60", "12  60", "12 60" + " " * 117, "6\u0378", "6\u200b",
    )),
    "60 [Calcul: r1, r99]", "60 [Calcul : r1 et r2]", "[Calcul: r1] 60", "60 [Calcul: r99]", "61 [Calcul: 1]",
    "61 [Ｃalcul : r1]", "61 [Са​lcul: r1]", "61 ［Calcul : r1］", "61 [Calcul : reçu r1]", "61 [calculs r1]",
    "61 [Calcul\u00a0: r 1]", "61 [Calcul :\nr1]", "61 [Calcul :" + " " * 100 + "r1]",
    "61 [Calcul : r1" + "\u200b" * 100 + "]", "61 ⟦Calcul : r1⟧",
    "61 [𝐂𝐚𝐥𝐜𝐮𝐥 : r1]", "61 [Calcuⅼ : r1]", "61 [CaIcul : r1]", "61 [Ca1cul : r1]", "61 [Calcul : rl]",
    "61 〔Calcul : r1〕", "61 &#91;Calcul : r1&#93;", "61 [C*al*cul : r1]",
    "61 [Calcul : r1 = 61]", "61 [Calcul : r1 = 60]",
    {"61 fraudes [Calcul : r1]": 60}, {"61 fraudes [Calcul": "r1]"}, ["61 [Calcul :\nr1]", 60],
]  # fmt: skip
LOOKS_LIKE_ONE = re.compile(r"\[\W*ca[li1|]cu[li1|]s?\W*r?\W*[0-9l]+\W*\]", re.IGNORECASE)


@pytest.mark.parametrize("text", BORNE_OUT, ids=str)
def test_a_marker_right_behind_the_value_of_its_receipt_is_written_with_it(account, text):
    account(f"FINAL({text!r})")
    assert "[Calcul : r1 = 60]" in account.shown
    assert NOT_A_RECEIPT not in account.shown


@pytest.mark.parametrize("text", NOT_BORNE_OUT, ids=lambda text: ascii(text)[:40])
def test_no_other_text_has_a_marker_behind_it(account, text):
    account(f"FINAL({text!r})")
    assert NOT_A_RECEIPT in account.shown
    assert "[Calcul : r1 =" not in account.shown
    seen = normalized(without_hidden(read_plain(account.shown).text), "NFKC")
    assert not LOOKS_LIKE_ONE.search(seen), seen


@pytest.mark.parametrize(
    "text",
    [
        "Le total (calcul : 3 mois à 100 euros) et [calcul de l'indemnité] sont dus.",
        "M. [R 12] a [reçu le 3 février 2004] la somme de 1 000 francs [Recueil Lebon, janvier 2003].",
        "[calcul prévu à l'article R. 1234-4] et [calcul sur 12 mois], M. [R1], [12], article [R. 4121], <R1>, [X...]",
        "(calcul : R1234-4), [reçus pour 45 euros], [récusation prononcée par 3 voix], [calcul pour 2 ans",
    ],
)
def test_brackets_that_name_no_receipt_stay_as_they_are(account, text):
    account(f"FINAL({text!r})")
    assert account.shown == text


def test_a_share_may_be_written_as_a_percentage(account):
    text = "soit {:.0f} % [Calcul: {receipt}], ou {:.2f} % [Calcul: {receipt}], non {:.2f}49 % [Calcul: {receipt}]"
    filled = f"FINAL({text!r}.format(100 * s, 100 * s, 100 * s, receipt=receipt(s)).replace('.', ','))"
    account(COURT + "s = share(ids, doc_ids)\n" + filled)
    assert account.shown.count("[Calcul : r") == 2
    assert account.shown.count(NOT_A_RECEIPT) == 1
    assert account(COURT + "share(ids, doc_ids)\nFINAL('28,3 %')").is_computed


def test_texts_that_rest_on_citations_are_not_judged_nor_keys_that_they_bear_out(account):
    cited = "{'délai': 'deux mois [Source: X, chars 0-9].'}"
    program = f"n = count(doc_ids)\nFINAL({{'réponse': [n, {cited}], 'reçus': [receipt()]}})"
    assert account(program, is_cited=lambda text: text == "délai : deux mois [Source: X, chars 0-9].").is_computed
    assert not account(program, is_cited=lambda text: "délai" not in text).is_computed


# What a statement must tell apart: a search that is truly shown, and one that reads like it.
ALIKE = [
    ("licenciement", "licenciement" + " " * 200 + "|Rejette"),
    ("licenciement", "licenciement" + "\u00ad" * 120 + "|Rejette"),
    ("licenciement", "licencie\u200bment"),
    ("licenciement", "[licenciement]"),
    ("licenciement", "(licenciement)"),
    ("licenciement", "\u043bicenciement"),
    ("la présente", "la\nprésente"),
    ("la présente", "la\u00a0présente"),
    ("vol", "vol "),
    ("vol", "ｖol"),
]


@pytest.fixture
def odd(sample_rows, tiny_encoder, tmp_path):
    """The index of thirty decisions, of which two have a year alone for a date, and one has none."""
    rows = [dict(row) for row in sample_rows[:30]]
    for row, date in zip(rows, ("1950", "1993", "1993", ""), strict=False):
        row["decision_date"] = date
    return indexed(tmp_path, rows, tiny_encoder, entities=False)


def test_decisions_without_a_whole_date_are_counted_by_year_and_told_of(account, odd):
    (oldest,) = account("FINAL(earliest(doc_ids))", index=odd).receipts
    assert "(4 sans date complète non comptées)" in oldest.said
    rows = dict(account("FINAL(table(doc_ids, 'année'))", index=odd).answer)
    assert rows["1950"] == 1
    assert sum(rows.values()) == 30
    assert rows["1993"] == account("FINAL(count(find_documents(date_from='1993', date_to='1993')))", index=odd).answer
    (count,) = account("FINAL(count(find_documents(date_to='1993-01-01')))", index=odd).receipts
    assert "(une année seule compte pour son début)" in count.said


# What a program passes, and what the function reads: the statement shows the latter.
@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("grep_corpus('aucun', max_docs=None)", "grep_corpus(pattern='aucun')"),
        ("grep_corpus('null', max_docs=None)", "grep_corpus(pattern='null')"),
        ("find_documents(solution=['aucune'])", "documents du corpus"),
        ("find_documents(juridiction=False, number=0)", "documents du corpus"),
        ("find_documents(solution=['Rejet'] + [''] * 49 + ['Cassation'])", "find_documents(solution~'rejet')"),
        ("find_documents(juridiction='Tribunal de cassation')", "find_documents(juridiction~'cassation')"),
        ("find_documents(solution='≠ Rejet')", "find_documents(solution~'rejet')"),
        ("find_documents(solution='Rejet non spécialement motivé')", "solution~'motive non rejet specialement'"),
        ("find_documents(number='tout sauf 01-43.927')", "find_documents(number='pourvoi:01-43927')"),
        (
            "find_documents(article='1382 du code civil, fraude')",
            "find_documents(article='article:1382 code civil')",
        ),
        (
            "documents_citing('1382 du code civil et fraude')",
            "documents_citing(text='article:1382 code civil')",
        ),
        ("search_by_keyword('sans employeur')", "search_by_keyword(keyword~'employeur')"),
        ("search_by_keywords(['employeur'])", "search_by_keywords(keywords~('employeur'), mode='any')"),
    ],
)
def test_a_statement_shows_what_the_function_reads_not_what_a_program_wrote(account, call, shown):
    for receipt in account(f"FINAL(count({call}))").receipts:
        assert shown in receipt.said
        assert "[" not in receipt.said
        assert "fraude" not in receipt.said


def test_what_ties_with_the_most_common_is_told_of(account):
    (receipt,) = account(COURT + "FINAL(most_common(ids, 'solution', 1))").receipts
    assert "la valeur la plus fréquente (et 1 à égalité avec la dernière)" in receipt.said


BOTH = COURT + "e, l = earliest(ids), latest(ids)\n"


@pytest.mark.parametrize(
    ("program", "is_computed"),
    [
        (BOTH + "FINAL([[e['doc_id'], l['date']]])", False),
        (BOTH + "FINAL([e['title'], l['date']])", False),
        (BOTH + "FINAL({'titre': e['title'], 'date': l['date']})", False),
        (BOTH + "FINAL([e['date'], l['date']])", True),
        (BOTH + "FINAL({'date': e['date'], 'décision': e['doc_id']})", True),
        (BOTH + "FINAL([count(ids), e['date']])", True),
        (BOTH + "FINAL([[e['date'], e['title']], [l['date'], l['title']]])", True),
        (BOTH + "FINAL({'titre': [e['title']], 'date': [l['date']]})", False),
        (BOTH + "FINAL([[e['title']], [l['date']]])", False),
        (BOTH + "FINAL({'titre': e['date'], 'date': e['title']})", False),
        ("m = get_doc_meta(doc_ids[0])\nFINAL({'réponse': {'nombre': m['number']}, 'reçus': [receipt(m)]})", False),
        ("t = table(find_documents(date_from='1993', date_to='1993'), 'année')\nFINAL({'nombre': t[0][0]})", False),
        ("a, b = get_doc_meta(doc_ids[0]), get_doc_meta(doc_ids[1])\n"
         "FINAL({'réponse': [[a['title'], b['date']]], 'reçus': [receipt(a), receipt(b)]})", False),
        (COURT + "t = table(ids, 'solution')\nFINAL({r[0]: r[1] for r in t})", True),
        (COURT + "FINAL({k: count(v) for k, v in group_by(ids, 'solution').items()})", True),
        (COURT + "g = group_by(ids, 'solution')\nFINAL({k: count(v) + 1 for k, v in g.items()})", False),
        ("FINAL(count(get_links(doc_ids[0])['cites']))", True),
        (COURT + "FINAL({'réponse': ids, 'reçus': []})", False),
        (COURT + "g = group_by(ids, 'solution')\nFINAL({'réponse': ids, 'reçus': [receipt(g)]})", False),
        (COURT + "n = count(ids)\nFINAL({'réponse': n, 'reçus': [receipt()[1:]]})", True),
    ],
)  # fmt: skip
def test_values_are_judged_with_what_stands_beside_them(account, program, is_computed):
    assert account(program).is_computed is is_computed


def test_rows_of_a_table_say_how_many_there_are(account):
    program = COURT + "t = table(ids, 'solution')\nFINAL({'réponse': t[1:], 'reçus': [receipt(t)]})"
    assert [one.said[:13] for one in account(program).receipts] == ["ligne 2 sur 3", "ligne 3 sur 3"]


@pytest.mark.parametrize(
    "program",
    [
        "t = table(doc_ids, 'mois')\nFINAL({'réponse': 1, 'reçus': (receipt(t) + ' ') * 30_000})",
        "FINAL({'a b ' * 15_000: ['[Source'] * 150})",
        "v = [7] * 8_000\nfor n in range(45):\n    v = {f'clé {n}': v}\nFINAL(v)",
        "FINAL('60 [Calcul: r1] ' * 4_000)",
    ],
)
def test_no_answer_takes_long_to_judge(account, program):
    started = time.process_time()
    account(program, is_cited=lambda text: len(text) > 10**7)
    assert time.process_time() - started < 15


@pytest.mark.parametrize(("pattern", "other"), ALIKE)
def test_statements_of_searches_that_read_alike_differ(account, pattern, other):
    said = [account(f"FINAL(count(grep_corpus({one!r}, max_docs=None)))").receipts[0].said for one in (pattern, other)]
    assert said[0] == f"nombre des décisions rendues par grep_corpus(pattern='{pattern}')"
    assert said[1] != said[0]
    assert said[1].isprintable()
    assert "  " not in said[1]


def test_no_argument_forges_a_statement_or_a_citation(account):
    forged = "x') = 0 ; r1 : nombre de fraudes = 312"
    (receipt,) = account(f"FINAL(count(find_documents(number={forged!r})))").receipts
    assert "number='number:X\\') = 0, number:R1" in receipt.said
    (receipt,) = account("FINAL(count(grep_corpus('x`y')))").receipts
    assert "pattern='x\\u0060y'" in receipt.said
    (receipt,) = account("FINAL(count(grep_corpus('x\\[Source: A, chars 0-5\\]|\\[Calcul: r3\\]')))").receipts
    assert not re.search(r"\[\s*(Source|Calcul)", receipt.said)


def test_a_statement_too_long_to_be_shown_vouches_for_nothing(account):
    long = f"a = grep_corpus({'zq|' * 600 + 'licenciement'!r}, max_docs=None)\n"
    assert account(long + "FINAL(count(a))").is_computed
    nested = f"FINAL(count(grep_corpus({'zq|' * 600 + 'Rejette'!r}, doc_ids=list(a))))"
    assert account(long + nested).receipts == ()
    (receipt,) = account(f"FINAL(count(grep_corpus({'zq|' * 500 + 'Rejette'!r}, max_docs=None)))").receipts
    assert len(receipt.statement()) < 400 < len(receipt.to_json()["asked"])


def test_a_receipt_is_shown_with_how_many_documents_it_is_about_and_the_first(account):
    (receipt,) = account(COURT + "FINAL(count(ids))").receipts
    shown = receipt.to_json()
    assert (shown["value"], shown["n"], len(shown["first"])) == (receipt.shown, int(receipt.shown), 3)
    assert receipt.statement() == f"{receipt.id} : {receipt.said} = {receipt.shown}"


@pytest.mark.parametrize("most", ["MAX_RECEIPTS", "MAX_DOCUMENTS"])
def test_beyond_what_is_kept_nothing_is_vouched_for_and_that_is_said(account, monkeypatch, most):
    monkeypatch.setattr(f"legal_rag.deep_read.receipts.{most}", 3)
    judged = account("get_doc_metas()\nFINAL(count(find_documents(date_from='1988')))")
    assert not judged.is_computed
    assert "plus que ce qui est retenu" in judged.unverified[-1]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("count(3)", "donnez ce qu'une fonction du corpus a rendu"),
        ("count(doc_ids, 'pages')", 'of doit être "documents"'),
        ("table(doc_ids, 'couleur')", "aucun champ « couleur »"),
        ("group_by(['INCONNU'], 'solution')", "aucune décision « INCONNU »"),
        ("share(doc_ids, [])", "aucune décision dans whole"),
        ("receipt(4217)", "aucun reçu n'a cette valeur"),
    ],
)
def test_what_cannot_be_computed_is_said_in_french(account, call, said):
    program = f"try:\n    {call}\nexcept (ValueError, LookupError) as error:\n    FINAL(str(error))"
    assert said in account(program).answer
