"""Thirty questions over thousands of decisions, answered by programs: are the answers exact, and how long do they take.

Run: python benchmarks/deep_read.py --data FOLDER --library FOLDER [--question ID]... [--way WAY]...

The one FOLDER holds `decisions.jsonl.gz`, the other is a Library of them with entities and corpus index. Each question
of `deep_read_questions` is answered in three ways, and each answer is compared with what an oracle computes from the
rows of the file:

- functions: its programs in this process, over `deep_read.functions` alone;
- sandbox: the same programs in the sandbox;
- deep_read: the whole, the root model being played by a server that replays the programs, turn by turn.
"""

import argparse
import gzip
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from deep_read_questions import QUESTIONS, Question
from deep_read_questions.form import Row

if TYPE_CHECKING:
    from legal_rag.encoder import Encoder
    from legal_rag.library import Library

SOURCE = "decisions.jsonl.gz"


class Answer(NamedTuple):
    """What the programs of a question gave, and the seconds that they took."""

    value: Any
    seconds: float


class Measured(NamedTuple):
    """Whether an answer was exact, and the seconds that it took."""

    exact: bool
    seconds: float


Way = Callable[[Question], Answer]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--question", action="append", help="an id; all without it")
    parser.add_argument("--way", action="append", choices=WAYS, help="all without it")
    arguments = parser.parse_args()
    from legal_rag.library import Library

    asked = [one for one in QUESTIONS if not arguments.question or one.id in arguments.question]
    with open_ways(Library(arguments.library), asked, arguments.way) as ways:
        report(measure(asked, read_rows(arguments.data), ways))


@contextmanager
def open_ways(
    library: "Library", asked: Sequence[Question], names: Sequence[str] | None = None
) -> Iterator[dict[str, Way]]:
    """Open ways to answer questions, by name; all of them where none is named."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(WAYS[name](library, asked)) for name in names or WAYS}


def measure(
    asked: Sequence[Question], rows: Sequence[Row], ways: Mapping[str, Way]
) -> Iterator[tuple[Question, dict[str, Measured]]]:
    """Answer each question in each way, by name."""
    for one in asked:
        expected = plain_value(one.oracle(rows))
        answers = {name: way(one) for name, way in ways.items()}
        yield one, {name: Measured(plain_value(a.value) == expected, a.seconds) for name, a in answers.items()}


def report(measured: Iterable[tuple[Question, dict[str, Measured]]]) -> None:
    """Print, as JSON, how many answers of each way are exact, and the seconds of the slowest and of all."""
    by_way: dict[str, list[Measured]] = defaultdict(list)
    for question, of_question in measured:
        for name, one in of_question.items():
            by_way[name].append(one)
            if not one.exact:
                print(f"{question.id}: not exact by {name}", file=sys.stderr)
    figures = {
        name: {
            "questions": len(some),
            "exact": sum(one.exact for one in some),
            "slowest": max(one.seconds for one in some),
            "seconds": sum(one.seconds for one in some),
        }
        for name, some in by_way.items()
    }
    print(json.dumps(figures, indent=1))


@contextmanager
def functions_alone(library: "Library", asked: Sequence[Question]) -> Iterator[Way]:
    """Run programs in this process, each question in an environment of its own."""
    from legal_rag.corpus_index.index import CorpusIndex
    from legal_rag.deep_read import create_multi_doc_env

    def answer(question: Question) -> Answer:
        given: list[Any] = []
        started = time.perf_counter()
        env = create_multi_doc_env(CorpusIndex.open(library), NoModel())
        names = {**env, "FINAL": given.append, "print": lambda *values: None}
        for program in question.programs:
            exec(program, names)  # noqa: S102 - written by hand, in this repository
        return Answer(given[0], time.perf_counter() - started)

    yield answer


@contextmanager
def in_a_sandbox(library: "Library", asked: Sequence[Question]) -> Iterator[Way]:
    """Run programs in the sandbox, as a root model's are run."""
    from legal_rag.agent import Budget
    from legal_rag.corpus_index.index import CorpusIndex
    from legal_rag.deep_read import create_multi_doc_env
    from legal_rag.deep_read.rlm import ProgramEnvironment, RunSetup
    from legal_rag.llm import UsageTracker

    def answer(question: Question) -> Answer:
        started = time.perf_counter()
        env = create_multi_doc_env(CorpusIndex.open(library), NoModel())
        setup = RunSetup(
            root=NoModel(),
            sub=NoModel(),
            tracker=UsageTracker(Budget()),
            functions=env.functions,
            values=env.values,
            prompt="",
            receipts=env.receipts,
        )
        place = ProgramEnvironment(setup, "")
        try:
            for program in question.programs:
                if error := place.execute_code(program).stderr:
                    raise RuntimeError(error)
            return Answer(place.final, time.perf_counter() - started)
        finally:
            place.cleanup()

    yield answer


@contextmanager
def end_to_end(library: "Library", asked: Sequence[Question]) -> Iterator[Way]:
    """Ask `deep_read`, whose root model is a server that replays the programs."""
    from support.rlm_scripts import root_models
    from support.scripted_server import ScriptedServer

    from legal_rag.agent import Budget, build_language_model
    from legal_rag.deep_read import deep_read
    from legal_rag.deep_read.settings import DeepReadSettings

    settings = DeepReadSettings(plan="rlm")
    with ScriptedServer(root_models({one.text: one.programs for one in asked})) as server:
        lm = build_language_model("scripted", api_base=server.api_base, cache=False)

        def answer(question: Question) -> Answer:
            started = time.perf_counter()
            found = deep_read(question.text, library=library, lm=lm, budget=Budget(), settings=settings)
            value = found.events[-1].input.get("value", found.answer)
            if found.status not in ("answered", "unverified"):
                value = f"{found.status}: {found.notice}"
            return Answer(value, time.perf_counter() - started)

        yield answer


WAYS = {"functions": functions_alone, "sandbox": in_a_sandbox, "deep_read": end_to_end}


class NoModel:
    """Stands where a sub-model is asked for; none of the questions needs one."""

    name = "none"

    def query(self, prompt: str) -> str:
        raise AssertionError(f"no question asks a model, this one did: {prompt[:80]!r}")


def plain_value(value: Any) -> Any:
    """Return a value as JSON holds it: tuples are lists, keys are texts."""
    return json.loads(json.dumps(value))


def read_rows(data: Path) -> list[Row]:
    with gzip.open(data / SOURCE, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def open_or_build(data: Path, folder: Path, encoder: "Encoder | None" = None) -> "Library":
    """Open the Library in a folder, or build it there, with its entities and its corpus index.

    Args:
        data: The folder of the decisions.
        folder: The Library's.
        encoder: Which counts the tokens of a chunk; None is the bundled one.
    """
    from legal_rag.corpus_index.building import CorpusIndexer
    from legal_rag.corpus_index.index import has_corpus_index
    from legal_rag.encoder import bundled_encoder
    from legal_rag.extraction import ExtractionSettings
    from legal_rag.indexer import IndexConfig, build_index, extract_library, open_index

    config = IndexConfig(source=data / SOURCE, index_folder=str(folder), n_bits=0)
    try:
        return open_index(config)
    except FileNotFoundError:
        build_index(config, encoder or bundled_encoder())
    library = open_index(config)
    extract_library(library, ExtractionSettings(model_id="rules"))
    if not has_corpus_index(library):
        CorpusIndexer(library).build_corpus_index()
    return library


if __name__ == "__main__":
    main()
