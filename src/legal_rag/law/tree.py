"""Data types of an outline: sections, a decision's main parts, the speakers of its paragraphs."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from legal_rag.base.display import displayed
from legal_rag.base.text import Span, read_words

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


class Paragraph(NamedTuple):
    """A line that is not blank, or a reason of a decision that lost its line breaks."""

    start: int  # characters, white space at the ends left out
    end: int
    part: PartKind | None  # None outside decisions
    speaker: Speaker | None  # None: nobody reasons, as in a list of names or outside decisions
    censured: bool  # reasoning of the judges below that the court then quashes

    @property
    def in_french(self) -> str:
        """Who speaks, in French; '' where nobody does."""
        return speaker_in_french(self.speaker, censured=self.censured)


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


BEFORE_HEADING = r"(?:[-–—•*#§\s]|[IVX]{1,4}+\s?[-–—.)/]|[A-H]\s?[-–—.)/]|\d{1,2}+\s?[-–—.)°/]{1,2}+)*"
NUMBER = r"(?:\d{1,3}\s?\.\s?[-–]?\s?)?"  # of a paragraph
_FORMS = {"É": "[EÉÈ]", "È": "[EÉÈ]", "Ê": "[EÊÉ]", "Ô": "[OÔ]", "Ç": "[CÇ]", "'": "['’ ]"}


def cues(*names: str) -> str:
    """Return one pattern of the alternatives in some lists; a blank in them is any white space."""
    phrases = [phrase for name in names for phrase in read_words("legal_rag.law", "cues.toml")[name]]
    return f"(?:{'|'.join(phrases)})".replace(" ", r"\s")


def heading_letters(phrase: str) -> str:
    """Return a pattern for a phrase in capitals, whose letters may be spaced, lack accents or be pseudonymised."""
    words = [[_FORMS.get(letter, re.escape(letter)) for letter in word] for word in phrase.split()]
    unread = r"|[A-Z]\.{3}"
    spelt = [[f"(?:{form}{unread if n or m else ''})" for m, form in enumerate(word)] for n, word in enumerate(words)]
    return r"\s{1,4}".join(r"\s?".join(word) for word in spelt)


def headings(name: str) -> str:
    """Return a pattern for the headings of a list: in capitals at a line's beginning, in any case as a whole line."""
    known = "|".join(map(heading_letters, read_words("legal_rag.law", "cues.toml")[name]))
    more = r"(?:\s(?i:de la cour|de l['’]arrêt|et motifs))?\s*[:;,.]?\s*\Z"
    return rf"{BEFORE_HEADING}(?:(?:{known})(?![\w'’])|(?i:{known}){more})"
