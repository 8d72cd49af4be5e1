"""trec_eval itself, run by pyserini in an environment of its own, to check our figures against."""

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from legal_rag.evaluation.trec import Qrels, Run, write_qrels, write_run

VARIABLE: Final = "LEGAL_RAG_TREC"  # names a Python that has pyserini
ENVIRONMENT: Final = ".venv-trec"  # else it is this environment's, which `make trec` makes
MEASURES: Final = ("recall.1,5,10,100", "ndcg_cut.10", "recip_rank", "map")  # as trec_eval takes them
OUR_NAMES: Final = {"recall_1": "R@1", "recall_5": "R@5", "recall_10": "R@10", "recall_100": "R@100"} | {
    "ndcg_cut_10": "nDCG@10",
    "recip_rank": "RR",
    "map": "AP",
}


def find_trec_python() -> Path | None:
    """Return the Python that `LEGAL_RAG_TREC` names, or that of `.venv-trec`, here or in the clone of the package."""
    return next((place for place in _places() if place.is_file()), None)


def trec_python() -> Path:
    """Return `find_trec_python`; FileNotFoundError if there is none."""
    if (found := find_trec_python()) is None:
        raise FileNotFoundError(
            f"no Python with pyserini at {_places()[0]} ('make trec' makes {ENVIRONMENT}, {VARIABLE} names another)"
        )
    return found


def _places() -> list[Path]:
    if named := os.environ.get(VARIABLE):
        return [Path(named).expanduser().absolute()]
    return [folder / ENVIRONMENT / "bin" / "python" for folder in (Path.cwd(), Path(__file__).parents[3])]


def trec_eval(qrels: Qrels, run: Run) -> dict[str, float]:
    """Return trec_eval's means over all judged queries, under the names of our measures.

    Raises:
        FileNotFoundError: If no Python with pyserini is found; see `find_trec_python`.
        OSError: If it prints no figures, for want of pyserini or of a Java runtime.
    """
    python = trec_python()
    with TemporaryDirectory() as folder:
        write_qrels(judged := Path(folder, "qrels.txt"), qrels)
        write_run(ranked := Path(folder, "run.txt"), run)
        wanted = [word for measure in MEASURES for word in ("-m", measure)]
        command = [str(python), "-m", "pyserini.eval.trec_eval", "-c", *wanted, str(judged), str(ranked)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a named program
    rows = [line.split() for line in done.stdout.splitlines()]
    found = {OUR_NAMES[row[0]]: float(row[2]) for row in rows if row[1:2] == ["all"] and row[0] in OUR_NAMES}
    if len(found) < len(OUR_NAMES):
        said = (done.stderr or done.stdout).strip().splitlines()
        raise OSError(f"{python} ran no trec_eval: {said[-1] if said else 'it printed nothing'}")
    return found
