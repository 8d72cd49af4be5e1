"""Fuzz the doors by which strangers' bytes come in, with hypothesis, for as long as is asked; `make fuzz` is this.

Each door takes what hypothesis makes up, and may raise nothing but what it documents, within `SECONDS` an example. A
round has a seed of its own, which is printed with what it found: the same seed makes the same examples again.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from support.raw_server import completion
from tqdm import tqdm

ALL = list(HealthCheck)  # to judge the machine is not the purpose
SECONDS = 2.0  # of processor time that an example may take here
EXAMPLES = 100  # of a door in a round

# What French legal texts, models' replies and their forgeries are made of.
FRAGMENTS = (
    "[P1]", " (P2, P9).", "[ P", "<function=search_legal_docs>", "<parameter=query>", "[TOOL_CALLS]", "[ARGS]",
    '{"evidence": ["P1"], "answer": "', "[Source: ", "A, chars 0-20]", "[Analyse]", "[[ ## ",
    "answer ## ]]", "[[ ## next_tool_args ## ]]", "```repl\n",
    "```", "<think>", "</think>", "<entity name=", "<relationship ", 'type="', "/>", "</", "<!--", "-->", "<p>",
    "&#x", "&amp;", "art. ", "articles ", "L. 1152-1", "R. 4624-10-", "1382 et suivants du code civil",
    "du code du travail", " à L. 12", "n° ", "90-41.231", "pourvoi n° 12-34.567", "Cass. soc., ", "12 mai 1993",
    "le 31/02/2099", "1er", "XXIVe siècle", "Cour de cassation, chambre sociale", "Conseil d'Etat", "CA Lyon",
    "ECLI:FR:CCASS:", "M. X...", "la société", "SARL ", "1 000 000,50 francs", "10 %", "12 500 €", "deux mille",
    "deux ans et six mois", "« ", " »", '"', "'", "’", "(", ")", "[", "]", "PAR CES MOTIFS", "Attendu que", "REJETTE",
    "CASSE ET ANNULE", "Considérant ", "MOYENS ANNEXES", "I. - ", "A) ", "1°) ", "1.1.1 ", "{", "}", '{"query": "',
    '", "k": ', "null", "NaN", "1e999", "-0", "9" * 400, "\\u0000", "\\", "\\n", ":", ",", "; ", "(?:", "(a+)+", ".*",
    "\\b", "{0,1000}", "|", "^", "$", "[^", "\\pL", "(?s:.*)", "e\u0301" * 5, "\u0301" * 40, "\u200b", "\x00",
    "\x1b]52;c;aGk=\x07", "\x85", "\u2028", "\u202e", "\ufeff", "\ud800", "\U000e0041", "ﬁ", "ß", "İ", "a" * 300, " ",
    "  ", "\n", "\n\n", "\t", ".", "...", "-", "–", "1", "0", "a", "é", "Le ",
)  # fmt: skip
NAMES = ("juridiction", "formation", "solution", "date_from", "date_to", "number", "article", "entity")  # of filters


@cache
def written(longest: int = 40) -> st.SearchStrategy[str]:
    """Texts of fragments and of any characters, some said again many times."""
    piece = st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=8), st.text(st.characters(), max_size=4))
    once = st.lists(piece, max_size=longest).map("".join)
    return st.one_of(once, st.builds(lambda text, n: (text * n)[:20_000], once, st.sampled_from((2, 30, 1000))))


@cache
def values() -> st.SearchStrategy[Any]:
    """Values of JSON, of every kind and depth."""
    leaf = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), written(6), st.just(10**400))
    groups = lambda inner: st.lists(inner, max_size=4) | st.dictionaries(written(2), inner, max_size=4)  # noqa: E731
    return st.recursive(leaf, groups, max_leaves=12)


def json_of(value: Any) -> bytes:
    """Write a value as JSON, NaN and half characters too."""
    try:
        return json.dumps(value).encode()
    except (ValueError, RecursionError):
        return b"[" * 5000


def changed(written_once: bytes) -> st.SearchStrategy[bytes]:
    """Texts that are nearly as they should be: some bytes replaced, taken out, put in, cut off."""

    def edited(edits: list[tuple[float, int, bytes]]) -> bytes:
        data = bytearray(written_once)
        for place, length, new in edits:
            at = int(place * len(data))
            data[at : at + length] = new
        return bytes(data)

    new = st.one_of(st.binary(max_size=6), encoded(2))
    return st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), new), min_size=1, max_size=5).map(edited)


def encoded(longest: int = 40) -> st.SearchStrategy[bytes]:
    """Texts in UTF-8."""
    return written(longest).map(lambda text: text.encode("utf-8", "replace"))


def nearly(written_once: bytes) -> st.SearchStrategy[bytes]:
    """JSON that is nearly as it should be, or is any other."""
    return st.one_of(changed(written_once), values().map(json_of))


@dataclass(frozen=True)
class Door:
    """One way in: what comes, who takes it, and the errors that are its honest answers."""

    given: st.SearchStrategy[Any]
    take: Callable[[Any], object]
    errors: tuple[type[Exception], ...] = (ValueError,)
    seconds: float = SECONDS


def doors(library: Path) -> Mapping[str, Door]:
    """Return all doors, by name; `library` is a whole one, which is not changed."""
    from legal_rag.agent.pieces import Pieces
    from legal_rag.agent.replies import clean_answer, read_answer, read_arguments, read_step, take_tags
    from legal_rag.agent.tools import build_tools
    from legal_rag.citations import CitationEnricher
    from legal_rag.corpus import parse_chunk_id
    from legal_rag.corpus.files import clean_text
    from legal_rag.deep_read.grep import DOCUMENT_SECONDS, grep_text
    from legal_rag.deep_read.rlm import code_blocks, prose_of
    from legal_rag.deep_read.sandbox import _Plain, adapted
    from legal_rag.deep_read.trace import read_trace
    from legal_rag.evaluation import read_qrels, read_queries, read_run
    from legal_rag.extraction.rules import find_entities
    from legal_rag.graph import parse_extraction_tags
    from legal_rag.law import legal_citation, split_sentences
    from legal_rag.law.keys import all_reference_keys
    from legal_rag.law.outline import build_tree
    from legal_rag.law.tree import tree_from_json
    from legal_rag.library import Filters, Library
    from legal_rag.llm import Endpoint, LenientAdapter, ModelError, json_in, server
    from legal_rag.llm.replies import without_thoughts
    from legal_rag.report import SavedAnswers
    from legal_rag.retriever import Retriever
    from legal_rag.verification import verify_text

    opened = Library(library)
    document = next(iter(opened.documents()))
    enricher, retriever = CitationEnricher(opened), Retriever(opened)
    endpoint = Endpoint(model="openai/m", name="m", api_base="http://127.0.0.1:9/v1", api_key="sk-0123456789")
    row = json_of({"id": document.id, "content": document.content[:300], "title": "t", "decision_date": "1993-05-12"})
    run = b"q1 Q0 d1 1 3.5 r\nq1 Q0 d2 2 3.25 r\nq2 Q0 d1 1 1.5 r\n"
    tools, pieces = {tool.__name__: tool for tool in build_tools(opened, retriever)}, Pieces()
    for start in range(0, 900, 300):
        pieces.show(document, start, start + 300)
    adapter = LenientAdapter()
    signature = _signature()
    return {
        "question": Door(written(), lambda text: retriever.search(text, mode="bm25")),
        "references in a text": Door(written(), all_reference_keys),
        "filters": Door(
            st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, written(4))),
            lambda asked: retriever.search("préavis", mode="bm25", filters=Filters(**asked)),
        ),
        "chunk id": Door(written(4), parse_chunk_id),
        "legal citation": Door(written(8), lambda title: legal_citation(replace(document, title=title, extra={}))),
        "pattern": Door(
            written(6),
            lambda pattern: grep_text(document.content, pattern, context=100),
            seconds=DOCUMENT_SECONDS + SECONDS,
        ),
        "reply with programs": Door(
            written(), lambda text: [*map(adapted, (text, *code_blocks(text))), prose_of(text)]
        ),
        "argument of a program": Door(values(), lambda value: _Plain().value(value), (ValueError, TypeError)),
        "answer with citations": Door(written(), lambda text: enricher.enrich(text, read=[document.id])),
        # Each of hundreds of quotations and names is looked for: some 12 ms each.
        "text to verify": Door(written(), lambda text: verify_text(text, opened), seconds=15.0),
        "tags": Door(written(), parse_extraction_tags),
        "tags of an answer": Door(written(), take_tags),
        "server's reply": Door(
            nearly(completion("Aucun passage.")),
            lambda body: server._completion(server._Reply(200, None, bytearray(body)), [], endpoint),
            (ModelError,),
        ),
        "JSON of a reply": Door(written(), json_in),
        "reply with thoughts": Door(written(), without_thoughts),
        "answer to clean": Door(written(), clean_answer),
        "step of a reply": Door(written(), lambda text: read_step(text, tools), ()),
        "answer of a reply": Door(written(), read_answer, ()),
        "answer with pointers": Door(written(), lambda text: pieces.cite(text, ["P1", "P2"]), ()),
        "arguments": Door(st.one_of(written(), values()), read_arguments),
        "reply with fields": Door(written(), lambda text: adapter.parse(signature, text), _parse_errors()),
        "text to clean": Door(written(), clean_text),
        "HTML to clean": Door(written(), lambda text: clean_text(text, is_html=True)),
        "text to outline": Door(written(), build_tree),
        "text with entities": Door(written(), find_entities),
        "text to split": Door(written(), split_sentences),
        "outline file": Door(values(), lambda value: tree_from_json(value, 1000)),
        "source, JSON lines": Door(
            st.lists(st.one_of(st.just(row), nearly(row)), max_size=4).map(b"\n".join), _file("s.jsonl", _read_source)
        ),
        "source, JSON": Door(nearly(b'{"results": [' + row + b"]}"), _file("s.json", _read_source)),
        "source, CSV": Door(changed(b'id,content,title\nA,"Attendu que, x",t\nB,y,u\n'), _file("s.csv", _read_source)),
        "source, Parquet": Door(st.binary(max_size=200), _file("s.parquet", _read_source)),
        "source, folder of texts": Door(
            st.one_of(st.binary(max_size=80), encoded()), _file("in/s.txt", lambda path: _read_source(path.parent))
        ),
        "queries": Door(nearly(b'{"qid": "q1", "question": "x ?", "doc_id": "A"}\n'), _file("q.jsonl", read_queries)),
        "run": Door(changed(run), _file("run.txt", read_run)),
        "qrels": Door(changed(b"q1 0 d1 1\nq1 0 d2 0\n"), _file("qrels.txt", read_qrels)),
        "trace": Door(nearly(_trace()), _file("t.jsonl", read_trace)),
        "saved answer": Door(
            nearly(_answer(retriever)), _file(f"{ANSWER}.json", lambda path: SavedAnswers(path.parent).load(ANSWER))
        ),
        "manifest": Door(nearly((library / "manifest.json").read_bytes()), lambda data: _opened_with(library, data)),
    }


ANSWER = "20260101-000000-000000-00000000"


def _file(name: str, take: Callable[[Path], object]) -> Callable[[bytes], object]:
    """Return what writes bytes to a file of a name and has it read."""

    def written_and_taken(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            return take(path)

    return written_and_taken


def _read_source(path: Path) -> object:
    from legal_rag.corpus import read_documents

    return list(read_documents(path, on_bad=lambda bad: None))


def _opened_with(library: Path, manifest: bytes) -> object:
    """Open a Library whose manifest is another, and search it for words."""
    from legal_rag.library import Library
    from legal_rag.retriever import Retriever

    with tempfile.TemporaryDirectory() as folder:
        for one in library.iterdir():
            if one.name != "manifest.json":
                Path(folder, one.name).symlink_to(one)
        Path(folder, "manifest.json").write_bytes(manifest)
        return Retriever(Library(Path(folder))).search("préavis", mode="bm25")


def _answer(retriever: Any) -> bytes:
    from legal_rag.agent import EvidenceAgent
    from legal_rag.report import SavedAnswers

    prediction = replace(EvidenceAgent(retriever)("Quel préavis est dû ?"), answer_id=ANSWER)
    with tempfile.TemporaryDirectory() as folder:
        return (Path(folder) / f"{SavedAnswers(folder).save(prediction)}.json").read_bytes()


def _trace() -> bytes:
    from support.trace_cases import block, call, turn, written

    with tempfile.TemporaryDirectory() as folder:
        return written(Path(folder, "t.jsonl"), turn(block(calls=[call()])), turn(block(final="12"))).read_bytes()


def _signature() -> Any:
    import dspy

    return dspy.Signature("question -> next_thought, next_tool_name, next_tool_args: dict")


def _parse_errors() -> tuple[type[Exception], ...]:
    from dspy.utils.exceptions import AdapterParseError

    return (AdapterParseError,)


def _refusal(door: Door, example: Any) -> str:
    try:
        door.take(example)
    except door.errors as error:
        return str(error).strip() if isinstance(error, ValueError) else ""  # others are seen by nobody
    return ""


def fuzzed(name: str, door: Door, number: int, examples: int = EXAMPLES, *, shrink: bool = False) -> str:
    """Try a door with examples of one seed; return what it found, empty for nothing; to shrink it may take minutes."""
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)

    @seed(number)
    @settings(max_examples=examples, deadline=None, database=None, phases=phases, suppress_health_check=ALL)
    @given(door.given)
    def tried(example: Any) -> None:
        started = time.process_time()
        line = _refusal(door, example)
        seconds = time.process_time() - started
        assert "\n" not in line, f"more than one line: {line}"
        assert seconds < door.seconds, f"{seconds:.1f} s"

    try:
        tried()
    except BaseException as error:  # the panic of a library is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        notes = " ".join(getattr(error, "__notes__", []))
        return f"{name}, seed {number}: {type(error).__name__}: {str(error)[:400]} {notes[:1000]}"
    return ""


def main(arguments: list[str] | None = None) -> int:
    """Try all doors in turn until the time is over; 1 if one was found open."""
    from attacks.campaign import built_library

    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=14, help="of the first round; each next round has the next one")
    parser.add_argument("--shrink", action="store_true", help="make what is found as small as can be")
    parser.add_argument("--doors", nargs="+", help="only these")
    asked = parser.parse_args(arguments)
    all_doors = {
        name: door for name, door in doors(built_library()).items() if asked.doors is None or name in asked.doors
    }
    ends, number, n_found = time.monotonic() + asked.seconds, asked.seed, 0
    with tqdm(total=math.ceil(asked.seconds), unit=" s", file=sys.stderr) as bar:
        while time.monotonic() < ends:
            for name, door in all_doors.items():
                if found := fuzzed(name, door, number, shrink=asked.shrink):
                    n_found += 1
                    bar.write(found, file=sys.stdout)
                bar.update(min(bar.total, math.ceil(asked.seconds - (ends - time.monotonic()))) - bar.n)
            number += 1
    examples = (number - asked.seed) * EXAMPLES
    print(f"seeds {asked.seed} to {number - 1}: {examples} examples of each of {len(all_doors)} doors, {n_found} found")
    return 1 if n_found else 0


if __name__ == "__main__":
    sys.exit(main())
