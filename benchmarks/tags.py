"""Milliseconds that it takes to read the tags of a megabyte of hostile text, and of an ordinary answer.

Run: python benchmarks/tags.py [--bytes 1000000]

Each text is read five times; the fastest counts. The bar is 100 ms a megabyte.
"""

import argparse
import time

from legal_rag.graph import parse_extraction_tags

ANSWER = (
    "Le trouble anormal de voisinage engage sans faute celui qui le cause « nul ne doit causer à autrui un trouble »"
    ' [Source: A, chars 10-60].\n\n<vm:entity name="trouble anormal de voisinage" type="concept" confidence="0.9"/>\n'
    '<vm:relationship from="A" to="article 544 du code civil" type="applies" confidence="0.8"/>\n'
)
CASES = {
    "an answer, repeated": (ANSWER, ""),
    "self-closing tags": ('<vm:entity name="a" type="tool"/>', ""),
    "paired tags": ('<vm:entity name="a" type="tool">x</vm:entity>', ""),
    "opening tags": ('<vm:entity name="a" type="tool">', ""),
    "opening episodes": ('<vm:episode decision="d">', ""),
    "beginnings of tags": ("<vm:", ""),
    "values without an end": ('<vm:entity name="', ""),
    "quotes in one value": ('"', '<vm:entity name="'),
    "escapes in one value": ("&amp;", '<vm:entity name="'),
    "attributes of one tag": ("a=", "<vm:entity "),
    "words in one tag": ("abc ", "<vm:entity "),
    "blanks in one tag": (" ", "<vm:entity"),
    "blocks of code": ("```\n", ""),
    "less-than signs": ("< ", ""),
    "line breaks around tags": ("\n" * 10 + "<vm:x/>", ""),
    "prose": ("La Cour rejette le pourvoi. ", ""),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=1_000_000)
    size = parser.parse_args().bytes
    texts = {name: head + piece * (size // len(piece)) for name, (piece, head) in CASES.items()}
    half = size // 2
    texts["nested episodes"] = '<vm:episode decision="d">' * (half // 25) + "</vm:episode>" * (half // 13)
    texts["one answer"] = ANSWER
    print(f"{'case':26} {'characters':>12} {'ms':>8}")
    for name, text in texts.items():
        print(f"{name:26} {len(text):12,} {min(_milliseconds(text) for _ in range(5)):8.2f}")


def _milliseconds(text: str) -> float:
    started = time.perf_counter()
    parse_extraction_tags(text)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
