"""Make a dataset of grounded questions and answers: the same as `legal-rag questions`, with the same arguments.

Run: python scripts/generate_question.py --output questions --limit 100 --api-base http://127.0.0.1:8000/v1 --model NAME
"""

import sys

from legal_rag.cli import main

if __name__ == "__main__":
    sys.exit(main(["questions", *sys.argv[1:]]))
