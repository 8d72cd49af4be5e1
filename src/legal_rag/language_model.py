"""Configure the `dspy.LM` that is asked: model id, key, address and the identity of its cached replies."""

import hashlib
import json
import os
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dspy

DEFAULT_MODEL = "mistralai/Magistral-Small-2509"
SCHEMES = ("http://", "https://")
PROVIDERS = ("anthropic/", "gemini/", "mistral/", "ollama_chat/")  # LiteLLM finds their keys and addresses itself
SEEDLESS = ("anthropic/",)  # refuse a request with a seed


def build_language_model(
    student_model: str | None = None,
    api_key: str | None = None,
    api_base: str | None = None,
    max_tokens: int = 8000,
    temperature: float = 0.2,
    *,
    timeout: float = 120.0,
    num_retries: int = 2,
    cache: bool = True,
    seed: int | None = None,
) -> "dspy.LM":
    """Configure a language model for DSPy; no request is sent.

    With `cache`, a repeated request costs nothing: DSPy returns the reply from its process-wide cache
    (`dspy.configure_cache`). DSPy's default cache holds pickles, in DSPY_CACHEDIR or `~/.dspy_cache`;
    `legal_rag.reply_cache.use_reply_cache` replaces it by one of JSON. Another model, address, seed, temperature or
    limit makes another request.

    Args:
        student_model: A model id; with a provider before it (`openai/…`, `huggingface/…`) it is taken as LiteLLM's.
            None reads GENERATOR_MODEL_ID, else takes the default model.
        api_key: None reads GENERATOR_API_KEY, then HF_TOKEN for the Hugging Face router.
        api_base: Address of an OpenAI-compatible server; None reads GENERATOR_API_BASE, and without one the
            Hugging Face router is asked.
        max_tokens: Of each reply.
        temperature: 0 to 2.
        timeout: Seconds that a request may take.
        num_retries: Further attempts after a failed request.
        cache: Take the reply to a request that was answered before from DSPy's cache.
        seed: Distinguishes requests in the cache; also sent to the server, which may make its replies repeatable.

    Raises:
        ValueError: If the address is not a URL.
    """
    use_local_prices()
    import dspy

    model = student_model or os.environ.get("GENERATOR_MODEL_ID") or DEFAULT_MODEL
    api_base = api_base or os.environ.get("GENERATOR_API_BASE") or None
    api_key = api_key or os.environ.get("GENERATOR_API_KEY") or None
    if api_base:
        if not api_base.startswith(SCHEMES):
            raise ValueError(f"invalid api_base {api_base!r} (expected a URL such as 'http://127.0.0.1:8000/v1')")
        model = model if model.startswith("openai/") else f"openai/{model}"
        api_key = api_key or "none"  # servers of one's own mostly ask for no key, but the client wants one
    elif not model.startswith(("huggingface/", "openai/", *PROVIDERS)):
        model = f"huggingface/{model}"
        api_key = api_key or os.environ.get("HF_TOKEN") or None
    if cache and temperature == 0:  # DSPy warns that rollout_id does not change replies, which is not its purpose
        warnings.filterwarnings("ignore", message="rollout_id has no effect when temperature=0")
    return dspy.LM(
        model,
        api_key=api_key,
        api_base=api_base,
        max_tokens=max_tokens,
        temperature=temperature,
        timeout=timeout,
        num_retries=num_retries,
        cache=cache,
        rollout_id=_rollout_id(_address_of(model, api_base), seed) if cache else None,
        **({} if seed is None or model.startswith(SEEDLESS) else {"seed": seed}),
    )


def has_endpoint(api_key: str | None = None, api_base: str | None = None, model: str | None = None) -> bool:
    """Tell whether a model can be asked: by a key, an address, or a provider that LiteLLM knows how to reach.

    HF_TOKEN, which other tools set for downloads, counts only where a model is named: by `model` or GENERATOR_MODEL_ID.
    """
    named = model or os.environ.get("GENERATOR_MODEL_ID") or ""
    if named.startswith(PROVIDERS):
        return True
    names = ("GENERATOR_API_BASE", "GENERATOR_API_KEY", *(["HF_TOKEN"] if named else []))
    return bool(api_key or api_base or any(os.environ.get(name) for name in names))


def _address_of(model: str, api_base: str | None) -> str:
    """Return the server's address where it is not the provider's default."""
    provider = model.split("/")[0].removesuffix("_chat").upper()
    own = os.environ.get(f"{provider}_API_BASE") or os.environ.get(f"{provider}_BASE_URL")
    return (api_base or own or "").rstrip("/")


def _rollout_id(address: str, seed: int | None) -> int | None:
    """Return a cache key that tells requests to other addresses or with other seeds apart.

    DSPy's cache leaves the address out of its keys: two servers with one model name would give each other's replies.
    `rollout_id` is in the keys, and is not sent.
    """
    if not address and seed is None:
        return None
    digest = hashlib.sha256(json.dumps([address, seed]).encode()).digest()
    return int.from_bytes(digest[:6])


def use_local_prices() -> None:
    """Make LiteLLM use its bundled price list; call before importing it, as it fetches one then."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
