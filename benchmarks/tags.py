"""Milliseconds that it takes to read the tags of a megabyte of hostile text, and of an ordinary answer.

Run: python benchmarks/tags.py [--bytes 1000000]

Each text is read five times; the fastest counts, in the processor's time. The bar is 200 ms a megabyte.
"""

import argparse
import time

from legal_rag.graph import parse_extraction_tags

ANSWER = (
    "Le trouble anormal de voisinage engage sans faute celui qui le cause « nul ne doit causer à autrui un trouble »"
    ' [Source: A, chars 10-60].\n\n<vm:entity name="trouble anormal de voisinage" type="concept" confidence="0.9"/>\n'
    '<vm:relationship from="A" to="article 544 du code civil" type="applies" confidence="0.8"/>\n'
)
# What is repeated up to the size, and what stands before it once.
CASES = {
    "an answer, repeated": (ANSWER, ""),
    "prose": ("La Cour rejette le pourvoi. ", ""),
    "self-closing tags": ('<vm:x a="1"/>', ""),
    "entities": ('<vm:entity name="a" type="tool"/>', ""),
    "paired tags": ('<vm:entity name="a" type="tool">x</vm:entity>', ""),
    "opening tags": ('<vm:entity name="a" type="tool">', ""),
    "opening episodes": ('<vm:episode decision="d">', ""),
    "closing tags": ("</vm:entity>", ""),
    "beginnings of tags": ("<vm:", ""),
    "values without an end": ('<vm:entity name="', ""),
    "quotes in one value": ('"', '<vm:entity name="'),
    "quotes in 500 values": ('<vm:entity name="' + '" ' * 990, ""),
    "blanks in 500 values": ('<vm:entity name="' + " " * 1980, ""),
    "values with forgotten quotes": ("<vm:x " + 'name="b ' * 240, ""),
    "odd quotes": ("<vm:x " + "a='b \"x " * 240, ""),
    "escapes in one value": ("&", '<vm:entity name="'),
    "attributes of one tag": ("a=", "<vm:entity "),
    "attributes of 500 tags": ("<vm:x " + 'a="b" ' * 330 + "/>", ""),
    "words in one tag": ("abc ", "<vm:entity "),
    "lessons": ('<vm:episode decision="d">' + "<lesson>a</lesson>" * 200 + "</vm:episode>", ""),
    "beginnings within episodes": ('<vm:episode decision="d">' + "<" * 4900 + "</vm:episode>", ""),
    "names that fold to a sentence": (f'<vm:relationship from="{"ﷺ" * 290}" to="b" type="cites"/>', ""),
    "blocks of code": ("```\n", "<vm:x/>\n"),
    "blocks of code with a tag": ("```\n<vm:x/>\n```\n", ""),
    "less-than signs": ("<", "<vm:x/>"),
    "line breaks around tags": ("\n\n\n<vm:x/>\n\n\n", ""),
    "a flood of line breaks": ("\n", "<vm:x/>"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=1_000_000)
    size = parser.parse_args().bytes
    texts = {name: head + piece * (size // len(piece)) for name, (piece, head) in CASES.items()}
    half = size // 2
    texts["nested episodes"] = '<vm:episode decision="d">' * (half // 25) + "</vm:episode>" * (half // 13)
    texts["one answer"] = ANSWER
    print(f"{'case':30} {'characters':>12} {'ms':>8}")
    for name, text in texts.items():
        print(f"{name:30} {len(text):12,} {min(_milliseconds(text) for _ in range(5)):8.2f}")


def _milliseconds(text: str) -> float:
    started = time.process_time()
    parse_extraction_tags(text)
    return (time.process_time() - started) * 1000


if __name__ == "__main__":
    main()
