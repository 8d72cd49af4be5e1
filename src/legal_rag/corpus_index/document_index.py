"""Level 2 of the corpus index: one document's table of contents, and what each of its sections says and names.

In: a document, what was extracted from it, the terms of its corpus, and, if wanted, a language model. Out: its
`DocumentIndex`, every section of which is a span of `Document.content`.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from legal_rag.corpus import Document
from legal_rag.corpus_index.frequencies import TermStatistics
from legal_rag.corpus_index.records import WHOLE, DocumentIndex
from legal_rag.corpus_index.section_summaries import SectionSummaries, SubModel
from legal_rag.extraction.entities import Entity
from legal_rag.structure import TreeNode, build_tree, walk

N_KEYWORDS = 8  # of a section at most
NAME_CHARS = 120  # of a section's name, but for the number that tells it from another of the same title


class Outline(NamedTuple):
    """The sections of a text, without what they say."""

    has_structure: bool  # whether it has headings or numbers
    toc: dict[str, Any]  # as `DocumentIndex` has it
    section_map: dict[str, tuple[int, int]]  # start and end by name


def build_document_index(
    document: Document,
    *,
    entities: Sequence[Entity] | None = None,
    statistics: TermStatistics | None = None,
    sub_llm: SubModel | None = None,
    file_path: str = "",
) -> DocumentIndex:
    """Index one document by its sections.

    A text without headings or numbers has one section, `full_document`.

    Args:
        document: Any text with an id.
        entities: What was extracted from it; a section has those that lie inside it.
        statistics: Of the corpus that the keywords are to tell the sections from; None: each section's own frequent
            terms are its keywords.
        sub_llm: Writes the summaries of sections that are longer than a summary; where it fails, as where there is
            none, sentences of the section are its summary.
        file_path: Of the document's source, if it was a file.
    """
    tree, named = _outlined(document.content)
    inside = _Entities(entities or ())
    sections = SectionSummaries(document, statistics, sub_llm)
    return DocumentIndex(
        doc_id=document.id,
        file_path=file_path,
        **_outline(tree, named)._asdict(),
        section_summaries={name: sections.of(node) for name, node in named.items()},
        keywords_by_section={
            name: [keyword.shown for keyword in sections.keywords(node)[:N_KEYWORDS]] for name, node in named.items()
        },
        entities_by_section={name: inside.names(node) for name, node in named.items()},
    )


def outline_of(text: str) -> Outline:
    """Return the sections of a text as `build_document_index` names them; it takes a tenth of the time."""
    return _outline(*_outlined(text))


def _outlined(text: str) -> tuple[TreeNode, dict[str, TreeNode]]:
    """Return the tree of a text, and its sections by name."""
    tree = build_tree(text)
    has_structure = any(child.kind in ("heading", "number") for child in tree.children)
    return tree, _named(tree) if has_structure else {WHOLE: tree}


def _outline(tree: TreeNode, named: Mapping[str, TreeNode]) -> Outline:
    return Outline(
        has_structure=WHOLE not in named or named[WHOLE] is not tree,
        toc={"sections": list(_contents(tree, {node.node_id: name for name, node in named.items()}))},
        section_map={name: (node.char_start, node.char_end) for name, node in named.items()},
    )


def _named(tree: TreeNode) -> dict[str, TreeNode]:
    """Return all sections by names of their own: a title that stands there before gets a number."""
    named: dict[str, TreeNode] = {}
    times: dict[str, int] = {}
    for node in list(walk(tree))[1:]:
        title = _short(node.title)
        times[title] = times.get(title, 0) + 1
        name = title if times[title] == 1 else f"{title} ({times[title]})"
        while name in named:  # a title that ends in such a number itself
            times[title] += 1
            name = f"{title} ({times[title]})"
        named[name] = node
    return named


def _short(title: str) -> str:
    if len(title) <= NAME_CHARS:
        return title
    return title[:NAME_CHARS].rsplit(" ", 1)[0].rstrip(" ,;:.") + "…"


def _contents(node: TreeNode, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the entries of a table of contents below a section; those that have no name are left out."""
    for child in node.children:
        if child.node_id in names:
            yield {
                "title": names[child.node_id],
                "start": child.char_start,
                "end": child.char_end,
                "level": child.level,
                "children": list(_contents(child, names)),
            }


class _Entities:
    """A document's entities, by where they stand."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        self._sorted = sorted(entities, key=lambda one: one["char_start"])
        self._starts = [one["char_start"] for one in self._sorted]

    def names(self, node: TreeNode) -> list[str]:
        """Return what is named inside a section, each once, in the order of the text."""
        first, behind = bisect_left(self._starts, node.char_start), bisect_left(self._starts, node.char_end)
        inside = [one for one in self._sorted[first:behind] if one["char_end"] <= node.char_end]
        return list(dict.fromkeys(" ".join(one["extraction_text"].split()) for one in inside))
