"""From a source to a searchable index, beside chonkie + PyLate + `pylate.indexes.PLAID` on the same decisions.

Run: python benchmarks/end_to_end.py --data FOLDER [--limit 100] [--runs 1] [--ours-only]

FOLDER holds `decisions.jsonl.gz`. Both sides use the bundled encoder, chunks of at most 511 tokens and 4 bits, and end
when a first question is answered; loading the encoder is not counted. The other side is what their pages show:
chonkie's `SentenceChunker` with the encoder's tokenizer, `ColBERT.encode` in batches of 32, and
`indexes.PLAID.add_documents`, which on a CPU takes far longer than all the rest: 400 decisions need a patient reader.
"""

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from legal_rag.corpus import read_documents
from legal_rag.encoder import ColbertEncoder, EncoderConfig, build_encoder, bundled_encoder
from legal_rag.indexer import IndexConfig, build_index
from legal_rag.retriever import build_retriever

QUERY = "Le licenciement d'une salariée enceinte est-il nul ?"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--ours-only", action="store_true")
    arguments = parser.parse_args()
    source = arguments.data / "decisions.jsonl.gz"
    sides: dict[str, Callable[[str], dict[str, float]]] = {}
    encoder = bundled_encoder()
    sides["legal_rag"] = lambda folder: ours(source, arguments.limit, folder, encoder)
    if not arguments.ours_only:
        plain = build_encoder(EncoderConfig(name="bundled", backend="torch"))
        sides["chonkie + PyLate + PLAID"] = lambda folder: theirs(source, arguments.limit, folder, plain)
    print(f"{arguments.limit} decisions, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    totals = {name: [] for name in sides}
    for _ in range(arguments.runs):
        for name, side in sides.items():
            with tempfile.TemporaryDirectory() as folder:
                steps = side(folder)
            totals[name].append(steps["total"])
            print(f"{name}: " + ", ".join(f"{step} {value:,.1f}" for step, value in steps.items()))
    medians = {name: statistics.median(values) for name, values in totals.items()}
    print(", ".join(f"{name} {median:,.0f} s" for name, median in medians.items()), end="")
    print(f", ratio {list(medians.values())[-1] / medians['legal_rag']:.2f}")
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


def ours(source: Path, limit: int, folder: str, encoder: ColbertEncoder) -> dict[str, float]:
    started = time.perf_counter()
    report = build_index(IndexConfig(source=source, limit=limit, index_folder=folder), encoder)
    hits = build_retriever(Path(report.path), encoder).search(QUERY, 10)
    assert len(hits) == 10
    steps = {**report.seconds, "total": time.perf_counter() - started}
    return {"documents": report.documents, "tokens": report.tokens, **steps}


def theirs(source: Path, limit: int, folder: str, encoder: ColbertEncoder) -> dict[str, float]:
    from chonkie import SentenceChunker
    from pylate import indexes, retrieve

    started = time.perf_counter()
    model = encoder._model
    chunker = SentenceChunker(tokenizer=encoder._counting, chunk_size=500)
    texts = [chunk.text for one in islice(read_documents(source), limit) for chunk in chunker.chunk(one.content)]
    chunked = time.perf_counter()
    prompt = encoder._prompts["document"]
    vectors = model.encode(texts, is_query=False, prompt=prompt, batch_size=32, show_progress_bar=False)
    encoded = time.perf_counter()
    index = indexes.PLAID(index_folder=folder, index_name="plaid", override=True, show_progress=False)
    index.add_documents(documents_ids=[str(number) for number in range(len(texts))], documents_embeddings=vectors)
    written = time.perf_counter()
    query = model.encode([QUERY], is_query=True, prompt=encoder._prompts["query"], show_progress_bar=False)
    assert len(retrieve.ColBERT(index=index).retrieve(queries_embeddings=query, k=10)[0]) == 10
    return {
        "documents": limit,
        "tokens": sum(len(one) for one in vectors),
        "chunk": chunked - started,
        "encode": encoded - chunked,
        "write_plaid": written - encoded,
        "total": time.perf_counter() - started,
    }


if __name__ == "__main__":
    main()
