"""Download decisions of Judilibre, the API of the Cour de cassation, as JSON Lines that `legal-rag index` reads.

Run: JUDILIBRE_API_KEY=... python scripts/judilibre.py --output judilibre.jsonl [NAME=VALUE ...]

NAME=VALUE are parameters of the API's `export`: `jurisdiction=cc`, `date_start=2024-01-01`, `date_end=2024-01-31`.
PISTE (piste.gouv.fr) gives keys; the key is read from the environment only. Tested against a scripted server; the API
itself is untested here.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter, Retry

from legal_rag.base.files import progress, written_whole

API_BASE = "https://api.piste.gouv.fr/cassation/judilibre/v1.0"
BATCH = 100  # decisions an answer
WAIT_S = 60  # for an answer
RETRIES = Retry(5, backoff_factor=0.5, status_forcelist=(429, 500, 502, 503, 504), raise_on_status=False)


def main(argv: list[str] | None = None) -> int:
    """Write the file; return 1, and leave an earlier file as it is, if the API does not give a whole export."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--api-base", default=API_BASE)
    parser.add_argument("parameters", nargs="*", metavar="NAME=VALUE")
    arguments = parser.parse_args(argv)
    if not (key := os.environ.get("JUDILIBRE_API_KEY", "")):
        parser.error("no key (expected one in the environment variable JUDILIBRE_API_KEY)")
    if malformed := [one for one in arguments.parameters if "=" not in one]:
        parser.error(f"not a parameter: {malformed[0]!r} (expected NAME=VALUE)")
    parameters = dict(one.split("=", 1) for one in arguments.parameters)
    try:
        with written_whole(arguments.output) as file, progress("Downloading", unit=" docs") as bar:
            for decision in exported(arguments.api_base, key, parameters):
                file.write(json.dumps(decision, ensure_ascii=False).encode() + b"\n")
                bar.update()
    except (requests.RequestException, ValueError, OSError) as error:
        print(f"{arguments.output} is not written: {error}", file=sys.stderr)
        return 1
    return 0


def exported(api_base: str, key: str, parameters: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the decisions of an export, batch by batch.

    Raises:
        requests.RequestException: If the API does not answer, or with an error, five times.
        ValueError: If its answer is not an export.
    """
    session = requests.Session()
    session.mount("https://", HTTPAdapter(max_retries=RETRIES))
    session.mount("http://", HTTPAdapter(max_retries=RETRIES))
    batch: int | None = 0
    while batch is not None:
        asked = {"resolve_references": "true", "batch_size": str(BATCH), **parameters, "batch": str(batch)}
        # A redirection would be sent the key.
        answer = session.get(
            f"{api_base}/export", params=asked, headers={"KeyId": key}, timeout=WAIT_S, allow_redirects=False
        )
        answer.raise_for_status()
        found = answer.json() if answer.ok and not answer.is_redirect else None
        if not isinstance(found, dict) or not isinstance(found.get("results"), list):
            raise ValueError(f"{api_base}/export, batch {batch}: not an export (expected an object with 'results')")
        yield from found["results"]
        batch = batch + 1 if found["results"] and found.get("next_batch") else None


if __name__ == "__main__":
    sys.exit(main())
