"""How long prompts and replies may be: the window of a model, and the caps of its replies."""

import json
import logging

import dspy
import pytest
from support.raw_server import RESET, STAY, RawServer, completion, response
from support.scripted_server import Reply, ScriptedServer, fields

from legal_rag.llm import (
    Budget,
    Endpoint,
    ModelCalls,
    ModelError,
    ask,
    build_language_model,
    check_model,
    endpoint_of,
    model_of,
    window_of,
)

HELLO = [{"role": "user", "content": "Bonjour ?"}]
PROPS = {"default_generation_settings": {"n_ctx": 4096, "params": {}}, "total_slots": 1}


def words(n):
    """Write a prompt of n words, each of which a small server counts as a token."""
    return [{"role": "user", "content": "mot " * n}]


class SmallServer(ScriptedServer):
    """Takes `window` tokens, one a word, refuses as the server whose name it has, and keeps the limits asked for."""

    def __init__(self, window, name, script=lambda prompt, attempt: Reply("Oui")):
        super().__init__(script)
        self.window, self.name, self.limits = window, name, []

    def reply(self, request):
        limit = request.get("max_tokens")
        self.limits.append(limit)
        prompt = sum(len(message["content"].split()) for message in request["messages"])
        refuses = prompt >= self.window if self.name == "llama.cpp" else prompt + (limit or 1) > self.window
        if refuses:
            return Reply(status=400, raw_body=json.dumps(self._refusal(prompt, limit)))
        return super().reply(request)

    def _refusal(self, prompt, limit):
        if self.name == "llama.cpp":
            message = "the request exceeds the available context size, try increasing it"
            numbers = {"n_prompt_tokens": prompt, "n_ctx": self.window}
            return {"error": {"code": 400, "message": message, "type": "exceed_context_size_error", **numbers}}
        asked = f"you requested {prompt + limit} tokens ({prompt} in the messages, {limit} in the completion)"
        message = f"This model's maximum context length is {self.window} tokens. However, {asked}."
        return {"error": {"message": message, "type": "BadRequestError", "code": 400}}


# --- the window of a server


@pytest.mark.parametrize(
    ("pages", "window"),
    [
        ({"/props": PROPS}, 4096),
        ({"/v1/models": {"data": [{"id": "other"}, {"id": "m", "max_model_len": 8192}]}}, 8192),
        ({"/v1/models": {"data": [{"id": "weights.gguf", "meta": {"n_ctx": 2048, "n_ctx_train": 32768}}]}}, 2048),
        ({"/v1/models": {"data": [{"id": "weights.gguf", "meta": {"n_ctx_train": 32768}}]}}, None),
        ({"/v1/models": {"data": [{"id": "m", "context_window": 131_072}]}}, 131_072),
        ({"/v1/models": {"data": [{"id": "a", "max_model_len": 1}, {"id": "b", "max_model_len": 2}]}}, None),
        ({"/props": [1], "/v1/models": {"data": {"id": "m"}}}, None),
        ({"/props": {"default_generation_settings": {"n_ctx": "4096"}, "total_slots": True}}, None),
        ({}, None),
    ],
)
def test_a_server_of_ones_own_is_asked_once_what_it_takes(pages, window):
    with ScriptedServer(lambda prompt, attempt: Reply("Oui"), pages) as server:
        endpoint = endpoint_of("m", "k", server.api_base, cache=False)
        assert [ask(endpoint, HELLO).text for _ in range(2)] == ["Oui", "Oui"]
        assert window_of(endpoint) == window
        assert len(server.fetched) == (1 if "n_ctx" in str(pages.get("/props")) and window else 2)


REFUSAL = response(b"no", "Connection: close", status="501 X")


@pytest.mark.parametrize(("silence", "probes"), [(STAY, 1), (RESET, 6), (REFUSAL, 2)])
def test_a_server_that_says_nothing_of_itself_is_asked_all_the_same(silence, probes, monkeypatch):
    monkeypatch.setattr("legal_rag.llm.server.PROBE_SECONDS", 1.0)
    reply = response(completion("Oui"), "Connection: close")
    with RawServer(lambda request: [reply if request.startswith(b"POST") else silence]) as server:
        endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, is_own=True, cache=False)
        assert [ask(endpoint, HELLO).text for _ in range(2)] == ["Oui", "Oui"]
        gets = sum(request.startswith(b"GET") for request in server.requests)
    assert gets == probes  # one that breaks off may only be starting, and is asked again


def test_a_window_that_is_set_is_the_one_that_holds():
    with ScriptedServer(lambda prompt, attempt: Reply("Oui"), {"/props": PROPS}) as server:
        endpoint = endpoint_of("m", "k", server.api_base, window=1000, cache=False)
        assert window_of(endpoint) == 1000


def test_a_provider_is_not_asked_what_it_takes():
    with ScriptedServer(lambda prompt, attempt: Reply("Oui"), {"/props": PROPS}) as server:
        endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, cache=False)
        assert ask(endpoint, HELLO).text == "Oui"
        assert (window_of(endpoint), server.fetched) == (None, [])


def test_a_server_that_loads_its_model_is_waited_for(monkeypatch):
    monkeypatch.setattr("legal_rag.llm.asking.LOADING_WAIT", 0.01)
    loading = json.dumps({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}})

    class Loading(SmallServer):
        def reply(self, request):
            if len(self.limits) < 5:
                self.limits.append(request["max_tokens"])
                return Reply(status=503, raw_body=loading)
            self.pages["/props"] = PROPS
            return super().reply(request)

    with Loading(4096, "llama.cpp") as server:
        server.pages["/props"] = 503
        lm = build_language_model("m", "k", server.api_base, cache=False, num_retries=0)
        assert check_model(lm) is None
        assert len(server.limits) == 6
        assert ask(model_of(lm), HELLO).usage.calls == 1
        assert (window_of(model_of(lm)), server.limits[-1]) == (4096, 4093)


def test_a_server_that_loads_its_model_for_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr("legal_rag.llm.asking.LOADING_WAIT", 0.01)
    monkeypatch.setattr("legal_rag.llm.asking.LOADING_SECONDS", 0.1)
    loading = Reply(status=503, raw_body=json.dumps({"error": {"message": "Loading model"}}))
    with ScriptedServer(lambda prompt, attempt: loading, {"/props": 503}) as server:
        problem = check_model(build_language_model("m", "k", server.api_base))
    assert problem == (
        "Le modèle de langage n'a pas pu répondre (son serveur le charge encore) :"
        " attendez qu'il l'ait chargé, puis redemandez."
    )


# --- prompts and replies that are too long


def test_a_prompt_that_does_not_fit_is_not_sent():
    with ScriptedServer(lambda prompt, attempt: Reply("Oui")) as server:
        endpoint = endpoint_of("m", "k", server.api_base, window=1000, cache=False)
        assert ask(endpoint, HELLO).text == "Oui"
        with pytest.raises(ModelError, match="too long for the model: about 2857 tokens, of 1000") as caught:
            ask(endpoint, [{"role": "user", "content": "mot " * 2500}])
        assert len(server.prompts) == 1
    assert caught.value.kind == "context"


@pytest.mark.parametrize("window", [4096, 8192])
def test_a_reply_that_has_no_room_is_asked_for_again_in_what_the_prompt_leaves(window):
    with SmallServer(window, "vLLM") as server:
        endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, max_tokens=8000, cache=False)
        messages = words(window - 1000)  # some 1.1 tokens each, by our estimate
        assert ask(endpoint, messages).text == "Oui"
        assert server.limits == [8000, 1000]
        assert ask(endpoint, words(500)).text == "Oui"
        assert server.limits[2:] == [min(8000, window - 571)]
        assert window_of(endpoint) == window


@pytest.mark.parametrize("name", ["llama.cpp", "vLLM"])
@pytest.mark.parametrize("window", [4096, 8192])
def test_a_prompt_that_has_no_room_is_too_long_and_not_asked_again(window, name):
    with SmallServer(window, name) as server:
        endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, max_tokens=8000, cache=False)
        with pytest.raises(ModelError, match="too long for the model") as caught:
            ask(endpoint, words(window + 10))
        assert len(server.limits) == 1
        error = caught.value
        assert (error.kind, error.window, error.prompt_tokens) == ("context", window, window + 10)
        assert error.advice == "Le modèle de langage n'a pas pu répondre (texte trop long pour lui)."
        with pytest.raises(ModelError, match=f"of {window}"):
            ask(endpoint, words(window - 100))
        assert len(server.limits) == 1


def test_a_reply_is_shortened_once_where_the_server_does_not_say_what_there_is_room_for():
    refusal = json.dumps({"error": {"message": "Please reduce the length of the messages or completion."}})

    class Silent(SmallServer):
        def _refusal(self, prompt, limit):
            return json.loads(refusal)

    with Silent(2000, "") as server:
        endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, max_tokens=8000, cache=False)
        assert ask(endpoint, words(900)).text == "Oui"
        assert server.limits == [8000, 1000]
        with pytest.raises(ModelError) as caught:
            ask(endpoint, words(1900))
        assert (caught.value.kind, server.limits[2:]) == ("context", [8000, 1000])


@pytest.mark.parametrize(
    ("status", "said", "window", "prompt_tokens"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
         8192, 9000),
        (400, "You passed 5000 input tokens and requested 1 output tokens. However, the model's context length is only"
              " 4096 tokens.", 4096, 5000),
        (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096, 5000),
        (400, "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 4096"
              " tokens and your request has 4000 input tokens (8000 > 4096 - 4000).", 4096, 4000),
        (400, "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 5000),
        (500, "Context size has been exceeded.", None, None),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens"
              " and 1 `max_new_tokens`", 4096, 5000),
        (422, "`inputs` must have less than 1024 tokens. Given: 1500", 1024, None),
        (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096, 5000),
        (400, "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total"
              " of 6000 tokens: 5000 tokens from the input messages and 1000 tokens for the completion.", 4096, 5000),
        (400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
         32768, 40000),
        (400, "prompt is too long: 210000 tokens > 200,000 maximum", 200_000, 210_000),
        (400, "input length and `max_tokens` exceed context limit: 199990 + 20000 > 200000, decrease input length",
         200_000, 199_990),
        (400, "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (33000"
              " of text input, 7000 in the output).", 32768, 33000),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576,
         1_200_000),
        (400, "This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 131_072, 140_000),
        (400, "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
         8192, None),
        (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000", 4081, None),
        (400, "The prompt is too long: 40000, model maximum context length: 32768", 32768, 40000),
        (400, "prompt too long; exceeded max context length by 1234 tokens", None, None),
        (400, "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with"
              " context length of only 4096 tokens, which is not enough.", 4096, None),
        (400, "Input is too long for requested model.", None, None),
        (413, "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000", None, None),
        (400, "Too many tokens: the prompt is too long.", None, None),
    ],
)  # fmt: skip
def test_a_text_that_is_too_long_is_known_in_the_words_of_many_servers(status, said, window, prompt_tokens):
    for body in ({"error": {"message": said, "code": status}}, {"error": said}, {"message": said, "object": "error"}):
        refusal = Reply(status=status, raw_body=json.dumps(body))
        with ScriptedServer(lambda *_, refusal=refusal: refusal) as server:
            endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, cache=False)
            with pytest.raises(ModelError) as caught:
                ask(endpoint, words(5000))
            error = caught.value
            assert (error.kind, error.window, error.prompt_tokens) == ("context", window, prompt_tokens)
            assert window_of(endpoint) == window


@pytest.mark.parametrize("said", ["max_tokens must be at most 4096", "no such model", "Invalid 'messages'", "4096 > 1"])
def test_other_refusals_are_not_taken_for_a_text_that_is_too_long(said):
    body = json.dumps({"error": {"message": said}})
    with ScriptedServer(lambda *_: Reply(status=400, raw_body=body)) as server:
        endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, cache=False)
        with pytest.raises(ModelError) as caught:
            ask(endpoint, HELLO)
    assert (caught.value.kind, window_of(endpoint)) == ("request", None)


def counted(**usage):
    message = {"choices": [{"message": {"content": "Oui"}, "finish_reason": "stop"}], "usage": usage}
    return Reply(raw_body=json.dumps(message))


def test_a_server_that_cuts_prompts_in_silence_is_told_of_once(caplog):
    with ScriptedServer(lambda *_: counted(prompt_tokens=2048, completion_tokens=1)) as server, caplog.at_level(30):
        endpoint = Endpoint(model="ollama/m", name="m", api_base=server.api_base, cache=False)
        for _ in range(2):
            ask(endpoint, words(5000))
    (warning,) = caplog.messages
    assert "dit n'avoir lu que 2048 jetons d'une demande d'environ 5714" in warning
    assert "num_ctx" in warning


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 3000},
        {"prompt_tokens": 500, "prompt_tokens_details": {"cached_tokens": 4500}},
        {"prompt_tokens": 0},
        {"prompt_tokens": "many", "prompt_tokens_details": []},
        {},
    ],
)
def test_a_server_that_read_all_or_does_not_count_is_not_suspected_of_cutting(usage, caplog):
    with ScriptedServer(lambda *_: counted(**usage)) as server, caplog.at_level(logging.WARNING):
        endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, cache=False)
        assert ask(endpoint, words(5000)).text == "Oui"
    assert caplog.messages == []


# --- caps of replies


def thinking(prompt, attempt):
    """Think, and be cut off the first time."""
    return Reply("<think>Voyons", finish_reason="length") if attempt == 0 else Reply("<think>Voyons</think>Oui")


@pytest.mark.parametrize(
    ("own", "cap", "limit"), [(8000, 400, 400), (200, 400, 200), (None, 400, 400), (8000, None, 8000)]
)
def test_a_reply_has_the_smaller_limit_of_the_models_and_the_calls(own, cap, limit):
    with SmallServer(10**6, "vLLM") as server:
        endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, max_tokens=own, cache=False)
        ask(endpoint, HELLO, reply_tokens=cap)
        assert server.limits == [limit]


def test_a_predictors_limit_is_a_cap_of_its_call():
    with SmallServer(10**6, "vLLM", lambda *_: fields(answer="oui")) as server:
        for own in (None, 300):
            lm = build_language_model("m", "k", server.api_base, max_tokens=own, cache=False)
            calls = ModelCalls(lm, Budget())
            assert calls.ask(dspy.Predict("question -> answer"), question="?").fields == {"answer": "oui"}
            calls.ask(dspy.Predict("question -> answer", max_tokens=1000), question="?")
    assert server.limits == [8000, 1000, 300, 300]


def test_a_reply_that_was_cut_off_while_thinking_is_asked_for_again_without_the_cap():
    with SmallServer(10**6, "vLLM", thinking) as server:
        endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, max_tokens=8000, cache=False)
        done = ask(endpoint, HELLO, reply_tokens=400)
        assert (done.text, done.cut_off, done.usage.calls) == ("Oui", False, 2)
        ask(endpoint, words(3), reply_tokens=400)  # it is known to think by now
        assert server.limits == [400, 8000, 8000]


def test_thoughts_that_are_sent_apart_are_no_reply_and_count_as_thinking():
    choice = {"message": {"content": None, "reasoning_content": "Voyons"}, "finish_reason": "length"}
    cut = Reply(raw_body=json.dumps({"choices": [choice]}))
    with SmallServer(10**6, "vLLM", lambda prompt, attempt: Reply("Oui") if attempt else cut) as server:
        endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, max_tokens=8000, cache=False)
        assert ask(endpoint, HELLO, reply_tokens=400).text == "Oui"
        assert server.limits == [400, 8000]


def test_a_reply_that_was_cut_off_without_a_thought_is_given_as_it_is():
    with SmallServer(10**6, "vLLM", lambda *_: Reply("Il faut", finish_reason="length")) as server:
        endpoint = Endpoint(model="openai/m", name="m", api_base=server.api_base, max_tokens=8000, cache=False)
        done = ask(endpoint, HELLO, reply_tokens=400)
        assert (done.text, done.cut_off, server.limits) == ("Il faut", True, [400])


# --- further members of requests


def test_a_models_options_are_sent_with_each_request_and_tell_replies_apart():
    thoughtless = {"chat_template_kwargs": {"enable_thinking": False}}
    with ScriptedServer(lambda prompt, attempt: Reply(f"réponse {attempt}")) as server:
        lm = build_language_model("m", "k", server.api_base, options=thoughtless)
        assert [lm("Oui ?"), lm("Oui ?")] == [["réponse 0"]] * 2
        assert build_language_model("m", "k", server.api_base)("Oui ?") == ["réponse 1"]
    assert [request.get("chat_template_kwargs") for request in server.requests] == [{"enable_thinking": False}, None]
    assert build_language_model("azure/m", options={"reasoning_effort": "low"}).kwargs["reasoning_effort"] == "low"
    with pytest.raises(ValueError, match="a model's options cannot set messages, stream"):
        build_language_model("m", options={"messages": [], "stream": True, "top_k": 1})
