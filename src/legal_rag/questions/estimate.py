"""What a run would take: requests, tokens and dollars, estimated from some of its documents and asking no model.

In: a Library and settings. Out: the least, if every first reply is kept, and the most, if every document takes every
try. Tokens are counted with OpenAI's cl100k tokenizer, which LiteLLM carries; other models count a little differently.
"""

from typing import Any, NamedTuple

from legal_rag.language_model import use_local_prices
from legal_rag.library import Library
from legal_rag.question_settings import QuestionSettings
from legal_rag.questions.generate import check_limit, draw
from legal_rag.windows import draw_window

SAMPLED = 100  # documents read for the estimate
REPLY_TOKENS = 250  # assumed of a reply, whose fields are limited in length
ADVICE_TOKENS = 5500  # of `dspy.Refine`'s own request beyond those of a first one: code, trajectory (mean of 13 seen)


class Price(NamedTuple):
    """Dollars for a million tokens."""

    prompt: float
    completion: float


class Estimate(NamedTuple):
    """The least and the most that a run would take."""

    documents: int
    requests: tuple[int, int]
    prompt_tokens: tuple[int, int]
    completion_tokens: tuple[int, int]
    dollars: tuple[float, float] | None  # None where the price is not known


def estimate(
    library: Library,
    lm: Any,
    *,
    limit: int | None = None,
    settings: QuestionSettings | None = None,
    price: Price | None = None,
) -> Estimate:
    """Estimate a run; see `Estimate`.

    Args:
        library: Whose documents would be asked about.
        lm: The model that would be asked.
        limit: How many documents.
        settings: Those of the run.
        price: The model's, where LiteLLM does not know it.
    """
    from legal_rag.questions.writer import prompt_text, requests_at_most

    settings = settings or QuestionSettings()
    check_limit(limit)
    n = min(limit or len(library), len(library))
    tokens = []
    for doc_id, _ in draw(library, min(n, SAMPLED), settings.seed):
        content = library.document(doc_id).content
        shown = content[slice(*draw_window(content, f"{settings.seed}:{doc_id}", settings.context_chars))]
        tokens.append(_litellm().token_counter(model="gpt-4", text=prompt_text(shown)))
    mean = sum(tokens) / (len(tokens) or 1)
    asks, advice = requests_at_most(settings)
    prompt = (round(n * mean), round(n * (asks * mean + advice * (mean + ADVICE_TOKENS))))
    completion = (n * REPLY_TOKENS, n * (asks + advice) * REPLY_TOKENS)
    price = price or price_of(lm)
    dollars = None
    if price is not None:
        least, most = ((p * price.prompt + c * price.completion) / 1e6 for p, c in zip(prompt, completion, strict=True))
        dollars = (least, most)
    return Estimate(n, (n, n * (asks + advice)), prompt, completion, dollars)


def price_of(lm: Any) -> Price | None:
    """Return what a model costs by LiteLLM's list, or None where it is not on it; servers of one's own are not."""
    if lm.kwargs.get("api_base"):
        return None
    costs = _litellm().model_cost
    entry = costs.get(lm.model) or costs.get(lm.model.split("/", 1)[-1]) or {}
    if "input_cost_per_token" not in entry or "output_cost_per_token" not in entry:
        return None
    return Price(1e6 * entry["input_cost_per_token"], 1e6 * entry["output_cost_per_token"])


def _litellm() -> Any:
    use_local_prices()
    import litellm

    return litellm
