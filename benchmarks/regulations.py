"""Ask employees' questions of Markdown regulations, and count how often the rule that answers comes first.

Run: python benchmarks/regulations.py [--missed]

Each set of `data/regulations/queries.toml` has a folder of regulations and questions with a part of the rule expected.
`entity` counts the first of `Library.entities_like`, `stated` those of them with the type of rule and the figures
expected, `result` the first of `search --structured`, where it is an entity's sentence. No model is asked.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from legal_rag.encoder import bundled_encoder
from legal_rag.extraction import ExtractionSettings
from legal_rag.indexer import IndexConfig, build_index, extract_library, open_index
from legal_rag.retriever import StructuredProvider, build_retriever

REGULATIONS = Path(__file__).parent / "data" / "regulations"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missed", action="store_true", help="print the questions whose first entity is another")
    arguments = parser.parse_args()

    encoder = bundled_encoder()
    queries_of = tomllib.loads((REGULATIONS / "queries.toml").read_text("utf-8"))
    figures = {}
    for name, queries in queries_of.items():
        with tempfile.TemporaryDirectory() as folder:
            config = IndexConfig(source=str(REGULATIONS / name), index_folder=folder)
            build_index(config, encoder)
            extract_library(open_index(config), ExtractionSettings(schema_name="regulation"))
            library = open_index(config)
            provider = StructuredProvider(build_retriever(library, encoder))
            right, stated, shown, seconds = 0, 0, 0, []
            for query in queries:
                started = time.perf_counter()
                first = next((hit.entity for hit in library.entities_like(query["question"], 1)), None)
                seconds.append(time.perf_counter() - started)
                is_right = first is not None and query["entity"] in first["extraction_text"]
                expected = query.get("attributes", {}) | {"rule_type": query.get("rule_type")}
                attributes = first["attributes"] if first else {}
                right += is_right
                stated += is_right and all(value in (None, attributes.get(key)) for key, value in expected.items())
                result = provider.retrieve(query["question"], 1)[0]
                shown += result.source == "entity" and query["entity"] in result.text
                if arguments.missed and not is_right:
                    print(f"{query['id']} {query['question']}: {first and first['extraction_text']!r}", file=sys.stderr)
            counts = {"questions": len(queries), "entity": right, "stated": stated, "result": shown}
            figures[name] = {**counts, "milliseconds": 1000 * statistics.median(seconds)}
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
