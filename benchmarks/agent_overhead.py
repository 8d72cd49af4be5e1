"""What the agent adds to its model's latency and to the retrieval, a step and a run.

Run: python benchmarks/agent_overhead.py [--index FOLDER/NAME] [--runs 20] [--steps 6] [--latency 0.05]

The model is scripted, behind a real server in this process that sleeps `--latency` for each reply; it searches, reads
a decision, searches again and so on, finishes, and quotes. Without --index the sample corpus is indexed first
with the bundled encoder. The first two runs, which load what is loaded once, are not counted. Milliseconds, as JSON:

- a step: wall time from one step's beginning to the next one's, less what the model slept and what the tools took;
- the tools: the retrieval and the reading, which a step takes beside that;
- the end: checking the citations, and completing the evidence for its readers.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from legal_rag.library import Library

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

WARM_UP = 2
TOPICS = ["compte de campagne", "licenciement", "bail commercial", "indemnité", "préavis", "expertise", "préjudice"]


class Measured(NamedTuple):
    """Milliseconds of one run."""

    steps: list[float]  # each step's overhead
    tools: list[float]  # each tool call
    asking: float  # the overhead of the call that wrote the answer
    checking: float  # citations
    completing: float  # the evidence, and all that is left
    run: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--latency", type=float, default=0.05)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = open_index(arguments.index, folder)
        measured = measure(library, arguments.runs, arguments.steps, arguments.latency)
    figures = {
        name: {"median": statistics.median(values), "95 %": sorted(values)[int(0.95 * (len(values) - 1))]}
        for name, values in columns(measured).items()
    }
    print(json.dumps({"runs": len(measured), **figures}, indent=1))


def columns(measured: list[Measured]) -> dict[str, list[float]]:
    """Milliseconds of each part, of all runs."""
    return {
        "a step, model and tools apart": [one for run in measured for one in run.steps],
        "the tools of a step": [one for run in measured for one in run.tools],
        "asking for the answer, model apart": [run.asking for run in measured],
        "checking the citations": [run.checking for run in measured],
        "completing the evidence": [run.completing for run in measured],
        "a run, all in all": [run.run for run in measured],
    }


def measure(library: Library, n_runs: int, n_steps: int, latency: float) -> list[Measured]:
    from support.scripted_server import ScriptedServer

    from legal_rag.agent import Budget, build_agent

    with ScriptedServer(busy(n_steps, latency)) as server:
        agent = build_agent(library, api_base=server.api_base, cache=False, budget=Budget(steps=n_steps + 1))
        runs = [one_run(agent, server, number) for number in range(WARM_UP + n_runs)]
    return runs[WARM_UP:]


def open_index(path: Path | None, folder: str):
    """Open an index, or make one of the sample."""
    import legal_rag
    from legal_rag.encoder import bundled_encoder
    from legal_rag.indexer import IndexConfig, build_index
    from legal_rag.library import Library

    if path:
        return Library.open(path.parent, path.name)
    source = Path(legal_rag.__file__).parent / "corpus" / "sample" / "decisions.jsonl"
    build_index(IndexConfig(source=source, index_folder=folder, index_name="sample"), bundled_encoder())
    return Library.open(folder, "sample")


def busy(steps: int, seconds: float):
    """Search and read in turn, `steps` times with the finishing one; quote the first passage."""
    from support.agent_scripts import STEPPED, first_passage, quotation, wants_step
    from support.scripted_server import answer, step

    def script(prompt: str, attempt: int):
        done = prompt.count(STEPPED)
        if not wants_step(prompt):
            reply = answer(quotation(prompt))
        elif done + 1 >= steps:
            reply = step("finish")
        elif done % 2:
            reply = step("lookup_legal_doc", id=first_passage(prompt)[0])
        else:
            reply = step("search_legal_docs", query=f"{TOPICS[done % len(TOPICS)]} {done}", k=5)
        return reply._replace(seconds=seconds)

    return script


def one_run(agent, server, number: int) -> Measured:
    """Take the time of each part of a run, from the events as they come."""
    stream = agent.stream(f"Dans quel délai le compte de campagne doit-il être déposé, question {number} ?")
    steps, tools, asking, checking = [0.0], [], 0.0, 0.0  # the first search is of no step of the model's
    started = before = time.perf_counter()
    slept = server.slept
    for event in stream:
        now, waited = time.perf_counter(), server.slept
        taken = 1000 * (now - before - (waited - slept))
        if event.type == "think":
            steps.append(taken)
        elif event.type in ("search", "read"):
            tools.append(1000 * event.seconds)
            steps[-1] += taken - 1000 * event.seconds
        elif event.type == "cite":
            checking, asking = 1000 * event.seconds, taken - 1000 * event.seconds
        before, slept = now, waited
    assert stream.prediction.status == "answered", stream.prediction.notice
    ended = time.perf_counter()
    return Measured(steps[1:], tools, asking, checking, 1000 * (ended - before), 1000 * (ended - started))


if __name__ == "__main__":
    main()
