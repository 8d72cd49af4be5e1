"""Which model is asked where, with which key; its price and its window."""

import pytest
from support.scripted_server import Reply, ScriptedServer

from legal_rag.agent import build_language_model, check_model, has_endpoint
from legal_rag.llm import ROUTER, endpoint_of, model_of, price_of, window_of

HELLO = [{"role": "user", "content": "Bonjour ?"}]


@pytest.fixture(autouse=True)
def nowhere(no_endpoint):
    """Leave no model to be asked, whatever the environment says."""


def test_a_language_model_is_named_the_way_its_endpoint_wants():
    for name in (None, "mistralai/Magistral-Small-2509", "huggingface/mistralai/Magistral-Small-2509"):
        lm = build_language_model(name, api_key="k")
        assert (lm.model, model_of(lm).api_base) == ("openai/mistralai/Magistral-Small-2509", ROUTER)
    for name in ("openrouter/qwen/qwen3", "azure/mine", "groq/llama", "gemini/gemini-2.5-flash", "ollama_chat/qwen3"):
        assert build_language_model(name).model == name
    for name, provider in (("gpt-5", "openai"), ("gpt-4o", "openai"), ("claude-sonnet-4-5", "anthropic")):
        lm = build_language_model(name, api_key="k")  # whose key the router must never see
        assert (lm.model, ROUTER in model_of(lm).api_base) == (f"{provider}/{name}", False)
    assert model_of(build_language_model("m", api_key="k")).api_base == ROUTER
    assert build_language_model("Qwen/Qwen3-4B", api_base="http://127.0.0.1:9/v1").model == "openai/Qwen/Qwen3-4B"
    lm = build_language_model("openai/x", "k", "http://127.0.0.1:9/v1", max_tokens=123, temperature=0.5)
    assert (lm.model, lm.kwargs["max_tokens"], lm.kwargs["temperature"]) == ("openai/x", 123, 0.5)


@pytest.mark.parametrize(
    ("model", "api_base", "name", "address"),
    [
        ("gemini-2.5-flash", None, "gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta/openai"),
        ("anthropic/claude-x", None, "claude-x", "https://api.anthropic.com/v1"),
        ("novita/mistralai/Magistral", "http://h:1/v1/", "novita/mistralai/Magistral", "http://h:1/v1"),
        ("huggingface/novita/mistralai/Magistral", None, "mistralai/Magistral:novita", ROUTER),
        ("tencent/Hunyuan-A13B-Instruct", None, "tencent/Hunyuan-A13B-Instruct", ROUTER),
        ("ollama/qwen3", "http://h:1", "qwen3", "http://h:1/v1"),
        ("ollama/qwen3", None, "qwen3", "http://localhost:11434/v1"),
    ],
)
def test_each_server_is_told_the_name_that_it_knows(model, api_base, name, address):
    endpoint = endpoint_of(model, "k", api_base)
    assert (endpoint.name, endpoint.api_base) == (name, address)


def test_a_provider_that_only_litellm_knows_has_no_endpoint_here():
    assert endpoint_of("bedrock/anthropic.claude") is None
    assert build_language_model("azure/gpt-4o", api_key="k").engine == "auto"


def test_a_key_of_the_environment_goes_to_no_server_of_ones_own(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    assert endpoint_of("openai/gpt-4o", api_base="http://127.0.0.1:9/v1").api_key == ""
    assert endpoint_of("openai/gpt-4o").api_key == "sk-0123456789"
    assert "sk-0123456789" not in repr(endpoint_of("openai/gpt-4o"))


@pytest.mark.parametrize("model", ["openai/gpt-5", "openai/gpt-5.1-mini", "openai/o3", "openrouter/openai/gpt-5"])
def test_a_reasoning_model_keeps_its_own_temperature_and_limit(model):
    lm = build_language_model(model, "k")
    assert (lm.kwargs["temperature"], lm.kwargs["max_completion_tokens"]) == (None, None)
    assert build_language_model(model, "k", temperature=1.0, max_tokens=20_000).kwargs["temperature"] == 1.0
    with pytest.raises(ValueError, match=f"{model} does not take temperature 0.5, max_tokens None"):
        build_language_model(model, "k", temperature=0.5)


@pytest.mark.parametrize(
    ("model", "variables", "expected"),
    [
        ("groq/llama", {}, False),
        ("groq/llama", {"GROQ_API_KEY": "k"}, True),
        ("gpt-5", {"HF_TOKEN": "hf_x"}, False),
        ("gpt-5", {"OPENAI_API_KEY": "k"}, True),
        ("ollama_chat/qwen3", {}, True),  # on this machine, without a key
        ("azure/mine", {}, True),  # which has other credentials than a key
        ("huggingface/Qwen/Qwen3-4B", {}, False),
        ("Qwen/Qwen3-4B", {"HF_TOKEN": "hf_x"}, True),
    ],
)
def test_a_provider_is_an_endpoint_whose_key_is_found(model, variables, expected, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert has_endpoint(model=model) is expected


def test_a_key_that_a_provider_lacks_is_named():
    problem = check_model(build_language_model("openrouter/qwen/qwen3"))
    assert problem == "Le modèle de langage n'a pas pu répondre (réglage incomplet : OPENROUTER_API_KEY)."


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (Reply("prêt"), ""),
        (Reply(status=401), "Le modèle de langage n'a pas pu répondre (clé refusée) : vérifiez la clé."),
        (Reply(status=404), "(modèle inconnu du serveur) : vérifiez le nom du modèle, et l'adresse, qui finit"),
        (Reply(status=400), "(demande refusée par le serveur) : vérifiez le nom du modèle."),
        (Reply(status=500), "(erreur du serveur)."),
        (Reply(hangs=True), "n'a pas répondu en 0 secondes."),
    ],
    ids=["there", "key", "model", "request", "server", "silent"],
)
def test_one_short_request_tells_in_french_why_a_model_cannot_be_asked(reply, sentence):
    with ScriptedServer(lambda prompt, attempt: reply) as server:
        lm = build_language_model("x", "key", server.api_base)
        seconds = 0.4 if reply.hangs else 20
        assert all(sentence in (check_model(lm, seconds) or "") for _ in range(2))
        assert server.prompts == ["Répondez par un seul mot : prêt."] * 2  # neither cached nor repeated


def test_an_address_where_nobody_listens_is_to_be_verified():
    lm = build_language_model("x", "key", "http://127.0.0.1:9/v1")
    assert "(serveur injoignable) : vérifiez l'adresse" in check_model(lm)


def test_a_provider_gets_its_own_key_from_the_environment(monkeypatch):
    with ScriptedServer(lambda prompt, attempt: Reply("Oui")) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "k-own")
        monkeypatch.setenv("OPENAI_BASE_URL", server.api_base)
        lm = build_language_model("openai/gpt-4o-mini", cache=False)
        assert lm("Est-ce vrai ?") == ["Oui"]
        assert model_of(lm).api_key == "k-own"


# --- prices and windows


def test_prices_and_windows_are_those_that_litellm_lists():
    assert price_of("openai/gpt-4o-mini").prompt == pytest.approx(0.15)
    assert price_of("gemini/gemini-2.5-flash").completion > 0
    assert (price_of("openai/perroquet"), price_of("perroquet")) == (None, None)
    assert window_of(endpoint_of("gpt-4o-mini", "k")) == 128_000
    assert window_of(endpoint_of("m", "k", "http://127.0.0.1:9/v1")) is None
    assert window_of(endpoint_of("m", "k", "http://127.0.0.1:9/v1", window=4096)) == 4096
