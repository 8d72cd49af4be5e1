"""Build a Library: the same as `legal-rag index`, with the same arguments.

Run: python scripts/indexer.py --source decisions.jsonl.gz --index-folder index
"""

import sys

from legal_rag.cli import main

if __name__ == "__main__":
    sys.exit(main(["index", *sys.argv[1:]]))
