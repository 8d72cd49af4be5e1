"""The command line, in process: results on stdout, talk on stderr, expected errors in one line."""

import json
import subprocess
import sys

import pytest
from support.scripted_server import ScriptedServer, fields

from legal_rag.cli import COMMANDS, main
from legal_rag.indexer import export_pylate
from legal_rag.library import Library
from legal_rag.library.manifest import write_manifest

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"


pytestmark = pytest.mark.usefixtures("no_endpoint")


def test_index_builds_a_library_and_tells_its_counts(tmp_path, tiny_model_folder, capfd):
    argv = ["index", "--source", "sample", "--limit", "3", "--encoder", str(tiny_model_folder)]
    assert main([*argv, "--index-folder", str(tmp_path), "--index-name", "three"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("3 documents, ")
    assert out.endswith(f"{tmp_path / 'three'}\n")
    assert out.count("\n") == 1
    assert "write_plaid" in err
    assert main(["info", "--index-folder", str(tmp_path), "--index-name", "three", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["counts"]["documents"] == 3


def test_index_says_which_other_index_it_replaces(tmp_path, tiny_model_folder, capfd):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(
            f'{{"id": "{name}", "content": "Le bail {name} est résilié."}}\n', "utf-8"
        )
    lines = []
    for name in ("a", "b"):
        argv = ["index", "--source", str(tmp_path / f"{name}.jsonl"), "--index-folder", str(tmp_path)]
        assert (
            main([*argv, "--encoder", str(tiny_model_folder), "--n-bits", "0", "--no-extract", "--no-corpus-index"])
            == 0
        )
        lines += [line for line in capfd.readouterr().err.splitlines() if "--index-name NAME" in line]
    place = tmp_path / "legal_french_index"
    said = ": replaced when the new index is complete (--index-name NAME for another)"
    assert lines == [f"{place} holds 1 documents from a.jsonl{said}"]


def test_index_json_is_the_report_alone(tmp_path, tiny_model_folder, said, settings):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"nom": "A", "texte": "Le bail est résilié."}\nnot json\n', "utf-8")
    columns = ["--id-column", "nom", "--text-column", "texte"]
    file = settings('[index]\nheader = "Nom = nom"\nheader_on = "every"')
    where = ["--source", rows, "--encoder", tiny_model_folder, "--index-folder", tmp_path]
    out = said(*file, "index", *where, *columns, "--json")
    report = json.loads(out)
    assert (report["documents"], report["chunks"], report["encoder"]) == (1, 1, str(tiny_model_folder))
    assert [bad["where"].endswith("2") for bad in report["bad"]] == [True]
    assert said("lookup", "A-0", "--index-folder", tmp_path).endswith("Le bail est résilié.\n")


def test_info_says_what_an_index_holds(place, tiny_library, said):
    counts = tiny_library.manifest["counts"]
    out = said("info", *place)
    assert f"60 documents, {counts['chunks']} chunks, {counts['tokens']} tokens" in out
    assert "32 wide" in out
    assert "corpus index: 5 topics, terms counted in 60 documents" in out
    told = json.loads(said("info", *place, "--json"))
    assert told.pop("corpus_index") == {"topics": 5, "counted": 60, "summaries": ""}
    assert told.pop("outlines") == 60
    graph = told.pop("graph")
    assert f"graph: {graph['nodes']} nodes, {graph['facts']} facts, 0 answers" in out
    assert graph["facts"] > 60
    assert told == tiny_library.manifest


def test_an_argument_too_many_is_not_taken_for_a_text_where_none_is_asked_for(refused):
    assert refused("export", "NAME", "PATH") == "Got unexpected extra arguments (NAME PATH)"
    assert refused("add", "a.docx", "b.docx") == "Got unexpected extra argument (b.docx)"


def test_a_folder_to_verify_is_said_to_be_one(tmp_path, capfd):
    assert main(["verify", str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder (expected a file: Markdown, " in capfd.readouterr().err


def test_without_a_command_the_help_is_shown(said):
    assert said() == said("--help")
    assert "Commands:" in said()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(command, said):
    assert (
        f"legal-rag {command} {COMMANDS[command][2]}".split()
        == said(command, "--help").partition("Example:")[2].split()
    )


def test_an_unknown_filter_value_an_impossible_range_and_an_unknown_id_are_refused_before_anything_is_loaded(
    place, refused, monkeypatch
):
    monkeypatch.setattr("legal_rag.retriever.retriever.Retriever", None)
    line = refused("search", QUESTION, "--juridiction", "Cour de Mars", *place)
    assert line.startswith("no document has the juridiction 'Cour de Mars' (there are: Cour ")
    line = refused("search", QUESTION, "--solution", "Grâce", *place)
    assert "no document has the solution 'Grâce' (there are: " in line
    monkeypatch.setattr("legal_rag.retriever.retriever.Retriever", None)
    line = refused("search", QUESTION, "--date-from", "2022", "--date-to", "2019", *place)
    assert line == "--date-from 2022 is after --date-to 2019"
    line = refused("search", QUESTION, "--doc-id", "FICTIF0101x", *place)
    assert line.startswith("no document 'FICTIF0101x' in ")
    assert "nearest id is 'FICTIF0101'" in line


def test_a_search_that_finds_nothing_says_so(place, capfd):
    assert main(["search", "zzzqqq", "--mode", "bm25", *place]) == 0
    assert capfd.readouterr() == ("", "aucun passage trouvé\n")
    assert main(["search", "zzzqqq", "--mode", "bm25", "--date-from", "1950", *place]) == 0
    assert capfd.readouterr().err == "aucun passage trouvé parmi les documents qui répondent aux filtres\n"


@pytest.mark.parametrize(
    ("option", "value"),
    [("--number", "99-99.999"), ("--article", "L. 9999-9 du code du travail"), ("--date-from", "2090-01-01")],
)
def test_a_filter_that_no_document_meets_is_named(place, capfd, option, value):
    assert main(["search", "bail", "--mode", "bm25", "--date-to", "2095", option, value, *place]) == 0
    assert capfd.readouterr() == ("", f"aucun passage trouvé : aucun document ne répond à {option} '{value}'\n")


def test_a_decision_is_looked_up_by_its_case_number_and_printed_whole(place, said, sample_rows, tiny_library):
    row = next(row for row in sample_rows if row["id"] == "FICTIF0302")
    assert row["content"][:200] in said("lookup", "16/03177", *place)
    document = tiny_library.document("FICTIF0102")
    value = json.loads(said("lookup", "FICTIF0102-1", "--json", *place))
    assert [step["doc_id"] for step in value.pop("case")] == ["FICTIF0102"]
    assert value == {
        "doc_id": "FICTIF0102",
        "title": document.title,
        "decision_date": document.decision_date,
        "juridiction": document.juridiction,
        "formation": document.formation,
        "solution": "Non-conformité totale - effet différé",
        "applied_laws": list(document.applied_laws),
        "citation": "[Décision fictive] Cons.\u00a0const., 14\u00a0oct.\u00a02016, n°\u00a02016-9561 QPC",
        "publication": "",
        "ecli": "ECLI:FR:FICTIF:2016:2016.9561.QPC",
        "link": "",
        "fate": "",
        "fates": [],
        "version": "",
        "content": document.content,
    }
    plain = said("lookup", "FICTIF0102", *place)
    assert plain == (
        "Décision : FICTIF0102\nCitation : [Décision fictive] Cons. const., 14 oct. 2016, n° 2016-9561 QPC, "
        "Société civile immobilière Les Tamaris [Visite des constructions par les agents de l’urbanisme]\n"
        "Juridiction : Conseil constitutionnel\nFormation : Formation plénière\n"
        f"Solution : Non-conformité totale - effet différé\n"
        f"Droit appliqué : {' ; '.join(document.applied_laws)}\n\n{document.content}\n"
    )


def test_a_passage_that_a_decision_lacks_is_told_beside_the_decision(place, tiny_library, capfd):
    last = len(tiny_library.chunks_of("FICTIF0112")) - 1
    assert main(["lookup", "FICTIF0112-77", *place]) == 0
    out, err = capfd.readouterr()
    assert err == (f"pas de passage 'FICTIF0112-77' (le dernier du document est 'FICTIF0112-{last}')\n")
    assert tiny_library.document("FICTIF0112").content[:200] in out
    assert main(["lookup", f"FICTIF0112-{last}", *place]) == 0
    assert capfd.readouterr().err == ""


def test_search_shows_where_a_passage_matches_and_how_to_read_it_whole(tmp_path, tiny_model_folder, capfd):
    wanted = "Le preneur avait signalé la fuite de la chaudière."
    text = "COUR D'APPEL DE LIMOGES\nMOTIFS\n" + "Attendu que la procédure est régulière. " * 20
    text += wanted + " La demande est rejetée pour le surplus." * 20
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "A", "content": text}) + "\n", "utf-8")
    place = ["--index-folder", str(tmp_path), "--index-name", "un bail"]
    build = ["--source", str(tmp_path / "a.jsonl"), "--encoder", str(tiny_model_folder), "--no-extract"]
    assert main(["index", *build, *place]) == 0
    told = f"--index-folder {tmp_path} --index-name 'un bail'\n"
    assert capfd.readouterr().err.endswith(f"→ legal-rag ask 'QUESTION' {told}")
    assert main(["search", "Fuites des chaudières", "--mode", "bm25", "--k", "1", *place]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("1. A-0  100  ")
    speaker, shown = (line.strip() for line in out.splitlines()[1:3])
    assert speaker == "Motifs - la juridiction"
    assert shown == f"…{wanted}…"
    assert err == f"→ legal-rag lookup A-0 {told}"


def test_structured_search_says_which_part_found_what_and_why(place, said, capfd):
    hits = json.loads(said("search", QUESTION, "--structured", "--k", "3", "--json", *place))
    keys = ["rank", "doc_id", "char_start", "char_end", "text", "score", "source", "title", "sections", "reason"]
    keys.append("citation")
    assert [list(hit) for hit in hits] == [keys] * 3
    assert [hit["rank"] for hit in hits] == [1, 2, 3]
    assert {hit["source"] for hit in hits} <= {"entity", "chunk"}
    assert main(["search", QUESTION, "--structured", "--mode", "bm25", *place]) == 0
    out, err = capfd.readouterr()
    assert "passage proche, rang 1" in out
    assert "sans : entités, modèle" in err


def test_structured_search_asks_the_model_that_is_named(place, said):
    def first(prompt, attempt):
        return fields(sections='[{"document": 1, "node_id": "0001", "reason": "en tête"}]')

    with ScriptedServer(first) as server:
        asked = ["--structured", "--model", "scripted", "--api-base", server.api_base, "--json"]
        hits = json.loads(said("search", QUESTION, *asked, *place))
        again = json.loads(said("search", QUESTION, *asked, *place))
    assert hits == again
    assert len(server.prompts) == 1
    assert ("tree", True) in [(hit["source"], "en tête" in hit["reason"]) for hit in hits]


def test_search_lists_ranked_passages(place, tiny_library, said):
    hits = json.loads(said("search", QUESTION, "--k", "7", "--json", *place))
    keys = ["rank", "title", "decision_date", "doc_id", "chunk_id", "score", "char_start", "char_end", "text"]
    assert [list(hit) for hit in hits] == [
        [*keys, "relevance", "outcome", "fate", "excerpt", "passages", "citation", "version"]
    ] * 7
    assert all(hit["excerpt"]["text"] in hit["text"] for hit in hits)
    assert [hit["rank"] for hit in hits] == [1, 2, 3, 4, 5, 6, 7]
    assert all(
        tiny_library.document(hit["doc_id"]).content[hit["char_start"] : hit["char_end"]] == hit["text"] for hit in hits
    )
    plain = said("search", QUESTION, *place)
    lines = [f"{hit['rank']}. {hit['chunk_id']}  {hit['relevance']}  {hit['citation']}" for hit in hits]
    assert [line.replace("\u00a0", " ") in plain for line in lines] == [True] * 5 + [False] * 2
    documents = json.loads(said("search", QUESTION, "--k", "7", "--by-document", "--json", *place))
    assert len({hit["doc_id"] for hit in documents}) == 7


def test_export_says_how_pylate_opens_what_it_wrote(place, tiny_library, said, tmp_path):
    n_chunks = tiny_library.manifest["counts"]["chunks"]
    printed = said("export", "--pylate", tmp_path / "out", *place)
    opening = f"pylate.indexes.PLAID('{tmp_path}/out', '{tiny_library.path.name}', override=False, n_ivf_probe=8)"
    assert printed.startswith(f"{n_chunks} chunks encoded by ")
    assert printed.endswith(f"  {opening}\n")
    written = json.loads(said("export", "--pylate", tmp_path / "again", "--json", *place))
    assert (written["chunks"], written["n_ivf_probe"]) == (n_chunks, 8)


def test_an_index_of_pylate_is_imported_and_searched(tiny_library, tiny_model_folder, said, tmp_path):
    exported = export_pylate(tiny_library, tmp_path / "out")
    place = ("--index-folder", tmp_path / "imported")
    folder = tmp_path / "out" / exported.index_name
    printed = said("import-pylate", folder, "--source", "sample", "--encoder", tiny_model_folder, *place)
    assert printed.startswith(f"{tiny_library.n_documents} documents, {exported.chunks} chunks, ")
    assert len(json.loads(said("search", QUESTION, "--k", "3", "--json", *place))) == 3


def test_a_key_is_written_nowhere(copied, capfd, monkeypatch):
    key, place = "sk-tres-secret-0123", ["--index-folder", str(copied.parent)]
    monkeypatch.setenv("GENERATOR_API_KEY", key)
    argv = ["ask", QUESTION, "--model", "m", "--api-base", "http://127.0.0.1:9/v1", "--json", *place]
    assert main(argv) == 0
    out, err = capfd.readouterr()
    value = json.loads(out)
    assert (value["mode"], value["status"]) == ("fallback", "model_failed")
    assert value["notice"].startswith("Le modèle de langage n'a pas pu répondre (")
    assert key not in out + err
    assert not [file for file in copied.rglob("*") if file.is_file() and key.encode() in file.read_bytes()]


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["serch", "bail"], "No such command 'serch'. Did you mean 'search'?"),
        (["info", "--colour"], "No such option"),
        (["search"], "Missing argument 'QUERY'"),
        (["search", "a", "b"], "Got unexpected extra argument (b) (put a text with blanks in quotation marks)"),
        (
            ["extract", "Arrêt du 4 mai"],
            "(Arrêt du 4 mai) (expected a file or a folder as --source FILE)",
        ),
        (["search", "bail", "--model", "m"], "--model goes only with --structured"),
        (["search", "bail", "--structured", "--by-document"], "--by-document does not go with --structured"),
        (["search", "bail", "--k", "many"], "'many' is not a valid integer"),
        (["index", "--source", "sample", "--limit", "0"], "limit must be at least 1, got 0"),
        (["index", "--source", "sample", "--n-bits", "3"], "n_bits must be 1, 2 or 4, or 0 for no PLAID index, got 3"),
        (["index", "--source", "sample", "--index-name", "../x"], "index_name must be a plain folder name"),
        (["index", "--source", "sample", "--encoder", " "], "the encoder's name is empty"),
        (["index", "--source", "nowhere.jsonl", "--encoder", "bundled"], "nowhere.jsonl"),
        (["index", "--source", "rien", "--encoder", "bundled"], "no such file or folder: rien (expected a file, "),
        (["index", "--source", "sample", "--encoder", "bundled", "--text-column", "texte"], "no column 'texte' in"),
        (
            ["index", "--source", "sample", "--encoder", "bundled", "--ids-file", "nowhere.txt"],
            "no such ids file: nowhere.txt",
        ),
        (["index", "--source", "sample", "--encoder", "nowhere/model"], "no encoder 'nowhere/model'"),
        (
            ["index", "--source", "sample", "--encoder", "bundle"],
            "'bundle' (did you mean 'bundled'?): not a model",
        ),
        (["index", "--source", "sample", "--encoder", "./rien"], "no encoder './rien': not a model folder"),
        (["search", "bail", "--date-from", "hier"], "--date-from is no day: 'hier'"),
        (["evaluate", "--queries", "rien.jsonl"], "no such file: rien.jsonl"),
        (["info"], "no index at "),
        (
            ["lookup", "FICTIF0101-0"],
            "(build one with 'legal-rag index --source FILE_OR_FOLDER', or try it with '--source sample')",
        ),
        (["ask", QUESTION], "no index at "),
        (["search", "bail", "--index-name", "autre"], "autre (build one with"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_told_in_one_line(tmp_path, monkeypatch, refused, argv, line):
    monkeypatch.chdir(tmp_path)
    message = refused(*argv)
    assert line in message
    assert list(tmp_path.glob("index/*")) == []


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["search", "bail", "--k", "0"], "k must be at least 1, got 0"),
        (["search", "bail", "--k", "-5", "--by-document"], "k must be at least 1, got -5"),
        (["search", " "], "the question is empty"),
        (["ask", ""], "the question is empty"),
        (["ask", "délai " * 100], "the question is too long"),
        (["search", "bail", "--juridiction", "cour de casation"], "did you mean 'Cour de cassation'? (there are: "),
        (["evaluate", "--queries", "sample", "--compare", "absent.txt"], "no such file: absent.txt"),
        (["lookup", "FICTIF9999-0"], "no document 'FICTIF9999-0' in "),
        (["lookup", "FICTIF0306x"], "(the nearest id is 'FICTIF0306'); expected an id, a case number, or a court and"),
        (["lookup", "CA Nîmes, 7 juin 2031"], "no document 'CA Nîmes, 7 juin 2031' in "),
        (["lookup", " "], "the id is empty; expected an id, "),
        (["lookup", "\udcff", "--json"], "no document '"),
    ],
    ids=lambda value: " ".join(value)[:30].encode("ascii", "replace").decode() if isinstance(value, list) else "",
)
def test_what_an_index_cannot_answer_is_told_in_one_line(place, refused, argv, line):
    assert line in refused(*argv, *place)


def test_an_empty_source_is_told_in_one_line(tmp_path, refused):
    (tmp_path / "empty.jsonl").write_text("")
    argv = ["index", "--source", tmp_path / "empty.jsonl", "--encoder", "bundled", "--index-folder", tmp_path]
    assert "no document in " in refused(*argv)


@pytest.mark.parametrize("source", [["--source", "nowhere.jsonl"], []])
def test_a_source_that_cannot_be_read_is_one_line(tmp_path, refused, source):
    assert refused("index", *source, "--index-folder", tmp_path).startswith("no such file or folder")


@pytest.fixture
def indexed(tmp_path, tiny_model_folder, capfd):
    """Build an index of two documents with further options; return the place and what was said on stderr."""

    def build(*options):
        place = ["--index-folder", str(tmp_path), "--index-name", "small"]
        argv = ["index", "--source", "sample", "--limit", "2", "--encoder", str(tiny_model_folder), "--n-bits", "0"]
        assert main([*argv, "--no-corpus-index", "--no-extract", *place, *options]) == 0
        return place, capfd.readouterr().err

    return build


def test_what_a_build_replaces_and_what_rebuild_made_is_said(indexed, capfd):
    indexed()
    place, err = indexed()
    assert "holds 2 documents from sample: replaced when the new index is complete" in err

    def last(*options):
        assert main(["rebuild", "--index-only", *place, *options]) == 0
        return capfd.readouterr().out.strip()

    assert last("--dry-run") == "dry run: nothing was done"
    assert last() == "made: corpus-index of 2 documents"
    assert last() == "nothing to do: all is there and up to date"


def test_an_interrupted_build_says_that_it_resumes(capfd, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("legal_rag.cli.library._encoder_config", interrupt)
    assert main(["index", "--source", "sample"]) == 1
    assert capfd.readouterr().err == "\nlegal-rag: interrupted: the same command resumes\n"
    monkeypatch.setattr("legal_rag.cli.options.Place.open", interrupt)
    assert main(["info"]) == 1
    assert capfd.readouterr().err == "\nlegal-rag: interrupted\n"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"dim": 384}, "wrong encoder for this index: its dim is 32, the index was made with 384"),
        ({"name": "/nowhere/at/all"}, "no encoder '/nowhere/at/all'"),
        ({"martian": 1}, "does not say which encoder made it"),
    ],
)
def test_an_index_is_not_searched_with_another_encoder(copied, refused, changes, line):
    manifest = Library(copied).manifest
    manifest["encoder"] |= changes
    write_manifest(copied, manifest)
    assert line in refused("search", "bail", "--index-folder", copied.parent)


HEAVY = "[name for name in 'torch pylate dspy datasets jinja2 transformers'.split() if name in sys.modules]"


def test_nothing_heavy_is_loaded_before_it_is_needed():
    lines = [
        "import sys",
        "from legal_rag.cli import main; assert main(['--help']) == 0; assert 'legal_rag.graph' not in sys.modules",
        "import legal_rag.tools",
        "from legal_rag.citations import CitationEnricher; from legal_rag.agent import EvidenceAgent, build_agent",
        *(f"assert main([{command!r}, '-h']) == 0" for command in ("index", "ask", "answers", "search")),
        "assert main(['info', '--index-folder', 'nowhere']) == 1",
        f"print('loaded:', {HEAVY})",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("loaded: []\n")
