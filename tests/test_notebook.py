"""The names that a notebook needs: each one's example runs, and its values are short and show as tables."""

import doctest
import shutil
import subprocess
import sys
from inspect import getdoc

import pandas as pd
import pytest
from support.rlm_scripts import root_model
from support.scripted_server import ScriptedServer

import legal_rag as lr
from legal_rag.base.html import LINE_CHARS, Rows
from legal_rag.corpus.sources import SAMPLE
from legal_rag.llm import build_language_model

NAMES = ["build", "add", "open", "search", "ask", "verify", "extract", "deep_read", "evaluate", "show"]
COUNTING = "FINAL({'nombre': count(find_documents(article='1240 du code civil'))})"


@pytest.fixture(scope="module")
def library(tiny_library, tmp_path_factory):
    return lr.open(shutil.copytree(tiny_library.path, tmp_path_factory.mktemp("notebook") / "index"))


@pytest.fixture(scope="module")
def names(library, tmp_path_factory):
    """Return what the examples know, with a model that replies by a script."""
    with ScriptedServer(root_model([COUNTING])) as server, pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("examples"))
        lm = build_language_model("root", api_base=server.api_base, cache=False, num_retries=0)
        functions = {name: getattr(lr, name) for name in NAMES}
        lr.add(library, [{"id": "d9", "content": "La cour casse et annule l'arrêt attaqué."}])
        yield {**functions, "library": lr.open(library.path), "lm": lm}


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_each_name_runs(name, names):
    example = doctest.DocTestParser().get_doctest(getdoc(getattr(lr, name)), names, name, None, None)
    assert example.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(example) == (0, len(example.examples))


def test_the_package_has_twelve_names_and_loads_nothing_until_they_are_used():
    assert sorted([*NAMES, "Document", "Filters"]) == sorted(lr.__all__)
    loading = (
        "import sys, legal_rag; print(sorted(set(sys.modules) & {'numpy', 'torch', 'dspy', 'legal_rag.notebook'}))"
    )
    assert subprocess.run([sys.executable, "-c", loading], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize("kind", [list, pd.DataFrame, "datasets"])
def test_a_library_is_built_of_rows_of_any_kind(kind, tmp_path, sample_rows):
    rows = [{"id": row["id"], "content": row["content"]} for row in sample_rows[:3]]
    source = pytest.importorskip("datasets").Dataset.from_list(rows) if kind == "datasets" else kind(rows)
    library = lr.build(source, tmp_path / "built", n_bits=0, corpus_index=False, entities=False)
    assert sorted(library) == sorted(row["id"] for row in rows)


def test_a_setting_that_is_unknown_is_one_line(tmp_path):
    with pytest.raises(ValueError, match=r"^unknown setting: colour \(expected of .*n_bits"):
        lr.build(SAMPLE, tmp_path / "built", colour="red")


def test_values_are_short_and_show_as_tables(library):
    hits = lr.search(library, "compte de campagne", k=3, juridiction="Conseil constitutionnel")
    answer = lr.ask(library, "Un candidat peut-il être déclaré inéligible ?")
    checked = lr.verify(
        "Selon Cass. soc., 10 juillet 2002, n° 00-45.135, la clause est nulle.", [library, library.path]
    )
    doc_id = hits[0].doc_id
    values = [
        hits,
        hits[0],
        answer,
        answer.citations,
        checked,
        library,
        library.document(doc_id),
        library.outline(doc_id),
    ]
    for value in values:
        assert len(repr(value)) <= 2 * LINE_CHARS + 40
        assert "<table>" in value._repr_html_()
    assert isinstance(hits, Rows)
    assert list(hits.to_pandas()["doc_id"]) == [hit.doc_id for hit in hits]
    assert list(checked.to_pandas()["status"]) == [reference.status for reference in checked.references]


def test_a_search_reads_what_is_typed_and_says_so(library):
    hits = lr.search(library, '"licorne volante"')
    assert (list(hits), list(hits.remarks)) == ([], ['Aucun document ne répond à : "licorne volante".'])
    assert "Aucun document" in repr(hits)
    assert "<p>Aucun document" in hits._repr_html_()


def test_a_question_takes_the_filters_of_a_search(library):
    doc_id = next(iter(library))
    answer = lr.ask(library, "Que décide le juge ?", doc_ids=(doc_id,), infer_filters=False)
    assert [document.doc_id for document in answer.documents] == [doc_id]


def test_a_filter_that_no_document_meets_is_named(library):
    for asked in (lr.search, lr.ask):
        with pytest.raises(ValueError, match=r"^no document has the juridiction 'Mars' \(there are: "):
            asked(library, "bail", juridiction="Mars")
        with pytest.raises(LookupError, match="no document 'Mars' in "):
            asked(library, "bail", doc_ids=("Mars",))
    unmet = "Aucun document ne répond à date_from '2050-01-01'."
    assert lr.search(library, "bail", date_from="2050").remarks == (unmet,)
    answer = lr.ask(library, "Que doit le bailleur ?", date_from="2050")
    assert (answer.status, answer.notice) == ("abstained", unmet)
    with pytest.raises(ValueError, match="no document has the solution 'zzz'"):
        lr.evaluate(library, {"q": "bail"}, {"q": {"d": 1}}, filters=lr.Filters(solution="zzz"))


def test_a_setting_that_is_unknown_is_answered_by_the_nearest(library):
    for asked in (lr.search, lr.ask):
        with pytest.raises(ValueError, match="^unknown setting: juridictoin; did you mean 'juridiction'?"):
            asked(library, "bail", juridictoin="Mars")


@pytest.mark.parametrize(
    "name", ["conclusions.docx", "mes conclusions.PDF", "./conclusions", "~/notes/a", "C:\\notes\\a", "a/b.md"]
)
def test_the_name_of_a_file_that_is_missing_is_no_text(name, library):
    for read in (lambda: lr.verify(name, library), lambda: lr.extract(name)):
        with pytest.raises(FileNotFoundError, match=r"^no such file: .* \(expected a file: Markdown, "):
            read()


def test_a_text_is_no_file_and_a_folder_is_said_to_be_one(library, tmp_path):
    for text in ("07/2373", "L. 1152-1", "n° 00-45.135.", "Voir note.pdf, page 3", "conclusions.docx\nnote.pdf"):
        assert lr.verify(text, library).text
    with pytest.raises(ValueError, match=r" is a folder \(expected a file: "):
        lr.verify(str(tmp_path), library)


def test_a_deep_read_without_a_model_gives_passages_and_says_so(library, no_endpoint):
    doc_id = next(iter(library))
    answer = lr.deep_read(library, "Que décide le juge ?", doc_id)
    assert (answer.status, {document.doc_id for document in answer.documents}) == ("answered", {doc_id})
    assert answer.notice.startswith("Sans modèle de langage, rien n'est lu en profondeur")


def test_what_a_value_is_comes_first(library):
    checked = lr.verify("Voir Cass. soc., 10 juillet 2002, n° 00-45.135.", library)
    assert repr(checked) == ("Verification(absent: 1; complete=True, text='Voir Cass. s...n° 00-45.135.')")
    assert repr(library.graph) == f"KnowledgeGraph({library!r})"
    assert repr(lr.show(checked)).startswith("NotebookFrame('")
    heads = lr.search(library, "bail", k=1)._repr_html_()
    assert heads.index("<th>title") < heads.index("<th>decision_date") < heads.index("<th>chunk_id")


def test_text_of_strangers_is_escaped_in_tables():
    shown = Rows([{"title": "<script>alert(1)</script>\x1b[31m"}])._repr_html_()
    assert "<script>" not in shown
    assert "\x1b" not in shown


def test_an_agent_is_made_once_for_the_same_settings(library):
    assert library.agent() is library.agent()
    *first, last, other = library
    ids = [(*first, last), (*first, other)]
    assert library.agent(doc_ids=ids[0]) is library.agent(doc_ids=ids[0])
    assert library.agent(doc_ids=ids[0]) is not library.agent(doc_ids=ids[1])


def test_what_cannot_be_shown_is_one_line(tiny_library):
    with pytest.raises(
        TypeError, match=r"^cannot show int \(expected an answer, a verification, a Library or a graph\)$"
    ):
        lr.show(3)
    with pytest.raises(ValueError, match="no entities of .*: 'legal-rag extract' extracts them"):
        lr.open(tiny_library.path).entities("FICTIF0101")
