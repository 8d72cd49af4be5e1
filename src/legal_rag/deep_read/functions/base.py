"""What all corpus functions share: the corpus, argument validation, logging of what was read."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from legal_rag.agent.event_log import EventLog
from legal_rag.agent.prediction import EventType
from legal_rag.agent.tool_arguments import (
    NOTHING,
    SHOWN_CHARS,
    document_id,
    document_ids,
    filters_of,
    items_of,
    shown,
    text_of,
    whole_number,
)
from legal_rag.corpus.cleaning import storable
from legal_rag.corpus.documents import Document
from legal_rag.corpus.folding import fold_text
from legal_rag.deep_read.grep import MOST_CONTEXT, SECONDS, CorpusGrep
from legal_rag.deep_read.map_reduce.run import WORKERS
from legal_rag.deep_read.models import SubModel
from legal_rag.extraction.entities import KNOWN_CLASSES
from legal_rag.library.filters import Filters
from legal_rag.retriever.retriever import Retriever, SearchHit

if TYPE_CHECKING:
    from legal_rag.corpus_index.index import CorpusIndex


MOST_EVENTS = 200  # of one run that are written down: a loop may call a function for each document
MOST_READ = 1000  # documents of one run that are written down as read
MOST_IDS_TOLD = 50  # of a result, in the log
MOST_SEEN = 20  # passages that one search leaves in the log, the best ones
NO_ENTITIES = "recherche impossible : aucune entité n'a été extraite de ce corpus"
NO_SUCH_ENTITIES = (
    f"aucune entité de cette classe n'a été extraite de ce corpus ; les classes usuelles : {', '.join(KNOWN_CLASSES)}"
)
NO_MODEL = "aucun modèle n'est branché : cette fonction en demande un"


class Searcher(Protocol):
    """What searches by meaning: a `Retriever`, or what stands for one."""

    def search(self, query: str, k: int = 5, *, filters: Filters | None = None) -> list[SearchHit]:
        """Rank the chunks that answer a question."""


class FunctionBase:
    """The corpus and the models behind the functions."""

    def __init__(
        self,
        corpus_index: "CorpusIndex",
        sub_llm: SubModel | None = None,
        retriever: Searcher | None = None,
        *,
        log: EventLog | None = None,
        workers: int = WORKERS,
        grep_seconds: float | None = SECONDS,
    ) -> None:
        """Take over what the functions work with.

        Args:
            corpus_index: Of the Library that is read.
            sub_llm: Answers questions about single texts; without one, the functions that ask it raise ValueError.
            retriever: Searches passages by meaning; None searches by words.
            log: Where searches, what they found, and documents read are written down.
            workers: Calls of the model at once.
            grep_seconds: After which a search for a pattern stops; None sets no limit.
        """
        self.sub_llm, self.retriever = sub_llm, retriever
        self.log = log if log is not None else EventLog()
        self._workers, self._grep_seconds = workers, grep_seconds
        self._open(corpus_index)

    def _open(self, corpus_index: "CorpusIndex") -> None:
        self.corpus, self.library = corpus_index, corpus_index.library
        self._grep = CorpusGrep(self.library, self._grep_seconds)
        self._words = Retriever(self.library)  # for BM25 alone: no encoder is loaded

    def reload(self) -> None:
        """Go over to the Library's last commit; a retriever goes along."""
        self._open(self.corpus.reload())
        if self.retriever is not None and hasattr(self.retriever, "reload"):
            self.retriever = self.retriever.reload()

    @property
    def _model(self) -> SubModel:
        if self.sub_llm is None:
            raise ValueError(NO_MODEL)
        return self.sub_llm

    def _id(self, sent: object) -> str:
        return document_id(sent, self.library, self.log.titles)

    def _ids(self, sent: object, *, keep_unknown: bool = False) -> list[str]:
        return document_ids(sent, self.library, self.log.titles, keep_unknown=keep_unknown)

    def _why_not(self, filters: Filters) -> str:
        """Return why filters by entities may find nothing here, in French; empty where they ask for none."""
        if not filters.entity:
            return ""
        return NO_ENTITIES if self.corpus.library.entities is None else NO_SUCH_ENTITIES

    def _document(self, sent: object) -> Document:
        """Return the document that is meant, and write down that it was read."""
        document = self._load(self._id(sent))
        self._note_read(document)
        return document

    def _note_read(self, document: Document) -> None:
        if len(self.log.documents) < MOST_READ:
            self.log.read(document)

    def _load(self, doc_id: str) -> Document:
        return self.library.document(doc_id)

    @contextmanager
    def _event(self, kind: EventType, function: str, **arguments: Any) -> Iterator[list[str]]:
        """Write down one call, the first ones of a run at least, with the ids that the block puts in the list."""
        if len(self.log.events) >= MOST_EVENTS:
            yield []
            return
        shown = {name: value for name, value in arguments.items() if value not in (None, "", [], ())}
        with self.log.record(kind, function, **shown) as ids:
            yield ids

    def _saw(self, hits: Sequence[SearchHit]) -> None:
        for hit in hits[:MOST_SEEN]:
            self.log.saw(hit)


LARGEST = 2**53  # that a program's numbers tell apart
TRUE, FALSE = frozenset({"true", "vrai", "oui", "1", "yes"}), frozenset({"false", "faux", "non", "0", "no"})


def number_of(name: str, sent: object, default: int, least: int = 0, most: int = LARGEST) -> int:
    """Read a number; see `legal_rag.agent.tool_arguments.whole_number`."""
    return whole_number(name, sent, least, most, default)


def at_most(name: str, sent: object) -> int | None:
    """Read how many at most; None, 0, and what models write for them, is all."""
    if sent in (None, 0, -1, "0") or str(sent).strip().casefold() in NOTHING:
        return None
    return whole_number(name, sent, 1, LARGEST, LARGEST)


def yes_or_no(name: str, sent: object) -> bool:
    """Read a choice.

    Raises:
        ValueError: If it is none.
    """
    written = str(sent).strip().casefold()
    if written not in TRUE | FALSE:
        raise ValueError(f"{name} doit être True ou False, reçu : « {shown(written[:20])} »")
    return written in TRUE


def pattern_of(sent: object) -> str:
    """Read a regular expression; of several in a list, any of them.

    Raises:
        ValueError: If it is no text.
    """
    if isinstance(sent, list | tuple) and sent and all(isinstance(one, str) for one in sent):
        return "|".join(f"(?:{one})" for one in sent)
    if not isinstance(sent, str) or not sent:
        raise ValueError("le motif doit être une expression régulière, écrite comme un texte")
    return sent


def prompt_of(sent: object) -> str:
    """Read what a model is to be asked, as it is written.

    Raises:
        ValueError: If it is empty.
    """
    text = storable(sent) if isinstance(sent, str) else text_of(sent, "\n")
    if not text.strip():
        raise ValueError("la demande est vide")
    return text


def context_of(sent: object) -> int:
    """Read how many characters are shown around a match."""
    return number_of("context", sent, 0, 0, MOST_CONTEXT)


def filters_from(asked: Mapping[str, object], doc_ids: Sequence[str] | None) -> Filters:
    """Read filters; see `legal_rag.agent.tool_arguments.filters_of`.

    Args:
        asked: By the names that the functions give them.
        doc_ids: Of the documents among which to look; None is all.

    Raises:
        ValueError: If one of them is not understood; the French sentence names it.
    """
    read = filters_of({name: text for name, value in asked.items() if (text := text_of(value))})
    return read if doc_ids is None else replace(read, doc_ids=tuple(doc_ids))


def texts_of(sent: object) -> list[str]:
    """Read a list of texts: a list, or several in one text, with a sign between them."""
    return [text for one in items_of(sent) if (text := text_of(one))]


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the name that is meant among some, whatever its case and accents; None if none is."""
    if name in known:
        return name
    folded = {fold_text(one).strip(): one for one in reversed(known)}
    return folded.get(fold_text(name).strip())


def near_names(name: str, known: Iterable[str], most: int = 3) -> str:
    """Return the names most like one, in quotation marks, for a sentence."""
    near = difflib.get_close_matches(name, known, most, 0.0)
    return ", ".join(f"« {shown(one[:SHOWN_CHARS])} »" for one in near)
