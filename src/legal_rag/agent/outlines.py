"""Compact outlines as text: documents' sections as a model is shown them, within a budget."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from legal_rag.agent.tool_outputs import without_marks
from legal_rag.law.tree import TreeNode
from legal_rag.retriever.structured import DocumentOutline

CHARS_PER_TOKEN = 3  # of French, cautiously: GPT-4o's tokenizer makes 3.3 to 4
OUTLINE_TOKENS = 4000  # of the outlines in one prompt, whatever the corpus
TITLE_CHARS, SUMMARY_CHARS = 120, 160
HEADER_CHARS = TITLE_CHARS + SUMMARY_CHARS + 30  # of a document's line
ID_CHARS = 12  # of a node's id; a section with a longer one is not shown


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
