"""Compact outlines as a model is shown them, within a budget, and the sections that it names to read."""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from legal_rag.agent.tool_outputs import block, without_marks
from legal_rag.corpus_index.summaries import extractive_summary
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
LEAST_SUMMARY, SUMMARISED_CHARS = 60, 6000  # of a section's own sentences, in an outline; of its text, read for them
HEADER_CHARS = TITLE_CHARS + SUMMARY_CHARS + 30  # of a document's line
ID_CHARS = 12  # of a node's id; a section with a longer one is not shown
MAX_DOCUMENTS = 10  # outlined in one prompt
MAX_CHOSEN = 5  # sections
QUESTION_CHARS, REASON_CHARS = 2000, 300
TREE_BUDGET = Budget(model_calls=2, tokens=40_000, seconds=60.0)  # of one question: a call, and one that repeats it


@dataclass
class ShownSection:
    """A section in a prompt."""

    node: TreeNode
    skipped: int = 0  # siblings behind it that are not shown
    extract: str = ""  # of its text, where nobody wrote a summary
    children: list["ShownSection"] = field(default_factory=list)

    def line(self) -> str:
        """Write its id, title, short summary and how many sections it hides."""
        hidden = self.skipped or (0 if self.children else len(self.node.children))
        summary = cut_line(self.node.summary or self.extract, SUMMARY_CHARS)
        more = f" : {summary}" if summary else ""
        return f"{self.node.node_id} {cut_line(self.node.title, TITLE_CHARS)}{more}{f' (+{hidden})' if hidden else ''}"


def outline_text(outline: DocumentOutline) -> str:
    """Write the outline of one document, or of one section given as its tree, within `OUTLINE_TOKENS`."""
    return _format_outlines([outline], _fitting_sections([outline]))


def _format_outlines(outlines: Iterable[DocumentOutline], sections: Iterable[list[ShownSection]]) -> str:
    lines = []
    for number, (outline, shown) in enumerate(zip(outlines, sections, strict=True), start=1):
        opening = cut_line(outline.opening, SUMMARY_CHARS)
        lines.append(f"Document {number} : {cut_line(outline.title, TITLE_CHARS)}{f' – {opening}' if opening else ''}")
        lines += [f"{'  ' * depth}{section.line()}" for depth, section in _walk(shown)]
    return "\n".join(lines)


def _fitting_sections(outlines: Sequence[DocumentOutline]) -> list[list[ShownSection]]:
    """Choose the sections that fit: a fair share of each document's uppermost, then lower levels in the same order."""
    left = OUTLINE_TOKENS * CHARS_PER_TOKEN - HEADER_CHARS * len(outlines)
    share = left // max(len(outlines), 1)
    sections = [_sampled(_nameable(outline.tree, or_itself=True), share) for outline in outlines]
    left -= sum(_count_chars(shown, 0) for shown in sections)
    frontiers = [shown for shown in sections if not any(section.skipped for section in shown)]
    depth = 1
    while frontiers:
        deeper = []
        for frontier in frontiers:
            opened = [(section, [ShownSection(child) for child in _nameable(section.node)]) for section in frontier]
            cost = sum(_count_chars(children, depth) for _, children in opened)
            if 0 < cost <= left:
                left -= cost
                for section, children in opened:
                    section.children = children
                deeper.append([child for _, children in opened for child in children])
        frontiers, depth = deeper, depth + 1
    for outline, shown in zip(outlines, sections, strict=True):
        left -= _summarise_sections(outline.content, shown, left // len(outlines))
    return sections


def _summarise_sections(content: str, shown: Sequence[ShownSection], left: int) -> int:
    """Give the sections without children sentences of their text, the same room each; return the characters used."""
    lacking = [section for _, section in _walk(shown) if not (section.children or section.node.summary)]
    most = min(SUMMARY_CHARS, left // len(lacking)) - len(" : ") if content and lacking else 0
    if most < LEAST_SUMMARY:
        return 0
    for section in lacking:
        node = section.node
        start = node.heading[1] if node.kind == "heading" else node.char_start  # a number's title is its text
        extract = extractive_summary(content[start : node.char_end][:SUMMARISED_CHARS], most_chars=most)[:most]
        section.extract = "" if node.title and extract.startswith(node.title.rstrip("…")) else extract
    return sum(len(section.extract) + len(" : ") for section in lacking)


def _sampled(nodes: Sequence[TreeNode], most: int) -> list[ShownSection]:
    """Show siblings within `most` characters; if they are too many, every second, third… one."""
    step = 1
    while True:
        shown = [ShownSection(nodes[at], len(nodes[at + 1 : at + step])) for at in range(0, len(nodes), step)]
        cost = _count_chars(shown, 0)
        if cost <= most or len(shown) <= 1:
            return shown
        step = max(step + 1, step * cost // max(most, 1))


def _nameable(tree: TreeNode, *, or_itself: bool = False) -> list[TreeNode]:
    nodes = tree.children or (tree,) if or_itself else tree.children
    return [node for node in nodes if len(node.node_id) <= ID_CHARS]


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


def reasoner_of(calls: "ModelCalls") -> Reasoner:
    """Return a reasoner whose calls are those of one answer, within its budget."""
    return lambda question, outlines: choose_nodes(question, outlines, calls)


def choose_nodes(question: str, outlines: Sequence[DocumentOutline], calls: "ModelCalls") -> list[ChosenNode]:
    """Have a model name the sections that answer a question, best first.

    It is shown what fits into `OUTLINE_TOKENS` of the outlines, upper levels first. Nothing is returned where the model
    fails, or its reply cannot be read; what it invents is ignored.
    """
    outlines = outlines[:MAX_DOCUMENTS]
    if not outlines:
        return []
    sections = _fitting_sections(outlines)
    plans = block(_format_outlines(outlines, sections))
    try:
        reply = calls.ask(_predictor(), question=without_marks(question[:QUESTION_CHARS]), plans=plans)
    except (BudgetExceededError, ModelError) as error:
        logger.warning("the model named no section: %s", error)
        return []
    shown = {
        (number, section.node.node_id): outline.doc_id
        for number, (outline, upper) in enumerate(zip(outlines, sections, strict=True), start=1)
        for _, section in _walk(upper)
    }
    chosen: dict[tuple[int, str], ChosenNode] = {}
    for item in _parse_objects(reply.text):
        number = re.fullmatch(r"\d{1,9}", str(item.get("document")))
        key = int(number[0]) if number else 0, str(item.get("node_id")).partition(" ")[0].zfill(4)
        if key in shown:
            chosen[key] = ChosenNode(shown[key], key[1], cut_line(str(item.get("reason") or ""), REASON_CHARS))
    return list(chosen.values())[:MAX_CHOSEN]


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
