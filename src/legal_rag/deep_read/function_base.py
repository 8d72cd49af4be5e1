"""What all functions of a deep read share: the corpus, the models, the log, and how documents are named.

In: a corpus index. Out: documents, by whatever a program hands over in an id's place.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from legal_rag.corpus import Document
from legal_rag.deep_read.grep import SECONDS, CorpusGrep
from legal_rag.deep_read.models import SubModel
from legal_rag.deep_read.plan.run import WORKERS
from legal_rag.extraction.classes import KNOWN_CLASSES
from legal_rag.filters import Filters
from legal_rag.prediction import EventType
from legal_rag.retriever import Retriever, SearchHit
from legal_rag.run_log import RunLog
from legal_rag.tool_arguments import document_id, document_ids

if TYPE_CHECKING:
    from legal_rag.corpus_index import CorpusIndex

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
        log: RunLog | None = None,
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
        self.log = log if log is not None else RunLog()
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
