"""Saved answers: stored, listed, shown again."""

import hashlib
import json
import logging
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.agent.prediction import Mode, Prediction, Status
from legal_rag.files import write_whole
from legal_rag.library.carry_over import writing_runs
from legal_rag.library.library import RUNS
from legal_rag.retriever.retriever import Corpus

logger = logging.getLogger(__name__)


FORMAT_VERSION = 1
RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9]{6}-[0-9a-f]{8}")
EXAMPLE = "20251123-101530-123456-0a1b2c3d"


class SavedAnswerSummary(NamedTuple):
    """A saved run in one line of a list."""

    run_id: str
    time: str  # when it was saved: ISO 8601, UTC
    question: str
    mode: Mode
    status: Status
    citations: dict[str, int]  # how many of each status
    seconds: float
    model_calls: int  # sent; replies from the cache are not counted
    cost: float | None  # in dollars; None where a price was not known


class SavedAnswers:
    """The runs in one folder, which need not exist; any number of processes may save into it at once."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()
        self._library: Path | None = None  # whose folder it lies in, which may be replaced at any time

    @classmethod
    def of(cls, corpus: Corpus) -> "SavedAnswers":
        """Return the runs that lie in an index's own folder; they outlive its rebuilding and its compaction.

        Raises:
            ValueError: If nothing is ever written into that folder, as into an index of the old form.
        """
        if corpus.read_only:
            raise ValueError(f"no runs are saved in {corpus.path}, which is only read: name a folder for them")
        store = cls(corpus.path / RUNS)
        store._library = corpus.path
        return store

    def check_writable(self) -> None:
        """Make sure that a run can be saved, before it costs anything.

        Raises:
            OSError: If the folder cannot be made, or nothing can be written into it.
        """
        try:
            with self._writing(), tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise self._not_saved(error) from error

    def save(self, prediction: Prediction) -> str:
        """Write a run down, whole or not at all, and return its id; later runs have later ids.

        Raises:
            OSError: If it cannot be written.
        """
        now = datetime.now(UTC)
        record = prediction.to_record()
        digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
        run_id = f"{now:%Y%m%d-%H%M%S-%f}-{digest[:8]}"
        value = {"format_version": FORMAT_VERSION, "saved_at": now.isoformat(), "prediction": record}
        try:
            with self._writing():
                write_whole(self.folder / f"{run_id}.json", json.dumps(value, ensure_ascii=False) + "\n")
        except OSError as error:
            raise self._not_saved(error) from error
        return run_id

    def load(self, run_id: str) -> Prediction:
        """Return a saved run.

        Raises:
            ValueError: If that is no run's id, or its file is damaged.
            LookupError: If there is no such run.
        """
        return _read(self._file_of(run_id))[1]

    def remove(self, run_id: str) -> None:
        """Delete a saved run; raises as `load` does, except that a damaged one is deleted too."""
        self._file_of(run_id).unlink()

    def list(self) -> Sequence[SavedAnswerSummary]:
        """Return all runs, the newest first; a damaged file is told in a warning and passed over."""
        return [summary for file in self._files() if (summary := _summary_or_none(file))]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._library is None:  # runs have names of their own, and are put in place whole: nobody is in the way
            self.folder.mkdir(parents=True, exist_ok=True)
            yield
            return
        with writing_runs(self._library):
            self.folder.mkdir(exist_ok=True)
            yield

    def _files(self) -> Iterator[Path]:
        names = (path.name for path in self.folder.iterdir()) if self.folder.is_dir() else ()
        runs = (name for name in names if RUN_ID.fullmatch(name.removesuffix(".json")) and name.endswith(".json"))
        return (self.folder / name for name in sorted(runs, reverse=True))

    def _file_of(self, run_id: str) -> Path:
        if not RUN_ID.fullmatch(run_id):
            raise ValueError(f"not a run's id: {run_id!r} (expected e.g. {EXAMPLE})")
        file = self.folder / f"{run_id}.json"
        if not file.is_file():
            raise LookupError(f"no run {run_id} in {self.folder} ('legal-rag runs' lists them)")
        return file

    def _not_saved(self, error: OSError) -> OSError:
        return OSError(f"no run can be saved in {self.folder}: {error.strerror or error} (another folder can be named)")


def _summary_or_none(file: Path) -> SavedAnswerSummary | None:
    try:
        saved_at, run = _read(file)
    except (ValueError, OSError) as error:
        logger.warning("%s", error)
        return None
    counts, usage = run.citation_counts, run.usage
    question = run.question
    return SavedAnswerSummary(
        file.stem, saved_at, question, run.mode, run.status, counts, run.seconds, usage.calls, usage.cost
    )


def _read(file: Path) -> tuple[str, Prediction]:
    """Return when a run was saved, and the run."""
    try:
        value: Any = json.loads(file.read_text(encoding="utf-8"))
        version = value["format_version"]
        if version != FORMAT_VERSION:
            raise ValueError(f"its format is {version!r}, this version reads {FORMAT_VERSION}")
        run = Prediction.from_record(value["prediction"])
        return str(value["saved_at"]), run
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # whatever may stand in a file
        raise ValueError(f"damaged run: {file} ({type(error).__name__}: {error})") from error
