"""Bound and validate tool arguments, and resolve the document ids that models mean."""

import inspect
import logging
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from datetime import date
from functools import wraps
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from legal_rag.base.deadline import check
from legal_rag.base.text import fold_text, storable
from legal_rag.citations.lookup import Decisions, Shelf
from legal_rag.corpus.chunking import chunk_id, parse_chunk_id
from legal_rag.corpus.documents import Document, document_of, holds, is_near, nearest_id, rows_by_id
from legal_rag.graph.graph import KnowledgeGraph, Node, NodeLookupError
from legal_rag.graph.types import EDGE_TYPES
from legal_rag.law import find_decisions_of, find_typed_identifiers
from legal_rag.law.keys import ParsedQuery
from legal_rag.law.tree import PART_TITLES, TreeNode, walk
from legal_rag.library.filters import LONGEST_CONDITION, Filters, UnsupportedFilterError
from legal_rag.library.library import Library, today
from legal_rag.library.store import StoredChunk
from legal_rag.retriever.search_box import articles_amiss, dated, named_documents

logger = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., Any])


class Bound(NamedTuple):
    """Limits of an argument."""

    text: int  # characters of each text
    items: int = 1000  # of its lists and dictionaries, in all
    listed: int | None = None  # characters of all texts in these; None is `text`
    are_ids: bool = False  # of rows, and of a dictionary by id, only the ids count


NAME = Bound(LONGEST_CONDITION, listed=20_000)  # a number, a court, a class…; or several
ID, IDS = NAME._replace(are_ids=True), Bound(20_000, 200_000, 8_000_000, are_ids=True)
QUESTION = Bound(20_000)  # or another text to search by
PATTERN = Bound(2000)  # a regular expression
TEXT, TEXTS = Bound(1_000_000), Bound(1_000_000, 2000, listed=16_000_000)  # that a model reads
# By the parameter's name; all others are names.
BOUNDS = {
    "id": ID, "doc_id": ID, "chunk_id": ID, "doc_id_or_chunk_id": ID, "doc_ids": IDS,
    "documents": IDS, "part": IDS, "whole": IDS, "value": IDS,
    "query": QUESTION, "question": QUESTION, "prompt_description": QUESTION, "entites": QUESTION,
    "pattern": PATTERN, "prompt": TEXT, "prompts": TEXTS,
}  # fmt: skip
DEEPEST = 4  # lists within lists of an argument
LARGEST_BITS = 256  # of a whole number
LARGEST = 2**53  # beyond it a program's numbers are not exact
FILTERS = (
    "juridiction", "formation", "solution", "date_from", "date_to", "number", "article", "speaker", "section",
    "entites", "at",
)  # fmt: skip

SHOWN_CHARS = 100  # of an invalid value in a message; a model may send a page
MAX_GUESSED = 500  # ids in one call that are no document's own, each of which is resolved by itself
MAX_WORDS = 40  # searched for an id
SHORTEST_WORD = 6  # characters of an id that is recognised in a sentence
MAX_NAMED = 100  # documents that share a number; above, it identifies none
FORMS = "formes attendues : « JURITEXT000007022836-0 », « n° 10/06731 », « CA Nîmes, 6 juin 2019 »"
MAX_SHOWN = 5  # of the documents that share a number
NOTHING = frozenset({"", "none", "null", "aucun", "aucune", "n/a"})  # how models write "no value"
ID_KEYS = ("doc_id", "id")  # in rows that the functions of deep reading return
LIST_SIGNS = (";", "\n", ",")
AROUND = " \t\r\n\u00a0\u202f«»“”„\"'’`*<>()[]{},;:."  # stripped from ids
_DAYS = "« 1993 », « 1993-05-12 », « 12 mai 1993 »"
INDEX_FAILED = "l'index est endommagé, ou a changé depuis son ouverture ; la question et les filtres n'y sont pour rien"
EXAMPLES = {
    "date_from": _DAYS,
    "date_to": _DAYS,
    "at": "« 2012-03-01 », « 1er mars 2012 »",
    "article": "« L. 1152-1 du code du travail »",
    "entites": "« partie=Société Lever »",
}


def bounded(refuse: Callable[[str], str] | None = None, **bounds: Bound) -> Callable[[Function], Function]:
    """Check a function's arguments by `BOUNDS`, or others, before anything reads, logs or caches them: `within_bound`.

    `refuse` makes the return value of the problem, instead of raising ValueError.
    """

    def decorated(function: Function) -> Function:
        names = tuple(inspect.signature(function).parameters)

        def read(name: str, value: object) -> object:
            return value if name == "self" else within_bound(name, value, bounds.get(name) or BOUNDS.get(name, NAME))

        @wraps(function)
        def checked(*arguments: Any, **named: Any) -> Any:
            rest = arguments[len(names) :]  # too many of them, as Python will say
            try:
                arguments = tuple(read(*pair) for pair in zip(names, arguments, strict=False))
                named = {name: read(name[:SHOWN_CHARS], value) for name, value in named.items()}
            except ValueError as error:
                if refuse is None:
                    raise
                return refuse(str(error))
            return function(*arguments, *rest, **named)

        return checked  # type: ignore[return-value]

    return decorated


def refused(problem: str) -> str:
    """Format a refusal to call a tool, for a model."""
    return f"Appel refusé : {problem}."


def within_bound(name: str, value: object, bound: Bound) -> object:
    """Check a value against a bound and return it, as a list if it is another kind of iterable.

    Raises:
        ValueError: If it is not; the French message quotes nothing of it.
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping | list | tuple):
        value = list(islice(value, bound.items + 1))
    chars = items = 0
    rest: list[tuple[object, int]] = [(value, 0)]
    while rest:
        item, depth = rest.pop()
        item = _unwrapped(item) if bound.are_ids else item
        if isinstance(item, str):
            chars += len(item)
            _require_few(name, len(item), bound.text, "caractères")
            _require_few(name, chars, (depth and bound.listed) or bound.text, "caractères")
        elif isinstance(item, Mapping | list | tuple):
            items += len(item)
            _require_few(name, items, bound.items, "éléments")
            _require_few(name, depth + 1, DEEPEST, "listes l'une dans l'autre")
            inside = item if bound.are_ids or not isinstance(item, Mapping) else (*item, *item.values())
            rest += [(part, depth + 1) for part in inside]
        elif isinstance(item, int):
            _require_few(name, item.bit_length(), LARGEST_BITS, "bits")
        elif not isinstance(item, float | date | None):
            raise ValueError(f"{name} n'est pas compris : {type(item).__name__[:SHOWN_CHARS]} au lieu d'un texte")
    return value


def _require_few(name: str, number: int, most: int, what: str) -> None:
    if number > most:
        raise ValueError(f"{name} est trop long : plus de {most} {what}")


def find_document(identifier: str, dataset: Any) -> Document:
    """Return the document of a dataset (see `document_of`) that a chunk id, or else a document id, names exactly.

    LookupError if there is none; its French message gives the nearest id.
    """
    dataset = rows_by_id(dataset)
    return document_of(dataset, _named_chunk(identifier, dataset)[0])


def find_chunk(identifier: str, corpus: Library) -> StoredChunk:
    """Return the chunk that an id names, a document's first; LookupError in French."""
    doc_id, index = _named_chunk(identifier, corpus)
    index = min(index, 2**31)  # within SQLite's integers; no decision has as many chunks
    for chunk in corpus.chunks_of(doc_id, index, index):
        return chunk
    last = chunk_id(doc_id, len(corpus.chunks_of(doc_id)) - 1)
    raise LookupError(f"Pas de passage « {identifier.strip()} » : cette décision va de « {doc_id}-0 » à « {last} ».")


def resolve_id(sent: object, corpus: Library, at: date | None = None) -> str:
    """Resolve a model's argument to a document id or chunk id; return it as it is if none is certain.

    Accepts ids in another case or in quotes, a citation marker or a sentence with one id, a decision's number, and a
    court with the day of its only decision: "CA Nîmes, 6 juin 2019". The number of an article means its version in
    force on the day `at`, by default the one that is stated with it, else today.

    Raises:
        LookupError: If several documents share the number, or court and day, or no version of the article is in force;
            the French message gives their ids.
    """
    text = text_of(sent)
    if not text or _exact(text, corpus):
        return text
    short = text[:LONGEST_CONDITION]
    bare = short.strip(AROUND)
    exact = (candidate for candidate in (bare, bare.upper()) if _exact(candidate, corpus))
    return (
        next(exact, None)
        or _find_in_words(short, corpus)
        or _find_by_number(short, corpus, at)
        or _find_by_court_and_day(short, corpus)
        or text.strip(AROUND)
        or text
    )


def find_section(named: str, tree: TreeNode) -> TreeNode:
    """Return the section of an outline that a text names by id or by title; the whole document if it is empty.

    Raises:
        LookupError: If there is none, or several; the French message gives ids and titles.
    """
    if not named:
        return tree
    sent = named[:LONGEST_CONDITION]
    node_id, title = sent.strip(AROUND).partition(" ")[0].zfill(4), fold_text(" ".join(sent.split())).strip(AROUND)
    nodes = (
        [node for node in walk(tree) if node.node_id == node_id]
        or [node for node in walk(tree) if fold_text(node.title).strip(AROUND) == title]
        or [node for node in walk(tree) if fold_text(PART_TITLES.get(node.kind, "")) == title]
        or [node for node in walk(tree) if len(title) > 2 and title in fold_text(node.title)]
    )
    if len(nodes) == 1:
        return nodes[0]
    known = nodes or list(walk(tree))[1:]
    listed = ", ".join(f"{node.node_id} « {printed(node.title[:SHOWN_CHARS])} »" for node in known[:MAX_SHOWN])
    more = ", etc" if len(known) > MAX_SHOWN else ""
    problem = "Plusieurs sections répondent" if nodes else "Aucune section ne répond"
    hint = f" {'Ce sont' if nodes else 'Il y a'} : {listed}{more}." if known else " Ce texte n'a pas de sections."
    raise LookupError(f"{problem} à « {printed(sent[:SHOWN_CHARS])} ».{hint}")


def find_node(sent: object, graph: KnowledgeGraph) -> Node:
    """Return the node of the graph that a name, or an id in any form of `resolve_id`, means.

    Raises:
        LookupError: If there is none, or several; the French message gives near names.
    """
    named = text_of(sent)[:LONGEST_CONDITION].strip(AROUND)
    if not named:
        raise LookupError("Le nom est vide : donnez une décision, un article, une juridiction ou une partie")
    try:
        return graph.find(named)
    except NodeLookupError as error:
        try:
            return graph.find(find_document(resolve_id(sent, graph.library), graph.library).id)
        except LookupError:
            problem = "Plusieurs noms répondent" if error.is_ambiguous else "Aucun nom du graphe ne répond"
            listed = " ; ".join(printed(name[:SHOWN_CHARS]) for name in error.names)
            near = f" ({'précisez' if error.is_ambiguous else 'noms proches'} : {listed})" if listed else ""
            raise LookupError(f"{problem} à « {printed(named[:SHOWN_CHARS])} »{near}.") from error


def edge_type_of(sent: object) -> str:
    """Return the type of edges that a text names, '' for none; ValueError in French, with those there are."""
    named = text_of(sent)[:LONGEST_CONDITION].strip(AROUND).casefold()
    if named and named not in EDGE_TYPES:
        listed = ", ".join(EDGE_TYPES)
        raise ValueError(f"« {printed(named[:SHOWN_CHARS])} » n'est pas un genre de lien (il y a : {listed})")
    return named


def document_id(sent: object, corpus: Library) -> str:
    """Resolve a program's argument to a document id: any form of `resolve_id`, or a row that a function returned.

    Raises:
        LookupError: If there is none; the French message gives the nearest id.
    """
    sent = _unwrapped(sent)
    if isinstance(sent, str) and holds(corpus, sent):  # a program passes document ids: "2001-25" is one
        return sent
    return _named_chunk(resolve_id(sent, corpus), corpus)[0]


def document_ids(sent: object, library: Library, *, keep_unknown: bool = False) -> list[str]:
    """Resolve documents to ids, each once; exact ids are looked up together.

    They are a list, a dictionary by id, several ids in one text, or one. `keep_unknown` keeps those of no document.

    Raises:
        LookupError: If one resolves to no document and is not kept.
        ValueError: If more than `MAX_GUESSED` are no document's own id.
    """
    if isinstance(sent, str) and holds(library, sent):  # an id may hold commas
        return [sent]
    names = [_unwrapped(item) for item in items_of(sent)]
    exact = library.contents().known([name for name in names if isinstance(name, str) and storable(name) == name])
    meant: dict[str, str] = {}  # ids by the names that mean them
    for name in names:
        check()
        text = name if isinstance(name, str) else text_of(name)
        if text in exact or text in meant:
            continue
        if len(meant) == MAX_GUESSED:
            raise ValueError(f"plus de {MAX_GUESSED} noms qui ne sont pas des identifiants : nommez-en moins à la fois")
        resolved = resolve_id(text, library)
        known = _exact(resolved, library)
        if known is None and not keep_unknown:
            known = _named_chunk(resolved, library)
        meant[text] = known[0] if known else text
    texts = (name if isinstance(name, str) else text_of(name) for name in names)
    return list(dict.fromkeys(meant.get(text, text) for text in texts))


def items_of(sent: object) -> list[Any]:
    """Return the items of a list, the keys of a dictionary, or the parts of a text; anything else is one item."""
    if isinstance(sent, str):
        sign = next((sign for sign in LIST_SIGNS if sign in sent), None)
        return parts_of(sent, sign) if sign else [sent]
    if isinstance(sent, Mapping):
        return [sent] if any(key in sent for key in ID_KEYS) else list(sent)
    if _is_result_row(sent) or not isinstance(sent, Iterable):
        return [sent]
    return list(sent)


def whole_number(name: str, value: object, default: int, least: int = 0, most: int = LARGEST) -> int:
    """Read a number, clipped to `most`; no value gives the default; ValueError if not a number, or below `least`."""
    if value is None or (isinstance(value, str) and value.strip().casefold() in NOTHING):
        return default
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, str | float):
        with suppress(ValueError, OverflowError):  # of a float that is no number, or infinite
            number = int(float(value))
    if number is None or number < least:
        raise ValueError(f"{name} doit être un nombre entier de {least} à {most}, reçu : « {as_sent(value, 20)} »")
    return min(number, most)


def question_of(query: object) -> str:
    """Parse a question; ValueError if it is empty, or not text."""
    text = text_of(query, " ")
    if not text or not isinstance(query, str | list | tuple):
        raise ValueError("la question est vide")
    return text


def asked_filters(given: object) -> dict[str, str]:
    """Return the filters in an object that are not empty, as texts."""
    given = given if isinstance(given, Mapping) else {}
    return {name: text for name in FILTERS if (text := text_of(given.get(name)))}


def filters_of(asked: Mapping[str, str], given: Filters | None = None) -> Filters:
    """Build filters from texts, below those `given`, which win; the ValueError names the invalid one in French."""
    conditions: dict[str, Any] = {**asked}
    if "entites" in conditions:
        conditions["entity"] = parts_of(conditions.pop("entites"), ";")
    if given is not None:
        conditions |= {each.name: value for each in fields(given) if (value := getattr(given, each.name)) is not None}
    try:
        return Filters(**conditions)
    except ValueError as error:
        said, _, _ = str(error).partition("'")  # "date_from is no day: ", "not an article: "
        name = next((name for name in asked if name in said), "entites")
        expected = f" (attendu par exemple : {EXAMPLES[name]})" if name in EXAMPLES else ""
        value = printed(asked.get(name, "")[:SHOWN_CHARS])
        raise ValueError(f"{name} n'est pas compris : « {value} »{expected}") from error


@contextmanager
def search_errors(refusal: str) -> Iterator[None]:
    """Turn the errors of a search into a ValueError in French, for a model; failures of the index are logged.

    Its message is `refusal` if the corpus is not indexed for the filters, `INDEX_FAILED` if the index cannot be read.
    """
    try:
        yield
    except UnsupportedFilterError as error:
        raise ValueError(refusal) from error
    except (ValueError, LookupError, OSError, sqlite3.Error) as error:
        logger.warning("the index could not be searched: %s", error, exc_info=True)
        raise ValueError(INDEX_FAILED) from error


def text_of(value: object, sign: str = " ; ") -> str:
    """Parse a text: a list's items are joined by `sign`, and ways to write "no value" are empty."""
    if isinstance(value, list | tuple):
        return sign.join(filter(None, (text_of(item, sign) for item in value[:50])))
    # Tokenizers and stores refuse half surrogate pairs.
    text = str(value).encode(errors="ignore").decode().strip() if value else ""
    return "" if text.casefold() in NOTHING else text


def parts_of(text: str, sign: str) -> list[str]:
    """Split a list written as text."""
    return [part for piece in text.split(sign) if (part := piece.strip())]


def printed(text: str) -> str:
    """Return a text without unprintable characters."""
    return "".join(letter for letter in text if letter.isprintable())


def as_sent(value: object, chars: int = SHOWN_CHARS) -> str:
    """Return the beginning of a value for a message: a text's or a number's; of anything else its type."""
    if isinstance(value, str):
        return printed(value[:chars])
    is_short = value is None or isinstance(value, float) or (isinstance(value, int) and value.bit_length() < 64)
    return str(value) if is_short else type(value).__name__


def _exact(identifier: str, source: Any) -> tuple[str, int] | None:
    """Look an id up, first as a chunk's, then as a document's; return the document's id and the chunk's number."""
    identifier = identifier.strip()
    with suppress(ValueError):
        doc_id, index = parse_chunk_id(identifier)
        if holds(source, doc_id):
            return doc_id, index
    return (identifier, 0) if holds(source, identifier) else None


def _named_chunk(identifier: str, source: Any) -> tuple[str, int]:
    if named := _exact(identifier, source):
        return named
    identifier = identifier.strip()
    try:
        doc_id, _ = parse_chunk_id(identifier)
        expected = ""
    except ValueError:
        doc_id = identifier
        expected = f" ({FORMS})"
    nearest = nearest_id(source, doc_id[:SHOWN_CHARS])
    kind = "Identifiant le plus proche" if nearest and is_near(doc_id, nearest) else "Exemple d'identifiant"
    hint = f" {kind} : « {chunk_id(nearest, 0)} »." if nearest else ""
    problem = (
        f"Aucune décision pour « {printed(identifier[:SHOWN_CHARS])} »" if identifier else "L'identifiant est vide"
    )
    raise LookupError(f"{problem}{expected}.{hint}")


def _find_in_words(text: str, corpus: Library) -> str | None:
    """Return the only id in a text such as 'la décision JURITEXT000007022836-0'."""
    words = dict.fromkeys(word.strip(AROUND) for word in re.split(r"[\s=]+", text)[:MAX_WORDS])
    by_id = {named[0]: word for word in words if len(word) >= SHORTEST_WORD and (named := _exact(word, corpus))}
    return next(iter(by_id.values())) if len(by_id) == 1 else None


def _find_by_number(text: str, corpus: Library, at: date | None) -> str | None:
    """Return the document whose own decision number or article is in a text."""
    query = ParsedQuery(text)
    day = dated(query, corpus, Filters(at=at))[0].at or today()
    amiss, (doc_ids, _) = articles_amiss(query, corpus, day), named_documents(query, corpus, day)
    if amiss.lacking or (amiss.absent and not doc_ids):
        raise LookupError(amiss.said[0])
    if not doc_ids:
        with suppress(ValueError):  # of a text that is no number
            doc_ids = corpus.in_force(corpus.ids(Filters(number=text)), day)
    return _only_of(doc_ids, text, corpus) if len(doc_ids) <= MAX_NAMED else None


def _find_by_court_and_day(text: str, corpus: Library) -> str | None:
    """Return the only decision of a court on a day, where a text names these and no number."""
    designated = find_decisions_of(text, in_prose=False)
    if len(designated) != 1 or find_typed_identifiers(text):
        return None
    court, first, last, *_ = designated[0]
    if not court or first is None or first != last:
        return None
    held = Decisions(Shelf([corpus])).of_court_on(court, first.isoformat())
    return _only_of([decision.document.id for decision in held], text, corpus)


def _only_of(doc_ids: Sequence[str], text: str, corpus: Library) -> str | None:
    if len(doc_ids) > 1:
        shown = [(doc_id, printed(corpus.document(doc_id).title)[:SHOWN_CHARS]) for doc_id in doc_ids[:MAX_SHOWN]]
        listed = ", ".join(f"« {doc_id} »{f' ({title})' if title else ''}" for doc_id, title in shown)
        more = ", etc." * (len(doc_ids) > MAX_SHOWN)
        raise LookupError(f"Plusieurs documents répondent à « {printed(text[:SHOWN_CHARS])} » : {listed}{more}.")
    return doc_ids[0] if doc_ids else None


def _unwrapped(sent: Any) -> object:
    """Take the id out of a row that a function returned: metadata, a passage, (id, score, summary)."""
    if isinstance(sent, Mapping):
        return next((sent[key] for key in ID_KEYS if key in sent), sent)
    return sent[0] if _is_result_row(sent) else sent


def _is_result_row(sent: Any) -> bool:
    """Tell a row such as (id, score, summary) from a list of ids."""
    is_list = isinstance(sent, list | tuple) and len(sent) > 1 and isinstance(sent[0], str)
    return is_list and isinstance(sent[1], int | float)
