"""Traces are rlms' own, hold no key, are read back turn by turn, and survive a kill."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm.logger import RLMLogger
from support.rlm_scripts import root_model
from support.scripted_server import Reply, ScriptedServer
from support.trace_cases import CONTEXT, QUESTION, block, call, run_rlm, turn, written

from legal_rag.agent import build_language_model
from legal_rag.deep_read import deep_read, read_trace
from legal_rag.deep_read.settings import DeepReadSettings
from legal_rag.deep_read.trace import TraceMessage

PROGRAMS = [
    'print(len(context))\nshort = llm_query("Résume : é")\nprint(short)',
    "print(1 / 0)",
    Reply("Je réfléchis, sans programme."),
    'both = llm_query_batched(["a ?", "b ?"])\nprint(both)\nanswer["content"] = f"42, {short}"\nanswer["ready"] = True',
]
SUB = {"Résume": "Court.", "a ?": "A", "b ?": "B"}
FIRST = '"iteration": 1, "prompt": [], "response": ""'
NOT_TRACES = [
    ("", "holds no whole line"),
    ("\n\n", "line 1: no JSON object"),
    ("Bonjour\n", "line 1: no JSON object"),
    ("[1, 2]\n", "line 1: the line: Input should be"),
    ('{"id": "D1", "text": "Vu le code"}\n', "line 1: iteration: Field required"),
    ('{"iteration": 2, "prompt": [], "response": "", "code_blocks": []}\n', "iteration 2, not 1"),
    ('{"iteration": 1, "prompt": ["x"], "response": "", "code_blocks": []}\n', "line 1: prompt.0: Input should be"),
    (f'{{{FIRST}, "code_blocks": [{{"result": {{}}}}]}}\n', "line 1: code_blocks.0.code: Field required"),
    ('{"type": "metadata"}\n{"type": "itera\n{"type": "metadata"}\n', "line 2: no JSON object"),
    ('{"type": "metadata"}\n' + "[" * 100_000 + "\n", "line 2: no JSON object"),
    ("\x80\x81\n", "line 1: no JSON object"),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


def test_a_trace_that_rlms_wrote_is_read(tmp_path):
    logger = RLMLogger(str(tmp_path))
    with ScriptedServer(root_model(PROGRAMS, SUB)) as server:
        run_rlm(server, logger)
    trace = read_trace(Path(logger.log_file_path))
    assert trace.metadata["root_model"] == "racine"
    first, second, third, last = trace.iterations
    assert first.messages[0].role == "system"
    assert first.messages[1].content.startswith(f"Answer the following: {QUESTION}")
    assert (first.blocks[0].code, first.blocks[0].stdout) == (PROGRAMS[0], f"{len(CONTEXT)}\nCourt.\n")
    assert [(one.prompt, one.reply, one.usage.tokens) for one in first.calls] == [("Résume : é", "Court.", 2)]
    assert "ZeroDivisionError" in second.blocks[0].stderr
    assert (third.response, third.blocks) == ("Je réfléchis, sans programme.", ())
    assert [one.prompt for one in last.calls] == ["a ?", "b ?"]
    assert last.messages[-1] == TraceMessage(role="user", content="Turn 4/6:")
    assert trace.final_answer == last.final_answer == "42, Court."
    assert (trace.usage.calls, trace.usage.cost) == (3, None)


def test_a_deep_read_writes_every_turn_program_and_call_and_no_key(path, tiny_library):
    programs = [
        "short = llm_query('Résume : é')\nprint(short)",
        "1 / 0",
        "FINAL(count(find_documents(date_from='1993')))",
    ]
    with ScriptedServer(root_model(programs, SUB)) as server:
        lm = build_language_model("racine", "sk-SECRET-0123456789", server.api_base, cache=False)
        deep_read(QUESTION, library=tiny_library, lm=lm, trace=path, settings=DeepReadSettings(plan="rlm"))
    assert "sk-SECRET" not in path.read_text()
    trace = read_trace(path)
    first, second, last = trace.iterations
    assert [(one.prompt, one.reply) for one in first.calls] == [("Résume : é", "Court.")]
    assert second.failed
    assert "ZeroDivisionError" in second.blocks[0].stderr
    assert last.blocks[0].code == programs[-1]
    assert "Reçus :\nr" in last.blocks[0].stdout
    assert trace.final_answer == last.final_answer
    assert json.dumps(trace.to_json(), allow_nan=False)


@pytest.mark.parametrize(("text", "reason"), NOT_TRACES)
def test_what_is_no_trace_is_refused_with_its_line(path, text, reason):
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=reason) as refused:
        read_trace(path)
    assert "not a trace" in str(refused.value)


def test_a_trace_that_is_not_there_is_said(path):
    with pytest.raises(FileNotFoundError, match="no trace at"):
        read_trace(path)


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_a_trace_cut_anywhere_is_read_up_to_its_last_whole_line(data, tmp_path_factory):
    path = written(
        tmp_path_factory.mktemp("cut") / "run.jsonl", turn(block(calls=[call()])), turn(block(final=[1, "é"]))
    )
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    cut = data.draw(st.integers(len(lines[0]), len(whole) - 1))
    path.write_bytes(whole[:cut])
    ends = [len(b"".join(lines[: n + 1])) for n in range(len(lines))]
    assert len(read_trace(path).iterations) in (
        sum(end <= cut for end in ends) - 1,
        sum(end <= cut + 1 for end in ends) - 1,
    )


def test_an_answer_that_is_a_value_is_read_as_the_text_that_readers_get(path):
    assert read_trace(written(path, turn(block(final={"annulées": 2})))).final_answer == "- **annulées** : 2"
