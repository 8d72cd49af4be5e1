"""The probe's patterns tell right answers from wrong ones; replies are kept; what the checks mark is counted."""

import json
import re

import pytest
from support.scripted_server import Reply, ScriptedServer

from legal_rag.agent import build_language_model
from legal_rag.cli import main
from legal_rag.evaluation import ProbeReport, probe_model, read_probe, score_written
from legal_rag.evaluation.probe import REPLIES, Judge
from legal_rag.indexer import IndexConfig, build_index
from legal_rag.library import Library
from legal_rag.llm import model_of

KINDS, QUESTIONS = read_probe()
BY_ID = {asked.id: asked for asked in QUESTIONS}
BY_TEXT = {asked.question: asked for asked in QUESTIONS}
N_PATTERNS = 60


@pytest.fixture(scope="module")
def judge(tiny_library):
    return Judge(tiny_library)


@pytest.fixture
def probed(place, tmp_path, capfd, no_endpoint):
    """Run the command, its replies in one folder; return status, stdout and stderr."""

    def run(*arguments):
        capfd.readouterr()
        status = main(["probe", *place, "--output", str(tmp_path), *arguments])
        return status, *capfd.readouterr()

    return run


def asked_in(prompt):
    return BY_TEXT[prompt.rpartition("Question : ")[2].strip()]


def by_hand(prompt, _attempt):
    """Reply with the right answer to the first two questions of a kind, with the wrong one to the others."""
    asked = asked_in(prompt)
    return Reply(asked.right if asked.id.endswith(("1", "2")) else asked.wrong)


def model_at(server):
    return model_of(build_language_model("scripted", "key", server.api_base, num_retries=0))


@pytest.fixture(scope="module")
def whole_run(tiny_library, tmp_path_factory):
    """Ask all questions; return the server, the text of the replies kept, and the report."""
    folder = tmp_path_factory.mktemp("probe")
    with ScriptedServer(by_hand) as server:
        report = probe_model(tiny_library, model_at(server), folder)
    return server, (folder / REPLIES).read_text("utf-8"), report


def test_each_of_fifteen_kinds_has_four_questions_about_decisions_of_the_sample(tiny_library):
    assert len(KINDS) == 15
    assert all(sum(asked.kind == kind for asked in QUESTIONS) == 4 for kind in KINDS)
    assert all(asked.doc_id in tiny_library for asked in QUESTIONS)
    assert all(sum(len(getattr(one, name)) for one in QUESTIONS) >= N_PATTERNS for name in ("expected", "forbidden"))
    assert len({asked.kind for asked in QUESTIONS[:15]}) == 15, "a run that is cut off has asked of every kind"


@pytest.mark.parametrize("qid", BY_ID)
def test_the_answers_written_by_hand_are_right_and_wrong(judge, qid):
    asked = BY_ID[qid]
    assert judge.outcome(asked, asked.right).verdict == "right"
    wrong = judge.outcome(asked, asked.wrong)
    assert (wrong.verdict, wrong.kind) == ("wrong", asked.kind)
    assert wrong.errors
    if asked.kind not in ("unanswerable", "dropped_condition"):
        assert judge.verdict(asked, asked.question)[0] == "neither", "an echo is no answer"


@pytest.mark.parametrize(
    ("qid", "reply", "verdict"),
    [
        ("series-1", "Selon l'art. L1225-1 C. trav., il est remis contre récépissé, R. 1225-1 ne le dit pas.", "wrong"),
        ("series-1", "C'est l'article R1225‑1.", "right"),
        ("series-1", "C'est l'article L. 1225-5 du code du travail.", "wrong"),
        ("series-1", "L'article L. 1225-5 renvoie à l'article R. 1225-1.", "right"),
        ("date-1", "Le 31/05/2018.", "right"),
        ("date-1", "Le courriel est du 31 mai 2018, l'original du 11 juin 2018.", "right"),
        ("date-1", "Le 31 mai 2019.", "wrong"),
        ("amount-1", "Soixante-douze mille euros, et non 30 000 €.", "right"),
        ("amount-1", "30 000 €.", "wrong"),
        ("number-1", "Il s'agit d'un pourvoi de la chambre sociale.", "neither"),
        ("number-1", "", "neither"),
        ("altered-1", "« Un manquement auquel l'organisation du travail […] a directement concouru »", "neither"),
        ("unanswerable-1", "La décision ne précise pas la marque.", "right"),
        ("condition-1", "Par courriel, dans les quinze jours, si l'employeur l'a reçu.", "right"),
    ],
)
def test_a_value_is_read_in_all_its_forms(judge, qid, reply, verdict):
    assert judge.outcome(BY_ID[qid], reply).verdict == verdict


@pytest.mark.parametrize(
    ("qid", "reply", "shown"),
    [
        ("series-1", "C'est l'article L. 1225-1 du code du travail [Source: FICTIF0211].", "refused"),
        ("outcome-1", "Peut-être la Cour casse-t-elle, sans plus : casse et annule", "unmarked"),
        ("date-3", "Le délai expirait le 9 juin 1993 à minuit [Source: FICTIF0108].", "compare"),
        (
            "party-1",
            "La Cour juge que « le trajet protégé n'est enfermé dans aucun horaire » [Source: FICTIF0204].",
            "compare",
        ),
        (
            "date-1",
            "Le certificat a été transmis le 31 mai 2019 [Source: FICTIF0211]. Le 31 mai 2018, elle a transmis à la "
            "directrice des ressources humaines, par courriel, la copie d’un certificat [Source: FICTIF0211].",
            "refused",
        ),
    ],
)
def test_an_error_is_caught_only_where_its_own_sentence_is_marked(judge, qid, reply, shown):
    outcome = judge.outcome(BY_ID[qid], reply)
    assert (outcome.verdict, outcome.by_citations) == ("wrong", shown)


def test_a_wrong_reference_marks_a_sentence_that_its_citation_does_not_refuse(judge):
    outcome = judge.outcome(BY_ID["court-4"], BY_ID["court-4"].wrong)
    assert (outcome.by_citations, outcome.shown) == ("vouched", "refused")


def test_the_written_answers_are_counted_by_kind(tiny_library):
    report = score_written(tiny_library)
    every = report.rows[-1]
    assert (every.kind, every.asked, every.right, every.wrong) == ("all", 120, 60, 60)
    assert every.caught == every.wrong - every.unmarked - every.vouched > 40
    share, low, high = report.shares["marked, of the wrong"]
    assert low < share == every.caught / 60 < high
    assert ProbeReport("none", []).shares == {}


def test_a_run_asks_each_question_once_at_temperature_zero_and_judges_the_replies(whole_run):
    server, kept, report = whole_run
    assert len(server.prompts) == 60
    assert {(request["temperature"], request["seed"]) for request in server.requests} == {(0, 0)}
    assert (report.rows[-1].right, report.rows[-1].wrong) == (30, 30)
    assert [json.loads(line)["id"] for line in kept.splitlines()[1:]] == [asked.id for asked in QUESTIONS]


def test_a_prompt_holds_the_question_after_the_passages_found_with_their_markers(whole_run):
    server, *_ = whole_run
    assert all(re.search(r"\[Source: FICTIF\d+, chars \d+-\d+\] C|aucun passage", prompt) for prompt in server.prompts)
    assert max(map(len, server.prompts)) < 3000


def test_a_run_goes_on_after_a_kill_in_the_midst_of_a_reply(whole_run, tiny_library, tmp_path):
    _, kept, report = whole_run
    *lines, last = kept.splitlines(keepends=True)
    (tmp_path / REPLIES).write_text("".join(lines) + last[:40], "utf-8")
    assert probe_model(tiny_library, None, tmp_path).rows[-1].asked == 59
    with ScriptedServer(by_hand) as server:
        again = probe_model(tiny_library, model_at(server), tmp_path)
    assert len(server.prompts) == 1
    assert again == report


def test_the_command_prints_a_table_by_kind_or_json(whole_run, probed, tmp_path):
    (tmp_path / REPLIES).write_text(whole_run[1], "utf-8")
    status, table, told = probed()
    assert (status, len(table.splitlines())) == (0, 1 + 2 + 16 + 6)
    assert "vouches for" in told
    status, text, _ = probed("--json")
    assert (status, len(json.loads(text)["outcomes"])) == (0, 60)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "no model to probe, and no replies in"),
        (["--model", "m", "--api-base", "http://127.0.0.1:9/v1"], "m did not reply to number-1"),
        (["--model", "m", "--api-base", "nowhere"], "invalid api_base"),
    ],
)
def test_what_cannot_be_probed_is_said_in_one_line(probed, arguments, line):
    status, out, told = probed(*arguments)
    assert (status, out) == (1, "")
    assert line in told.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"model": "other", "probe": "1"}\n', "holds replies of"),
        ("[]\n", "does not hold replies to the probe"),
        ("", "does not hold replies to the probe"),
    ],
)
def test_replies_of_another_model_or_something_else_stay_as_they_are(probed, tmp_path, text, line):
    (tmp_path / REPLIES).write_text(text, "utf-8")
    status, _, told = probed("--model", "m", "--api-base", "http://127.0.0.1:9/v1")
    assert (status, (tmp_path / REPLIES).read_text("utf-8")) == (1, text)
    assert line in told.splitlines()[-1]


def test_an_index_of_something_else_is_refused(tiny_encoder, tmp_path):
    build_index(IndexConfig(source=[{"id": "A", "content": "Un bail."}], index_folder=str(tmp_path)), tiny_encoder)
    with pytest.raises(LookupError, match="lacks FICTIF.*legal-rag index --source sample"):
        Judge(Library.open(tmp_path))
