"""The cache of replies: what was asked before costs no request, whatever else differs makes another."""

import json
import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing

import dspy
import pytest
from support.scripted_server import Reply, ScriptedServer, fields, step

from legal_rag.agent import build_agent, build_language_model, use_reply_cache
from legal_rag.agent.llm import ReplyCache, replies_folder
from legal_rag.cli import main
from legal_rag.cli.evaluate import _language_model

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"
KEY = "sk-tres-secret-0123"


class RecordingServer(ScriptedServer):
    """Keeps whole requests."""

    def __init__(self, script):
        self.requests = []
        super().__init__(script)

    def reply(self, request):
        self.requests.append(request)
        return super().reply(request)


def nth(_prompt, attempt):
    return Reply(f"réponse {attempt}")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Give each test a cache of its own, in place of DSPy's for this process."""
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "replies"))
    for name in ("GENERATOR_API_BASE", "GENERATOR_API_KEY", "GENERATOR_MODEL_ID", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    before = dspy.cache
    yield use_reply_cache()
    dspy.cache = before


@pytest.fixture
def server():
    with RecordingServer(nth) as serving:
        yield serving


def ask(server, text="Bonjour ?", **settings):
    return build_language_model("m", KEY, server.api_base, **settings)(text)


def test_what_was_asked_before_is_not_asked_again(server):
    assert [ask(server), ask(server), ask(server, "Bonsoir ?")] == [["réponse 0"], ["réponse 0"], ["réponse 0"]]
    assert len(server.requests) == 2


def test_a_reply_outlives_its_process(server):
    ask(server)
    use_reply_cache()
    assert ask(server) == ["réponse 0"]
    script = f"""
from legal_rag.agent.llm import build_language_model
from legal_rag.agent.llm import use_reply_cache
use_reply_cache()
print(build_language_model("m", api_base={server.api_base!r})("Bonjour ?"))
"""
    assert subprocess.check_output([sys.executable, "-c", script], text=True, timeout=120) == "['réponse 0']\n"
    assert len(server.requests) == 1


@pytest.mark.slow  # importing LiteLLM takes seconds
def test_a_reply_that_came_through_litellm_comes_back_too(server):
    for _ in range(2):
        lm = dspy.LM("openai/m", api_base=server.api_base, api_key=KEY, engine="litellm")
        assert lm("Bonjour ?") == ["réponse 0"]
        use_reply_cache()
    assert lm.history[0]["usage"] == {}
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "settings",
    [{"cache": False}, {"seed": 1}, {"temperature": 0.7}, {"max_tokens": 100}],
    ids=lambda settings: next(iter(settings)),
)
def test_another_setting_is_another_request(server, settings):
    assert ask(server) == ["réponse 0"]
    assert ask(server, **settings) == ["réponse 1"]
    assert ask(server) == ["réponse 0"]


@pytest.mark.parametrize("temperature", [0.0, 0.2])
def test_each_seed_has_replies_of_its_own_and_is_sent(server, temperature):
    said = [ask(server, seed=seed, temperature=temperature) for seed in (None, 0, 1, 0, None, -1)]
    assert said == [["réponse 0"], ["réponse 1"], ["réponse 2"], ["réponse 1"], ["réponse 0"], ["réponse 3"]]
    assert [request.get("seed") for request in server.requests] == [None, 0, 1, -1]


def test_servers_of_one_model_name_do_not_give_each_other_s_replies():
    said = []
    for name in ("un", "deux", "un"):
        with ScriptedServer(lambda _prompt, _attempt, name=name: Reply(name)) as server:
            said += [ask(server), ask(server)]
            assert len(server.prompts) == 1
    assert said == [["un"], ["un"], ["deux"], ["deux"], ["un"], ["un"]]


def test_an_address_is_the_same_with_and_without_a_slash_behind_it(server):
    ask(server)
    assert build_language_model("m", api_base=server.api_base + "/")("Bonjour ?") == ["réponse 0"]
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", ["OLLAMA_API_BASE", "OLLAMA_BASE_URL"])
def test_an_address_that_the_environment_gives_counts_too(monkeypatch, name):
    default = build_language_model("ollama_chat/llama").kwargs.get("rollout_id")
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert default is None
    assert isinstance(build_language_model("ollama_chat/llama").kwargs["rollout_id"], int)


def test_what_keeps_requests_apart_is_not_sent_and_not_warned_of(server):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lm = build_language_model("m", KEY, server.api_base, temperature=0.0, seed=1)
        assert lm("Bonjour ?") == lm.copy()("Bonjour ?") == ["réponse 0"]
    assert list(server.requests[0]) == ["model", "messages", "max_completion_tokens", "temperature", "seed"]


def test_a_provider_that_refuses_seeds_is_sent_none():
    lm = build_language_model("anthropic/claude", KEY, seed=1)
    assert "seed" not in lm.kwargs
    assert isinstance(lm.kwargs["rollout_id"], int)


def test_describing_a_model_leaves_dspy_as_it_is(server):
    before = (dspy.cache, dspy.settings.lm)
    build_language_model("m", KEY, server.api_base, seed=1)
    assert (dspy.cache, dspy.settings.lm) == before


def test_the_cache_holds_no_key_no_address_and_no_pickle(server, own_cache):
    ask(server)
    data = own_cache.read_bytes()
    assert own_cache == replies_folder() / "replies.sqlite"
    assert KEY.encode() not in data
    assert server.api_base.encode() not in data
    with sqlite3.connect(own_cache) as connection:
        ((text,),) = connection.execute("SELECT reply FROM replies")
    assert "réponse 0" in json.dumps(json.loads(text), ensure_ascii=False)


@pytest.mark.parametrize("damage", ["rubbish", "[]", '"x"', '{"litellm_reply": 1}', '{"said": 1}', "[" * 99_999])
def test_a_damaged_reply_is_asked_for_again(server, own_cache, damage):
    ask(server)
    with sqlite3.connect(own_cache) as connection:
        connection.execute("UPDATE replies SET reply = ?", (damage,))
    use_reply_cache()
    assert ask(server) == ["réponse 1"]
    use_reply_cache()
    assert ask(server) == ["réponse 1"]


def test_a_damaged_cache_is_told_once_and_does_without(server, own_cache, caplog):
    own_cache.parent.mkdir(exist_ok=True)
    own_cache.write_bytes(b"rubbish" * 1000)
    assert [ask(server), ask(server), ask(server, seed=1)] == [["réponse 0"], ["réponse 0"], ["réponse 1"]]
    (told,) = [record.message for record in caplog.records if "replies" in record.message]
    assert told == f"replies are not kept in {own_cache} (file is not a database); if it is damaged, delete it"


def test_a_folder_that_cannot_be_made_is_told_and_does_without(server, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    use_reply_cache(tmp_path / "file" / "replies")
    assert [ask(server), ask(server)] == [["réponse 0"], ["réponse 0"]]
    assert "Not a directory" in caplog.text


def test_what_was_not_asked_for_longest_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("legal_rag.agent.llm.FORGET_EVERY", 1)
    replies = ReplyCache(tmp_path / "replies.sqlite", "3.4", most=3)
    for key in "abcd":
        if key == "d":
            assert replies.get("a") == {"_dspy_format": "a"}  # asked for again: now "b" is the oldest
        replies.set(key, {"_dspy_format": key})
    assert [key in replies for key in "abcd"] == [True, False, True, True]
    replies.delete("a")
    assert replies.get("a") is None


def test_a_reply_is_read_while_another_process_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("legal_rag.agent.llm.PATIENCE_SECONDS", 0.1)
    file = tmp_path / "replies.sqlite"
    replies = ReplyCache(file, "3.4")
    replies.set("a", {"_dspy_format": "a"})
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert replies.get("a") == {"_dspy_format": "a"}


def test_a_reply_is_read_from_a_file_that_cannot_be_written(tmp_path, monkeypatch, caplog):
    replies = ReplyCache(tmp_path / "replies.sqlite", "3.4")
    replies.set("a", {"_dspy_format": "a"})
    connect = sqlite3.connect

    def connect_read_only(file, *args, **kwargs):  # file modes do not bind root
        connection = connect(file, *args, **kwargs)
        connection.execute("PRAGMA query_only = ON")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_read_only)
    assert replies.get("a") == {"_dspy_format": "a"}
    assert caplog.text == ""


def test_what_another_version_of_dspy_wrote_is_not_read(tmp_path):
    ReplyCache(tmp_path / "replies.sqlite", "3.4").set("a", {"_dspy_format": "a"})
    assert ReplyCache(tmp_path / "replies.sqlite", "3.5").get("a") is None


# --- answers --------------------------------------------------------------------------------------------------------


def searcher(prompt, _attempt):
    """Search once, then answer without citing."""
    if "[[ ## answer ## ]]" in prompt.split("Respond with")[-1]:
        return fields(reasoning="Rien.", answer="Aucun passage pertinent n'a été trouvé.")
    return step("finish") if "observation_0" in prompt else step("search_legal_docs", query="compte de campagne")


@pytest.fixture
def place(tiny_library):
    return ["--index-folder", str(tiny_library.path.parent), "--index-name", tiny_library.path.name]


def test_a_second_identical_question_costs_no_call_of_the_model(tiny_library, tiny_encoder):
    with ScriptedServer(searcher) as server:
        settings = {"model": "m", "api_base": server.api_base, "encoder": tiny_encoder}
        first = build_agent(tiny_library, **settings)(QUESTION)
        n_asked = len(server.prompts)
        second = build_agent(tiny_library, **settings)(QUESTION)
        assert len(server.prompts) == n_asked > 0
    assert (second.answer, second.status) == (first.answer, first.status)
    assert first.usage.calls == n_asked
    assert (second.usage.calls, second.usage.cached, second.usage.tokens, second.usage.cost) == (0, n_asked, 0, 0.0)


def test_questions_are_never_made_of_replies_that_were_given_before(server):
    options = {"no_model": False, "model": "m", "api_base": server.api_base, "api_key": KEY}
    options |= {"temperature": 0.2, "max_reply_tokens": None}
    assert [_language_model(options)("Bonjour ?") for _ in range(2)] == [["réponse 0"], ["réponse 1"]]


def test_the_command_line_asks_again_only_where_it_is_told_to(place, capfd):
    with ScriptedServer(searcher) as server:
        asked = ["ask", QUESTION, "--model", "m", "--api-base", server.api_base, "--api-key", KEY, "--json", *place]
        counts = []
        for more in ([], [], ["--no-cache"], ["--seed", "1"], ["--seed", "1"]):
            before = len(server.prompts)
            assert main([*asked, *more]) == 0
            counts.append(len(server.prompts) - before)
    n = counts[0]
    assert n > 0
    assert counts == [n, 0, n, n, 0]
    assert KEY not in "".join(capfd.readouterr())
