"""Freeze the figures of the toolkit before a change, and compare them after it: `make freeze`, `make frozen`.

Run: python benchmarks/freeze.py --data FOLDER [--check] [--only PART]... [--libraries FOLDER]

FOLDER holds the decisions, the Code du travail and the questions on them. Four Libraries are built first, by the
commands of the README, unless they lie in --libraries already: `decisions`, `travail`, and of 1,200 and 3,000 articles
drawn from the code `travail-1200` and `travail-3000`. Without --check the figures of all parts are written to
`frozen.json` beside this file. With it they are compared with that file: figures of quality must be equal to the last
digit, else the status is 1; times are shown as ratios, and decide nothing.
"""

import argparse
import gzip
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import agent_overhead
import deep_read
import structure
from citation_scores import judge, outcomes_of, scores_of
from deep_read_questions import QUESTIONS
from false_answers import HALVES, Decisions, make_cases
from synthetic_answers import make_answers

from legal_rag.corpus import read_documents
from legal_rag.library import Library

FROZEN = Path(__file__).with_name("frozen.json")
COMMAND = Path(sys.executable).with_name("legal-rag")
TESTS = Path(__file__).parent.parent / "tests"
CODE = ["--config", str(Path(__file__).with_name("data") / "travail.toml")]
LIBRARIES = {  # options before the command; source; how many of its documents are drawn, None: all are taken
    "decisions": ([], "decisions.jsonl.gz", None),
    "travail": (CODE, "code-du-travail.jsonl.gz", None),
    "travail-1200": (CODE, "code-du-travail.jsonl.gz", 1200),
    "travail-3000": (CODE, "code-du-travail.jsonl.gz", 3000),
}
COLLECTIONS = {"questions-dev": ("decisions", "questions-dev.jsonl", None)} | {
    f"{questions}{library.removeprefix('travail')}": (library, f"{questions}.queries.jsonl", f"{questions}.qrels.txt")
    for library in LIBRARIES
    if library != "decisions"
    for questions in ("travail-dev", "service-public-dev")
}
CASES, ANSWERS, SEED = 12, 300, 0  # of each kind of false and honest answers; of several sentences
SECONDS = "seconds"  # in the name of a figure that is a time

Figures = Iterator[tuple[str, float]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("LEGAL_RAG_DATA"))
    parser.add_argument("--check", action="store_true", help="compare with what was frozen")
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--libraries", type=Path, help="where the Libraries are, or are built")
    arguments = parser.parse_args()
    if arguments.data is None or not Path(arguments.data).is_dir():
        parser.error(f"no data: {arguments.data} (expected --data FOLDER, or LEGAL_RAG_DATA)")
    data = Path(arguments.data)
    with tempfile.TemporaryDirectory() as scratch:
        libraries = build_libraries(data, arguments.libraries or Path(scratch))
        figures = {
            f"{part}: {name}": value
            for part in arguments.only or PARTS
            for name, value in show(part, PARTS[part](data, libraries))
        }
    print(f"{os.cpu_count()} cores, load {', '.join(f'{load:.1f}' for load in os.getloadavg())}")
    if arguments.check:
        return compare(json.loads(FROZEN.read_text()), figures)
    earlier = json.loads(FROZEN.read_text()) if FROZEN.exists() else {}
    FROZEN.write_text(json.dumps({**earlier, **figures}, indent=1, sort_keys=True) + "\n")
    return 0


def build_libraries(data: Path, folder: Path) -> dict[str, Library]:
    """Open the Libraries, built first where they are not there."""
    for name, (settings, source, n_drawn) in LIBRARIES.items():
        if not (folder / name / "manifest.json").is_file():
            place = ["--index-folder", str(folder.absolute()), "--index-name", name, "--encoder", "bundled"]
            if n_drawn is not None:
                ids = [document.id for document in read_documents(data / source)]
                drawn = folder.absolute() / f"{name}.ids.txt"
                drawn.write_text("\n".join(random.Random(SEED).sample(ids, n_drawn)), encoding="utf-8")
                place += ["--ids-file", str(drawn), "--limit", str(n_drawn)]
            command = [COMMAND, *settings, "index", "--source", source, *place]
            subprocess.run(command, cwd=data, check=True)  # noqa: S603
    return {name: Library.open(folder, name) for name in LIBRARIES}


def show(part: str, figures: Figures) -> Figures:
    """Print figures as they come."""
    for name, value in figures:
        print(f"{part}: {name:60} {value:.6g}", flush=True)
        yield name, value


def compare(frozen: dict[str, float], figures: dict[str, float]) -> int:
    """Print what differs, and the times as ratios; return 1 if a figure of quality differs."""
    ratios = {name: value / frozen[name] for name, value in figures.items() if SECONDS in name and frozen.get(name)}
    for name, ratio in ratios.items():
        print(f"{ratio:6.2f} times  {name}")
    quality = [name for name in figures if SECONDS not in name]
    changed = [name for name in quality if frozen.get(name) != figures[name]]
    for name in changed:
        print(f"differs: {name}: {frozen.get(name)} before, {figures[name]} now")
    print(f"{len(quality) - len(changed)} of {len(quality)} figures of quality are as they were")
    return int(bool(changed))


def deep_read_figures(data: Path, libraries: dict[str, Library]) -> Figures:
    """Thirty questions by programs: which answers are exact."""
    rows, seconds = deep_read.read_rows(data), dict[str, list[float]]()
    with deep_read.open_ways(libraries["decisions"], QUESTIONS) as ways:
        for question, measured in deep_read.measure(QUESTIONS, rows, ways):
            for way, one in measured.items():
                yield f"{way}, exact, {question.id}", int(one.exact)
                seconds.setdefault(way, []).append(one.seconds)
    for way, of_way in seconds.items():
        yield f"{way}, {SECONDS} of the slowest", max(of_way)
        yield f"{way}, {SECONDS} in all", sum(of_way)


def misbehaviour_figures(data: Path, libraries: dict[str, Library]) -> Figures:
    """Fifty ways in which a model misbehaves: how many end as they should."""
    test = TESTS / "agent" / "test_misbehaviours.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-k", "ends_well", str(test)]
    ran = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)  # noqa: S603
    passed = re.search(r"(\d+) passed", ran.stdout)
    yield "end as they should", int(passed[1]) if passed else 0


def overhead_figures(data: Path, libraries: dict[str, Library]) -> Figures:
    """What the agent adds to its model's latency."""
    with tempfile.TemporaryDirectory() as folder:
        measured = agent_overhead.measure(agent_overhead.open_index(None, folder), 20, 6, 0.05)
    for name, milliseconds in agent_overhead.columns(measured).items():
        yield f"{name}, median, {SECONDS}", statistics.median(milliseconds) / 1000


def citation_figures(data: Path, libraries: dict[str, Library]) -> Figures:
    """What is vouched for though it is false, what is not confirmed though it is true."""
    from legal_rag.citations import CitationEnricher

    decisions = list(read_documents(data / "decisions.jsonl.gz"))
    texts = {one.id: one.content for one in decisions}
    enrich = CitationEnricher(Decisions({one.id: one for one in decisions})).enrich
    for half in HALVES:
        judged = [judge(case, enrich, texts) for case in make_cases(decisions, half, CASES, SEED)]
        sorts = Counter((one.case.truth, one.failure or "no failure") for one in judged)
        for (truth, failure), n in sorted(sorts.items()):
            yield f"{half}, {truth}, {failure}", n
    answers = make_answers(texts, ANSWERS, SEED)
    scores = scores_of(*outcomes_of(answers, CitationEnricher(texts).enrich))
    yield "answers of several sentences, precision of verified", scores.precision
    yield "answers of several sentences, recall of verified", scores.recall
    yield "answers of several sentences, altered and verified", scores.altered_verified


def retrieval_figures(data: Path, libraries: dict[str, Library]) -> Figures:
    """Seven collections, every mode."""
    from retrieval import judged_in

    from legal_rag.evaluation import batch_query, evaluate_run, read_qrels, read_queries
    from legal_rag.retriever import MODES, build_retriever

    retrievers = {name: build_retriever(library) for name, library in libraries.items()}
    for name, (library, queries_file, qrels_file) in COLLECTIONS.items():
        queries, qrels = read_queries(data / queries_file)
        queries, qrels = judged_in(libraries[library], queries, read_qrels(data / qrels_file) if qrels_file else qrels)
        for mode in MODES:
            run = batch_query(retrievers[library], queries, 100, mode=mode)
            for one in evaluate_run(qrels, run).figures:
                yield f"{name}, {mode}, {one.measure}", round(one.mean, 6)


def structure_figures(data: Path, libraries: dict[str, Library]) -> Figures:
    """Main parts and speakers, by what people annotated."""
    with gzip.open(data / "decisions.jsonl.gz", "rt", encoding="utf-8") as lines:
        contents = {row["id"]: row["content"] for row in map(json.loads, lines)}
    for name in ("dev", "test", "test-2"):
        spoken, borders = structure.compare(contents, name)
        right = sum(n for (expected, found), n in spoken.items() if expected.rstrip("!") == found.rstrip("!"))
        yield f"{name}, speakers right of {spoken.total()}", right
        yield f"{name}, borders exact of {borders.total()}", sum(n for (_, exact), n in borders.items() if exact)


PARTS: dict[str, Callable[[Path, dict[str, Library]], Figures]] = {
    "structure": structure_figures,
    "retrieval": retrieval_figures,
    "deep read": deep_read_figures,
    "misbehaviours": misbehaviour_figures,
    "overhead": overhead_figures,
    "citations": citation_figures,
}


if __name__ == "__main__":
    sys.exit(main())
