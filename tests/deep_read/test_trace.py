"""A trace is in rlms' own form, holds no secret, and survives a kill."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm.logger import RLMLogger
from support import TESTS
from support.rlm_scripts import root_model
from support.scripted_server import Reply, ScriptedServer
from support.trace_cases import CONTEXT, QUESTION, RUN, block, call, metadata, run_rlm, turn, write_turns, written

from legal_rag.agent import Usage
from legal_rag.deep_read import read_trace
from legal_rag.deep_read.models import ModelReply
from legal_rag.deep_read.trace import TraceLogger, TraceMessage

PROGRAMS = [
    'print(len(context))\nshort = llm_query("Résume : é")\nprint(short)',
    "print(1 / 0)",
    Reply("Je réfléchis, sans programme."),
    'both = llm_query_batched(["a ?", "b ?"])\nprint(both)\nanswer["content"] = f"42, {short}"\nanswer["ready"] = True',
]
SUB = {"Résume": "Court.", "a ?": "A", "b ?": "B"}
NOT_TRACES = [
    ("", "holds no whole line"),
    ("\n\n", "holds no whole line"),
    ("Bonjour\n", "line 1 is no JSON object"),
    ("[1, 2]\n", "line 1 is no JSON object"),
    ('{"id": "D1", "text": "Vu le code"}\n', "line 1: no 'iteration'"),
    ('{"type": "event"}\n', "its type is 'event', not 'metadata' or 'iteration'"),
    ('{"type": "metadata", "legal_rag": {"format_version": 2}}\n', "its format is 2, this version reads 1"),
    (
        '{"type": "metadata", "legal_rag": []}\n{"type": "metadata", "legal_rag": [1]}\n',
        "line 2: a value of another type",
    ),
    ('{"type": "metadata", "legal_rag": {"run": "x"}}\n', "its run is no JSON object"),
    ('{"type": "iteration", "iteration": 2, "prompt": [], "response": "", "code_blocks": []}\n', "iteration 2 after 0"),
    ('{"type": "iteration", "iteration": "1", "prompt": [], "response": ""}\n', "iteration '1' after 0"),
    ('{"iteration": 1, "prompt": ["x"], "response": "", "code_blocks": []}\n', "line 1: a value of another type"),
    ('{"iteration": 1, "prompt": [], "prompt_from": 3, "response": "", "code_blocks": []}\n', "from message 3 of 0"),
    ('{"iteration": 1, "prompt": [], "response": "", "code_blocks": [{"code": "x"}]}\n', "line 1: no "),
    ('{"type": "metadata"}\n{"type": "itera\n{"type": "metadata"}\n', "line 2 is no JSON object"),
    ('{"type": "metadata"}\n' + "[" * 100_000 + "\n", "line 2 is no JSON object"),
    ("\x80\x81\n", "line 1 is no JSON object"),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


@pytest.fixture(scope="module")
def of_rlms(tmp_path_factory):
    """The trace that rlms itself writes of a run with its own loop, environment and logger."""
    with ScriptedServer(root_model(PROGRAMS, SUB)) as server:
        logger = RLMLogger(str(tmp_path_factory.mktemp("rlms")))
        run_rlm(server, logger)
    return Path(logger.log_file_path)


def resumed(path, turns):
    """Resume a run."""
    logger = TraceLogger(path, RUN)
    logger.log_metadata(metadata())
    write_turns(logger, turns)
    return logger


def said(*contents):
    roles = ["system", "user", "user", "assistant", "user", "user"]
    return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]


def test_a_trace_that_rlms_wrote_is_read(of_rlms):
    trace = read_trace(of_rlms)
    assert trace.metadata["root_model"] == "racine"
    assert trace.run == {}
    first, second, third, last = trace.iterations
    assert first.messages[0].role == "system"
    assert first.messages[1].content.startswith(f"Answer the following: {QUESTION}")
    assert first.blocks[0].code == PROGRAMS[0]
    assert first.blocks[0].stdout == f"{len(CONTEXT)}\nCourt.\n"
    assert [(one.prompt, one.reply, one.usage.tokens) for one in first.calls] == [("Résume : é", "Court.", 2)]
    assert "ZeroDivisionError" in second.blocks[0].stderr
    assert (third.response, third.blocks) == ("Je réfléchis, sans programme.", ())
    assert [one.prompt for one in last.calls] == ["a ?", "b ?"]
    assert last.messages[-1] == TraceMessage("user", "Turn 4/6:")
    assert trace.final_answer == last.final_answer == "42, Court."
    assert (trace.usage.calls, trace.usage.cost) == (3, None)  # of the root model rlms writes nothing down


def test_our_logger_says_what_rlms_own_says(of_rlms, path):
    logger = TraceLogger(path, RUN)
    with ScriptedServer(root_model(PROGRAMS, SUB)) as server:
        assert run_rlm(server, logger) == "42, Court."

    def told(trace):
        timeless = {"time": "", "seconds": None, "usage": None, "reply_seconds": None}
        turns = [replace(one, **timeless, blocks=tuple(map(untimed, one.blocks))) for one in trace.iterations]
        return trace.metadata | {"backend_kwargs": None}, turns

    def untimed(one):
        return replace(one, seconds=None, calls=tuple(each._replace(seconds=0.0) for each in one.calls))

    assert told(read_trace(path)) == told(read_trace(of_rlms))
    assert (logger.iteration_count, len(logger.get_trajectory()["iterations"])) == (4, 4)


def test_each_line_has_every_field_that_rlms_writes(of_rlms, path):
    written(path, turn(block(calls=[call()], final="Deux.")))

    def fields(file):
        lines = [json.loads(line) for line in file.read_bytes().splitlines()][:2]
        code = lines[1]["code_blocks"][0]
        return [set(one) for one in (*lines, code, code["result"], code["result"]["rlm_calls"][0])]

    for ours, theirs in zip(fields(path), fields(of_rlms), strict=True):
        assert theirs <= ours


def test_the_conversation_is_written_once_and_given_back_whole(path):
    written(path, *(turn(block(f"print({n})"), thought=f"Tour {n}") for n in range(30)))
    assert path.read_text("utf-8").count("Vous écrivez des programmes.") == 1
    last = read_trace(path).iterations[-1]
    assert len(last.messages) == 2 + 30 + 2 * 29
    assert last.messages[0].content == "Vous écrivez des programmes."
    assert last.messages[-1].content == "Turn 30/10:"


def test_a_conversation_that_was_summed_up_is_given_back_as_it_was(path):
    logger = TraceLogger(path, RUN)
    first, second = turn(thought="Un."), turn(thought="Deux.")
    first.prompt = said("Consigne", "Question", "Turn 1/9:")
    second.prompt = said("Consigne", "Question", "Résumé", "Bien.")
    for one in (first, second):
        logger.log(one)
    assert [one.content for one in read_trace(path).iterations[1].messages] == [
        "Consigne", "Question", "Résumé", "Bien."
    ]  # fmt: skip


def test_only_the_owner_may_read_a_trace(path):
    old = os.umask(0)
    try:
        other = TraceLogger(written(path, turn()).with_name("other.jsonl"), RUN)
    finally:
        os.umask(old)
    assert [oct(one.stat().st_mode & 0o777) for one in (path, other.path)] == ["0o600"] * 2


def test_accents_are_written_as_they_are(path):
    written(path, turn(thought="Élection annulée à l’unanimité"))
    assert "Élection annulée à l’unanimité".encode() in path.read_bytes()


def test_no_key_and_no_password_reaches_the_file(path):
    secrets = {
        "api_key": "sk-1SECRET",
        "default_headers": {"Authorization": "Bearer 2SECRET"},
        "azure_ad_token": "3SECRET",
        "hf_token": "4SECRET",
        "nested": [{"client_secret": "5SECRET", "password": "6SECRET"}],
        "base_url": "https://user:7SECRET@example.org:8443/v1?key=8SECRET#9SECRET",
        "webhook": "http://[10SECRET",
        "credentials": {"any": "11SECRET"},
        "max_tokens": 512,
    }
    TraceLogger(path, RUN).log_metadata(metadata(backend_kwargs=secrets, environment_kwargs={"cookie": "12SECRET"}))
    assert b"SECRET" not in path.read_bytes()
    assert read_trace(path).metadata["backend_kwargs"] == {
        "nested": [{}], "base_url": "https://example.org:8443/v1", "webhook": "", "max_tokens": 512
    }  # fmt: skip


def test_a_key_given_to_rlms_never_reaches_the_file(path):
    with ScriptedServer(root_model(PROGRAMS, SUB)) as server:
        run_rlm(server, TraceLogger(path, RUN), default_headers={"X-Key": "sk-SECRET2"})
    assert b"SECRET" not in path.read_bytes()


def test_what_json_or_utf_8_cannot_hold_is_replaced(path):
    values = {"nan": float("nan"), "set": {1}, "huge": 10**5000, "ring": [], "\ud800": "\ud800"}
    values["ring"].append(values["ring"])
    odd = block("x = '\ud800\x00'", "\udfff\u2028 fin", "\x00", [call("\ud800 ?", "r\udc00")], {"nan": float("nan")})
    one = turn(odd, thought="\ud800 pensée\u2028\x85", seconds=float("inf"))
    one.code_blocks[0].result.execution_time = float("nan")
    one.code_blocks[0].result.locals = {name: value for name, value in values.items() if name != "ring"}
    written(path, one, run={**RUN, "temps": float("inf")})
    path.read_bytes().decode()
    (iteration,) = read_trace(path).iterations
    assert iteration.response.startswith("\ufffd pensée\u2028\x85")
    assert iteration.blocks[0].stdout == "\ufffd\u2028 fin"
    assert (iteration.seconds, iteration.blocks[0].seconds) == (None, None)
    assert iteration.final_answer == "- **nan** : (rien)"
    assert [(each.prompt, each.reply) for each in iteration.calls] == [("\ufffd ?", "r\ufffd")]


def test_what_was_printed_is_bounded_and_what_was_asked_is_whole(path):
    long = "é" * 100_000
    variables = dict.fromkeys((f"v{n}" for n in range(500)), long)
    written(path, turn(block(long, long, long, [call(long, long)], variables=variables), thought=long))
    (iteration,) = read_trace(path).iterations
    (code,) = iteration.blocks
    assert code.stdout == code.stderr == "é" * 20_000 + " […80000 caractères non conservés]"
    assert iteration.calls[0].prompt == iteration.calls[0].reply == code.code == long
    assert long in iteration.response
    told = json.loads(path.read_bytes().splitlines()[1])["code_blocks"][0]["result"]["locals"]
    assert (len(told), max(map(len, told.values())) < 300) == (100, True)


@pytest.mark.parametrize(("final", "told"), [("Deux.", "Deux."), (3, "3"), (["a", "b"], "- a\n- b"), ("", "")])
def test_the_final_answer_is_told_as_text(path, final, told):
    written(path, turn(block(final=final)))
    trace = read_trace(path)
    assert trace.final_answer == trace.iterations[0].blocks[0].final_answer == told


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))] * 5)))
def test_whatever_is_said_comes_back(tmp_path_factory, turns):
    path = tmp_path_factory.mktemp("said") / "run.jsonl"
    written(path, *(turn(block(a, b, c, [call(d, e)]), thought=a) for a, b, c, d, e in turns))
    read = read_trace(path).iterations
    got = [(*((one.code, one.stdout, one.stderr) for one in each.blocks), each.calls[0][:2]) for each in read]
    assert got == [((a, b, c), (d, e)) for a, b, c, d, e in turns]


@pytest.mark.parametrize("left", [1, 2, 20, 200, -1])
def test_a_line_cut_off_by_a_kill_is_passed_over_and_cut_away(path, left):
    written(path, turn(thought="Un."), turn(thought="Deux."))
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[: last + left] if left > 0 else whole[:-2])
    assert [one.number for one in read_trace(path).iterations] == [1]
    resumed(path, [turn(thought="Un."), turn(thought="Autre.")])
    assert [one.response for one in read_trace(path).iterations] == ["Un.", "Autre."]
    assert len(path.read_bytes().splitlines()) == 3


def test_a_whole_line_that_lost_its_line_break_counts(path):
    written(path, turn(thought="Un."), turn(thought="Deux."))
    path.write_bytes(path.read_bytes()[:-1])
    assert len(read_trace(path).iterations) == 2
    resumed(path, [turn(thought="Un."), turn(thought="Deux."), turn(thought="Trois.")])
    assert [one.response for one in read_trace(path).iterations] == ["Un.", "Deux.", "Trois."]


@pytest.mark.parametrize(("content", "problem"), NOT_TRACES)
def test_what_is_no_trace_is_refused_in_one_line(path, content, problem):
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match="not a trace: ") as caught:
        read_trace(path)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_trace_that_is_not_there_is_named(path):
    with pytest.raises(FileNotFoundError, match=f"no trace at {path}"):
        read_trace(path)


@pytest.mark.parametrize("content", ["Mes notes", "Mes notes\n", '{"id": "D1"}\n', '{"type": "metadata"}\n'])
def test_a_file_of_something_else_is_never_written_to(path, content):
    path.write_text(content, "utf-8")
    with pytest.raises(ValueError, match="not a trace|not the same run"):
        TraceLogger(path, RUN)
    assert path.read_text("utf-8") == content


@pytest.mark.parametrize("left", [0, 1, 5, 30])
def test_a_run_killed_at_its_first_line_begins_again(path, left):
    path.write_bytes(written(path, turn()).read_bytes()[:left])
    TraceLogger(path, RUN).log_metadata(metadata())
    assert read_trace(path).run == RUN


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"question": "Autre ?"}, "question was \"Combien .* and is now \"Autre"),
        ({"commit": 4}, "commit was 3 and is now 4"),
        ({"doc_ids": []}, r"doc_ids was \[\"D1\", \"D2\"\] and is now \[\]"),
        ({"new": 1}, "new was null and is now 1"),
    ],
)  # fmt: skip
def test_another_run_is_refused(path, changed, problem):
    before = written(path, turn()).read_bytes()
    with pytest.raises(ValueError, match=f"not the same run: in .*{problem}"):
        TraceLogger(path, {**RUN, **changed})
    assert path.read_bytes() == before


def test_tuples_are_the_lists_that_they_become(path):
    written(path, turn(), run={**RUN, "doc_ids": ("D1", "D2")})
    TraceLogger(path, {**RUN, "doc_ids": ("D1", "D2")})
    assert read_trace(path).run["doc_ids"] == ["D1", "D2"]


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
from support.trace_cases import RUN, block, metadata, turn, write_turns
from legal_rag.deep_read.trace import TraceLogger
logger = TraceLogger(Path({path!r}), RUN)
logger.log_metadata(metadata())
log = logger.log
def telling(iteration):
    log(iteration)
    print("turn", flush=True)
logger.log = telling
write_turns(logger, (turn(block(stdout="é" * 15_000)) for _ in range(100_000)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("turns", [1, 3, 7])
def test_a_killed_process_leaves_a_trace_that_is_read_and_gone_on_with(path, turns):
    code = KILLED.format(tests=str(TESTS), path=str(path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        for _ in range(turns):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    before = len(read_trace(path).iterations)
    assert before >= turns
    assert read_trace(path).usage.calls >= turns
    resumed(path, [turn(block(stdout="é" * 15_000)) for _ in range(before + 1)])
    assert len(read_trace(path).iterations) == before + 1


def test_turns_that_come_out_as_before_are_not_written_again(path):
    before = written(path, turn(thought="Un."), turn(thought="Deux.")).read_bytes()
    logger = TraceLogger(path, RUN)
    logger.log_metadata(metadata())
    write_turns(logger, [turn(thought="Un."), turn(thought="Deux.")], asked=False)
    assert path.read_bytes() == before


def test_a_resumed_run_with_more_turns_repeats_none(path):
    written(path, turn(thought="Un."), turn(thought="Deux."))
    logger = TraceLogger(path, RUN)
    logger.log_metadata(metadata(max_iterations=20))
    write_turns(logger, [turn(thought="Un."), turn(thought="Deux."), turn(thought="Trois.")], most=20)
    trace = read_trace(path)
    assert [one.response for one in trace.iterations] == ["Un.", "Deux.", "Trois."]
    assert (trace.superseded, trace.metadata["max_iterations"]) == ((), 20)


def test_replies_in_runs_that_a_turn_started_are_counted(path):
    logger = TraceLogger(path, RUN)
    for reply in ("Un.", "Fils."):
        logger.replied(ModelReply(reply, Usage(1, 0, 10, 1), 0.5, cut_off=False))
    one = turn(thought="Un.")
    one.prompt = said("Consigne", "Question", "Turn 1/9:")
    logger.log(one)
    (line,) = read_trace(path).iterations
    assert (line.usage.tokens, line.reply_seconds) == (22, 1.0)


def test_what_a_run_came_to_counts_all_its_attempts(path):
    written(path, turn(block(stderr="Budget épuisé", calls=[call()])))
    resumed(path, [turn(block(calls=[call(), call()]))])
    usage = read_trace(path).usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (2 + 3, 320, 26)


def test_a_trace_without_settings_is_read(path):
    lines = written(path, turn(thought="Un.")).read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[1])
    trace = read_trace(path)
    assert (trace.run, dict(trace.metadata), trace.started) == ({}, {}, "")
    assert trace.iterations[0].response == "Un."


def test_the_last_of_two_runs_in_one_file_of_rlms_is_read(path):
    logger = TraceLogger(path, RUN)
    write_turns(logger, [turn(thought="Un."), turn(thought="Deux.")])
    logger.clear_iterations()
    write_turns(logger, [turn(thought="Autre.")])
    trace = read_trace(path)
    assert [one.response for one in trace.iterations] == ["Autre."]
    assert [one.response for one in trace.superseded] == ["Un.", "Deux."]


def test_a_trace_is_told_as_json(path):
    told = json.loads(json.dumps(read_trace(written(path, turn(block(calls=[call()], final="Deux.")))).to_json()))
    assert (told["run"], told["final_answer"], told["usage"]["calls"]) == (RUN, "Deux.", 2)
    (iteration,) = told["iterations"]
    assert iteration["blocks"][0]["calls"][0]["reply"] == "Court."
    assert iteration["usage"]["prompt_tokens"] == 100


def test_a_folder_that_cannot_be_written_is_an_error_before_anything_costs(tmp_path):
    (tmp_path / "file").write_text("x", "utf-8")
    with pytest.raises(OSError, match="file"):
        TraceLogger(tmp_path / "file" / "run.jsonl", RUN)
