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
    view = outline_view([(number, outline.tree.children or (outline.tree,)) for number, outline in documents.items()])
    chosen = _ask_for_choices(question, documents, view, calls)
    below = [(choice.document, view.known(choice.document)[choice.node_id].hidden) for choice in chosen]
    if any(hidden for _, hidden in below):
        finer = _ask_for_choices(question, documents, outline_view([pair for pair in below if pair[1]]), calls)
        refined = {choice.document for choice in finer}
        pairs = zip(chosen, below, strict=True)
        kept = (choice for choice, (_, hidden) in pairs if not (hidden and choice.document in refined))
        chosen = [*finer, *kept]
    return [ChosenNode(documents[node.document].doc_id, node.node_id, node.reason) for node in chosen[:MAX_CHOSEN]]


class _Choice(NamedTuple):
    document: int
    node_id: str
    reason: str


def _ask_for_choices(
    question: str, documents: Mapping[int, DocumentOutline], view: OutlineView, calls: ModelCalls
) -> list[_Choice]:
    """Ask once; empty if the model fails or its reply cannot be parsed."""
    try:
        asked = without_marks(question[:QUESTION_CHARS])
        reply = calls.ask(_predictor(), question=asked, plans=block(view.text(documents)))
    except (BudgetExceededError, ModelError) as error:
        logger.warning("the model named no section: %s", error)
        return []
    choices = (_choice(item, documents, view) for item in _parse_objects(reply.text))
    by_node = {(choice.document, choice.node_id): choice for choice in choices if choice is not None}
    return list(by_node.values())[:MAX_CHOSEN]


def _predictor() -> "dspy.Predict":
    prompt = (files("legal_rag.agent") / "tree_prompt.md").read_text("utf-8").strip()
    return dspy.Predict(dspy.Signature("question: str, plans: str -> sections: str", prompt))


def _parse_objects(reply: str) -> list[dict[str, Any]]:
    """Parse the objects of a reply: a JSON array, in code fences or not, broken or inside another object."""
    value = json_in(reply[:REPLY_CHARS])
    if isinstance(value, dict):
        value = next((items for items in value.values() if isinstance(items, list)), [value])
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _choice(item: Mapping[str, Any], documents: Mapping[int, DocumentOutline], view: OutlineView) -> _Choice | None:
    named, node_id, reason = (
        str(next((item[key] for key in keys if key in item), "")).strip() for keys in (_DOCUMENT, _NODE, _REASON)
    )
    number = _resolve_document(named, documents, view)
    if number is None:
        return None
    known = view.known(number)
    written = next((key for key in (node_id, node_id[:4].zfill(4)) if key in known), None)
    return None if written is None else _Choice(number, written, cut_line(reason, REASON_CHARS))


def _resolve_document(named: str, documents: Mapping[int, DocumentOutline], view: OutlineView) -> int | None:
    """Return the number of a document named by number or id; of the only one, if none is named."""
    shown = list(view.sections)
    by_id = next((number for number in shown if documents[number].doc_id == named), None)
    digits = _DIGITS.findall(named)
    number = int(digits[0][:9]) if len(digits) == 1 else None
    if not named and len(shown) == 1:
        return shown[0]
    return by_id if by_id is not None else number if number in shown else None
