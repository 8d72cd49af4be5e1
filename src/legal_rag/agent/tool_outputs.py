"""Outputs of tools: passages marked as data, and the trajectory that keeps them for the model."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

from legal_rag.agent.pieces import Pieces, without_names
from legal_rag.base.text import Span, storable
from legal_rag.citations.markers import format_marker
from legal_rag.corpus.chunking import Window
from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import Entity
from legal_rag.extraction.lookup import class_named
from legal_rag.graph.graph import Edge, KnowledgeGraph, Node
from legal_rag.graph.types import EDGE_TYPES
from legal_rag.law.citation import is_article, legal_citation
from legal_rag.law.sentences import split_sentences, without_blanks
from legal_rag.law.tree import Paragraph
from legal_rag.library.bm25 import lexical_words
from legal_rag.library.outlines import LocatedPassage
from legal_rag.retriever.retriever import SearchHit

EXCERPT_CHARS = 600  # of each hit in a list of results
FIELD_CHARS = 250  # shown of a column above passages
MAX_ENTITIES, ENTITY_CHARS = 100, 200  # in one list, and of each one's text
# Would end or imitate a block, with up to ten characters in between.
_BLOCK_MARK = re.compile(r"[<＜](?=\W{0,10}extrait)", re.IGNORECASE)
HEADING_CHARS = 100  # of a line that may be a heading
MAX_EDGES = 30  # in one list
CENTRE = "*"  # the node that a list of edges is around
MAX_THOUGHT_CHARS = 3000  # kept of a thought
SHOWN_ARGUMENT_CHARS = 1000  # of a step, in the conversation
LEAST_CHARS = 400  # of a shortened observation
CUT_IN_FRENCH = "(observation abrégée : {} phrases sur {}, les plus proches de la question)"
CUT = re.compile(r"\n\(observation abrégée : \d+ phrases sur \d+, les plus proches de la question\)")
FRAME = re.compile(r"</?extrait>|Décision (?:\S+ )?: |Article (?:[A-Z]{8}\d+ )?: |\[Source: ")
MARK = re.compile(r"</?extrait>")
PIECE = re.compile(r"^\[P\d+\] ", re.MULTILINE)
# Structure of prompts: DSPy's field marks, and the marks of chat templates.
_STRUCTURE = re.compile(r"\[(?=\s*\[\s*#)|<(?=\|)|\[(?=/?INST\]|TOOL_CALLS\])", re.IGNORECASE)
_LOOK_ALIKES = {"[": "⟦", "<": "‹"}


@dataclass(frozen=True)
class ToolTurn:
    """A step: thought, tool call, observation."""

    thought: str
    tool: str
    arguments: dict[str, Any]
    observation: str


class Exchange(NamedTuple):
    """A question asked before, and its answer."""

    question: str
    answer: str


class Trajectory:
    """The steps so far, oldest first, and the exchanges before them."""

    def __init__(self, history: Sequence[Exchange] = ()) -> None:
        self.history = tuple(history)
        self.turns: list[ToolTurn] = []
        self.is_shortened = False

    def add(self, thought: str, tool: str, arguments: dict[str, Any], observation: str) -> None:
        """Append a step."""
        text = json.dumps(arguments, ensure_ascii=False, default=str)
        shown = arguments if len(text) <= SHOWN_ARGUMENT_CHARS else {"…": text[:SHOWN_ARGUMENT_CHARS]}
        self.turns.append(ToolTurn(thought[:MAX_THOUGHT_CHARS], tool, shown, observation))

    def shorten(self, question: str) -> bool:
        """Cut observations to half the length of the longest, to what is closest to the question; was any cut?

        The exchanges before go first.
        """
        if self.history:
            self.history = ()
            return True
        before = [turn.observation for turn in self.turns]
        most = max(LEAST_CHARS, max(map(len, before), default=0) // 2)
        after = [relevant_part(text, question, most) for text in before]
        self.turns = [replace(turn, observation=text) for turn, text in zip(self.turns, after, strict=True)]
        self.is_shortened |= after != before
        return after != before

    def as_fields(self) -> dict[str, Any]:
        """Return the steps under the names of `dspy.ReAct`."""
        fields: dict[str, Any] = {}
        for index, turn in enumerate(self.turns):
            fields[f"thought_{index}"] = turn.thought
            fields[f"tool_name_{index}"] = turn.tool
            fields[f"tool_args_{index}"] = turn.arguments
            fields[f"observation_{index}"] = turn.observation
        return fields


def relevant_part(text: str, question: str, most: int) -> str:
    """Keep the sentences of a text that are closest to a question, in its order, with a line that says so.

    Sentences are ranked by the question's words in them, rare ones first; marks of passages and sources go before. A
    numbered piece is kept whole and with the lines above it that say of which decision it is, or not at all; the best
    one always is: without any the model would have nothing to point at.
    """
    if len(text) <= most:
        return text
    text = CUT.sub("", text)
    sentences, above = [text[start:end] for start, end in split_sentences(text)], dict[int, list[int]]()
    if PIECE.search(text):
        sentences = text.splitlines(keepends=True)
        above = _lines_above(sentences)
    terms = frozenset(lexical_words(question))
    words = [terms.intersection(lexical_words(sentence)) for sentence in sentences]
    n_with = Counter(word for in_sentence in words for word in in_sentence)
    rank = [(not FRAME.match(part), -sum(1 / n_with[word] for word in words[at])) for at, part in enumerate(sentences)]
    chosen = [at for at, part in enumerate(sentences) if not above or at in above or MARK.match(part)]
    kept, left = set[int](), most
    for at in sorted(chosen, key=rank.__getitem__):
        new = {at, *above.get(at, ())} - kept
        size = sum(len(sentences[number]) for number in new)
        if size <= left or (at in above and kept.isdisjoint(above)):
            kept |= new
            left -= size
    shown = "".join(sentence for at, sentence in enumerate(sentences) if at in kept) or text[:most]
    return f"{shown.rstrip()}\n{CUT_IN_FRENCH.format(len(kept), len(sentences))}"


def _lines_above(lines: Sequence[str]) -> dict[int, list[int]]:
    """Return, by the number of each piece's line, those of the lines that say of which decision it is."""
    above, head = dict[int, list[int]](), list[int]()
    for at, line in enumerate(lines):
        if PIECE.match(line):
            above[at] = head
        elif at and PIECE.match(lines[at - 1]):
            head = [at]
        else:
            head.append(at)
    return above


def without_marks(text: str) -> str:
    """Neutralise the structure of prompts in a text, keeping its length, and replace half surrogate pairs."""
    return _STRUCTURE.sub(lambda match: _LOOK_ALIKES[match.group()], storable(text))


def as_data(text: str) -> str:
    """Neutralise marks that would end a block or divide a prompt, keeping the text's length."""
    return without_marks(_BLOCK_MARK.sub("‹", text))


def block(text: str) -> str:
    """Mark a text from the corpus as data, for a model."""
    return f"<extrait>\n{as_data(text)}\n</extrait>"


def hit_text(hit: SearchHit, document: Document) -> str:
    """Write one search result: its document's citation, its marker and an excerpt."""
    excerpt = hit.text if len(hit.text) <= EXCERPT_CHARS else _cut_at_word(hit.text, EXCERPT_CHARS)
    head = f"{hit.rank}. {hit.chunk_id}, score {hit.score:.2f} : {legal_citation(document).plain}"
    return "\n".join([head, format_marker(hit.doc_id, hit.char_start, hit.char_end), f"« {excerpt} »"])


def document_text(document: Document, score: float | None = None) -> str:
    """Write a decision: its metadata, the score, then its text."""
    return f"{_head(document, score)}\n\n{document.content}"


def window_text(document: Document, window: Window, pieces: Pieces, spoken: Sequence[LocatedPassage] = ()) -> str:
    """Write a window of a decision: the decision's metadata, then the window's pieces, one a line after its name.

    `spoken` is who speaks where in it: pieces end where the speaker changes, and say whose they are if not the court's.
    """
    lines = [_head(document, most=FIELD_CHARS)]
    for start, end in window.pieces:
        changes = {at for part in spoken for at in (part.char_start, part.char_end) if start < at < end}
        for first, last in without_blanks(document.content, pairwise(sorted({start, end, *changes}))):
            said = next((part.said for part in spoken if part.char_start <= first < part.char_end), None)
            lines.append(pieces.show(document, first, last, speaker_told(said) if said else ""))
    return "\n".join(lines)


def paragraphs_in(content: str, start: int, end: int) -> list[Span]:
    """Return the lines of a span that are not blank, without headings: short ones with neither a stop nor a tab."""
    lines = without_blanks(content, _lines_in(content, start, end))
    told = [
        (first, last)
        for first, last in lines
        if last - first > HEADING_CHARS or content[last - 1] in ".;:!?…»)" or "\t" in content[first:last]
    ]
    return told or lines


def _lines_in(content: str, start: int, end: int) -> Iterator[Span]:
    while start < end:
        stop = content.find("\n", start, end) + 1 or end
        yield start, stop
        start = stop


def speaker_told(paragraph: Paragraph) -> str:
    """Return who speaks, in French, where it is not the court."""
    return paragraph.in_french if paragraph.speaker in ("party", "lower_court") else ""


def entities_text(document: Document, entities: Sequence[Entity], classes: Sequence[str] = ()) -> str:
    """Write the entities of a decision, all or those of some classes, each with its marker."""
    allowed = {class_named(name) for name in classes}
    kept = [entity for entity in entities if not allowed or entity["extraction_class"] in allowed]
    if not kept:
        known = ", ".join(sorted({entity["extraction_class"] for entity in entities})) or "aucune"
        return f"{kind_in_french(document)} {document.id} : aucun élément de ce genre. Classes présentes : {known}."
    lines = [_entity_line(document.id, entity) for entity in kept[:MAX_ENTITIES]]
    rest = len(kept) - len(lines)
    more = [f"[{rest} autres éléments : précisez classes.]"] if rest else []
    return "\n".join(
        [f"{kind_in_french(document)} {document.id}, éléments repérés : {len(kept)}", block("\n".join(lines)), *more]
    )


def facts_around(node: Node, graph: KnowledgeGraph, edge_type: str = "") -> tuple[list[Edge], bool]:
    """Return at most `MAX_EDGES` outgoing and incoming edges of a node, and whether there are more."""
    types = [edge_type] if edge_type else []
    out = graph.neighbours(node, types=types, direction="out", most=MAX_EDGES + 1)
    into = graph.neighbours(node, types=types, direction="in", most=MAX_EDGES + 1)
    kept = out[: max(MAX_EDGES - len(into), MAX_EDGES // 2)]
    return [*kept, *into[: MAX_EDGES - len(kept)]], len(out) + len(into) > MAX_EDGES


def edges_text(node: Node, edges: Sequence[Edge], *, more: bool = False) -> str:
    """Write edges of the knowledge graph, one a line, each with the marker of its source text."""
    if not edges:
        return "Aucun lien de ce genre : les textes du corpus n'en montrent pas."
    rest = "\n[D'autres liens ne sont pas montrés : précisez type, par exemple « cites ».]" if more else ""
    lines = [f"Liens de {CENTRE} : {_node_text(node)}", *(_edge_line(edge, node) for edge in edges)]
    return f"{block(chr(10).join(lines))}\nLisez le texte à la place indiquée avant de le citer.{rest}"


def _edge_line(edge: Edge, centre: Node) -> str:
    detail = f" ({shorten_line(edge.detail, ENTITY_CHARS)})" if edge.detail else ""
    in_text = edge.char_start >= 0
    place = format_marker(edge.doc_id, edge.char_start, edge.char_end) if in_text else f"[notice de {edge.doc_id}]"
    source, target = (_node_text(end, centre) for end in (edge.source, edge.target))
    return f"- {source} {EDGE_TYPES[edge.type]} : {target}{detail} {place}"


def _node_text(node: Node, centre: Node | None = None) -> str:
    """Write a node's name and document id; the centre of the edges is written `CENTRE`."""
    if centre and (node.key == centre.key or (node.doc_id and node.doc_id == centre.doc_id)):
        return CENTRE
    doc_id = f" ({node.doc_id})" if node.doc_id and node.doc_id != node.name else ""
    return shorten_line(node.name, ENTITY_CHARS) + doc_id


def _entity_line(doc_id: str, entity: Entity) -> str:
    attributes = ", ".join(f"{name} : {value}" for name, value in entity["attributes"].items())[:ENTITY_CHARS]
    marker = format_marker(doc_id, entity["char_start"], entity["char_end"])
    shown = shorten_line(entity["extraction_text"], ENTITY_CHARS)
    return f"- {entity['extraction_class']} : « {shown} »{f' ({attributes})' if attributes else ''} {marker}"


def kind_in_french(document: Document) -> str:
    """Say what a document is."""
    return "Article" if is_article(document) else "Décision"


def _head(document: Document, score: float | None = None, most: int | None = None) -> str:
    """Write a decision's metadata, one field a line, each value cut to `most` characters."""
    cited = legal_citation(document)
    named = {"Citation": cited.plain} if cited.court else {"Titre": document.title, "Date": document.decision_date}
    known = {
        kind_in_french(document): document.id,
        **named,
        "Version": document.in_force,
        "Juridiction": document.juridiction,
        "Formation": document.formation,
        "Solution": document.solution,
        "Droit appliqué": " ; ".join(document.applied_laws),
        "Score": "" if score is None else f"{score:.2f}",
    }
    shown = {name: without_names(shorten_line(text, most) if most else text) for name, text in known.items() if text}
    return "\n".join(f"{name} : {text}" for name, text in shown.items())


def shorten_line(text: str, most: int) -> str:
    """Return a text on one line, cut at a word to at most `most` characters and a mark of the cut."""
    line = " ".join(text.split())
    return line if len(line) <= most else _cut_at_word(line, most)


def _cut_at_word(text: str, most: int) -> str:
    return text[:most].rsplit(" ", 1)[0] + " […]"
