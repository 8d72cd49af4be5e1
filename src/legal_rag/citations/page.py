"""Show a verification: a page of the text with verdicts in its margins, or lines for a terminal."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from legal_rag.base.html import NotebookFrame, frame_of_page, french_number, own_script, own_style, page_template
from legal_rag.citations.verdicts import IN_FRENCH, STATUSES, Reference, Status, Verification

PACKAGE = "legal_rag.citations"
TITLE = "Références vérifiées"
SIGNS: dict[Status, str] = {
    "confirmed": "✓", "wrong": "✗", "absent": "?", "ambiguous": "≈", "unread": "…", "out_of_scope": "∅",
}  # fmt: skip
KINDS = {"decision": "décision", "article": "article", "quotation": "citation"}
MEANINGS: dict[Status, str] = {
    "confirmed": "dans l'index, et conforme à ce que le texte en dit",
    "wrong": "contraire à l'index : la marge dit ce qui est juste",
    "absent": "ni confirmé ni démenti : l'index ne l'a pas",
    "ambiguous": "plusieurs documents de l'index conviennent",
    "unread": "ressemble à une référence, et n'a pu être lu",
    "out_of_scope": "d'une juridiction ou d'un code dont l'index n'a rien",
}
LINE_CHARS = 400  # of a reference in the terminal
MAX_SHOWN = 600_000  # characters of the text in a page
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")


class CheckedPiece(NamedTuple):
    """A piece of the text in one style."""

    text: str
    status: Status | None  # of the shortest reference that it belongs to
    ends: list[int]  # numbers of the references that end with it


class PageRow(NamedTuple):
    """A paragraph, and the notes in its margin: numbered references."""

    pieces: list[CheckedPiece]
    notes: list[tuple[int, Reference]]


def render_verification(verification: Verification, title: str = "") -> str:
    """Render a text, with its title, and its verdicts as a French HTML page that loads nothing from elsewhere."""
    heading = f"{title[:100]} — {TITLE}" if title else TITLE
    frame = frame_of_page(heading, own_script(PACKAGE), own_style(PACKAGE, "verification.css"))
    numbered = list(enumerate(verification.references, start=1))
    values = {
        "title": title,
        "verification": verification,
        "rows": list(rows_of(verification)),
        "left_out": max(len(verification.text) - MAX_SHOWN, 0),
        "wrong": [(number, reference) for number, reference in numbered if reference.status == "wrong"],
        "statuses": STATUSES,
        "words": IN_FRENCH,
        "signs": SIGNS,
        "kinds": KINDS,
        "meanings": MEANINGS,
        "number": french_number,
        "typeset": typeset,
    }
    return page_template(PACKAGE, "verification.html.j2").render(**frame, **values)


def show_verification(verification: Verification, height: int = 720) -> Any:
    """Render a verification for a notebook, in a sandboxed frame `height` pixels high."""
    return NotebookFrame(render_verification(verification), TITLE, height)


def format_verification(verification: Verification) -> str:
    """Write a verification as lines: each reference with its line, the verdict and what is right; then the counts."""
    lines = [_format_reference(reference) for reference in verification.references]
    counts = verification.counts
    counted = ", ".join(f"{counts[status]} {IN_FRENCH[status]}" for status in STATUSES if counts[status])
    n = len(verification.references)
    total = f"{n} référence{'s' * (n > 1)} : {counted}." if n else "Aucune référence trouvée."
    return "\n".join([*lines, *verification.notices, *verification.unread, total])


def _format_reference(ref: Reference) -> str:
    near = f" Proche : {'; '.join(f'{doc.title} ({doc.why})' for doc in ref.nearest)}." if ref.nearest else ""
    changed = "".join(
        f" « {fix.stated} » au lieu de « {fix.right} »." for fix in ref.corrections if fix.what == "words" and fix.right
    )
    of = f" [{ref.title}]" if ref.title and ref.status == "confirmed" else ""
    text = ref.text if len(ref.text) <= LINE_CHARS // 4 else ref.text[: LINE_CHARS // 4].rstrip() + "…"
    message = f"{SIGNS[ref.status]} {IN_FRENCH[ref.status]} : {text}{of} — {ref.explanation}{changed}{near}"
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in message).split())
    line = line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1].rstrip() + "…"
    return f"{ref.place} : {line}"


def typeset(text: str) -> str:
    """Keep guillemets and high punctuation with their words, as French typography does."""
    return re.sub(r"(?<=«) | (?=[»:;?!])", "\u00a0", text)


def rows_of(verification: Verification) -> Iterator[PageRow]:
    """Cut a text into paragraphs with the references that begin in each; linear apart from sorting."""
    text = verification.text[:MAX_SHOWN]
    numbered = list(enumerate(verification.references, start=1))
    starts = [reference.start for _, reference in numbered]
    begin = 0
    for end in [*(match.end() for match in _PARAGRAPH.finditer(text)), len(text)]:
        notes = numbered[bisect_left(starts, begin) : bisect_left(starts, end)]
        if text[begin:end].strip():
            open_before = [entry for entry in numbered[: bisect_left(starts, begin)][-20:] if entry[1].end > begin]
            yield PageRow(list(_split_pieces(text, begin, end, [*open_before, *notes])), notes)
        begin = end


def _split_pieces(
    text: str, begin: int, end: int, references: Sequence[tuple[int, Reference]]
) -> Iterator[CheckedPiece]:
    changes: dict[int, list[tuple[int, Reference]]] = {begin: [], end: []}
    for number, reference in references:
        for place in (reference.start, reference.end):
            changes.setdefault(min(max(place, begin), end), []).append((number, reference))
    inside: dict[int, Reference] = {}
    places = sorted(changes)
    for start, stop in pairwise(places):
        for number, reference in changes[start]:
            if reference.start <= start < reference.end:
                inside[number] = reference
            else:
                inside.pop(number, None)
        shortest = min(inside.values(), key=lambda reference: reference.end - reference.start, default=None)
        ends = [number for number, reference in changes[stop] if reference.end == stop]
        yield CheckedPiece(
            text[start:stop].rstrip() if stop == end else text[start:stop], shortest.status if shortest else None, ends
        )
