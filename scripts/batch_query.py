"""Rank documents for many questions, write run.txt and qrels.txt, show some hits and misses: `legal-rag evaluate`.

Run: python scripts/batch_query.py --queries questions [--output FOLDER] [--force]
"""

import sys

from legal_rag.cli import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", "--output", ".", "--show", "5", *sys.argv[1:]]))
