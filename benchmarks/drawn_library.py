"""Build a Library of documents drawn at random from a source, by `legal-rag index`.

Run: python benchmarks/drawn_library.py DOCUMENTS SOURCE INDEX_FOLDER INDEX_NAME [--config FILE] [--qrels FILE]...

Beside the Library the judgements of each FILE on its documents are written, as `INDEX_NAME-FILE`: a document that it
lacks cannot be found.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from legal_rag.cli import main as legal_rag
from legal_rag.corpus import read_documents
from legal_rag.evaluation import read_qrels, write_qrels

SEED = 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", type=int)
    parser.add_argument("source")
    parser.add_argument("index_folder")
    parser.add_argument("index_name")
    parser.add_argument("--config")
    parser.add_argument("--qrels", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    drawn = random.Random(SEED).sample([one.id for one in read_documents(arguments.source)], arguments.documents)
    held = set(drawn)
    for file in arguments.qrels:
        qrels = {qid: {one: n for one, n in judged.items() if one in held} for qid, judged in read_qrels(file).items()}
        place = Path(arguments.index_folder, f"{arguments.index_name}-{file.name}")
        write_qrels(place, {qid: judged for qid, judged in qrels.items() if judged})
    with tempfile.TemporaryDirectory() as folder:
        ids = Path(folder, "ids.txt")
        ids.write_text("\n".join(drawn), "utf-8")
        config = ["--config", arguments.config] if arguments.config else []
        library = ["--index-folder", arguments.index_folder, "--index-name", arguments.index_name]
        taken = ["--source", arguments.source, "--ids-file", str(ids), "--limit", str(arguments.documents)]
        return legal_rag([*config, "index", *taken, *library, "--encoder", "bundled"])


if __name__ == "__main__":
    sys.exit(main())
