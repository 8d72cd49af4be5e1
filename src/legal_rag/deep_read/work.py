"""One deep read under way: what all ways of reading share."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legal_rag.deep_read.models import ChatModel
from legal_rag.deep_read.settings import DeepReadSettings
from legal_rag.model_calls import UsageTracker
from legal_rag.prediction import Event
from legal_rag.run_log import RunLog

if TYPE_CHECKING:
    from legal_rag.corpus_index import CorpusIndex
    from legal_rag.library import Library
    from legal_rag.retriever import Retriever

REPLIES_SUFFIX = ".replies.sqlite"  # next to a trace: replies paid for, until the run ends


class SandboxRefusedError(Exception):
    """The system cannot contain programs; the message says what is missing, and how to do without."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one run works on."""

    question: str
    doc_ids: list[str]  # empty means the whole corpus
    index: "CorpusIndex"
    root: ChatModel
    sub: ChatModel
    tracker: UsageTracker
    settings: DeepReadSettings
    retriever: "Retriever | None"
    log: RunLog
    on_event: Callable[[Event], None]

    @property
    def library(self) -> "Library":
        """Where the documents are."""
        return self.index.library

    def write_down(self, event: Event) -> None:
        """Take an event down, and tell it."""
        self.log.add(event)
        self.tell()

    def tell(self) -> None:
        """Tell the events that were not told yet."""
        for event in self.log.news():
            self.on_event(event)

    def key(self) -> dict[str, Any]:
        """Return what identifies the run: an attempt resumes an earlier one of the same key."""
        return {
            "question": self.question,
            "doc_ids": self.doc_ids,
            "lineage": self.library.manifest["lineage"],
            "commit": self.library.commit,
            "models": [self.root.name, self.sub.name],
            "sampling": [self.root.sampling, self.sub.sampling],
            "instructions": self.settings.instructions,
            "limits": dataclasses.asdict(self.settings.limits),
        }

    def unfinished_file(self, folder: Path) -> Path:
        """Return the file of this run's trace in a folder of unfinished ones."""
        digest = hashlib.sha256(json.dumps(self.key(), sort_keys=True).encode()).hexdigest()
        return folder / f"{digest[:24]}.jsonl"


def replies_file(trace: Path) -> Path:
    """Return the file next to a trace that holds the run's replies; see `legal_rag.reply_cache.RunReplies`."""
    return trace.with_name(trace.name + REPLIES_SUFFIX)
