"""What int8 costs in recall beside torch, or another encoder beside the bundled one, over pooled queries.

Run: python benchmarks/precision.py --data FOLDER [--encoder bundled-128] [--decisions 400] [--articles 3000]

FOLDER holds the corpora and queries that `pooled_queries` names. Each side encodes documents and queries by itself;
the corpora are cut down to the documents that answer a query and the first others. Recall@10 is of documents, each by
its best chunk, by MaxSim alone, in a Library of default settings. The interval is the paired 95 % interval of the
difference (Student).
"""

import argparse
import os
import tempfile
from itertools import chain
from pathlib import Path

import ir_measures
from ir_measures import R, ScoredDoc
from pooled_queries import CODE, DECISIONS, QuerySet, pooled_queries
from scipy import stats

from legal_rag.encoder import Encoder, EncoderConfig, build_encoder
from legal_rag.indexer import IndexConfig, build_index
from legal_rag.retriever import Retriever, build_retriever

RECALL = R @ 10

Recalls = dict[str, list[float]]  # by the name of a query set, in the order of query ids


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", help="What is measured beside 'bundled'; without it, int8 beside torch.")
    parser.add_argument("--decisions", type=int, default=400)
    parser.add_argument("--articles", type=int, default=3000)
    arguments = parser.parse_args()
    sets = pooled_queries(arguments.data)
    sizes = {DECISIONS: arguments.decisions, CODE: arguments.articles}
    print(f"{sum(len(one.queries) for one in sets)} queries, {sizes}, load {os.getloadavg()[0]:.1f}")
    sides = _sides(arguments.encoder)
    before, after = (_recalls(arguments.data, sets, sizes, build_encoder(one)) for one in sides.values())
    print(f"{'':16}{'queries':>8}{''.join(f'{name:>12}' for name in sides)}   difference, 95 % interval (points)")
    for name in before:
        _print_row(name, before[name], after[name])
    _print_row("all", list(chain(*before.values())), list(chain(*after.values())))


def _sides(encoder: str | None) -> dict[str, EncoderConfig]:
    """Return what is compared, by name, the one to be measured last."""
    if encoder is None:
        return {name: EncoderConfig(name="bundled", backend=name) for name in ("torch", "openvino")}
    return {Path(name).name: EncoderConfig(name=name) for name in ("bundled", encoder)}


def _recalls(data: Path, sets: list[QuerySet], sizes: dict[str, int], encoder: Encoder) -> Recalls:
    recalls: Recalls = {}
    for source, size in sizes.items():
        over_it = [one for one in sets if one.source == source]
        with tempfile.TemporaryDirectory() as folder:
            ids_file = Path(folder) / "ids.txt"
            ids_file.write_text("\n".join(sorted(set().union(*(one.doc_ids for one in over_it)))), encoding="utf-8")
            config = IndexConfig(source=data / source, ids_file=str(ids_file), limit=size, index_folder=folder)
            retriever = build_retriever(Path(build_index(config, encoder).path), encoder)
            recalls |= {one.name: _recall_of_each(retriever, one) for one in over_it}
    return recalls


def _recall_of_each(retriever: Retriever, one: QuerySet) -> list[float]:
    run = [
        ScoredDoc(query_id, hit.doc_id, hit.score)
        for query_id, text in one.queries.items()
        for hit in retriever.search(text, 10, mode="colbert", by_document=True)
    ]
    found = {metric.query_id: metric.value for metric in ir_measures.iter_calc([RECALL], one.qrels, run)}
    return [found[query_id] for query_id in sorted({qrel.query_id for qrel in one.qrels})]


def _print_row(name: str, before: list[float], after: list[float]) -> None:
    paired = stats.ttest_rel(after, before)
    low, high = paired.confidence_interval()
    mean = [sum(values) / len(values) for values in (before, after)]
    difference = f"{(mean[1] - mean[0]) * 100:+.2f} [{low * 100:+.2f}, {high * 100:+.2f}]"
    print(f"{name:16}{len(before):8}{mean[0]:12.4f}{mean[1]:12.4f}   {difference}")


if __name__ == "__main__":
    main()
