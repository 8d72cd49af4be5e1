"""What several test files and benchmarks share: scripted models, made-up corpora, attacks, a browser."""

import os
from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent


def model_variables() -> list[str]:
    """Return the names of the environment's variables by which a model would be asked."""
    names = (name for name in os.environ if name.startswith("GENERATOR_") or name.endswith("_API_KEY"))
    return [*names, *({"HF_TOKEN"} & os.environ.keys())]
