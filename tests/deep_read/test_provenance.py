"""Which answers of programs are derived from what the functions returned: honest ones are, disguises never."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legal_rag.corpus_index import CorpusIndex
from legal_rag.deep_read.environment import create_multi_doc_env
from legal_rag.deep_read.provenance import FIELD_OF, KINDS, MAX_ARGUMENT, TEXT_FIELDS, Returned
from legal_rag.deep_read.rlm import PRELUDE
from legal_rag.deep_read.sandbox.child import wire


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
    """Run a program with the functions of the small Library, and judge what it gives to FINAL.

    The program is this test's own: it runs here, and its value passes through the channel of the sandbox.
    """

    def running(program, *, doc_ids=()):
        index = CorpusIndex.open(tiny_library)
        env = create_multi_doc_env(index, Model(tiny_library))
        returned, given = Returned(), []
        returned.give("nombre de documents du corpus", index.total_docs)
        returned.give("documents du corpus", env.values["doc_ids"])
        if doc_ids:
            returned.give("documents sur lesquels porte la question", doc_ids)
        names = {name: returned.watch(name, function) for name, function in env.functions.items()}
        names |= {**env.values, "_take_final": given.append, "context": "42 décisions, dont 17 de 1985"}
        exec(PRELUDE, names)  # noqa: S102
        exec(program, names)  # noqa: S102
        return returned.account_for(wire.checked(wire.body({"value": given[0]}, wire.MOST_BYTES))["value"])

    return running


METAS = "metas = get_doc_metas()\nfrom collections import Counter\n"
HONEST = [
    "FINAL(len(list_documents()))",
    "FINAL(total_docs)",
    "FINAL({'nombre': len(find_documents(juridiction='Cour de cassation'))})",
    "FINAL({'total': total_docs, 'Cour de cassation': len(find_documents(juridiction='Cour de cassation'))})",
    "FINAL({y: len(find_documents(date_from=y, date_to=y)) for y in ('1988', '1993')})",
    "FINAL({str(y): len(find_documents(date_from=f'{y}-01-01', date_to=f'{y}-12-31')) for y in range(1980, 1995)})",
    "FINAL({w: len(grep_corpus(w, max_docs=None)) for w in ('élection', 'compte de campagne', 'licenciement')})",
    METAS + "FINAL(Counter(m['date'][:4] for m in metas.values()))",
    METAS + "FINAL(Counter(int(m['date'][:4]) for m in metas.values()).most_common())",
    METAS + "FINAL(sorted(Counter(m['juridiction'] for m in metas.values()).items()))",
    METAS + "FINAL(Counter(m['solution'] for m in metas.values()).most_common(1))",
    METAS + "FINAL({'par juridiction': dict(Counter(m['juridiction'] for m in metas.values()))})",
    METAS + "FINAL(min(m['date'] for m in metas.values() if m['date']))",
    METAS + "FINAL({'date la plus récente': max(m['date'] for m in metas.values())})",
    METAS + "FINAL(sorted({m['solution'] for m in metas.values() if m['solution']}))",
    METAS + "FINAL({'nombre de juridictions': len({m['juridiction'] for m in metas.values()})})",
    METAS + "FINAL(sum(m['char_count'] for m in metas.values()))",
    METAS + "FINAL({'maximum': max(m['char_count'] for m in metas.values())})",
    METAS + "FINAL([(m['doc_id'], m['date'], m['title']) for m in metas.values()])",
    METAS + "FINAL([{'doc_id': i, 'titre': m['title'], 'date': m['date']} for i, m in metas.items()])",
    METAS + "FINAL(sorted(([i, m['char_count']] for i, m in metas.items()), key=lambda r: -r[1])[:5])",
    METAS + "FINAL(min((m for m in metas.values() if m['date']), key=lambda m: m['date'])['doc_id'])",
    METAS + "FINAL([i for i, m in metas.items() if m['date'][:4] == '1993' and m['doc_type'] == 'AN'])",
    METAS
    + "c = {}\nfor m in metas.values():\n    c.setdefault(m['juridiction'], Counter())[m['date'][:4]] += 1\nFINAL(c)",
    METAS + "c = {}\nfor i, m in metas.items():\n    c.setdefault(m['juridiction'], []).append(i)\nFINAL(c)",
    METAS
    + "c = {}\nfor m in metas.values():\n    j = m['juridiction']\n    c[j] = min(c.get(j, '9'), m['date'])\nFINAL(c)",
    "FINAL(find_documents(juridiction='Cour de cassation'))",
    "FINAL([i for i, *_ in rank_documents('compte de campagne', top_k=8)][:3])",
    "FINAL(rank_documents('compte de campagne')[0][0])",
    "FINAL([[i, s] for i, s, _ in rank_documents('compte de campagne', top_k=4)])",
    "f = grep_corpus('élection', max_docs=None, max_matches_per_doc=None)\nFINAL(sum(map(len, f.values())))",
    "f = grep_corpus('élection', max_docs=None, max_matches_per_doc=None)\nFINAL({i: len(m) for i, m in f.items()})",
    "n = {i: len(grep_document(i, 'élection')) for i in doc_ids}\nFINAL({'occurrences': sum(n.values())})",
    "n = {i: len(get_links(i)['cited_by']) for i in list_documents()}\nFINAL(max(n, key=n.get))",
    "n = {i: len(get_links(i)['cites']) for i in list_documents()}\n"
    "best = sorted(n, key=lambda i: -n[i])[:2]\nFINAL([[i, n[i]] for i in best])",
    "a, b = set(search_by_keyword('élection')), set(find_documents(date_from='1988'))\nFINAL({'nombre': len(a & b)})",
    "a, b = grep_corpus('élection', max_docs=None), find_documents(date_from='1988')\nFINAL([i for i in a if i in b])",
    "m = get_doc_meta(doc_ids[3])\nFINAL({'document': m['doc_id'], 'date': m['date']})",
    "FINAL(get_doc_meta(doc_ids[3])['date'])",
    "FINAL(get_topics())",
    METAS + "FINAL(sorted([m['date'], m['number'], m['solution']] for m in metas.values()))",
    METAS + "FINAL(sorted(m['number'] for m in metas.values() if m['number']))",
    METAS + "some = [i for i, m in metas.items() if m['juridiction'] == 'Cour de cassation']\n"
    "FINAL({'nombre': len(grep_corpus('licenciement', doc_ids=some, max_docs=None))})",
    "FINAL(find_documents(date_from='2099'))",
    "FINAL({'passages': 1} and [{'doc_id': p['doc_id'], 'date': p['date'], 'score': p['score']} for p in "
    "search_passages('élection', k=3)][:1])",
]


@pytest.mark.parametrize("program", HONEST)
def test_what_is_made_again_from_what_the_functions_returned_is_computed(account, program):
    judged = account(program)
    assert judged.is_computed, judged


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
    "FINAL(37)",
    "FINAL(int.from_bytes(b'%', 'big'))",
    "import base64\nFINAL(int(base64.b64decode('Mzc=')))",
    "exec('FINAL(36 + 1)')",
    "class n37: pass\nFINAL(int(n37.__name__[1:]))",
    "FINAL(ord('%'))",
    "FINAL(int('73'[::-1]))",
    "FINAL(len('x' * 37))",
    "FINAL(int(llm_query('combien ?')))",
    "FINAL(llm_query('id'))",
    "FINAL(llm_query('date'))",
    "FINAL({'nombre': int(context.split()[0])})",
    "FINAL(len(get_doc_metas(ids[:37])))",
    "FINAL(len(list_documents(limit=37)))",
    "FINAL(len(list_documents(offset=23)))",
    "FINAL(len(rank_documents('élection', top_k=37)))",
    "FINAL(len(grep_corpus('a', max_docs=37)))",
    "FINAL(len(find_documents(doc_ids=ids[:37])))",
    "FINAL(len(find_documents(doc_ids=sorted(ids, key=lambda i: metas[i]['date'])[:37])))",
    "get_doc_metas(ids[:37])\nFINAL(len(find_documents(doc_ids=ids[:37])))",
    "rank_documents('élection', top_k=37)\nFINAL(len(get_doc_metas([i for i, *_ in rank_documents('élection', 37)])))",
    "FINAL(len(read_document_chunk(ID, 0, 37)))",
    "FINAL('60')",
    "FINAL(60.0)",
    "FINAL(True)",
    "FINAL([True, False])",
    "FINAL(3.7000000060)",
    "FINAL('Il y a 60 décisions.')",
    "FINAL('Le délai est de deux mois.')",
    "FINAL({'délai': 'deux mois'})",
    "FINAL({'Le délai est de deux mois': 60})",
    "FINAL({'décisions de fraude': len(find_documents(juridiction='Cour de cassation'))})",
    "FINAL({60: 'le nombre de fraudes', 'nombre': 60})",
    "FINAL({courts[0]: by_court[courts[1]] + 5})",
    "FINAL({courts[1]: by_court[courts[0]], courts[0]: by_court[courts[1]]})",
    "FINAL({'Conseil d’État de Perse': by_court[courts[0]]})",
    "FINAL({courts[0].replace('o', 'о'): by_court[courts[0]]})",
    "FINAL({courts[0] + '\\u200b': by_court[courts[0]]})",
    "FINAL({'1066': 3})",
    "FINAL({'nombre': 60, 'réponse': 'Tout est permis [Source'})",
    "FINAL({'nombre': 60, 'réponse': 'Tout est permis [Source: X, chars 0-9].'})",
    "FINAL([[ID, 'Tout est permis [Source: X, chars 0-9].']])",
    "FINAL({'plus ancienne': min(ids, key=lambda i: metas[i]['char_count'])})",
    "FINAL({'premier': min(m['char_count'] for m in metas.values())})",
    "FINAL({'any': len(search_by_keywords(['élection'], mode='any'))})",
    "FINAL({'Tout est permis au candidat': len(search_by_keyword('Tout est permis au candidat'))})",
    "FINAL({'Nul ne peut rien': len(grep_corpus('Nul ne peut rien', max_docs=None))})",
    "FINAL({'1988': len(find_documents(date_from='1988'))})",
    "FINAL({'par année': dict(by_court)})",
    "FINAL({**by_year, '1993': by_year['1993'] + 1})",
    "FINAL([ID, metas[OTHER]['date']])",
    "FINAL({'document': ID, 'titre': metas[OTHER]['title']})",
    "FINAL([[ID, N], [OTHER, N]])",
    "FINAL([[i, metas[i]['date'], metas[ID]['char_count']] for i in ids])",
    "FINAL(ID + OTHER)",
    "FINAL([ID + OTHER])",
    "FINAL('JURITEXT000099999999')",
    "FINAL(ID.lower())",
    "FINAL(ID + ' ')",
    "FINAL(f'{1984}-{2:02}-{30:02}')",
    "import datetime\nFINAL(datetime.date(1789, 7, 14))",
    "FINAL(sorted(m['date'] for m in metas.values())[7])",
    "FINAL({'date la plus ancienne': metas[OTHER]['date']})",
    "FINAL({'premiere': OTHER, 'derniere': ID})",
    "FINAL({'minimum': max(m['char_count'] for m in metas.values())})",
    "FINAL([[i, metas[i]['char_count']] for i in sorted(ids, key=lambda i: -metas[i]['char_count'])[5:9]])",
    "FINAL(by_court.most_common()[1:3] or [['x', 1]])",
    "FINAL(by_year.most_common()[2:5])",
    "FINAL([ids[9], ids[2], ids[30]])",
    "import random\nrandom.seed(3)\nFINAL(random.sample(ids, 60))",
    "FINAL({'somme': sum(m['char_count'] for m in list(metas.values())[:-2])})",
    "FINAL(sum(m['char_count'] for m in metas.values()) + 1)",
    "FINAL(len({m['title'] for m in metas.values()}) - 23)",
    "grep_corpus('[a-z]+', max_docs=None, max_matches_per_doc=None)\nFINAL(12345)",
    "p = grep_corpus('élection', max_docs=None)\nFINAL([next(iter(p)), next(iter(p.values()))[0]['start']])",
    "for w in 'abcdefghijklmnopqrstuvw': grep_corpus(w + '[' + w + 'e]', max_docs=None)\nFINAL(7)",
    "grep_corpus('Le délai est de deux mois|e', max_docs=None)\nFINAL({'Le délai est de deux mois|e': 60})",
    "grep_corpus('trente-sept')\nFINAL('trente-sept')",
    "print('37')\nFINAL('37')",
    "FINAL(get_doc_summary(ID))",
    "FINAL({ID: get_doc_summary(ID)})",
    "FINAL(read_document(ID)[:40])",
    "FINAL({ID: read_document(ID)[:40]})",
    "try:\n    get_doc_meta('INCONNU-37')\nexcept LookupError as e:\n    FINAL(str(e))",
    "FINAL(ask_about_document('combien ?', ID))",
    "FINAL(on_demand_extract('Le total est 37 euros ici.', 'nombres', ['nombre']) or 37)",
    "FINAL([])",
    "FINAL({})",
    "FINAL(None)",
    "FINAL({'nombre': None})",
    "FINAL([[], {}])",
    "FINAL({'nombre': [60, 'fraudes']})",
    "FINAL({'total': {'fraude': 60}})",
    "FINAL([60, ID])",
    "FINAL({ID: True})",
    "FINAL(ids + ids[:1])",
    "x = 0\nfor i in ids:\n    x = [x, i] if len(str(x)) < 90 else x\nFINAL(x)",
    "FINAL({'occurrences': sum(m['char_count'] for m in metas.values())})",
    "FINAL({'décisions': sum(m['char_count'] for m in metas.values())})",
    "FINAL({'arrêts': len({m['formation'] for m in metas.values()})})",
    "FINAL({'nombre de documents': total_chars})",
    "FINAL({'année': min(m['char_count'] for m in metas.values())})",
    "FINAL({'pourvoi': min(m['char_count'] for m in metas.values())})",
    "FINAL({'titre': min(m['date'] for m in metas.values())})",
    "FINAL({'auteur': min(metas, key=lambda i: metas[i]['date'])})",
    "FINAL([{'année': y, 'mois': n} for y, n in by_year.items()])",
    "FINAL([{'juridiction': y, 'nombre': n} for y, n in by_year.items()])",
    "FINAL([{'année': y, 'occurrences': n} for y, n in by_year.items()])",
    "FINAL([{'année': y, 'longueur': n} for y, n in by_year.items()])",
    "FINAL({'doc_id': ID, 'occurrences': N})",
    "FINAL([{'doc_id': i, 'occurrences': metas[i]['char_count']} for i in ids])",
    "FINAL({'première': {'date': max(m['date'] for m in metas.values())}})",
    "FINAL({'minimum': {'nombre': 60}})",
    "FINAL({'minimum': {'maximum': max(m['char_count'] for m in metas.values())}})",
    "FINAL({'par juridiction': {'nombre de formations': len({m['formation'] for m in metas.values() if "
    "m['formation']})}})",
    "FINAL({'classement': by_court.most_common()[::-1]})",
    "FINAL({'top': [by_court.most_common()[-1]]})",
    "FINAL({'top': by_court.most_common()[1:2]})",
    "FINAL({'top': dict(by_court.most_common()[-1:])})",
    "find_documents(date_from='2099')\nFINAL({'juridictions': []})",
    "find_documents(date_from='2099')\nFINAL({'par année': []})",
    "find_documents(date_from='2099')\nFINAL({'nombre': 60, 'solutions': {}})",
    "FINAL({'identifiants': courts})",
    "FINAL({'décisions': courts})",
    "FINAL({'titre': ID, 'date': metas[ID]['date']})",
    "FINAL({'décisions': {c: sum(m['char_count'] for m in metas.values() if m['juridiction'] == c) for c in courts}})",
    "FINAL({'documents': max(m['date'] for m in metas.values())})",
    "FINAL({'nombre': {c: max(m['date'] for m in metas.values() if m['juridiction'] == c) for c in courts}})",
    "FINAL({'score': min(m['char_count'] for m in metas.values())})",
    "FINAL({'total': {'premiere': min(m['date'] for m in metas.values() if m['date'])}})",
    "FINAL({'date la plus récente': {c: min(m['date'] for m in metas.values() if m['juridiction'] == c "
    "and m['date']) for c in courts}})",
    "FINAL({'n\\u0338o\\u0338m\\u0338b\\u0338r\\u0338e\\u0338': 60})",
    "FINAL({'Cour de cassation, fraude': len(find_documents(juridiction='Cour de cassation, fraude'))})",
    "FINAL({'rejet pour fraude': len(find_documents(solution='rejet pour fraude'))})",
    "FINAL({'l’élection est nulle': len(grep_corpus('élection', max_docs=None))})",
    "FINAL({'non-élection': len(grep_corpus('non-élection', max_docs=None, fold=True))})",
    "n = metas[ID]['number']\nx = n + ' (fraude)'\nFINAL({x: len(find_documents(number=x))})",
    "FINAL({'par mois': dict(by_year)})",
    "FINAL({'nombre d\\'années': len(courts)})",
    "FINAL({'premier': ids[0]})",
    "FINAL({'dernière': ids[0]})",
    "FINAL({'classement': sorted(ids)})",
    "FINAL({'top': ids[0]})",
    "FINAL({'top': ids[:3]})",
    "FINAL({'top': [[ids[0], metas[ids[0]]['date']]]})",
    "FINAL({'maximum': ids[0]})",
    "FINAL({'nombre d\\'occurrences': 60})",
    "FINAL({'somme': 60})",
    "f = grep_corpus('élection', max_docs=None, max_matches_per_doc=None)\n"
    "FINAL({'longueur': sum(map(len, f.values()))})",
    "f = grep_corpus('élection', max_docs=None, max_matches_per_doc=None)\n"
    "FINAL({'décisions': sum(map(len, f.values()))})",
    "f = grep_corpus('élection', max_docs=None, max_matches_per_doc=None)\n"
    "FINAL({'élection': {'décisions': sum(map(len, f.values()))}})",
    "f = grep_corpus('élection', max_docs=None, max_matches_per_doc=None)\n"
    "FINAL([{'pattern': 'élection', 'n': sum(map(len, f.values()))}])",
    "FINAL({'≠ Rejet': len(find_documents(solution='≠ Rejet'))})",
]


LABELLED = [
    "FINAL({'classement': by_court.most_common()})",
    "FINAL({'top': by_court.most_common(2)})",
    "FINAL({'classement': [[i, s] for i, s, _ in rank_documents('compte de campagne', top_k=4)]})",
    "FINAL({'classement': [i for i, s, _ in rank_documents('compte de campagne', top_k=8)][:3]})",
    "FINAL({'top': [[i, metas[i]['char_count']] for i in sorted(ids, key=lambda i: -metas[i]['char_count'])[:3]]})",
    "FINAL({'par année': {str(y): len(find_documents(date_from=str(y), date_to=str(y))) for y in range(1985, 1995)}})",
    "FINAL({'résultat': {'nombre': 60, 'par année': dict(by_year)}})",
    "FINAL({'décisions': ids, 'nombre': 60})",
    "FINAL({'décisions': find_documents(juridiction='Cour de cassation'), 'nombre de décisions': "
    "len(find_documents(juridiction='Cour de cassation'))})",
    "FINAL({'nombre': dict(by_year)})",
    "FINAL([{'année': y, 'nombre': n} for y, n in by_year.items()])",
    "FINAL([{'juridiction': c, 'année': y, 'n': n} for (c, y), n in Counter((m['juridiction'], "
    "m['date'][:4]) for m in metas.values()).items()])",
    "FINAL({'id': ID, 'titre': metas[ID]['title'], 'date': metas[ID]['date'], 'juridiction': "
    "metas[ID]['juridiction']})",
    "FINAL([{'numéro': m['number'], 'date': m['date']} for m in metas.values() if m['number']])",
    "f = grep_corpus('élection', max_docs=None, max_matches_per_doc=None)\n"
    "FINAL({'occurrences': sum(map(len, f.values())), 'documents': len(f)})",
    "f = grep_corpus('élection', max_docs=None, max_matches_per_doc=None)\n"
    "FINAL([{'doc_id': i, 'occurrences': len(m)} for i, m in f.items()])",
    "FINAL({'longueur': sum(m['char_count'] for m in metas.values())})",
    "FINAL([{'id': i, 'longueur': m['char_count']} for i, m in metas.items()])",
    "FINAL({'date la plus ancienne': min(m['date'] for m in metas.values() if m['date']), 'date la plus "
    "récente': max(m['date'] for m in metas.values())})",
    "FINAL({'total': total_docs, 'caractères': total_chars})",
]


@pytest.mark.parametrize("program", LABELLED)
def test_labels_that_say_what_a_value_is_are_computed(account, program):
    judged = account(SETUP + program)
    assert judged.is_computed, judged


@pytest.mark.parametrize("program", DISGUISES)
def test_no_disguise_passes_as_computed(account, program):
    assert not account(SETUP + program).is_computed


def test_what_is_computed_says_how(account):
    assert (
        account("FINAL(len(find_documents(juridiction='Cour de cassation')))")
        .derived[0]
        .endswith("nombre de documents rendus par find_documents(juridiction='Cour de cassation')")
    )


def test_a_derivation_shows_no_argument_that_could_pass_for_more(account):
    text = "[Source: X, chars 0-5]\u202e\u200b « vérifié » " + "x" * 500
    (said,) = account(f"grep_corpus({text!r}.replace('[', '\\\\[').replace(']', '\\\\]'))\nFINAL([])").derived
    assert not set("[]«»\u202e\u200b\n") & set(said)
    assert len(said) < 3 * MAX_ARGUMENT


@pytest.mark.parametrize("most", ["MAX_SCALARS", "MAX_CHARS", "MAX_LISTS"])
def test_beyond_what_is_kept_nothing_is_vouched_for_and_that_is_said(account, monkeypatch, most):
    monkeypatch.setattr(f"legal_rag.deep_read.provenance.{most}", 1)
    judged = account("get_doc_metas()\nFINAL(len(find_documents(date_from='1988')))")
    assert not judged.is_computed
    assert "plus que ce qui est retenu" in judged.unverified[-1]


@pytest.mark.parametrize("program", ["FINAL([7] * 190_000)", "FINAL({str(n): n for n in range(60_000)})"])
def test_a_huge_answer_is_given_up_soon(account, program):
    assert account(program).unverified == ("réponse trop longue à refaire",)


def facts():
    """Return what a run might have kept, by the functions' own forms."""
    returned = Returned()
    metas = {
        f"D{n}": {**dict.fromkeys(TEXT_FIELDS, f"v{n % 2}"), "doc_id": f"D{n}", "date": f"19{90 + n}-05-12"}
        | {"keywords": ["a", f"k{n}"], "char_count": 100 + n}
        for n in range(4)
    }
    returned.watch("get_doc_metas", lambda doc_ids=None: metas)()
    returned.watch("find_documents", lambda juridiction="": ["D2", "D0"])(juridiction="v0")
    returned.watch("get_topics", lambda: {"t": 3, "u": 1})()
    returned.watch("get_links", lambda doc_id: {"cites": ["D1"], "cited_by": []})("D0")
    return returned


FACTS = facts()
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 5), st.integers(), st.floats(), st.text(max_size=4),
    st.sampled_from(("D0", "D1", "D2", "D3", "1990", "1990-05-12", "1993-05-12", "v0", "v1", "a", "t", 100, 103, 406)),
)  # fmt: skip
keys = st.one_of(st.text(max_size=3), st.sampled_from((*KINDS, *FIELD_OF, "D0", "D1", "v0", "1990", "a")))
answers = st.recursive(leaves, lambda one: st.lists(one, max_size=4) | st.dictionaries(keys, one, max_size=4))


@given(answers)
def test_any_answer_is_judged_and_only_what_is_derived_is_computed(answer):
    judged = FACTS.account_for(answer)
    assert all(isinstance(one, str) and one.isprintable() for one in (*judged.derived, *judged.unverified))
    assert judged.is_computed == (bool(judged.derived) and not judged.unverified)
    for number in (one for one in _leaves(answer) if type(one) in (bool, float) or one is None):
        assert not judged.is_computed, number


def _leaves(value):
    if isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one)
    else:
        yield value
