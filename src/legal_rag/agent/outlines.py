"""Compact outlines as a model is shown them, within a budget, and the sections that it names to read."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.agent.tool_outputs import block, without_marks
from legal_rag.law.tree import TreeNode
from legal_rag.llm import Budget, BudgetExceededError, ModelError, json_in
from legal_rag.retriever.structured import ChosenNode, DocumentOutline, Reasoner

if TYPE_CHECKING:
    import dspy

    from legal_rag.llm import ModelCalls

logger = logging.getLogger(__name__)

CHARS_PER_TOKEN = 3  # of French, cautiously: GPT-4o's tokenizer makes 3.3 to 4
OUTLINE_TOKENS = 4000  # of the outlines in one prompt, whatever the corpus
TITLE_CHARS, SUMMARY_CHARS = 120, 160
HEADER_CHARS = TITLE_CHARS + SUMMARY_CHARS + 30  # of a document's line
ID_CHARS = 12  # of a node's id; a section with a longer one is not shown
MAX_DOCUMENTS = 10  # outlined in one prompt
MAX_CHOSEN = 5  # sections
QUESTION_CHARS, REASON_CHARS = 2000, 300
# Two requests at most: the second only where a chosen section has hidden ones, or the first request failed.
TREE_BUDGET = Budget(model_calls=2, tokens=40_000, seconds=60.0)


def outline_text(outline: DocumentOutline) -> str:
    """Write the outline of one document, or of one section given as its tree, within `OUTLINE_TOKENS`."""
    return outline_view([(1, outline.tree.children or (outline.tree,))]).text({1: outline})


@dataclass
class ShownSection:
    """A section in a prompt."""

    node: TreeNode
    skipped: tuple[TreeNode, ...] = ()  # siblings behind it that are not shown
    children: list["ShownSection"] = field(default_factory=list)

    @property
    def hidden(self) -> tuple[TreeNode, ...]:
        """The sections to show if this one is chosen."""
        below = () if self.children else self.node.children
        return (self.node, *self.skipped) if self.skipped else below

    def line(self) -> str:
        """Write its id, title, short summary and how many sections it hides."""
        hidden = len(self.skipped) if self.skipped else len(self.hidden)
        summary = cut_line(self.node.summary, SUMMARY_CHARS)
        more = f" : {summary}" if summary else ""
        return f"{self.node.node_id} {cut_line(self.node.title, TITLE_CHARS)}{more}{f' (+{hidden})' if hidden else ''}"


@dataclass
class OutlineView:
    """The outlines of one prompt: sections by document number."""

    sections: dict[int, list[ShownSection]]

    def known(self, document: int) -> dict[str, ShownSection]:
        """Return the sections of a document that can be named, by id."""
        return {section.node.node_id: section for _, section in _walk(self.sections.get(document, []))}

    def text(self, documents: Mapping[int, DocumentOutline]) -> str:
        """Write the outlines, a line for each document and section."""
        lines = []
        for number, shown in self.sections.items():
            lines.append(_header(number, documents[number]))
            lines += [f"{'  ' * depth}{section.line()}" for depth, section in _walk(shown)]
        return "\n".join(lines)


def _header(number: int, outline: DocumentOutline) -> str:
    opening = cut_line(outline.opening, SUMMARY_CHARS)
    return f"Document {number} : {cut_line(outline.title, TITLE_CHARS)}{f' – {opening}' if opening else ''}"


def outline_view(groups: Sequence[tuple[int, Sequence[TreeNode]]]) -> OutlineView:
    """Choose the sections that fit: a fair share of each group of siblings, then lower levels in the same order."""
    by_document: dict[int, list[TreeNode]] = {}
    for number, nodes in groups:
        by_document.setdefault(number, []).extend(node for node in nodes if len(node.node_id) <= ID_CHARS)
    left = OUTLINE_TOKENS * CHARS_PER_TOKEN - HEADER_CHARS * len(by_document)
    share = left // max(len(by_document), 1)
    sections = {number: _sampled(nodes, share) for number, nodes in by_document.items()}
    left -= sum(_count_chars(shown, 0) for shown in sections.values())
    frontiers = {number: shown for number, shown in sections.items() if not any(section.skipped for section in shown)}
    depth = 1
    while frontiers:
        deeper = {}
        for number, frontier in frontiers.items():
            opened = [(section, [ShownSection(child) for child in _nameable(section.node)]) for section in frontier]
            cost = sum(_count_chars(children, depth) for _, children in opened)
            if 0 < cost <= left:
                left -= cost
                for section, children in opened:
                    section.children = children
                deeper[number] = [child for _, children in opened for child in children]
        frontiers, depth = deeper, depth + 1
    return OutlineView(sections)


def _sampled(nodes: Sequence[TreeNode], most: int) -> list[ShownSection]:
    """Show siblings within `most` characters; if they are too many, every second, third… one."""
    step = 1
    while True:
        shown = [ShownSection(nodes[at], tuple(nodes[at + 1 : at + step])) for at in range(0, len(nodes), step)]
        cost = _count_chars(shown, 0)
        if cost <= most or len(shown) <= 1:
            return shown
        step = max(step + 1, step * cost // max(most, 1))


def _nameable(node: TreeNode) -> list[TreeNode]:
    return [child for child in node.children if len(child.node_id) <= ID_CHARS]


def _count_chars(shown: Iterable[ShownSection], depth: int) -> int:
    return sum(2 * depth + len(section.line()) + 1 for section in shown)


def _walk(shown: Sequence[ShownSection], depth: int = 0) -> Iterator[tuple[int, ShownSection]]:
    for section in shown:
        yield depth, section
        yield from _walk(section.children, depth + 1)


def cut_line(text: str, most: int) -> str:
    """Return the beginning of a text as one line."""
    line = without_marks(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"


def tree_reasoner(lm: "dspy.BaseLM", budget: Budget = TREE_BUDGET) -> Reasoner:
    """Return a reasoner for `StructuredProvider`, each question within a budget of its own."""

    def reason(question: str, outlines: Sequence[DocumentOutline]) -> list[ChosenNode]:
        from legal_rag.llm import ModelCalls

        return choose_nodes(question, outlines, ModelCalls(lm, budget))

    return reason


def choose_nodes(question: str, outlines: Sequence[DocumentOutline], calls: "ModelCalls") -> list[ChosenNode]:
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
    question: str, documents: Mapping[int, DocumentOutline], view: OutlineView, calls: "ModelCalls"
) -> list[_Choice]:
    """Ask once; empty if the model fails or its reply cannot be parsed."""
    try:
        asked = without_marks(question[:QUESTION_CHARS])
        reply = calls.ask(_predictor(), question=asked, plans=block(view.text(documents)))
    except (BudgetExceededError, ModelError) as error:
        logger.warning("the model named no section: %s", error)
        return []
    choices = (_choice(item, view) for item in _parse_objects(reply.text))
    by_node = {(choice.document, choice.node_id): choice for choice in choices if choice is not None}
    return list(by_node.values())[:MAX_CHOSEN]


def _predictor() -> "dspy.Predict":
    import dspy

    prompt = (files("legal_rag.agent") / "tree_prompt.md").read_text("utf-8").strip()
    return dspy.Predict(dspy.Signature("question: str, plans: str -> sections: str", prompt))


def _parse_objects(reply: str) -> list[dict[str, Any]]:
    """Parse the objects of a reply: a JSON array, in code fences or not, broken or inside another object."""
    value = json_in(reply)
    if isinstance(value, dict):
        value = next((items for items in value.values() if isinstance(items, list)), [value])
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _choice(item: Mapping[str, Any], view: OutlineView) -> _Choice | None:
    """Read one choice; None if its document or its section was not shown."""
    number = re.fullmatch(r"\d{1,9}", str(item.get("document")))
    shown = view.known(int(number[0])) if number else {}
    node_id = str(item.get("node_id")).partition(" ")[0].zfill(4)
    reason = cut_line(str(item.get("reason") or ""), REASON_CHARS)
    return _Choice(int(number[0]), node_id, reason) if number and node_id in shown else None
