"""What several test files and benchmarks share: scripted models, made-up corpora, attacks, a browser."""

from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
