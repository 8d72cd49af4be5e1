"""Saved answers: one JSON file each, in a folder of their own or inside an index."""

import json
import logging
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.agent.prediction import Mode, Prediction, Status, new_answer_id
from legal_rag.base.files import write_whole
from legal_rag.base.html import Rows, displayed
from legal_rag.graph.answers import remove_answer
from legal_rag.library.library import RUNS, Library, locked_answers
from legal_rag.library.manifest import record_checksums

logger = logging.getLogger(__name__)


FORMAT_VERSION = 1
ANSWER_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9]{6}-[0-9a-f]{8}")
EXAMPLE = "20251123-101530-123456-0a1b2c3d"


@displayed
class SavedAnswerSummary(NamedTuple):
    """One line of the list of saved answers."""

    answer_id: str
    time: str  # of saving: ISO 8601, UTC
    question: str
    mode: Mode
    status: Status
    citations: dict[str, int]  # by status
    seconds: float
    model_calls: int  # replies from the cache are not counted
    cost: float | None  # in dollars; None if a price is unknown


class SavedAnswers:
    """The answers saved in one folder, which need not exist; processes may save into it concurrently."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()
        self._library: Path | None = None  # the index that holds it, whose folder may be replaced at any time

    @classmethod
    def of(cls, corpus: Library) -> "SavedAnswers":
        """Return the answers saved inside an index; they survive its rebuilding and compaction."""
        store = cls(corpus.path / RUNS)
        store._library = corpus.path
        return store

    def check_writable(self) -> None:
        """Raise OSError unless the folder can be created and written, before an answer is paid for."""
        with self._locked_folder(), tempfile.TemporaryFile(dir=self.folder):
            pass

    def save(self, prediction: Prediction) -> str:
        """Save an answer atomically and return its id; one saved under the same id is replaced.

        Raises:
            OSError: If it cannot be written.
        """
        value = {
            "format_version": FORMAT_VERSION,
            "saved_at": datetime.now(UTC).isoformat(),
            "prediction": prediction.to_record(),
        }
        # A record may say anything.
        answer_id = prediction.answer_id if ANSWER_ID.fullmatch(prediction.answer_id) else new_answer_id()
        with self._locked_folder():
            write_whole(self.folder / f"{answer_id}.json", json.dumps(value, ensure_ascii=False) + "\n")
            self._record_checksum(answer_id)
        return answer_id

    def load(self, answer_id: str) -> Prediction:
        """Return a saved answer.

        Raises:
            ValueError: If the id is malformed, or the file damaged.
            LookupError: If there is no such answer.
        """
        return _read_answer(self._existing_file(answer_id))[1]

    def remove(self, answer_id: str) -> None:
        """Delete a saved answer, even a damaged one, and what it added to its index's graph, even if never saved.

        Raises:
            ValueError: If the id is malformed.
            LookupError: If there is no such answer.
            OSError: If the graph or the answer cannot be changed; then the answer stays.
        """
        in_graph = _checked_id(answer_id) and self._library is not None and remove_answer(self._library, answer_id)
        with suppress(LookupError) if in_graph else nullcontext():
            self._existing_file(answer_id).unlink()
            self._record_checksum(answer_id)

    def list(self) -> Rows[SavedAnswerSummary]:
        """List all answers, the newest first; damaged files are skipped with a warning."""
        return Rows(summary for file in self._answer_files() if (summary := _summary_or_none(file)))

    def _record_checksum(self, answer_id: str) -> None:
        if self._library is not None:
            record_checksums(self._library, f"{RUNS}/{answer_id}.json")

    @contextmanager
    def _locked_folder(self) -> Iterator[None]:
        # Names are an answer's own and writes atomic: only an index that may be replaced has to be locked.
        lock = locked_answers(self._library) if self._library else nullcontext()
        try:
            with lock:
                self.folder.mkdir(parents=self._library is None, exist_ok=True)
                yield
        except OSError as error:
            reason = error.strerror or error
            raise OSError(f"no answer can be saved in {self.folder}: {reason}") from error

    def _answer_files(self) -> Iterator[Path]:
        files = sorted(self.folder.glob("*.json"), reverse=True)
        return (file for file in files if ANSWER_ID.fullmatch(file.stem))

    def _existing_file(self, answer_id: str) -> Path:
        file = self.folder / f"{_checked_id(answer_id)}.json"
        if not file.is_file():
            raise LookupError(f"no saved answer {answer_id} in {self.folder} ('legal-rag answers' lists them)")
        return file


def _checked_id(answer_id: str) -> str:
    if not ANSWER_ID.fullmatch(answer_id):
        raise ValueError(f"not the id of a saved answer: {answer_id!r} (expected e.g. {EXAMPLE})")
    return answer_id


def _summary_or_none(file: Path) -> SavedAnswerSummary | None:
    try:
        saved_at, saved = _read_answer(file)
    except (ValueError, OSError) as error:
        logger.warning("%s", error)
        return None
    counts, usage = saved.citation_counts, saved.usage
    return SavedAnswerSummary(
        file.stem, saved_at, saved.question, saved.mode, saved.status, counts, saved.seconds, usage.calls, usage.cost
    )


def _read_answer(file: Path) -> tuple[str, Prediction]:
    try:
        value: Any = json.loads(file.read_text(encoding="utf-8"))
        version = value["format_version"]
        if version != FORMAT_VERSION:
            raise ValueError(f"its format is {version!r}, this version reads {FORMAT_VERSION}")
        return str(value["saved_at"]), Prediction.from_record(value["prediction"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # the file may hold anything
        raise ValueError(f"damaged answer: {file} ({type(error).__name__}: {error})") from error
