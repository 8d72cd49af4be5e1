"""The one way to ask a language model: endpoint, request, budget, retries, stored replies, parsing."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.llm.asking import ChatModel, Throttle, ask
    from legal_rag.llm.budget import UNLIMITED, Budget, BudgetExceededError, Completion, Usage, UsageTracker
    from legal_rag.llm.dspy_models import (
        LenientAdapter,
        ModelCalls,
        Reply,
        build_language_model,
        check_model,
        lm_of,
        model_of,
    )
    from legal_rag.llm.models import (
        HOPELESS,
        ROUTER,
        Endpoint,
        Message,
        ModelError,
        Price,
        TextModel,
        endpoint_of,
        has_endpoint,
        is_asked,
        is_reasoning,
        price_of,
        tokens_in,
        window_of,
    )
    from legal_rag.llm.replies import ReplyStore, json_in, without_thoughts
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
