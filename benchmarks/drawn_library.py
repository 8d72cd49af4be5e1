"""Build a Library of documents drawn at random from a source, by `legal-rag index`.

Run: python benchmarks/drawn_library.py DOCUMENTS SOURCE INDEX_FOLDER INDEX_NAME [--config FILE]
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from legal_rag.cli import main as legal_rag
from legal_rag.corpus import read_documents

SEED = 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", type=int)
    parser.add_argument("source")
    parser.add_argument("index_folder")
    parser.add_argument("index_name")
    parser.add_argument("--config")
    arguments = parser.parse_args()
    drawn = random.Random(SEED).sample([one.id for one in read_documents(arguments.source)], arguments.documents)
    with tempfile.TemporaryDirectory() as folder:
        ids = Path(folder, "ids.txt")
        ids.write_text("\n".join(drawn), "utf-8")
        config = ["--config", arguments.config] if arguments.config else []
        place = ["--index-folder", arguments.index_folder, "--index-name", arguments.index_name]
        taken = ["--source", arguments.source, "--ids-file", str(ids), "--limit", str(arguments.documents)]
        return legal_rag([*config, "index", *taken, *place, "--encoder", "bundled"])


if __name__ == "__main__":
    sys.exit(main())
