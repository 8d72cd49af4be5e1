"""Make the test collections, each in the forms of BEIR, TREC and the Hugging Face hub, from a folder of data.

Run: python collections/make_collection.py --data FOLDER [--output FOLDER] [--ids-only | --check [RUNS]]

`--check` has BEIR, ir_datasets, datasets and MTEB read what was made, in the environment of `make collections`, and
compares it with what was meant. With RUNS, a folder of COLLECTION/SYSTEM/run.txt as `legal-rag evaluate --output`
writes them, it compares each library's figures with ours too.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from legal_rag.base.files import beside, link_or_copy, put_in_place, write_whole
from legal_rag.base.text import one_line
from legal_rag.corpus import BadRecord, read_documents
from legal_rag.evaluation import Qrels, Query, evaluate_run, read_qrels, read_queries, read_run, write_qrels
from legal_rag.indexer.config import read_ids

HERE = Path(__file__).parent
READERS = HERE.parent / ".venv-collections" / "bin" / "python"
MEASURES = ("nDCG@10", "R@10", "R@100", "AP@100")
DECIMALS = 6  # in which figures must be equal


class Passage(NamedTuple):
    """A document as every form has it."""

    doc_id: str
    title: str  # and the headings that an article stands under
    text: str


class Collection(NamedTuple):
    """Documents, questions, and the judgements of each split."""

    name: str
    documents: list[Passage]
    queries: list[Query]
    qrels: dict[str, Qrels]  # split: judgements
    entry: Mapping[str, Any]  # of the table
    sources: list[Path]  # the files that questions and judgements were read from


def read_collections(data: Path, table: Path = HERE / "collections.toml") -> Iterator[Collection]:
    """Read each collection of the table; ids, splits and judgements must fit together.

    Raises:
        FileNotFoundError: If a file that the table names is not there.
        ValueError: If an id comes twice, or a file names an id that another lacks.
    """
    settings = tomllib.loads(table.read_text("utf-8"))
    for name, entry in settings["collections"].items():
        places = {key: data / entry[key] for key in ("documents", "queries", "qrels") if key in entry}
        places |= {key: table.parent / entry[key] for key in ("ids", "splits", "judgements") if key in entry}
        if absent := [path for path in places.values() if not path.is_file()]:
            raise FileNotFoundError(f"{name}: no such file: {absent[0]}")
        yield _read_collection(name, entry, places, set(settings["withdrawn"]))


def _read_collection(
    name: str, entry: Mapping[str, Any], places: Mapping[str, Path], withdrawn: set[str]
) -> Collection:
    queries, qrels = read_queries(places["queries"])
    judging = places.get("judgements") or places.get("qrels") or places["queries"]
    if judging != places["queries"]:
        qrels = read_qrels(judging)
    texts = {query.qid: query.text for query in queries}
    splits = _read_splits(places["splits"])
    _require_known(places["splits"], splits, texts, "question")
    _require_known(places["queries"], texts, splits, f"split in {places['splits'].name}")
    _require_known(judging, qrels, texts, "question")
    documents = list(_read_passages(places["documents"], read_ids(places.get("ids")), withdrawn))
    kept = {qid: {key: grade for key, grade in judged.items() if key not in withdrawn} for qid, judged in qrels.items()}
    kept = {qid: judged for qid, judged in kept.items() if any(judged.values())}
    present = {passage.doc_id for passage in documents}
    _require_known(judging, (key for judged in kept.values() for key in judged), present, "document")
    names = sorted(set(splits.values()))
    by_split = {split: {qid: judged for qid, judged in kept.items() if splits[qid] == split} for split in names}
    sources = [places["queries"], *([judging] if judging != places["queries"] else [])]
    return Collection(name, documents, [query for query in queries if query.qid in kept], by_split, entry, sources)


def _read_passages(path: Path, ids: set[str], withdrawn: set[str]) -> Iterator[Passage]:
    """Yield the documents of these ids, all where none is given, in the file's order."""

    def refuse(bad: BadRecord) -> None:
        raise ValueError(f"{bad.where}: {bad.problem}")

    missing = ids - withdrawn
    for document in read_documents(path, on_bad=refuse):
        if document.id not in withdrawn and (not ids or document.id in ids):
            missing.discard(document.id)
            headings = filter(None, [document.title, one_line(str(document.extra.get("section", "")))])
            yield Passage(document.id, " – ".join(headings), document.content)
    if missing:
        n = f"{len(missing)} of {len(ids)} documents, e.g. {min(missing)!r}"
        raise ValueError(f"{path} lacks {n} (one withdrawn at its source goes under `withdrawn` in the table)")


def _read_splits(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["qid"]: row["split"] for row in csv.DictReader(file, delimiter="\t")}


def _require_known(path: Path, named: Iterable[str], known: Container[str], what: str) -> None:
    if unknown := [name for name in named if name not in known]:
        raise ValueError(f"{path}: {unknown[0]!r} has no {what} ({len(unknown)} such)")


def write_collection(collection: Collection, folder: Path, *, ids_only: bool = False) -> None:
    """Write `ids.txt` and the forms `beir`, `trec` and `hub`.

    With `ids_only` they lack the documents' texts; `data` holds what the program needs beside texts fetched by ids.
    """
    for part in ("beir/qrels", "trec/corpus", "hub/qrels"):
        (folder / part).mkdir(parents=True)
    _write_lines(folder / "ids.txt", (passage.doc_id for passage in collection.documents))
    documents = [dict(zip(("_id", "title", "text"), passage, strict=True)) for passage in collection.documents]
    if ids_only:
        documents = []
        (folder / "data").mkdir()
        for source in collection.sources:
            shutil.copy(source, folder / "data")
    queries = [{"_id": query.qid, "text": query.text} for query in collection.queries]
    _write_beir(folder / "beir", documents, queries, collection.qrels)
    _write_trec(folder / "trec", queries, collection.qrels)
    if documents:
        link_or_copy(folder / "beir" / "corpus.jsonl", folder / "trec" / "corpus" / "corpus.jsonl")
    _write_hub(folder / "hub", documents, queries, collection)


def _write_beir(
    folder: Path, documents: Sequence[Mapping], queries: Sequence[Mapping], qrels: Mapping[str, Qrels]
) -> None:
    for name, rows in (("corpus", documents), ("queries", queries)):
        if rows:
            _write_lines(folder / f"{name}.jsonl", (json.dumps(row, ensure_ascii=False) for row in rows))
    for split, judged in qrels.items():
        rows = ("\t".join(map(str, row)) for row in _judgements(judged))
        _write_lines(folder / "qrels" / f"{split}.tsv", ["query-id\tcorpus-id\tscore", *rows])


def _write_trec(folder: Path, queries: Sequence[Mapping], qrels: Mapping[str, Qrels]) -> None:
    _write_lines(folder / "topics.tsv", (f"{row['_id']}\t{' '.join(row['text'].split())}" for row in queries))
    for split, judged in qrels.items():
        write_qrels(folder / f"qrels.{split}.txt", judged)


def _write_hub(folder: Path, documents: Sequence[Mapping], queries: Sequence[Mapping], collection: Collection) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = ("query-id", "corpus-id", "score")
    tables = {"corpus.parquet": documents, "queries.parquet": queries} | {
        f"qrels/{split}.parquet": [dict(zip(columns, row, strict=True)) for row in _judgements(judged)]
        for split, judged in collection.qrels.items()
    }
    for file, rows in tables.items():
        if rows:
            parquet.write_table(pyarrow.Table.from_pylist(list(rows)), folder / file)
    _write_lines(folder / "README.md", _hub_card(collection, sorted(folder.rglob("*.parquet")), folder))


def _hub_card(collection: Collection, files: Sequence[Path], folder: Path) -> list[str]:
    """Return the lines of a dataset card, whose header names configs and files; JSON is YAML.

    `datasets` caches a folder by this header alone: hence the digest of each config's files.
    """
    configs = []
    for name in dict.fromkeys(file.relative_to(folder).parts[0].removesuffix(".parquet") for file in files):
        named = [file for file in files if name in (file.stem, file.parent.name)]
        digest = sha256(b"".join(file.read_bytes() for file in named)).hexdigest()
        paths = [{"split": file.stem, "path": str(file.relative_to(folder))} for file in named]
        configs.append({"config_name": name, "description": f"sha256 {digest}", "data_files": paths})
    header = {
        "pretty_name": collection.entry["title"],
        "language": ["fr"],
        "license": collection.entry["licenses"],
        "task_categories": ["text-retrieval"],
        "tags": ["legal", "french-law", "test-collection"],
        "configs": configs,
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items()]
    return ["---", *lines, "---", "", f"# {collection.entry['title']}", "", collection.entry["about"]]


def _judgements(qrels: Qrels) -> Iterator[tuple[str, str, int]]:
    return ((qid, doc_id, grade) for qid, judged in qrels.items() for doc_id, grade in judged.items())


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    write_whole(path, "".join(f"{line}\n" for line in lines))


def check(collections: Sequence[Collection], output: Path, runs: Path | None) -> int:
    """Compare what the libraries read, and their figures of each run, with ours; return how many differ."""
    if not READERS.is_file():
        raise FileNotFoundError(f"no such program: {READERS} (expected what `make collections` installs)")
    if runs and not any(runs.glob("*/*/run.txt")):
        raise FileNotFoundError(f"no run in {runs} (expected COLLECTION/SYSTEM/run.txt)")
    command = [str(READERS), str(HERE / "read_back.py"), str(output), *([str(runs)] if runs else [])]
    read = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    differing = 0
    for collection in collections:
        for split, qrels in collection.qrels.items():
            ours = _expect(collection, qrels, runs)
            for form, theirs in read[collection.name][split].items():
                differing += theirs != ours
                print(f"{collection.name} {split:5} {form:12} {'equal' if theirs == ours else f'differs: {theirs}'}")
            print(f"{collection.name} {split:5} {'':12} {json.dumps(ours)}")
    return differing


def _expect(collection: Collection, qrels: Qrels, runs: Path | None) -> dict[str, Any]:
    from ir_measures import parse_measure

    files = sorted(runs.glob(f"{collection.name}/*/run.txt")) if runs else []
    measured = {
        path.parent.name: evaluate_run(qrels, read_run(path), [*map(parse_measure, MEASURES)]) for path in files
    }
    return {
        "documents": len(collection.documents),
        "characters": sum(len(passage.title) + len(passage.text) for passage in collection.documents),
        "queries": len(qrels),
        "judgements": sum(map(len, qrels.values())),
        "figures": {
            system: {figure.measure: round(figure.mean, DECIMALS) for figure in evaluation.figures}
            for system, evaluation in measured.items()
        },
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Make the collections; 0, or 1 after an error in one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("LEGAL_RAG_DATA"), help="else LEGAL_RAG_DATA")
    parser.add_argument("--output", type=Path, default=Path("build/collections"))
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--ids-only", action="store_true", help="no texts: who makes it anew fetches them by ids.txt")
    either.add_argument("--check", nargs="?", const="", metavar="RUNS", help="have the libraries read the forms")
    arguments = parser.parse_args(argv)
    if arguments.data is None:
        parser.error("no data (expected --data FOLDER, or LEGAL_RAG_DATA)")
    try:
        collections = list(read_collections(Path(arguments.data)))
        for collection in collections:
            folder = arguments.output / collection.name
            new = beside(folder, "new")
            shutil.rmtree(new, ignore_errors=True)
            write_collection(collection, new, ids_only=arguments.ids_only)
            put_in_place(new, folder)
            counts = ", ".join(f"{len(qrels)} {split}" for split, qrels in collection.qrels.items())
            print(f"{folder}: {len(collection.documents)} documents, {len(collection.queries)} questions ({counts})")
        if arguments.check is None:
            return 0
        return int(check(collections, arguments.output, Path(arguments.check) if arguments.check else None) > 0)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
