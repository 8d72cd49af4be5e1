"""Type what lawyers type into the search box, and check what must hold of every document found.

Run: python benchmarks/search_box.py DECISIONS TRAVAIL [--searches FILE] [--mode MODE]

DECISIONS and TRAVAIL are the folders of two Libraries: the decisions, and the Code du travail. FILE lists the searches
(benchmarks/data/search_box.toml says how); what is right is computed from the documents' columns and texts, never from
what the engine finds. A search is right where documents are found, those expected come first, and all of the five
shown are right. FILE may also be JSON lines, as client_questions/searches.jsonl is: `first`, ids of which one must come
first; `all_hits` and `none`, what the columns and the text of each hit must match, and may not. Counted by kind, as
JSON; each that is wrong is printed on stderr with what it gave.
"""

import argparse
import json
import re
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from legal_rag.base.text import PLAIN_CHARS, words_of
from legal_rag.corpus.documents import Document
from legal_rag.library import Library
from legal_rag.retriever import MODES, Retriever, SearchResults, search_typed

SEARCHES = Path(__file__).parent / "data" / "search_box.toml"
SHOWN = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("decisions", type=Path)
    parser.add_argument("travail", type=Path)
    parser.add_argument("--searches", type=Path, default=SEARCHES)
    parser.add_argument("--mode", choices=MODES)
    arguments = parser.parse_args()
    retrievers = {name: Retriever(Library(getattr(arguments, name))) for name in ("decisions", "travail")}
    documents = {name: {one.id: one for one in made.corpus.documents()} for name, made in retrievers.items()}
    searches = read_searches(arguments.searches)
    tried, right, seconds = Counter[str](), Counter[str](), []
    for search in searches:
        started = time.perf_counter()
        results = search_typed(retrievers[search["library"]], search["typed"], SHOWN, mode=arguments.mode)
        seconds.append(time.perf_counter() - started)
        problems = list(_problems(search, results, documents[search["library"]]))
        tried[search["kind"]] += 1
        right[search["kind"]] += not problems
        if problems:
            print(f"{search['typed']}: {'; '.join(problems)} | {' '.join(results.remarks)}", file=sys.stderr)
    kinds = {kind: {"searches": n, "right": right[kind]} for kind, n in tried.items()}
    figures = {"searches": tried.total(), "right": right.total(), "seconds": sorted(seconds)[len(seconds) // 2]}
    print(json.dumps({**figures, "kinds": kinds}, indent=1))


def read_searches(path: Path) -> list[dict[str, Any]]:
    """Read searches in either form; the names of the other form are those of this one, but for `none`."""
    text = path.read_text("utf-8")
    if path.suffix != ".jsonl":
        return tomllib.loads(text)["searches"]
    rows = map(json.loads, text.splitlines())
    return [
        {**row, "typed": row["search"], "library": "decisions", "none": None, "no_hit": row["none"]} for row in rows
    ]


def _problems(search: dict[str, Any], results: SearchResults, documents: dict[str, Document]) -> Iterator[str]:
    shown = list(dict.fromkeys(hit.doc_id for hit in results.hits))
    if "says" in search and search["says"] not in " ".join(results.remarks):
        yield f"does not say {search['says']!r}"
    if search.get("none"):
        if shown:
            yield f"shows {shown[0]}"
        return
    if not shown:
        yield "shows nothing"
        return
    if search.get("first") and shown[0] not in search["first"]:
        yield f"{shown[0]} comes first"
    wanted = [number for number in (search.get("number"), *search.get("then", ())) if number]
    bearing = [[doc_id for doc_id, one in documents.items() if _bears(number, one)] for number in wanted]
    if not all(bearing):
        yield "no document bears the number: the search is wrong"
    place = 0
    for number, doc_ids in zip(wanted, bearing, strict=True):
        if set(shown[place : place + len(doc_ids)]) != set(doc_ids):
            yield f"{number} is not at place {place + 1}"
        place += len(doc_ids)
    if search.get("alone") and len(shown) > place:
        yield f"shows {len(shown) - place} more"
    wrong = [doc_id for doc_id in shown if not _is_right(search, documents[doc_id])]
    if wrong:
        yield f"{len(wrong)} of {len(shown)} are not right, e.g. {wrong[0]}"


def _bears(number: str, document: Document) -> bool:
    column, number = (one.replace(".", "") for one in (str(document.extra.get("number") or ""), number))
    return column == number or (
        not column
        and re.search(rf"(?<![\w/-]){re.escape(number)}(?![\w/-])", document.title.replace(".", "")) is not None
    )


def _is_right(search: dict[str, Any], document: Document) -> bool:
    text = document.content.translate(PLAIN_CHARS).lower()
    columns = "\n".join(str(value or "") for value in document.row().values())
    names = set(words_of(f"{document.juridiction} {document.formation} {document.title}"))
    return (
        all(re.search(pattern, text) for pattern in search.get("holds", ()))
        and not any(re.search(pattern, text) for pattern in search.get("lacks", ()))
        and set(search.get("court", "").split()) <= names
        and re.search(search.get("all_hits") or "", columns, re.IGNORECASE)
        and not (search.get("no_hit") and re.search(search["no_hit"], columns, re.IGNORECASE))
        and str(search.get("from", "")) <= document.decision_date <= str(search.get("to", "9999"))
    )


if __name__ == "__main__":
    main()
