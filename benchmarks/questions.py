"""Making questions with a scripted model: what each strategy asks for, what a document takes beside the model.

Run: python benchmarks/questions.py --data FOLDER [--documents 500] [--seconds 0.2]

FOLDER holds `decisions.jsonl.gz`. The model is a program of its own on 127.0.0.1 that takes `--seconds` for each reply
and goes wrong in the ways of `tests/support/scripted_author.py`. Printed as JSON, with a model that does better when
asked once more ("forgetful"), and with one that does so only when it is told what was wrong ("stubborn"): pairs kept,
requests, and the overhead of the whole call, (workers x wall time - what the model slept) / documents.
"""

import argparse
import gzip
import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent / "tests"
WORKERS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    figures: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        index(arguments.data, folder, arguments.documents)
        for model in ("forgetful", "stubborn"):
            for strategy in ("refine", "best-of-n"):
                found = run(folder, model, arguments.seconds, arguments.documents, strategy)
                figures.setdefault(model, {})[strategy] = found
    print(json.dumps(figures, indent=1))


def index(data: Path, folder: str, count: int) -> None:
    """Index so many documents by their words."""
    from legal_rag.indexer import IndexConfig, build_index

    build_index(IndexConfig(source=list(documents(data, count)), index_folder=folder, index_name="all", n_bits=0))


def documents(data: Path, count: int) -> Iterator[dict[str, Any]]:
    with gzip.open(data / "decisions.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in itertools.islice(lines, count)]
    for number in range(count):
        row = rows[number % len(rows)]
        yield {**row, "id": f"D{number:06}", "content": f"Rôle n° {number}.\n{row['content']}"}


def run(folder: str, model: str, seconds: float, documents: int, strategy: str) -> dict[str, Any]:
    """Serve the model, make the questions in a process of their own, and return what it took."""
    author = [sys.executable, "-m", "support.scripted_author", str(seconds), model]
    with subprocess.Popen(author, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        command = [sys.executable, __file__, "--data", ".", "--child", folder, address, str(documents), strategy]
        found = json.loads(subprocess.check_output(command, text=True))  # noqa: S603
        served = json.loads(server.communicate()[0])
    overhead = (WORKERS * found["seconds"] - served["slept"]) / documents
    return {**found, "requests": served["requests"], "overhead_ms": 1000 * overhead}


def child(folder: str, address: str, documents: str, strategy: str) -> None:
    from legal_rag.agent import build_language_model
    from legal_rag.evaluation.questions import generate_questions
    from legal_rag.library import Library

    library, lm = Library.open(folder, "all"), build_language_model("scripted", api_base=address, cache=False)
    with tempfile.TemporaryDirectory() as output:
        started = time.perf_counter()
        report = generate_questions(
            library, lm, limit=int(documents), workers=WORKERS, output=Path(output, "set"), strategy=strategy
        )
        seconds = time.perf_counter() - started
    status = Path("/proc/self/status").read_text()  # what getrusage says would hold the parent's peak too
    peak = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024
    print(json.dumps({"accepted": report.accepted, "seconds": seconds, "peak_mb": peak}))


if __name__ == "__main__":
    main()
