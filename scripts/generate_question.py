"""Make a dataset of grounded questions and answers: the same as `legal-rag questions`, with the same arguments.

Run: python scripts/generate_question.py --source FILE --limit 100 --output questions --model NAME --api-base URL
"""

import sys

from legal_rag.cli import main

if __name__ == "__main__":
    sys.exit(main(["questions", *sys.argv[1:]]))
