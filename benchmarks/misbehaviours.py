"""Count, as JSON, how many misbehaviours of a model end as they should (`tests/agent/test_misbehaviours.py`)."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ["-p", "no:xdist", "-k", "ends_well", "tests/agent/test_misbehaviours.py"]

if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "-q", *TESTS]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    passed = re.search(r"(\d+) passed", ran.stdout)
    print(json.dumps({"end as they should": int(passed[1]) if passed else 0}))
