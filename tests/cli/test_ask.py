"""Asking on the command line: the answer on stdout, what happens on stderr, the page, saved answers, budgets."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from support.agent_scripts import STEPPED, wants_step
from support.scripted_server import ScriptedServer, answer, step

from legal_rag import llm
from legal_rag.agent import Prediction, Usage, default_instructions
from legal_rag.agent.evidence import NO_PASSAGE, WAY_ON
from legal_rag.agent.prediction import Event
from legal_rag.cli import main
from legal_rag.report import event_line
from legal_rag.report.lines import citations_in_french, printable_lines

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"
KEY = "sk-tres-secret-0123"
RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9]{6}-[0-9a-f]{8}")
EXAMPLE = "20251123-101530-123456-0a1b2c3d"


pytestmark = pytest.mark.usefixtures("no_endpoint")


@pytest.fixture
def there(copied):
    """Name a Library without saved answers, to save some in."""
    shutil.rmtree(copied / "runs", ignore_errors=True)
    return ["--index-folder", str(copied.parent), "--index-name", copied.name]


@pytest.fixture
def asked(there):
    return ["ask", QUESTION, *there]


def author(prompt, _attempt):
    """Search, then find nothing."""
    if not wants_step(prompt):
        return answer("Aucun passage pertinent n'a été trouvé.")
    return step("finish") if STEPPED in prompt else step("search_legal_docs", query="compte de campagne")


@pytest.fixture
def model(no_endpoint, monkeypatch):
    monkeypatch.setenv("GENERATOR_API_KEY", KEY)
    with ScriptedServer(author) as server:
        yield ["--model", "m", "--api-base", server.api_base]


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("gpt-5", "OPENAI_API_KEY"),
        ("Qwen/Qwen3-4B", "HF_TOKEN"),
    ],
)
@pytest.mark.parametrize("command", ["ask", "deep-read", "questions"])
def test_a_model_that_is_named_is_asked_or_what_is_missing_is_told_before_the_index_is_opened(
    refused, tmp_path, monkeypatch, command, model, key
):
    monkeypatch.delenv(key, raising=False)
    arguments = ["--output", tmp_path / "set"] if command == "questions" else [QUESTION]
    told = refused(command, *arguments, "--model", model, "--index-folder", tmp_path / "nowhere")
    assert told == f"no endpoint to ask {model!r} at (expected one of --api-base, GENERATOR_API_KEY, {key})"


def test_a_model_that_is_named_needs_the_extra_of_agents(place, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "dspy", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "legal_rag.llm.dspy_models", raising=False)
    monkeypatch.delitem(vars(llm), "build_language_model", raising=False)  # found before
    line = refused("ask", QUESTION, "--model", "gpt-5", "--api-base", "http://127.0.0.1:9/v1", *place)
    assert "pip install 'legal-rag[agent]'" in line


def test_ask_answers_with_checked_citations(place, tiny_library, said):
    value = json.loads(said("ask", QUESTION, "--json", *place))
    assert set(value) == {
        *("question", "mode", "status", "grade", "notice", "answer", "documents", "citations", "citation_counts"),
        *("ungrounded_claims", "grounding_rate", "events", "usage", "seconds", "answer_id", "extraction", "graph"),
    }
    assert (value["question"], value["mode"], value["status"]) == (QUESTION, "evidence", "answered")
    assert value["notice"] is None
    described = {
        *("doc_id", "title", "decision_date", "juridiction", "formation", "solution", "applied_laws", "citation"),
        *("publication", "ecli", "link", "fate", "version"),
    }
    assert [set(one) for one in value["documents"]] == [described] * 5
    assert {*value["events"][0]} == {"type", "tool", "input", "output_ids", "seconds", "usage"}
    assert (value["usage"]["calls"], value["usage"]["cost"]) == (0, 0.0)
    cited = {*("doc_id", "char_start", "char_end", "quote", "status", "speaker", "censured", "section", "warnings")}
    cited.add("reason")
    for one in value["citations"]:
        assert set(one) == cited
        assert tiny_library.document(one["doc_id"]).content[one["char_start"] : one["char_end"]] == one["quote"]


def test_ask_takes_the_filters_of_search_and_infers_more_unless_told_not_to(place, tiny_library, said, refused):
    assert "Cour de casation" in refused("ask", QUESTION, "--juridiction", "Cour de casation", *place)
    doc_id = next(iter(tiny_library))
    given = json.loads(said("ask", QUESTION, "--doc-id", doc_id, "--json", *place))
    assert [document["doc_id"] for document in given["documents"]] == [doc_id]
    steered = ["ask", "Qu'a jugé le Conseil constitutionnel en 1901 du compte de campagne ?", "--json", *place]
    assert "Filtre déduit retiré" in json.loads(said(*steered))["notice"]
    assert "Filtre" not in (json.loads(said(*steered, "--no-inferred-filters"))["notice"] or "")


def test_an_abstention_is_printed_before_the_way_on_and_an_answer_with_how_its_citations_fared(
    asked, capfd, place, said, monkeypatch
):
    assert main([*asked, "--json"]) == 0
    value = json.loads(capfd.readouterr().out)
    assert main(asked) == 0
    out, err = capfd.readouterr()
    n = len(value["citations"])
    named = [f"- {one['doc_id']} : {one['citation']}".replace("\u00a0", " ") for one in value["documents"]]
    ends = [f" · {one['solution'].lower()}" if one["solution"] else "" for one in value["documents"]]
    lines = [f"{line}{end}" for line, end in zip(named, ends, strict=True)]
    counts = f"{n} passages cités tels quels." if n > 1 else "1 passage cité tel quel."
    assert out == "\n".join([value["answer"], "", counts, "", "Décisions consultées :", *lines, ""])
    assert err == ""
    monkeypatch.setattr("legal_rag.agent.evidence.is_relevant", lambda *_: False)
    assert said("ask", "Quelle est la recette de la pâte à brioche ?", *place) == f"{NO_PASSAGE}\n\n{WAY_ON}\n"


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
def test_a_stream_tells_what_happens_on_stderr_and_leaves_stdout_alone(asked, capfd, more):
    assert main([*asked, *more]) == 0
    plain, _ = capfd.readouterr()
    assert main([*asked, "--stream", *more]) == 0
    out, err = capfd.readouterr()
    if more:
        value = json.loads(out)
        assert value["answer"] == json.loads(plain)["answer"]
        assert len(err.splitlines()) == len(value["events"])
    else:
        assert out == plain
    first, *_ = err.splitlines()
    assert re.fullmatch(rf"cherche : {re.escape(QUESTION)} → \d+ passages \(\d+,\d s\)", first)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Event("search", "t", {"query": "délai", "k": 5}, ["a-0"], 0.26), "cherche : délai → 1 passage (0,3 s)"),
        (
            Event("search", "t", {"query": "délai", "k": 5, "juridiction": "CA Lyon"}, [], 12.0),
            "cherche : délai [juridiction : CA Lyon] → 0 passage (12,0 s)",
        ),
        (Event("read", "t", {"chunk_id": "a-0"}, ["a"], 0.0), "lit : a-0 (0,0 s)"),
        (Event("read", "t", {"chunk_id": "z"}, [], 0.0), "lit : z → introuvable (0,0 s)"),
        (Event("think", "finish", {}, [], 1.0), "réfléchit → finish (1,0 s)"),
        (
            Event("cite", "citations", {"verified": 3, "relocated": 1, "removed": 2}, ["a"], 0.0),
            "contrôle 4 citations : 3 textes conformes ; 1 texte conforme, place rectifiée ; 2 retirées (0,0 s)",
        ),
        (Event("answer", "react", {}, [], 2.0, Usage(1, 0, 1200, 34)), "répond, 1234 jetons (2,0 s)"),
        (Event("answer", "evidence", {}, [], 0.04), "répond (0,0 s)"),
        (
            Event("think", "", {"error": "Clé\nrefusée\x1b"}, [], 0.5, Usage(1)),
            "échoue : Clé refusée (0,5 s)",
        ),
        (
            Event("think", "fi\x1b]0;nish", {"thought": "a\r\n\u202eb\x1b[2J" + "c" * 500}, [], 0.0),
            f"réfléchit : a b[2J{'c' * 153}… → fi]0;nish (0,0 s)",
        ),
    ],
)
def test_each_event_has_its_line(event, line):
    assert event_line(event) == line


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ({}, ""),
        ({"verified": 0, "removed": 3}, ""),
        ({"unverified": 1}, "1 citation : non confirmée"),
        (
            {"unverified": 2, "verified": 3, "relocated": 1, "supported": 2},
            "8 citations : 3 textes conformes ; 1 texte conforme, place rectifiée ; 2 mêmes faits, mêmes mots ;"
            " 2 non confirmées",
        ),
    ],
)
def test_citations_are_counted_in_french(counts, line):
    assert citations_in_french(counts) == line


def test_what_steers_a_terminal_is_not_printed():
    hostile = "a\x1b[31mb\r\x07\x9b2J\u202e\u2028c\udcff"
    assert printable_lines(hostile) == "a[31mb2Jc"
    assert printable_lines("l’article 5 :\n« un\u00a0mois »\u202f!") == "l’article 5 :\n« un\u00a0mois »\u202f!"


def test_the_page_holds_the_answer_and_papers_cite_its_decisions(asked, tmp_path, capfd):
    page = tmp_path / "réponse.html"
    page.write_text("an older one")
    assert main([*asked, "--html", str(page)]) == 0
    out, err = capfd.readouterr()
    assert err == f"écrit : {page}\n"
    text = page.read_text("utf-8")
    assert text.lstrip().lower().startswith("<!doctype html>")
    assert "compte de campagne" in text
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ""] == ["réponse.html"]
    assert out.count("\n") > 3
    docx, bibtex = tmp_path / "réponse.docx", tmp_path / "réponse.bib"
    assert main([*asked, "--docx", str(docx), "--bibtex", str(bibtex)]) == 0
    assert capfd.readouterr().err == f"écrit : {docx}\nécrit : {bibtex}\n"
    assert docx.read_bytes()[:2] == b"PK"
    assert "Cons.~const., " in bibtex.read_text("utf-8")


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("nowhere/a.html", "no folder nowhere to write a.html into"),
        (".", "it is not a file"),
        ("/dev/null", "it is not a"),
    ],
)
def test_a_page_that_cannot_be_written_is_told_before_anything_is_asked(
    place, model, refused, tmp_path, monkeypatch, file, line
):
    monkeypatch.chdir(tmp_path)
    assert line in refused("ask", QUESTION, *model, "--html", file, *place)
    assert list(tmp_path.iterdir()) == []


def test_a_saved_answer_is_listed_shown_and_removed(asked, there, copied, tmp_path, said, capfd):
    said(*asked)  # nothing is kept unasked
    assert json.loads(said("answers", "--json", *there)) == []
    assert main([*asked, "--save", "--json"]) == 0
    out, err = capfd.readouterr()
    run_id = err.removeprefix("enregistrée : ").strip()
    assert RUN_ID.fullmatch(run_id)
    assert (copied / "runs" / f"{run_id}.json").is_file()
    (summary,) = json.loads(said("answers", "--json", *there))
    assert (summary["answer_id"], summary["question"], summary["mode"]) == (run_id, QUESTION, "evidence")
    assert json.loads(said("answers", run_id, "--json", *there)) == json.loads(out)
    listed = said("answers", *there).splitlines()
    assert listed[0] == f"{run_id}  {QUESTION}"
    assert re.fullmatch(r"   passages, réponse, \d passages? cités? tels? quels?, \d+,\d s", listed[1])
    plain = said("answers", run_id, *there)
    assert plain.startswith(f"Question : {QUESTION}\n\n{json.loads(out)['answer']}\n\n")
    said("answers", run_id, "--html", tmp_path / "a.html", *there)
    assert "compte de campagne" in (tmp_path / "a.html").read_text("utf-8")
    assert said("answers", "--remove", run_id, *there) == f"réponse retirée : {run_id}\n"
    assert json.loads(said("answers", "--json", *there)) == []


def test_a_question_follows_on_from_a_saved_answer(asked, there, said, refused, capfd):
    assert main([*asked, "--save"]) == 0
    answer_id = capfd.readouterr().err.removeprefix("enregistrée : ").strip()
    follow_up = "Et pour un retard de douze jours ?"
    value = json.loads(said("ask", follow_up, "--after", answer_id, "--json", *there))
    assert value["question"] == follow_up
    assert value["events"][0]["input"]["query"] == f"{QUESTION} {follow_up}"
    said("answers", "--remove", answer_id, *there)
    assert "no saved answer" in refused("ask", follow_up, "--after", answer_id, *there)


def test_no_run_holds_a_key(asked, copied, model, tmp_path, capfd):
    assert main([*asked, *model, "--save", "--html", str(tmp_path / "a.html")]) == 0
    assert KEY not in "".join(capfd.readouterr())
    kept = [tmp_path / "a.html", *(copied / "runs").iterdir()]
    assert len(kept) == 2
    replies = [file for file in Path(os.environ["DSPY_CACHEDIR"]).rglob("*") if file.is_file()]
    assert replies
    assert not [file for file in [*kept, *replies] if KEY.encode() in file.read_bytes()]


def test_an_answer_that_came_from_elsewhere_is_shown_whatever_it_says(there, copied, tmp_path, said):
    hostile = "a\x1b[2J\x00\udcff</script>"
    run = Prediction(question=hostile, answer=hostile, mode="agent", status="answered", ungrounded_claims=[hostile])
    file = copied / "runs" / f"{EXAMPLE}.json"
    file.parent.mkdir()
    record = run.to_record() | {"question": hostile, "answer": hostile, "ungrounded_claims": [hostile]}
    file.write_text(json.dumps({"format_version": 1, "saved_at": hostile, "prediction": record}))
    assert json.loads(said("answers", EXAMPLE, "--json", *there)) == run.to_json()
    shown = said("answers", *there) + said("answers", EXAMPLE, "--html", tmp_path / "a.html", *there)
    assert "a[2J</script>" in shown
    assert "\x1b" not in shown
    assert "a[2J</script>" not in (tmp_path / "a.html").read_text("utf-8")


def test_an_empty_list_of_answers_says_how_to_get_one(there, copied, tmp_path, capfd, refused):
    assert main(["answers", *there]) == 0
    assert capfd.readouterr() == ("", "aucune réponse enregistrée ('legal-rag ask --save' en garde une)\n")
    assert "no index at " in refused("answers", "--index-folder", tmp_path / "nothing")
    (copied / "runs").mkdir()
    (copied / "runs" / f"{EXAMPLE}.json").write_text(
        '{"format_version": 1, "saved_at": "", "prediction": {"answer": 7}}'
    )
    assert "damaged answer: " in refused("answers", EXAMPLE, *there)


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["../x"], "not the id of a saved answer: '../x' (expected e.g. "),
        (["--remove", "../x"], "not the id of a saved answer: '../x'"),
        ([EXAMPLE], f"no saved answer {EXAMPLE} in "),
        (["--remove", EXAMPLE], f"no saved answer {EXAMPLE} in "),
        ([EXAMPLE, "--remove", EXAMPLE], "--remove goes alone"),
        (["--html", "a.html"], "--html goes with ANSWER_ID"),
        (["--docx", "a.docx"], "--docx goes with ANSWER_ID"),
        ([EXAMPLE, "--html", "a.pdf"], "'a.pdf' does not end in .html or .htm"),
        ([EXAMPLE, "--docx", "a.pdf"], "'a.pdf' does not end in .docx"),
        ([EXAMPLE, "--bibtex", "a"], "'a' does not end in .bib or .bibtex"),
        ([EXAMPLE, "--html", "nowhere/a.html"], "no folder nowhere to write a.html into"),
        (["a", "b"], "unexpected extra argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_asked_wrongly_of_answers_is_told_in_one_line(place, refused, argv, line):
    assert line in refused("answers", *argv, *place)


def test_a_folder_that_no_run_can_be_saved_in_is_told_before_anything_is_asked(asked, copied, model, refused):
    (copied / "runs").write_text("")
    line = refused(*asked, *model, "--save")
    assert re.match(r"no answer can be saved in .*runs: File exists", line)


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["--max-seconds", "nan"], "a budget's seconds must be above 0, got nan"),
        (["--max-cost", "0"], "a budget's cost must be above 0, got 0"),
        (["--instructions", "nowhere"], "no instructions 'nowhere' (expected a file, or one of "),
        (["--instructions", "../jurisprudence"], "no instructions '../jurisprudence'"),
        (["--instructions", "."], "no instructions '.'"),
        (["--instructions", "empty.md"], "no instructions in empty.md: it is empty"),
        (["--instructions", "latin.md"], "latin.md is not UTF-8 text"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_asked_wrongly_is_told_in_one_line(asked, refused, tmp_path, monkeypatch, argv, line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.md").write_text(" \n")
    (tmp_path / "latin.md").write_bytes("Répondez.".encode("latin-1"))
    assert line in refused(*asked, *argv)


def test_a_budget_reaches_the_agent_and_a_stream_tells_what_the_model_thinks(asked, model, said, capfd, settings):
    value = json.loads(said(*settings("[ask]\nmodel_calls = 1"), *asked, *model, "--json"))
    assert (value["status"], value["usage"]["calls"]) == ("exhausted", 1)
    assert main([*asked, *model, "--stream"]) == 0
    _, err = capfd.readouterr()
    assert re.search(r"^réfléchit : J'appelle search_legal_docs\. → search_legal_docs \(\d+,\d s\)$", err, re.MULTILINE)
    assert re.search(r"^cherche : compte de campagne → \d passages \(\d+,\d s\)$", err, re.MULTILINE)
    assert KEY not in err


@pytest.mark.parametrize("named", ["own.md", "jurisprudence"])
def test_the_model_is_told_what_the_instructions_say(asked, tmp_path, monkeypatch, said, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.md").write_text("Répondez en alexandrins.", "utf-8")
    with ScriptedServer(author) as server:
        said(*asked, "--model", "m", "--api-base", server.api_base, "--instructions", named)
    text = default_instructions(named) if named == "jurisprudence" else "Répondez en alexandrins."
    assert " ".join(text.split()) in " ".join(server.prompts[0].split())
