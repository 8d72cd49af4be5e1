"""Reasoning over outlines: a model reads the compact outlines of some documents and names the sections to read."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple

import dspy

from legal_rag.agent.budget import Budget, BudgetExceededError
from legal_rag.agent.failures import ModelFailureError
from legal_rag.agent.model_calls import FIELD_MARK, ModelCalls, without_thoughts
from legal_rag.agent.tool_outputs import block, without_marks
from legal_rag.corpus.structure.tree import TreeNode
from legal_rag.retriever.structured import ChosenNode, DocumentOutline, Reasoner

logger = logging.getLogger(__name__)

CHARS_PER_TOKEN = 3  # of French, cautiously: a tokenizer of 32,000 entries makes 3.5 to 4
OUTLINE_TOKENS = 4000  # of the outlines in one prompt, whatever the corpus
MAX_DOCUMENTS = 10  # outlined in one prompt
MAX_CHOSEN = 5  # sections
QUESTION_CHARS, TITLE_CHARS, SUMMARY_CHARS, REASON_CHARS = 2000, 120, 160, 300
ID_CHARS = 12  # of a node's id; a section with a longer one cannot be named
REPLY_CHARS, MAX_BRACKETS = 20_000, 200  # read of a reply: repairing thousands of open brackets takes minutes
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
    view = _view([(number, one.tree.children or (one.tree,)) for number, one in documents.items()])
    chosen = _asked(question, documents, view, calls)
    below = [(one.document, view.hidden_by(one)) for one in chosen]
    if any(hidden for _, hidden in below):
        finer = _asked(question, documents, _view([pair for pair in below if pair[1]]), calls)
        refined = {one.document for one in finer}
        kept = (one for one, (_, hidden) in zip(chosen, below, strict=True) if not (hidden and one.document in refined))
        chosen = [*finer, *kept]
    return [ChosenNode(documents[one.document].doc_id, one.node_id, one.reason) for one in chosen[:MAX_CHOSEN]]


def outline_text(outline: DocumentOutline) -> str:
    """Write the outline of one document, or of one section given as its tree, within `OUTLINE_TOKENS`."""
    return _view([(1, outline.tree.children or (outline.tree,))]).text({1: outline})


class _Choice(NamedTuple):
    document: int
    node_id: str
    reason: str


@dataclass
class _Shown:
    """A section in a prompt."""

    node: TreeNode
    skipped: tuple[TreeNode, ...] = ()  # siblings behind it that are not shown
    children: list["_Shown"] = field(default_factory=list)

    @property
    def hidden(self) -> tuple[TreeNode, ...]:
        """The sections to show if this one is chosen."""
        below = () if self.children else self.node.children
        return (self.node, *self.skipped) if self.skipped else below

    def line(self) -> str:
        hidden = len(self.skipped) if self.skipped else len(self.hidden)
        summary = _cut(self.node.summary, SUMMARY_CHARS)
        more = f" : {summary}" if summary else ""
        return f"{self.node.node_id} {_cut(self.node.title, TITLE_CHARS)}{more}{f' (+{hidden})' if hidden else ''}"


@dataclass
class _View:
    """The outlines of one prompt: sections by document number."""

    sections: dict[int, list[_Shown]]

    def hidden_by(self, choice: _Choice) -> tuple[TreeNode, ...]:
        return self.known(choice.document)[choice.node_id].hidden

    def known(self, document: int) -> dict[str, _Shown]:
        """Return the sections of a document that can be named, by id."""
        return {one.node.node_id: one for _, one in _walk(self.sections.get(document, []))}

    def text(self, documents: Mapping[int, DocumentOutline]) -> str:
        lines = []
        for number, shown in self.sections.items():
            lines.append(_header(number, documents[number]))
            lines += [f"{'  ' * depth}{one.line()}" for depth, one in _walk(shown)]
        return "\n".join(lines)


def _header(number: int, outline: DocumentOutline) -> str:
    opening = _cut(outline.opening, SUMMARY_CHARS)
    return f"Document {number} : {_cut(outline.title, TITLE_CHARS)}{f' – {opening}' if opening else ''}"


HEADER_CHARS = TITLE_CHARS + SUMMARY_CHARS + 30
LINE_CHARS = 60  # of a sampled sibling's line, beside its title


def _view(groups: Sequence[tuple[int, Sequence[TreeNode]]]) -> _View:
    """Choose what fits: of each group of siblings a fair share, then lower levels in the order of the groups."""
    by_document: dict[int, list[TreeNode]] = {}
    for number, nodes in groups:
        by_document.setdefault(number, []).extend(one for one in nodes if len(one.node_id) <= ID_CHARS)
    left = OUTLINE_TOKENS * CHARS_PER_TOKEN - HEADER_CHARS * len(by_document)
    share = left // max(len(by_document), 1)
    sections = {number: _sampled(nodes, share) for number, nodes in by_document.items()}
    left -= sum(_cost(shown, 0) for shown in sections.values())
    frontiers = {number: shown for number, shown in sections.items() if not any(one.skipped for one in shown)}
    depth = 1
    while frontiers:
        deeper = {}
        for number, frontier in frontiers.items():
            opened = [(one, [_Shown(child) for child in _nameable(one.node)]) for one in frontier]
            cost = sum(_cost(children, depth) for _, children in opened)
            if 0 < cost <= left:
                left -= cost
                for one, children in opened:
                    one.children = children
                deeper[number] = [child for _, children in opened for child in children]
        frontiers, depth = deeper, depth + 1
    return _View(sections)


def _sampled(nodes: Sequence[TreeNode], most: int) -> list[_Shown]:
    """Show siblings within some characters; of too many, every second, third… one."""
    step = 1
    while True:
        shown = [_Shown(nodes[at], tuple(nodes[at + 1 : at + step])) for at in range(0, len(nodes), step)]
        cost = _cost(shown, 0)
        if cost <= most or len(shown) <= 1:
            return shown
        step = max(step + 1, step * cost // max(most, 1))


def _nameable(node: TreeNode) -> list[TreeNode]:
    return [child for child in node.children if len(child.node_id) <= ID_CHARS]


def _cost(shown: Iterable[_Shown], depth: int) -> int:
    return sum(2 * depth + len(one.line()) + 1 for one in shown)


def _walk(shown: Sequence[_Shown], depth: int = 0) -> Iterator[tuple[int, _Shown]]:
    for one in shown:
        yield depth, one
        yield from _walk(one.children, depth + 1)


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text as one line."""
    line = without_marks(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _asked(question: str, documents: Mapping[int, DocumentOutline], view: _View, calls: ModelCalls) -> list[_Choice]:
    """Ask once; nothing where the model fails, or says nothing that can be read."""
    try:
        asked = without_marks(question[:QUESTION_CHARS])
        reply = calls.ask(_predictor(), question=asked, plans=block(view.text(documents)))
    except (dspy.LMError, BudgetExceededError, ModelFailureError) as error:
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
    import json_repair

    text = FIELD_MARK.sub("", without_thoughts(reply[:REPLY_CHARS]))
    begun = min((text.find(sign) for sign in "[{" if sign in text), default=-1)
    if begun < 0 or text.count("[") + text.count("{") > MAX_BRACKETS:
        return []
    try:
        value = json_repair.loads(text[begun:])
    except (ValueError, RecursionError):
        return []
    if isinstance(value, dict):
        value = next((one for one in value.values() if isinstance(one, list)), [value])
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _choice(said: Mapping[str, Any], documents: Mapping[int, DocumentOutline], view: _View) -> _Choice | None:
    """Read a named section; None for one that was not shown."""
    named, node_id, reason = (
        str(next((said[key] for key in keys if key in said), "")).strip() for keys in (_DOCUMENT, _NODE, _REASON)
    )
    number = _document(named, documents, view)
    if number is None:
        return None
    known = view.known(number)
    written = next((one for one in (node_id, node_id[:4].zfill(4)) if one in known), None)
    return None if written is None else _Choice(number, written, _cut(reason, REASON_CHARS))


def _document(named: str, documents: Mapping[int, DocumentOutline], view: _View) -> int | None:
    """Return the number of a document named by number or id; of the only one, if none is named."""
    shown = list(view.sections)
    by_id = next((number for number in shown if documents[number].doc_id == named), None)
    digits = _DIGITS.findall(named)
    number = int(digits[0][:9]) if len(digits) == 1 else None
    if not named and len(shown) == 1:
        return shown[0]
    return by_id if by_id is not None else number if number in shown else None
