"""Read the knowledge graph of a Library at one commit: neighbours, paths, episodes, exports as JSON and GraphML."""

import difflib
import itertools
import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from xml.sax.saxutils import escape

from legal_rag.base.files import written_whole
from legal_rag.base.html import displayed, plain_json
from legal_rag.base.sqlite import ThreadConnections, answers
from legal_rag.base.text import without_accents
from legal_rag.extraction.entities import PARTIE
from legal_rag.extraction.lookup import name_words
from legal_rag.graph.names import (
    DOCUMENT,
    NAME,
    NAME_STARTS,
    court_node,
    is_distinctive,
    is_known_as,
    is_named_in,
    is_organisation,
    is_reference,
    key_of_term,
    law_in,
    node_of,
    term_of_key,
    words_of_key,
)
from legal_rag.graph.rulings import (
    DESCRIBED,
    FOLLOWS,
    ON_REMAND,
    OVERRULES,
    UPHOLDS,
    court_key,
    described_key,
    is_in_part,
)
from legal_rag.graph.store import BATCH, GRAPH, MAKE_COMMAND, STATED, SUPPORTS, TEXT, UNSUPPORTED, read_graph
from legal_rag.graph.types import EDGE_TYPES, NODE_TYPES, REVERSED_EDGE_TYPES
from legal_rag.law import find_courts, find_dates, find_identifiers, is_statute
from legal_rag.law.courts import SUPREME, find_short_courts, level_of
from legal_rag.law.keys import NO_CODE, ParsedQuery, canonical_key, own_keys
from legal_rag.law.outcomes import ANNULATION, CASSATION, CONFIRMATION, INFIRMATION, kinds_of
from legal_rag.library.filters import Filters, UnsupportedFilterError
from legal_rag.library.library import STORE, Library
from legal_rag.library.store import present_at

if TYPE_CHECKING:
    from legal_rag.graph.answers import AnswerRecorder

CITING_TYPES = ("cites", "applies")
RULING_TYPES = ("overrules", "upholds", "rectifies", "follows", "distinguishes", "interprets")
MOST_EDGES = 200  # default limit of a query
HUB_DEGREE = 200  # edges; larger nodes (a court, a code) may join two others but are not searched through
MOST_EXPANDED = 500  # edges of one step of a path, in each direction
MOST_HOPS = 6
NEAR_NAMES = 5  # in a message
FORMAT, VERSION = "legal_rag.graph", 1  # of `graph.json`
GRAPHML = "http://graphml.graphdrawing.org/xmlns"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9:.\-]")
_GRAPHML_TYPES = {int: "int", float: "double", str: "string"}

_SELECT_EDGES = """
    SELECT e.from_key, e.to_key, e.type, e.support, COALESCE(d.id, ''), e.char_start, e.char_end, e.n, e.detail,
        e.confidence, COALESCE(s.answer_id, ''), s.recorded
    FROM edges AS e JOIN sources AS s USING (source_key) LEFT JOIN texts AS t ON t.text_key = e.text_key
    LEFT JOIN present AS d ON d.id = t.doc_id AND d.content_hash = t.content_hash
    WHERE {} AND (e.text_key IS NULL OR d.id IS NOT NULL)
"""

# Parties whom at most so many decisions, or one in so many, have tell of two decisions whether they are of one case.
FEW_DECISIONS, FEW_OF = 5, 400
LAST = "\U0010ffff"  # sorts behind all keys
# The first kind that an outcome has says what became of the decision below.
_QUASHED = {CASSATION: "cassé", INFIRMATION: "infirmé", ANNULATION: "annulé"}
_REVERSED_BY = (("non avenu", "déclaré non avenu"), ("rabat", "rabattu"))

Returned = TypeVar("Returned")
Direction = Literal["out", "in", "both"]
Step = tuple[str, tuple[Any, ...]]  # of a path: the key before, the row of the edge


@displayed
class Node(NamedTuple):
    """A node, with the metadata of its document if it is one of the Library's."""

    key: str  # see `legal_rag.graph.names`
    type: str  # one of `NODE_TYPES`
    name: str
    doc_id: str = ""  # its document in the Library, if any
    decision_date: str = ""
    court: str = ""  # with its chamber
    solution: str = ""
    cited: int = 0  # documents whose text cites it


@displayed
class Edge(NamedTuple):
    """An edge, with the span that supports it."""

    source: Node
    target: Node
    type: str  # one of `EDGE_TYPES`
    support: str  # 'text': a fact; 'stated': a model's claim on names that share a sentence; 'none'
    doc_id: str  # whose text supports it; empty without support
    char_start: int  # characters of its content; -1 if a column supports it
    char_end: int
    n: int  # occurrences in the text
    detail: str  # a party's role, a ruling's words
    confidence: float  # a model's own, 0 to 1; 1 of a fact
    answer_id: str = ""  # the answer that stated it
    recorded: str = ""  # when: ISO 8601, UTC

    @property
    def is_fact(self) -> bool:
        """Whether the rules find it in a text; a model's claim is never a fact."""
        return self.support == TEXT

    @property
    def treatment(self) -> str:
        """What a ruling's source did to its target, in French, as it precedes the source's name: "cassé en partie par".

        Empty if the edge is no ruling.
        """
        kinds, part = kinds_of(self.detail), " en partie" if is_in_part(self.detail) else ""
        if self.type == OVERRULES:
            participle = next((word for words, word in _REVERSED_BY if words in self.detail.lower()), "")
            participle = participle or next((_QUASHED[kind] for kind in _QUASHED if kind in kinds), "censuré")
            return f"{participle}{' en partie' if CONFIRMATION in kinds else part} par"
        if self.type == FOLLOWS and self.detail == ON_REMAND:
            return "suivi, sur renvoi, par"
        if self.type == UPHOLDS:
            at_top = level_of(self.source.court, "", self.source.name) == SUPREME
            return "pourvoi rejeté par" if at_top and CONFIRMATION not in kinds else f"confirmé{part} par"
        return REVERSED_EDGE_TYPES[self.type].removeprefix("est ") if self.type in RULING_TYPES else ""


@displayed
class Episode(NamedTuple):
    """A model's notes on the work for an answer, in its own words."""

    decision: str
    context: str
    status: str  # one of `EPISODE_STATUSES`
    lessons: tuple[str, ...]
    nodes: tuple[Node, ...]
    answer_id: str
    recorded: str


class NodeLookupError(LookupError):
    """A name matches no node, or several."""

    def __init__(self, message: str, names: Sequence[str], *, is_ambiguous: bool) -> None:
        super().__init__(message)
        self.names = list(names)  # the nearest names, or the nodes that share the name
        self.is_ambiguous = is_ambiguous


def _in_one_state(method: Callable[..., Returned]) -> Callable[..., Returned]:
    """Run a method in one read transaction, so that all its statements see the same state."""

    @wraps(method)
    def reading(graph: "KnowledgeGraph", *arguments: Any, **named: Any) -> Returned:
        with graph.unchanging():
            return method(graph, *arguments, **named)

    return reading


class KnowledgeGraph:
    """Thread-safe, read-only view of a Library's graph; edges whose text is not in the corpus are hidden."""

    def __init__(self, corpus: Library | str | Path) -> None:
        library = Library(corpus) if isinstance(corpus, str | Path) else corpus
        self.library = library
        self._file = library.path / GRAPH
        if not self._file.is_file() or not self._file.stat().st_size:  # empty: killed during creation
            raise FileNotFoundError(f"no graph in {library.path}: {MAKE_COMMAND}")
        self._connections = ThreadConnections(self._file, self._connect_graph, answers)
        self._connections.get()  # a graph of another version is refused at once

    def __repr__(self) -> str:
        return f"KnowledgeGraph({self.library!r})"

    def _connect_graph(self) -> sqlite3.Connection:
        connection = read_graph(self._file, corpus=self.library.path / STORE)
        self.library.check_unchanged()
        present = present_at(self.library.commit)
        connection.execute(f"CREATE TEMP VIEW present AS SELECT * FROM corpus.documents WHERE {present}")  # noqa: S608
        return connection

    @_in_one_state
    def counts(self) -> dict[str, int]:
        """Count nodes, edges by support, episodes and answers; those of removed documents may be included."""
        sql = "SELECT support, COUNT(*) FROM edges GROUP BY support"
        by_support = dict(self._select(sql))
        named = {"facts": TEXT, "stated": STATED, "unsupported": UNSUPPORTED}
        (nodes,), (episodes,) = self._select("SELECT COUNT(*) FROM nodes UNION ALL SELECT COUNT(*) FROM episodes")
        ((n_answers,),) = self._select("SELECT COUNT(*) FROM sources WHERE answer_id IS NOT NULL")
        edges = {name: by_support.get(support, 0) for name, support in named.items()}
        return {"nodes": nodes, **edges, "episodes": episodes, "answers": n_answers}

    @_in_one_state
    def find(self, name: str) -> Node:
        """Find a node by a document id, a number, an article, a court, a court and a day, or any name, in any spelling.

        Raises:
            NodeLookupError: A LookupError, if there is none, or several; the message names the nearest.
        """
        nodes = self._nodes_by_key(self._candidate_keys(name)) or self._nodes_by_name(name) or self._of_a_day(name)
        if len(nodes) == 1:
            return nodes[0]
        if nodes:
            names = [f"{node.name} ({node.key})" for node in nodes[:NEAR_NAMES]]
            message = f"several nodes named {name!r} (expected one of: {'; '.join(names)})"
            raise NodeLookupError(message, names, is_ambiguous=True)
        near = self._near_names(name)
        hint = f" (near: {'; '.join(near)})" if near else ""
        raise NodeLookupError(f"no node {name!r} in the graph of {self.library.path}{hint}", near, is_ambiguous=False)

    @_in_one_state
    def neighbours(
        self,
        node: Node | str,
        *,
        types: Collection[str] = (),
        direction: Direction = "both",
        supports: Collection[str] = (TEXT,),
        most: int = MOST_EDGES,
    ) -> list[Edge]:
        """Return at most `most` edges of a node in each direction, outgoing first, each group by type.

        By default of all types, in both directions ('out', 'in', 'both'), and facts alone.

        Raises:
            LookupError: As `find` does.
            ValueError: For an unknown type or direction.
        """
        if unknown := sorted(set(types) - EDGE_TYPES.keys()):
            raise ValueError(f"no edge type {unknown[0]!r} (expected one of {', '.join(EDGE_TYPES)})")
        if direction not in ("out", "in", "both"):
            raise ValueError(f"direction must be 'out', 'in' or 'both', got {direction!r}")
        keys = self._numbers_of([self._resolve_node(node).key])
        edges: list[Edge] = []
        for column, side in (("from_key", "out"), ("to_key", "in")):
            if direction in (side, "both"):
                edges += self._edges(self._edge_rows(keys, column, types, supports, most))
        return _merge_edges(edges)

    @_in_one_state
    def citing(self, node: Node | str, most: int = MOST_EDGES) -> list[Edge]:
        """Return the edges from the documents that cite a decision, an article or a text."""
        return self.neighbours(node, types=CITING_TYPES, direction="in", most=most)

    @_in_one_state
    def documents_of_article(self, node: Node) -> list[str]:
        """Return the ids of the documents that are an article: one for each version that the Library holds."""
        own = map(key_of_term, own_keys(self.library.document(node.doc_id))) if node.doc_id else [node.key]
        own = [key for key in own if key.startswith("article:") and not key.endswith(NO_CODE)]
        # Not by number alone, which other texts have, where its text is known.
        owners = self._owners_of_keys([key for key in own if not any(one.startswith(f"{key} ") for one in own)])
        return sorted({doc_id for doc_ids in owners.values() for doc_id in doc_ids})

    @_in_one_state
    def rulings(self, node: Node | str) -> list[Edge]:
        """Return the edges from the later decisions that rule on one, by date: its subsequent history.

        They overrule (quash, annul, reverse), uphold or rectify it, or follow, distinguish or interpret it; see
        `Edge.treatment`. Raises as `find` does.
        """
        edges = self.neighbours(node, types=RULING_TYPES, direction="in")
        return sorted(edges, key=lambda edge: edge.source.decision_date)

    def overruling(self) -> Iterator[Edge]:
        """Stream the facts that a decision quashed, reversed or withdrew another, with one batch in memory."""
        sql = "SELECT DISTINCT to_key FROM edges INDEXED BY edges_to WHERE type = ?"  # from the index alone
        numbers = [number for (number,) in self._select(sql, OVERRULES)]
        for start in range(0, len(numbers), BATCH):
            rows = self._edge_rows(numbers[start : start + BATCH], "to_key", (OVERRULES,), (TEXT,), -1)
            yield from self._edges(rows)

    @_in_one_state
    def described(self, court: str, day: str) -> list[Node]:
        """Return the decisions that texts name by a court and a day (ISO 8601), and that the Library does not hold."""
        named = court_node(court)
        first = described_key(named.key, day) if named else ""
        sql = "SELECT node_key FROM nodes WHERE key > ? AND key < ?"
        numbers = [number for (number,) in self._select(sql, first, first + LAST)] if named else []
        return [node for node in self._nodes(numbers).values() if not node.doc_id]

    @_in_one_state
    def decisions_of_party(self, name: str, most: int = 10) -> list[str]:
        """Return the ids of at most `most` decisions with a party of that name.

        A person is known by the surname, a company by some of its distinctive words: "Derichebourg" is a name of
        "société Derichebourg Propreté". Nothing is known by a pseudonym ("X...") or words that many bodies share.
        """
        words = name_words(name)
        if not is_distinctive(words):
            return []
        try:
            doc_ids = self.library.ids(Filters(entity=f"{PARTIE}={name}"))
        except UnsupportedFilterError:  # nothing was extracted
            doc_ids = []
        sql = f"""
            SELECT DISTINCT substr(d.key, {len(DOCUMENT) + 1})
            FROM json_each(?) CROSS JOIN nodes AS p ON p.key >= value AND p.key < value || ?
            CROSS JOIN edges AS e ON e.from_key = p.node_key AND e.type = 'party_to' AND e.support = '{TEXT}'
            CROSS JOIN nodes AS d ON d.node_key = e.to_key
            CROSS JOIN present ON present.id = substr(d.key, {len(DOCUMENT) + 1})
        """  # noqa: S608
        starts = [f"{NAME}{start}{' '.join(words)}" for start in NAME_STARTS]
        doc_ids += [doc_id for (doc_id,) in self._select(sql, _json(starts), LAST)]
        rows = self._party_rows(list(dict.fromkeys(doc_ids)))
        return list(dict.fromkeys(doc_id for doc_id, *party in rows if is_known_as(words, *party)))[:most]

    @_in_one_state
    def _party_rows(self, doc_ids: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return the parties of decisions: the decision's id, the party's key and name."""
        sql = f"""
            SELECT substr(d.key, {len(DOCUMENT) + 1}), p.key, p.name
            FROM json_each(?) CROSS JOIN nodes AS d ON d.key = '{DOCUMENT}' || value
            CROSS JOIN edges AS e ON e.to_key = d.node_key AND e.type = 'party_to' AND e.support = '{TEXT}'
            CROSS JOIN nodes AS p ON p.node_key = e.from_key
        """  # noqa: S608
        return self._select(sql, _json(doc_ids))

    @_in_one_state
    def most_cited(self, node_type: str = "article", most: int = 20) -> list[Node]:
        """Return the nodes of a type that most documents cite, most cited first; ValueError for an unknown type."""
        if node_type not in NODE_TYPES:
            raise ValueError(f"no node type {node_type!r} (expected one of {', '.join(NODE_TYPES)})")
        sql = "SELECT node_key FROM nodes WHERE type = ? AND cited > 0 ORDER BY cited DESC, key LIMIT ?"
        by_day = (
            "SELECT node_key FROM nodes WHERE type = ? AND cited > 0 AND key GLOB '*loi [0-9]*-[0-9][0-9]-[0-9][0-9]'"
        )
        numbers = [*self._select(sql, node_type, most), *self._select(by_day, node_type)]  # a law has two, to be summed
        nodes = {node.key: node for node in self._nodes(number for (number,) in numbers).values()}
        return sorted(nodes.values(), key=lambda node: (-node.cited, node.key))[:most]

    @_in_one_state
    def path(self, first: Node | str, second: Node | str, most_hops: int = MOST_HOPS) -> list[Edge]:
        """Return a shortest chain of facts between two nodes, in order; empty if there is none that short.

        Nodes of more than `HUB_DEGREE` edges may join two others, but are not searched through; of several chains of
        one length, the one that meets in the node with the fewest edges. Raises as `find` does.
        """
        ends = [self._resolve_node(node).key for node in (first, second)]
        # For each end: how each key was reached, as (key before, row of the edge).
        reached: list[dict[str, Step | None]] = [{end: None} for end in ends]
        frontiers = [[end] for end in ends]
        degrees: dict[str, int] = {}
        for _ in range(most_hops):
            open_sides = [side for side in (0, 1) if frontiers[side]]
            if reached[0].keys() & reached[1].keys() or not open_sides:
                break
            side = min(open_sides, key=lambda side: len(frontiers[side]))
            frontiers[side] = self._expand_path(frontiers[side], reached[side], degrees)
        meeting = min(reached[0].keys() & reached[1].keys(), key=lambda key: (degrees.get(key, 0), key), default=None)
        if meeting is None:
            return []
        before, after = (list(_steps_back(steps, meeting)) for steps in reached)
        return self._edges([*reversed(before), *after])

    @_in_one_state
    def episodes(self) -> list[Episode]:
        """Return the notes that models took on their answers, latest first."""
        sql = """
            SELECT decision, context, status, lessons, nodes, answer_id, recorded
            FROM episodes JOIN sources USING (source_key) ORDER BY recorded DESC, episode_key
        """
        rows = self._select(sql)
        nodes = self._nodes({key for row in rows for key in json.loads(row[4])})
        return [
            Episode(
                decision, context, status, tuple(json.loads(lessons)), tuple(nodes[n] for n in json.loads(named)), *rest
            )
            for decision, context, status, lessons, named, *rest in rows
        ]

    def record(self, answer_id: str, read: Sequence[str]) -> "AnswerRecorder":
        """Open the graph to record one answer, whose names are searched in the documents read; see `AnswerRecorder`."""
        from legal_rag.graph.answers import AnswerRecorder

        return AnswerRecorder(self.library, answer_id, read)

    @contextmanager
    def unchanging(self) -> Iterator[None]:
        """Give this thread one consistent state of the graph within the block; writers wait until it ends."""
        connection = self._connections.get()
        is_outermost = not connection.in_transaction
        if is_outermost:
            connection.execute("BEGIN")
        try:
            yield
        finally:
            if is_outermost and connection.in_transaction:
                connection.execute("ROLLBACK")

    def iter_nodes(self, supports: Collection[str] = (TEXT,)) -> Iterator[Node]:
        """Stream the nodes that have an edge or an episode, each once, by batches.

        Of `supports`, 'stated' adds names of answers found in the documents read, 'none' all of their names.
        """
        edge = f"e.support IN (SELECT value FROM json_each(:supports)) AND {self._is_present('e')}"  # noqa: S608
        mention = self._is_present("m") if UNSUPPORTED in supports else f"m.text_key AND {self._is_present('m')}"
        mentioned = f"""
            OR EXISTS (SELECT 1 FROM mentions AS m WHERE m.node_key = n.node_key AND {mention})
            OR node_key IN (SELECT about.value FROM episodes JOIN json_each(episodes.nodes) AS about)
        """  # noqa: S608
        sql = f"""
            SELECT node_key FROM nodes AS n WHERE EXISTS (SELECT 1 FROM edges AS e WHERE from_key = node_key AND {edge})
            OR EXISTS (SELECT 1 FROM edges AS e WHERE to_key = node_key AND {edge})
            {mentioned if {STATED, UNSUPPORTED}.intersection(supports) else ""} ORDER BY node_key
        """  # noqa: S608
        merged: set[str] = set()
        for rows in self._stream_rows(sql, supports):
            for node in self._nodes(number for (number,) in rows).values():
                if node.key not in merged:
                    yield node
                if node.doc_id or law_in(node.key):  # one document, or one law, may have several nodes
                    merged.add(node.key)

    def iter_edges(self, supports: Collection[str] = (TEXT,)) -> Iterator[Edge]:
        """Stream the edges, one per source (two answers that state the same give two), with one batch in memory."""
        sql = _SELECT_EDGES.format("e.support IN (SELECT value FROM json_each(:supports))")
        for rows in self._stream_rows(sql, supports):
            yield from self._edges(rows)

    def _stream_rows(self, sql: str, supports: Collection[str] = ()) -> Iterator[list[tuple[Any, ...]]]:
        cursor = self._connections.get().execute(sql, {"supports": _json(sorted(supports))})
        while rows := cursor.fetchmany(BATCH):
            yield rows

    def _is_present(self, table: str) -> str:
        """Build the SQL condition that an edge's or a mention's text, if it has one, is in the corpus."""
        return f"""({table}.text_key IS NULL OR EXISTS (
            SELECT 1 FROM texts AS t JOIN present AS d ON d.id = t.doc_id AND d.content_hash = t.content_hash
            WHERE t.text_key = {table}.text_key
        ))"""  # noqa: S608

    def _select(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connections.get().execute(sql, values).fetchall()

    def _resolve_node(self, node: Node | str) -> Node:
        return self.find(node) if isinstance(node, str) else node

    def _candidate_keys(self, name: str) -> list[str]:
        named = [node.key for node_type in NODE_TYPES if (node := node_of(node_type, name))]
        articles = [
            one for one in ParsedQuery(name).identifiers if is_statute(one.code)
        ]  # "article 3 de la loi Badinter"
        keys = [DOCUMENT + name, name, *named, *(key_of_term(canonical_key(one)) for one in articles)]
        days = _inverted(laws := self._laws(keys))
        return list(
            dict.fromkeys(one for key in keys for one in (key, *([laws[key]] if key in laws else days.get(key, ()))))
        )

    def _nodes_by_key(self, keys: Sequence[str]) -> list[Node]:
        """Return the node of the first key that exists, or the articles of a number given without a code."""
        sql = "SELECT key, node_key FROM nodes WHERE key IN (SELECT value FROM json_each(?))"
        numbers, owners = dict(self._select(sql, _json(keys))), self._owners_of_keys(keys, with_rolls=True)
        for key in keys:
            if key in numbers:
                return [self._nodes([numbers[key]])[numbers[key]]]
            # A document may have no edge.
            documents = [key.removeprefix(DOCUMENT)] if key.startswith(DOCUMENT) else owners.get(key, [])
            if nodes := list(self._document_nodes(documents).values()):
                versions = len(nodes) > 1 and key.startswith("article:")  # of one article, which nothing cites
                return [Node(key, "article", nodes[0].name)] if versions else nodes
            if key.startswith("article:") and key.endswith(" ?"):
                sql = "SELECT node_key FROM nodes WHERE key > ? AND key < ? ORDER BY cited DESC, key LIMIT ?"
                first = key.removesuffix("?")
                if several := [number for (number,) in self._select(sql, first, first + LAST, NEAR_NAMES)]:
                    return list(self._nodes(several).values())
        return []

    def _nodes_by_name(self, name: str) -> list[Node]:
        sql = "SELECT node_key FROM nodes WHERE name = ? COLLATE NOCASE ORDER BY degree DESC, key LIMIT ?"
        return list(self._nodes(key for (key,) in self._select(sql, " ".join(name.split()), NEAR_NAMES)).values())

    def _of_a_day(self, name: str) -> list[Node]:
        """Return the decisions that texts name by the court and the day, and perhaps the number, that a name has."""
        courts, days = find_courts(name) or find_short_courts(name), find_dates(name)
        if not len(courts) == len(days) == 1:
            return []
        numbers = {ref.value for ref in find_identifiers(name)}
        nodes = self.described(name[slice(*courts[0])], days[0].value.isoformat())
        return [node for node in nodes if not numbers or node.key.rpartition(" ")[2] in numbers]

    def _near_names(self, name: str) -> list[str]:
        names = []
        for sign, order in ((">=", "ASC"), ("<", "DESC")):
            around = f"degree > 0 AND name {sign} ? COLLATE NOCASE ORDER BY name COLLATE NOCASE {order} LIMIT 50"
            names += [near for (near,) in self._select(f"SELECT name FROM nodes WHERE {around}", name)]  # noqa: S608
        return difflib.get_close_matches(name, names, n=NEAR_NAMES, cutoff=0.5)

    def _numbers_of(self, keys: Iterable[str]) -> dict[int, str]:
        """Map the numbers of nodes to these keys: a document has its own node, and those by which others cite it."""
        same = {key: key for key in keys}
        documents = {key: [doc_id] for key, doc_id in self._documents_of(same).items()}
        documents |= self._owners_of_keys([key for key in same if key.startswith("article:")])
        for by_day, numbered in self._laws(same).items():
            same |= {by_day: same.get(numbered, by_day), numbered: same.get(numbered, same.get(by_day, numbered))}
        sql = "SELECT d.document_key, d.id FROM json_each(?) CROSS JOIN present AS d ON d.id = value"
        held_keys = dict(self._select(sql, _json({doc_id for ids in documents.values() for doc_id in ids})))
        owned, described = self._owned(held_keys), self._descriptions(held_keys.values())
        for key, doc_ids in documents.items():
            for doc_id in doc_ids:
                nodes = (DOCUMENT + doc_id, *owned.get(doc_id, ()), *described.get(doc_id, ()))
                same |= dict.fromkeys(nodes, key)
        sql = "SELECT node_key, key FROM nodes WHERE key IN (SELECT value FROM json_each(?))"
        return {number: same[key] for number, key in self._select(sql, _json(same))}

    def _documents_of(self, keys: Collection[str]) -> dict[str, str]:
        """Map keys to the only document that each stands for: by its id, by a key of its own, by court and day."""
        held = self._owners_of_keys([key for key in keys if is_reference(key)])
        of_ids = {key: key.removeprefix(DOCUMENT) for key in keys if key.startswith(DOCUMENT)}
        return of_ids | {key: ids[0] for key, ids in held.items() if len(ids) == 1} | self._described(keys)

    def _descriptions(self, doc_ids: Iterable[str]) -> dict[str, list[str]]:
        """Return, by document, the keys under which others describe it by court and day."""
        sql = "SELECT juridiction, title, decision_date FROM json_each(?) CROSS JOIN present AS d ON d.id = value"
        rows = self._select(sql, _json(doc_ids))
        starts = {described_key(court, day) for *named, day in rows if (court := court_key(*named))}
        sql = "SELECT n.key FROM json_each(?) CROSS JOIN nodes AS n ON n.key > value AND n.key < value || ?"
        described: dict[str, list[str]] = defaultdict(list)
        for key, doc_id in self._described([key for (key,) in self._select(sql, _json(starts), LAST)]).items():
            described[doc_id].append(key)
        return described

    def _described(self, keys: Iterable[str]) -> dict[str, str]:
        """Map keys of decisions described by court and day to the documents that they certainly are.

        That is the only document of that court and day with the number given, or else the only one of that court and
        day, if it is of one case with the decision that describes it.
        """
        parts = {key: match for key in keys if (match := DESCRIBED.fullmatch(key))}
        if not parts:
            return {}
        sql = """
            SELECT d.juridiction, d.title, d.decision_date, d.document_key, d.id
            FROM json_each(?) CROSS JOIN present AS d ON d.decision_date = value
        """
        held: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
        for *named, day, document_key, doc_id in self._select(sql, _json({match["day"] for match in parts.values()})):
            held[court_key(*named), day][document_key] = doc_id
        documents = {}
        for key, match in parts.items():
            same_day = held.get((match["court"], match["day"]), {})
            if match["number"]:
                same_day = self._with_number(same_day, match["number"])
            if len(same_day) == 1:
                (doc_id,) = same_day.values()
                if match["number"] or self._are_of_one_case(match["doc_id"], doc_id):
                    documents[key] = doc_id
        return documents

    def _with_number(self, documents: Mapping[int, str], number: str) -> dict[int, str]:
        sql = """
            SELECT document_key FROM json_each(?) CROSS JOIN corpus.names INDEXED BY names_by_document
            ON document_key = value AND own AND substr(term, instr(term, ':') + 1) = ?
        """
        number = number.replace(".", "")  # a pourvoi's, as written
        return {key: documents[key] for (key,) in self._select(sql, _json(documents), number)}

    def _are_of_one_case(self, first: str, second: str) -> bool:
        """Tell whether two decisions' texts have a person in common whom few others have as a party, or two bodies.

        One body is not enough: an employer may have thirty decisions of one day.
        """
        if first == second or first not in self.library:
            return False
        few = max(FEW_DECISIONS, len(self.library) // FEW_OF)
        texts = {doc_id: without_accents(self.library.document(doc_id).content) for doc_id in (first, second)}
        common = {
            " ".join(words_of_key(key)): 1 if is_organisation(name) else 2
            for doc_id, key, name in self._party_rows([first, second])
            if is_named_in(texts[first if doc_id == second else second], name)
            and len(self.decisions_of_party(name, few + 1)) <= few
        }
        return sum(common.values()) >= 2

    def _owned(self, documents: Mapping[int, str]) -> dict[str, dict[str, int]]:
        """Return, by document, how often each key that it alone has is cited; versions of an article share theirs."""
        sql = """
            SELECT value, n.term FROM json_each(?) CROSS JOIN corpus.names AS n INDEXED BY names_by_document
            ON n.document_key = value AND n.own = 1
        """
        rows = [(number, key_of_term(term)) for number, term in self._select(sql, _json(documents))]
        days = _inverted(self._laws([key for _, key in rows]))
        sql = "SELECT key, cited FROM nodes WHERE key IN (SELECT value FROM json_each(?))"
        cited = dict(self._select(sql, _json([*(key for _, key in rows), *itertools.chain(*days.values())])))
        holders = self._owners_of_keys([key for key in cited if is_reference(key)])
        owned: dict[str, dict[str, int]] = defaultdict(dict)
        for number, own in rows:
            for key in (own, *days.get(own, ())):
                if len(holders.get(key, ())) == 1 or (key in holders and key.startswith("article:")):
                    owned[documents[number]][key] = cited[key]
        return owned

    def _laws(self, keys: Iterable[str]) -> dict[str, str]:
        """Map keys of laws and of their articles by day to those by number, of all that some keys mean.

        A law is known by number and day where texts name it by both; a number with several days has that which most
        texts give, and a day with several laws has none.
        """
        named = {key: law for key in keys if (law := law_in(key))}
        if not named:
            return {}
        sql = """
            WITH asked AS (SELECT value AS law FROM json_each(?)),
                days AS (SELECT by_day FROM laws WHERE numbered IN asked UNION SELECT law FROM asked)
            SELECT numbered, by_day, COUNT(*) FROM laws
            WHERE numbered IN (SELECT numbered FROM laws WHERE by_day IN days) GROUP BY numbered, by_day
        """
        texts: dict[str, dict[str, int]] = defaultdict(dict)
        for numbered, by_day, n in self._select(sql, _json({law for _, law in named.values()})):
            texts[numbered][by_day] = n
        laws: dict[str, list[str]] = defaultdict(list)
        for numbered, counts in texts.items():
            most = [by_day for by_day, n in counts.items() if n == max(counts.values())]
            for by_day in most:
                laws[by_day].append(numbered if len(most) == 1 else "")
        one = {by_day: numbers[0] for by_day, numbers in laws.items() if len(numbers) == 1 and numbers[0]}
        return {
            f"{of}{by_day}": f"{of}{numbered}"
            for of, law in named.values()
            for by_day, numbered in one.items()
            if law in (by_day, numbered)
        }

    def _owners_of_keys(self, keys: Collection[str], *, with_rolls: bool = False) -> dict[str, list[str]]:
        """Return the documents that have each key as their own; of "RG" numbers, which courts share, only if asked."""
        sql = """
            SELECT value, d.id FROM json_each(?) CROSS JOIN corpus.names AS n INDEXED BY names_own
            ON n.term = value AND n.own CROSS JOIN present AS d USING (document_key)
        """
        laws = self._laws(keys)
        terms: dict[str, list[str]] = defaultdict(list)
        for key in keys:
            if with_rolls or not key.startswith("rg:"):
                terms[term_of_key(laws.get(key, key))].append(key)
        holders: dict[str, list[str]] = defaultdict(list)
        for term, doc_id in self._select(sql, _json(terms)):
            for key in terms[term]:
                holders[key].append(doc_id)
        return holders

    def _edge_rows(
        self, numbers: Collection[int], column: str, types: Collection[str], supports: Collection[str], most: int
    ) -> list[tuple[Any, ...]]:
        among = "IN (SELECT value FROM json_each(?))"
        where = f"e.{column} {among} AND e.support {among}" + (f" AND e.type {among}" if types else "")
        named = [_json(sorted(types))] if types else []
        values = (_json(numbers), _json(sorted(supports)), *named, most)
        select = _SELECT_EDGES.format(where)
        return self._select(f"{select} ORDER BY e.{column}, e.type LIMIT ?", *values)

    def _edges(self, rows: Iterable[tuple[Any, ...]]) -> list[Edge]:
        rows = list(rows)
        nodes = self._nodes({key for row in rows for key in row[:2]})
        return [Edge(nodes[row[0]], nodes[row[1]], *row[2:]) for row in rows]

    def _expand_path(
        self, frontier: Sequence[str], reached: dict[str, Step | None], degrees: dict[str, int]
    ) -> list[str]:
        """Add the keys one edge away to those reached, and return those to search on from.

        Hubs are not, nor nodes whose only edge is the one just followed.
        """
        numbers, new = self._numbers_of(frontier), dict[str, Step | None]()
        for near, column in enumerate(("from_key", "to_key")):
            rows = self._edge_rows(numbers, column, (), (TEXT,), MOST_EXPANDED)
            far = self._keys_and_degrees({row[1 - near] for row in rows})
            for row in rows:
                key, degree = far[row[1 - near]]
                degrees[key] = max(degree, degrees.get(key, 0))
                if key not in reached and key not in new:
                    new[key] = numbers[row[near]], row
        reached |= new
        return [key for key in new if degrees[key] <= HUB_DEGREE and (degrees[key] != 1 or key.startswith(DOCUMENT))]

    def _keys_and_degrees(self, numbers: Collection[int]) -> dict[int, tuple[str, int]]:
        """Return the keys of nodes (the document's where a node represents one) and their degrees."""
        sql = "SELECT node_key, key, degree FROM nodes WHERE node_key IN (SELECT value FROM json_each(?))"
        rows = self._select(sql, _json(numbers))
        keys = [key for _, key, _ in rows]
        read_as = self._laws(keys) | {key: DOCUMENT + doc_id for key, doc_id in self._documents_of(keys).items()}
        return {number: (read_as.get(key, key), degree) for number, key, degree in rows}

    def _nodes(self, numbers: Iterable[int]) -> dict[int, Node]:
        """Read nodes by number; a node that is a document of the Library gets the document's key and metadata."""
        sql = "SELECT node_key, key, type, name, cited FROM nodes WHERE node_key IN (SELECT value FROM json_each(?))"
        ordered = list(numbers)
        rows = {row[0]: row[1:] for row in self._select(sql, _json(ordered))}
        keys = [key for key, *_ in rows.values()]
        single, laws = self._documents_of(keys), self._law_nodes(keys)
        documents = self._document_nodes(set(single.values()))
        nodes = {}
        for number in ordered:
            if number in rows:
                key, node_type, name, cited = rows[number]
                known = documents.get(single.get(key, "")) or laws.get(key)
                nodes[number] = known or Node(key, node_type, name, cited=cited)
        return nodes

    def _law_nodes(self, keys: Iterable[str]) -> dict[str, Node]:
        """Return the nodes of laws and of their articles that are known by number and day, by both keys."""
        laws = self._laws(keys)
        sql = "SELECT key, type, name, cited FROM nodes WHERE key IN (SELECT value FROM json_each(?))"
        nodes: dict[str, Node] = {}
        for key, *rest, cited in sorted(
            self._select(sql, _json({*laws, *laws.values()})), key=lambda row: row[0] in laws
        ):
            numbered = laws.get(key, key)
            known = nodes.get(numbered, Node(numbered, *rest))
            nodes[numbered] = known._replace(cited=known.cited + cited)
        return nodes | {by_day: nodes[numbered] for by_day, numbered in laws.items() if numbered in nodes}

    def _document_nodes(self, doc_ids: Collection[str]) -> dict[str, Node]:
        sql = f"""
            SELECT d.document_key, d.id, d.title, d.decision_date, d.juridiction, d.formation, d.solution,
                COALESCE(n.type, 'document')
            FROM json_each(?) JOIN present AS d ON d.id = value
            LEFT JOIN nodes AS n ON n.key = '{DOCUMENT}' || d.id
        """  # noqa: S608
        rows = self._select(sql, _json(doc_ids))
        owned = self._owned(dict(row[:2] for row in rows))
        return {
            doc_id: Node(
                key=DOCUMENT + doc_id,
                type=kind,
                name=title or doc_id,
                doc_id=doc_id,
                decision_date=day,
                court=", ".join(filter(None, (court, chamber))),
                solution=solution,
                cited=sum(owned.get(doc_id, {}).values()),
            )
            for _, doc_id, title, day, court, chamber, solution, kind in rows
        }


def _steps_back(reached: Mapping[str, Step | None], key: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the edges that lead back from a key to an end of a path."""
    while step := reached[key]:
        key, row = step
        yield row


def _merge_edges(edges: Iterable[Edge]) -> list[Edge]:
    """Merge the same edge from several sources; a document's comes before those of answers that repeat it."""
    merged: dict[tuple[str, str, str], Edge] = {}
    for edge in sorted(edges, key=lambda edge: bool(edge.answer_id)):
        known = merged.setdefault((edge.source.key, edge.type, edge.target.key), edge)
        if known is not edge and (known.support == edge.support or known.is_fact):
            merged[edge.source.key, edge.type, edge.target.key] = known._replace(
                answer_id=known.answer_id or edge.answer_id, recorded=known.recorded or edge.recorded
            )
    return list(merged.values())


def _inverted(laws: Mapping[str, str]) -> dict[str, list[str]]:
    days: dict[str, list[str]] = defaultdict(list)
    for by_day, numbered in laws.items():
        days[numbered].append(by_day)
    return days


def _json(values: Iterable[Any]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


Target = str | Path | IO[str]


@displayed
class ExportCounts(NamedTuple):
    """Numbers of exported items."""

    nodes: int = 0
    edges: int = 0
    episodes: int = 0


def export_json(graph: KnowledgeGraph, target: Target, supports: Collection[str] = (TEXT,)) -> ExportCounts:
    """Write a graph, in its state at the start, as JSON; see docs/graph.md for the format. Writers wait for the end.

    The target is a path, replaced once all is written, or an open text file. `supports` selects edges: 'text' for
    facts, 'stated' for claims of models, 'none' for unsupported claims; ValueError for others.
    """
    head = {"format": FORMAT, "version": VERSION, "commit": graph.library.commit, "supports": sorted(supports)}
    return _export(graph, target, supports, lambda items: _json_parts(head, items))


def export_graphml(graph: KnowledgeGraph, target: Target, supports: Collection[str] = (TEXT,)) -> ExportCounts:
    """Write a graph as GraphML, without episodes; characters that XML 1.0 forbids become U+FFFD. See `export_json`."""
    return _export(graph, target, supports, _graphml_parts)


# By the suffix of the file.
EXPORTS: Mapping[str, Callable[[KnowledgeGraph, Target, Collection[str]], ExportCounts]] = {
    "json": export_json,
    "graphml": export_graphml,
}

Items = Mapping[str, Iterator[dict[str, Any]]]  # values of nodes, edges, episodes


def _export(
    graph: KnowledgeGraph, target: Target, supports: Collection[str], parts: Callable[[Items], Iterable[str]]
) -> ExportCounts:
    if unknown := sorted(set(supports) - set(SUPPORTS)):
        raise ValueError(f"no support {unknown[0]!r} (expected some of {', '.join(SUPPORTS)})")
    counts: Counter[str] = Counter()

    def counted(name: str, values: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for value in values:
            counts[name] += 1
            yield value

    with graph.unchanging():
        items = {
            "nodes": counted("nodes", (node._asdict() for node in graph.iter_nodes(supports))),
            "edges": counted("edges", map(_values_of_edge, graph.iter_edges(supports))),
            "episodes": counted("episodes", map(_values_of_episode, graph.episodes())),
        }
        if not isinstance(target, str | Path):
            target.writelines(parts(items))
        else:
            with written_whole(Path(target).expanduser()) as file:
                file.writelines(part.encode() for part in parts(items))
    return ExportCounts(**counts)


def _values_of_edge(edge: Edge) -> dict[str, Any]:
    return {**edge._asdict(), "source": edge.source.key, "target": edge.target.key}


def _values_of_episode(episode: Episode) -> dict[str, Any]:
    return {**episode._asdict(), "nodes": [node.key for node in episode.nodes]}


def _json_parts(head: dict[str, Any], items: Items) -> Iterator[str]:
    yield plain_json(head)[:-1]
    for name, values in items.items():
        yield f',\n"{name}": ['
        for number, value in enumerate(values):
            yield f"{',' * (number > 0)}\n{plain_json(value)}"
        yield "\n]"
    yield "\n}\n"


def _graphml_parts(items: Items) -> Iterator[str]:
    yield f'<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="{GRAPHML}">\n'
    fields: dict[str, list[str]] = {}
    for element, values_type in (("node", Node), ("edge", Edge)):
        types = {name: kind for name, kind in values_type.__annotations__.items() if kind in _GRAPHML_TYPES}
        fields[element] = [*types, "label"]
        for name, kind in {**types, "label": str}.items():
            named = f'attr.name="{name}" attr.type="{_GRAPHML_TYPES[kind]}"'
            yield f'<key id="{element}_{name}" for="{element}" {named}/>\n'
    yield '<graph id="G" edgedefault="directed">\n'
    for node in items["nodes"]:
        node["label"] = NODE_TYPES.get(node["type"], node["type"])
        yield f'<node id="{_xml_id(node["key"])}">{_graphml_data("node", fields["node"], node)}</node>\n'
    for edge in items["edges"]:
        edge["label"] = EDGE_TYPES.get(edge["type"], edge["type"])
        ends = f'source="{_xml_id(edge["source"])}" target="{_xml_id(edge["target"])}"'
        yield f"<edge {ends}>{_graphml_data('edge', fields['edge'], edge)}</edge>\n"
    yield "</graph></graphml>\n"


def _graphml_data(element: str, names: Iterable[str], values: Mapping[str, Any]) -> str:
    texts = {name: escape(_NOT_XML.sub("\ufffd", str(values[name]))) for name in names}
    return "".join(f'<data key="{element}_{name}">{text}</data>' for name, text in texts.items() if text)


def _xml_id(key: str) -> str:
    """Encode a key as an XML name token, injectively."""
    return _NOT_IN_ID.sub(lambda match: f"_{ord(match[0]):x}_", key)
