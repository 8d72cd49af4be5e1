"""Rank documents for many questions and write run and qrels files: the same as `legal-rag evaluate`.

Run: python scripts/batch_query.py --queries questions.jsonl --run-out run.txt --qrels-out qrels.txt
"""

import sys

from legal_rag.cli import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
