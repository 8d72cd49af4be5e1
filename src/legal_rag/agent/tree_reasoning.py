"""Reasoning over outlines: a model reads the compact outlines of some documents and names the sections to read."""

import logging
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import dspy

from legal_rag.agent.outlines import OutlineView, cut_line, outline_view
from legal_rag.agent.tool_outputs import block, without_marks
from legal_rag.llm import Budget, BudgetExceededError, ModelCalls, ModelError, json_in
from legal_rag.retriever.structured import ChosenNode, DocumentOutline, Reasoner

logger = logging.getLogger(__name__)

MAX_DOCUMENTS = 10  # outlined in one prompt
MAX_CHOSEN = 5  # sections
QUESTION_CHARS, REASON_CHARS = 2000, 300
REPLY_CHARS = 20_000  # read of a reply
# Two requests at most: the second only where a chosen section has hidden ones, or the first request failed.
TREE_BUDGET = Budget(model_calls=2, tokens=40_000, seconds=60.0)
_DOCUMENT, _NODE, _REASON = ("document", "doc", "doc_id"), ("node_id", "node", "section", "id"), ("reason", "raison")
_DIGITS = re.compile(r"\d+")


def tree_reasoner(lm: "dspy.BaseLM", budget: Budget = TREE_BUDGET) -> Reasoner:
    """Return a reasoner for `StructuredProvider`, each question within a budget of its own."""

    def reason(question: str, outlines: Sequence[DocumentOutline]) -> list[ChosenNode]:
        return choose_nodes(question, outlines, ModelCalls(lm, budget))

    return reason


def choose_nodes(question: str, outlines: Sequence[DocumentOutline], calls: ModelCalls) -> list[ChosenNode]:
    """Have a model name the sections that answer a question, best first.

    One request shows what fits into `OUTLINE_TOKENS` of the outlines, upper levels first. Where a section that the
    model names has hidden ones, a second and last request shows those. Nothing is returned where the model fails, or
    its reply cannot be read; what it invents is ignored.
    """
    documents = dict(enumerate(outlines[:MAX_DOCUMENTS], start=1))
    if not documents:
        return []
    view = outline_view([(number, one.tree.children or (one.tree,)) for number, one in documents.items()])
    chosen = _asked(question, documents, view, calls)
    below = [(one.document, view.known(one.document)[one.node_id].hidden) for one in chosen]
    if any(hidden for _, hidden in below):
        finer = _asked(question, documents, outline_view([pair for pair in below if pair[1]]), calls)
        refined = {one.document for one in finer}
        kept = (one for one, (_, hidden) in zip(chosen, below, strict=True) if not (hidden and one.document in refined))
        chosen = [*finer, *kept]
    return [ChosenNode(documents[one.document].doc_id, one.node_id, one.reason) for one in chosen[:MAX_CHOSEN]]


class _Choice(NamedTuple):
    document: int
    node_id: str
    reason: str


def _asked(
    question: str, documents: Mapping[int, DocumentOutline], view: OutlineView, calls: ModelCalls
) -> list[_Choice]:
    """Ask once; nothing where the model fails, or says nothing that can be read."""
    try:
        asked = without_marks(question[:QUESTION_CHARS])
        reply = calls.ask(_predictor(), question=asked, plans=block(view.text(documents)))
    except (BudgetExceededError, ModelError) as error:
        logger.warning("the model named no section: %s", error)
        return []
    choices = (_choice(one, documents, view) for one in _objects(reply.text))
    found = {(one.document, one.node_id): one for one in choices if one is not None}
    return list(found.values())[:MAX_CHOSEN]


def _predictor() -> "dspy.Predict":
    prompt = (files("legal_rag.agent") / "tree_prompt.md").read_text("utf-8").strip()
    return dspy.Predict(dspy.Signature("question: str, plans: str -> sections: str", prompt))


def _objects(reply: str) -> list[dict[str, Any]]:
    """Return the objects of a reply: a JSON array, in code fences or not, broken or inside another object."""
    value = json_in(reply[:REPLY_CHARS])
    if isinstance(value, dict):
        value = next((one for one in value.values() if isinstance(one, list)), [value])
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _choice(said: Mapping[str, Any], documents: Mapping[int, DocumentOutline], view: OutlineView) -> _Choice | None:
    named, node_id, reason = (
        str(next((said[key] for key in keys if key in said), "")).strip() for keys in (_DOCUMENT, _NODE, _REASON)
    )
    number = _document(named, documents, view)
    if number is None:
        return None
    known = view.known(number)
    written = next((one for one in (node_id, node_id[:4].zfill(4)) if one in known), None)
    return None if written is None else _Choice(number, written, cut_line(reason, REASON_CHARS))


def _document(named: str, documents: Mapping[int, DocumentOutline], view: OutlineView) -> int | None:
    """Return the number of a document named by number or id; of the only one, if none is named."""
    shown = list(view.sections)
    by_id = next((number for number in shown if documents[number].doc_id == named), None)
    digits = _DIGITS.findall(named)
    number = int(digits[0][:9]) if len(digits) == 1 else None
    if not named and len(shown) == 1:
        return shown[0]
    return by_id if by_id is not None else number if number in shown else None
