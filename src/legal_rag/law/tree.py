"""Data types of an outline: sections, a decision's main parts, the speakers of its paragraphs; outlines as JSON.

The JSON has the form of PageIndex, in files `<document>_tree.json`; offsets are characters of the document. Files from
outside are validated when read.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from reprlib import repr as short
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import quote

from legal_rag.base.html import displayed
from legal_rag.base.text import Span, storable

PartKind = Literal["header", "statement", "claims", "reasons", "ruling", "annex"]  # main parts of a decision
PART_KINDS: tuple[PartKind, ...] = get_args(PartKind)
PART_TITLES: dict[str, str] = {
    "header": "En-tête",
    "statement": "Exposé du litige",
    "claims": "Moyens et prétentions",
    "reasons": "Motifs",
    "ruling": "Dispositif",
    "annex": "Moyens annexés",
}
Speaker = Literal["court", "party", "lower_court", "text"]
SPEAKERS: tuple[Speaker, ...] = get_args(Speaker)
SPEAKERS_IN_FRENCH: dict[Speaker, str] = {
    "court": "la juridiction",
    "party": "argument d'une partie",
    "lower_court": "décision attaquée",
    "text": "texte cité",
}
CENSURED_IN_FRENCH = "décision attaquée, censurée sur ce point"
Kind = Literal["document", "heading", "number", "part"] | PartKind  # what makes a section; "part": its length alone


def speaker_in_french(speaker: Speaker | None, *, censured: bool) -> str:
    """Format a speaker in French; '' for nobody."""
    return CENSURED_IN_FRENCH if censured else SPEAKERS_IN_FRENCH[speaker] if speaker else ""


SUFFIX = "_tree.json"
MOST_NODES, MOST_LEVELS = 100_000, 50  # of a tree
MOST_TITLE_CHARS, MOST_SUMMARY_CHARS = 1000, 10_000
KINDS: tuple[str, ...] = (*(kind for kind in get_args(get_args(Kind)[0]) if kind != "document"), *PART_KINDS)
_NODE_ID = re.compile(r"[\w.-]{1,40}")
_ROOT_ID = "0000"
_NAME_CHARS = 180  # of a file's name, without its suffix


@displayed
class Paragraph(NamedTuple):
    """What one speaker says in a line that is not blank, or in a reason of a decision that lost its line breaks."""

    start: int  # characters, white space at the ends left out
    end: int
    part: PartKind | None  # None outside decisions
    speaker: Speaker | None  # None: nobody reasons, as in a list of names or outside decisions
    censured: bool  # reasoning of the judges below that the court then quashes

    @property
    def in_french(self) -> str:
        """Who speaks, in French; '' where nobody does."""
        return speaker_in_french(self.speaker, censured=self.censured)


@displayed
class Part(NamedTuple):
    """A main part of a decision."""

    kind: PartKind
    start: int  # characters; a part ends where the next begins
    end: int


@displayed
@dataclass(frozen=True, slots=True)
class TreeNode:
    """A section of a document, as a span of its text.

    Its own text comes first; then its children follow one another without gaps, up to its end.
    """

    node_id: str  # "0000" for the document, then in reading order
    title: str  # on one line, without surrounding signs, cut if long
    level: int  # 0: the document; a child's is one more than its parent's
    char_start: int  # of the whole section, heading included
    char_end: int
    heading: Span  # span of its title or number in the text; empty if it has none
    kind: Kind
    children: tuple["TreeNode", ...] = ()
    summary: str = ""  # where one was written


def walk(tree: TreeNode) -> Iterator[TreeNode]:
    """Yield a node and its descendants in reading order."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def with_summaries(tree: TreeNode, summary_of: Callable[[TreeNode], str]) -> TreeNode:
    """Return a tree with its summaries replaced."""
    children = tuple(with_summaries(child, summary_of) for child in tree.children)
    return replace(tree, summary=summary_of(tree), children=children)


def section_titles(tree: TreeNode, start: int) -> tuple[str, ...]:
    """Return the titles of the sections that hold a character: 'Motifs', 'Réponse de la Cour', '§ 12'."""
    titles = []
    for node in path_to(tree, start):
        if node.kind == "number" and node.title.strip():
            titles.append(f"§ {node.title.split()[0].rstrip('.)°/:–-')}")
        elif node.kind != "part":
            titles.append(PART_TITLES.get(node.kind, node.title))
    return tuple(titles)


def path_to(tree: TreeNode, start: int) -> tuple[TreeNode, ...]:
    """Return the sections that hold a character, from a child of the document down; empty outside the text."""
    path: list[TreeNode] = []
    inside: TreeNode | None = tree
    while inside is not None:
        inside = next((child for child in inside.children if child.char_start <= start < child.char_end), None)
        path += [inside] if inside else []
    return tuple(path)


class TreeFile(NamedTuple):
    """The content of a tree file."""

    doc_name: str  # the document's id
    description: str
    tree: TreeNode


def tree_to_json(tree: TreeNode, doc_name: str, description: str = "", content: str | None = None) -> dict[str, Any]:
    """Return an outline as JSON values; `tree_from_json` reads them.

    With the document's `content`, each section has its `text`, that of the sections below it included.
    """
    structure = [_json_of(child, content) for child in tree.children]
    return {"doc_name": doc_name, "doc_description": description, "structure": structure}


def _json_of(node: TreeNode, content: str | None) -> dict[str, Any]:
    text = {} if content is None else {"text": content[node.char_start : node.char_end]}
    return {
        "title": node.title,
        "node_id": node.node_id,
        "kind": node.kind,
        "summary": node.summary,
        "start": node.char_start,
        "end": node.char_end,
        "start_index": node.char_start,  # as PageIndex names them
        "end_index": node.char_end,
        "heading_end": node.heading[1],
        **text,
        "nodes": [_json_of(child, content) for child in node.children],
    }


def tree_from_json(value: Any, n_chars: int) -> TreeFile:
    """Read an outline of a document of `n_chars` characters.

    Of a section, `title`, `start` and `end` are required, the last two also as `start_index` and `end_index`. Text
    between two sections belongs to the first, so that they follow one another without gaps.

    Raises:
        ValueError: If a key is missing or of a wrong type; if a section leaves the text or its parent, overlaps the
            next, repeats a node id, or is nested too deep.
    """
    name = name_in(value)
    description = _json_line(value, "doc_description", "the tree", MOST_SUMMARY_CHARS, missing="")
    children = _TreeReader().read(value["structure"], (0, n_chars), 1)
    return TreeFile(name, description, TreeNode(_ROOT_ID, "", 0, 0, n_chars, (0, 0), "document", children, description))


def name_in(value: Any) -> str:
    """Return the document's id that a tree's JSON names.

    Raises:
        ValueError: If the value is not the JSON of a tree.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("structure"), list):
        raise ValueError("not a tree (expected an object with 'doc_name' and a list 'structure')")
    return _read_text(value, "doc_name", "the tree", MOST_TITLE_CHARS)


def file_name(doc_id: str) -> str:
    """Return the name of a document's tree file: its id, escaped where file systems forbid a character."""
    name = quote(doc_id, safe=" ()[]{}@+,;=")
    if len(name) > _NAME_CHARS:
        name = f"{name[: _NAME_CHARS - 20]}-{hashlib.sha256(doc_id.encode()).hexdigest()[:16]}"
    return f"%2E{name[1:]}{SUFFIX}" if name.startswith(".") else f"{name}{SUFFIX}"


class _TreeReader:
    """Reads sections; knows the ids that it has read."""

    def __init__(self) -> None:
        self._ids = {_ROOT_ID}

    def read(self, values: Sequence[Any], within: Span, level: int) -> tuple[TreeNode, ...]:
        """Read the sections of a level, which lie within a span; the last ends where it does."""
        if level > MOST_LEVELS:
            raise ValueError(f"sections are nested more than {MOST_LEVELS} deep")
        nodes: list[TreeNode] = []
        for value, following in zip_longest(values, values[1:]):
            first = nodes[-1].char_end if nodes else within[0]
            nodes.append(self._read_node(value, _offset_in(following, "start"), (first, within[1]), level))
        return tuple(nodes)

    def _read_node(self, value: Any, following: Any, within: Span, level: int) -> TreeNode:
        number = len(self._ids)
        if number > MOST_NODES:
            raise ValueError(f"more than {MOST_NODES} sections")
        if not isinstance(value, Mapping):
            raise ValueError(f"section {number} is not an object: {short(value)}")
        node_id = self._new_id(value, number)
        where = f"section {node_id!r}"
        start = _check_offset(_offset_in(value, "start"), "start", where, within)
        end = _check_offset(_offset_in(value, "end"), "end", where, (start, within[1]))
        heading_end = _check_offset(value.get("heading_end", start), "heading_end", where, (start, end))
        if isinstance(following, int):
            if following < end:
                raise ValueError(f"{where} ends at {end}, and the next starts at {following} (expected no overlap)")
            end = following
        else:
            end = within[1]
        kind, nodes = value.get("kind", "heading"), value.get("nodes", [])
        if kind not in KINDS:
            raise ValueError(f"{where}: unknown kind {short(kind)} (expected {', '.join(KINDS)})")
        if not isinstance(nodes, list):
            raise ValueError(f"{where}: 'nodes' is not a list: {short(nodes)}")
        title = _json_line(value, "title", where, MOST_TITLE_CHARS)
        summary = _json_line(value, "summary", where, MOST_SUMMARY_CHARS, missing="")
        children = self.read(nodes, (heading_end, end), level + 1)
        return TreeNode(node_id, title, level, start, end, (start, heading_end), kind, children, summary)

    def _new_id(self, value: Mapping[Any, Any], number: int) -> str:
        node_id = value.get("node_id", f"{number:04d}")
        if not isinstance(node_id, str) or not _NODE_ID.fullmatch(node_id):
            raise ValueError(f"section {number}: invalid node_id {short(node_id)} (expected a text such as '0003')")
        if node_id in self._ids:
            raise ValueError(f"node_id {node_id!r} comes twice, or is the document's own")
        self._ids.add(node_id)
        return node_id


def _offset_in(value: Any, name: str) -> Any:
    return value.get(name, value.get(f"{name}_index")) if isinstance(value, Mapping) else None


def _check_offset(offset: Any, name: str, where: str, within: Span) -> int:
    if not isinstance(offset, int) or isinstance(offset, bool) or not within[0] <= offset <= within[1]:
        raise ValueError(f"{where}: {name} is {short(offset)} (expected {within[0]} to {within[1]})")
    return offset


def _json_line(value: Mapping[Any, Any], name: str, where: str, most: int, missing: str | None = None) -> str:
    return " ".join(storable(_read_text(value, name, where, most, missing)).split())


def _read_text(value: Mapping[Any, Any], name: str, where: str, most: int, missing: str | None = None) -> str:
    text = value.get(name, missing)
    if not isinstance(text, str) or len(text) > most:
        raise ValueError(f"{where}: {name!r} is {short(text)} (expected a text of at most {most} characters)")
    return text
