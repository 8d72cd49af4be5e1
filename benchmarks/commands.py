"""Run every command that needs no model on the sample corpus, as a new user would, and print a table.

Run: python benchmarks/commands.py [--legal-rag COMMAND]

Each runs in an empty folder with a cache of its own, one after the other, as a whole process: so the first search
converts the encoder, or finds it converted by `index`. The table has its seconds, its exit status and the last line it
says: what is there, or what to do next.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUESTION = "Un candidat en retard pour son compte de campagne est-il inéligible ?"
RIGHT = (
    "--help",
    "index --source sample",
    "info",
    f"search '{QUESTION}'",
    f"search '{QUESTION}' --mode bm25",
    f"search '{QUESTION}' --speaker court --section dispositif",
    f"search '{QUESTION}' --structured",
    "lookup FICTIF0112",
    "lookup FICTIF0112 --outline",
    f"ask '{QUESTION}'",
    f"ask '{QUESTION}' --html answer.html --save",
    "answers",
    "questions --no-model --limit 5 --output questions",
    "extract --output extracted",
    "corpus-index",
    "rebuild --dry-run",
    "export --trees trees",
    "rebuild --trees-from trees",
    "remove FICTIF0112",
    "add sample",
    "compact",
    "doctor",
)
WRONG = (
    "serch essai",
    "index --source nowhere.jsonl",
    "search essai --index-name other",
    "search essai --juridiction 'cour de casation'",
    "search essai --speaker juge",
    "search zyxwvut --mode bm25",
    "lookup FICTIF9999",
    "ask 'Comment réussir une mayonnaise ?'",
    "deep-read 'Combien de décisions ?'",
    "evaluate --queries nowhere.jsonl",
)
LAST_CHARS = 110


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--legal-rag", default=str(Path(sys.executable).parent / "legal-rag"))
    command = parser.parse_args().legal_rag
    print("| command | seconds | status | last line |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LEGAL_RAG_CACHE": str(Path(folder) / "cache")}
        for line in (*RIGHT, *WRONG):
            started = time.perf_counter()
            done = subprocess.run(  # noqa: S603
                [command, *shlex.split(line)], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            seconds = time.perf_counter() - started
            said = [one for one in (done.stdout + done.stderr).splitlines() if one.strip()]
            last = " ".join(said[-1].split())[:LAST_CHARS].replace("|", "\\|") if said else ""
            print(f"| `{line}` | {seconds:.1f} | {done.returncode} | {last} |", flush=True)


if __name__ == "__main__":
    main()
