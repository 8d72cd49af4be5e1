"""Show a verification: a page of the text with verdicts in its margins, or lines for a terminal."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from legal_rag.base.html import NotebookFrame, frame_of_page, french_number, own_script, own_style, page_template
from legal_rag.base.text import one_line
from legal_rag.citations.verdicts import IN_FRENCH, STATUSES, WHAT_IN_FRENCH, Reference, Status, Verification, counted

PACKAGE = "legal_rag.citations"
TITLE = "Références vérifiées"
SIGNS: dict[Status, str] = {
    "confirmed": "✓", "wrong": "✗", "absent": "?", "ambiguous": "≈", "unread": "…", "out_of_scope": "∅",
}  # fmt: skip
KINDS = {"decision": "décision", "article": "article", "law": "loi", "quotation": "citation"}
MEANINGS: dict[Status, str] = {
    "confirmed": "dans l'index, et conforme à ce que le texte en dit",
    "wrong": "contraire à l'index : la marge dit ce qui est juste",
    "absent": "ni confirmé ni démenti : l'index ne l'a pas",
    "ambiguous": "plusieurs documents de l'index conviennent, ou l'article y est dans une autre version",
    "unread": "ressemble à une référence, et n'a pu être lu",
    "out_of_scope": "l'index n'a rien de cette juridiction ou de ce texte",
}
LINE_CHARS = 400  # of a reference in the terminal
MAX_SHOWN = 600_000  # characters of the text in a page
UNFOLDED = 12  # references in an open list, but for wrong and absent ones
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
    values = {
        "title": title,
        "verification": verification,
        "total": _format_total(verification),
        "numbered": list(enumerate(verification.references, start=1)),
        "rows": list(rows_of(verification)),
        "max_shown": MAX_SHOWN,
        "unfolded": UNFOLDED,
        "left_out": max(len(verification.text) - MAX_SHOWN, 0),
        "statuses": STATUSES,
        "words": IN_FRENCH,
        "compared": _compared,
        "nearness_of": _nearness_of,
        "signs": SIGNS,
        "kinds": KINDS,
        "meanings": MEANINGS,
        "number": french_number,
        "fate_of": _fate_of,
        "correction_of": _correction_of,
        "changes_of": _changes_of,
        "typeset": typeset,
    }
    return page_template(PACKAGE, "verification.html.j2").render(**frame, **values)


def show_verification(verification: Verification, height: int = 720) -> Any:
    """Render a verification for a notebook, in a sandboxed frame `height` pixels high."""
    return NotebookFrame(render_verification(verification), TITLE, height)


def format_verification(verification: Verification) -> str:
    """Write a verification as lines: each reference, wrong and absent ones first; notices, unread parts; the counts."""
    unread = [f"⚠ {sentence}" for sentence in verification.unread]
    lines = [
        *map(_format_reference, verification.by_status),
        *verification.notices,
        *unread,
        _format_total(verification),
    ]
    return "\n".join(lines)


def comment_of(reference: Reference) -> str:
    """Write what became of a reference as a short comment on it: status, what is right, its source."""
    links = reference.source.links[:1] if reference.source else [reference.link] if reference.link else []
    source = " ".join(filter(None, [reference.title, *(link.url for link in links)]))
    return "\n".join(filter(None, (f"{_verdict_of(reference)} — {_explain(reference)}", source)))


def _format_total(verification: Verification) -> str:
    n = len(verification.references)
    if n:
        return f"{n} référence{'s' * (n > 1)} : {counted(verification.references)}."
    return f"Aucune référence trouvée dans {'le texte, lu en entier' if verification.complete else 'ce qui a été lu'}."


def _format_reference(ref: Reference) -> str:
    text = ref.text if len(ref.text) <= LINE_CHARS // 4 else ref.text[: LINE_CHARS // 4].rstrip() + "…"
    of = f" [{ref.title}]" if ref.title.replace("\u00a0", " ") not in ref.text else ""
    line = one_line(f"{_verdict_of(ref)} : {text}{of} — {_explain(ref)}")
    line = line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1].rstrip() + "…"
    return f"{ref.place} : {line}"


def _verdict_of(ref: Reference) -> str:
    return ", ".join(filter(None, (f"{SIGNS[ref.status]} {IN_FRENCH[ref.status]}", _fate_of(ref))))


def _fate_of(ref: Reference) -> str:
    return ", ".join(f"{later.why} {later.title}" for later in ref.fate)


def _explain(ref: Reference) -> str:
    speaker = f"Qui parle : {ref.said_by}." if ref.said_by not in ref.explanation else ""
    near = " ; ".join(f"{doc.title} ({doc.why})" for doc in ref.nearest)
    near = f"{_nearness_of(ref)} : {near}." if near else ""
    return " ".join(filter(None, (_correction_of(ref), _compared(ref), speaker, near)))


def _compared(ref: Reference) -> str:
    return f"Comparé : {', '.join(WHAT_IN_FRENCH[what] for what in ref.checked)}." if ref.checked else ""


def _nearness_of(ref: Reference) -> str:
    return "Possible" if ref.status == "ambiguous" else "Proche"


def _correction_of(ref: Reference) -> str:
    changes = _changes_of(ref)
    return f"{' ; '.join(changes)}." if changes else ref.explanation


def _changes_of(ref: Reference) -> list[str]:
    """Say which words differ from the source's; none if the source has nothing of the kind."""
    return [
        f"« {stated} » au lieu de « {right} »"
        if stated and right
        else f"« {stated or right} » {'en trop' if stated else 'manque'}"
        for what, stated, right in ref.corrections
        if what == "words" and (right or len(stated) < len(ref.text) / 2) and " ".join(stated.split()) in ref.text
    ]


def typeset(text: str) -> str:
    """Keep guillemets and high punctuation with their words, as French typography does."""
    return re.sub(r"(?<=«) | (?=[»:;?!])", "\u00a0", text)


def rows_of(verification: Verification) -> Iterator[PageRow]:
    """Cut a text into paragraphs with the references that begin in each; linear apart from sorting and overlaps."""
    text = verification.text[:MAX_SHOWN]
    breaks = {*(match.end() for match in _PARAGRAPH.finditer(text)), len(text)}
    changes: dict[int, list[tuple[int, Reference]]] = defaultdict(list)
    for number, reference in enumerate(verification.references, start=1):
        for place in (reference.start, reference.end):
            changes[min(place, len(text))].append((number, reference))
    inside: dict[int, Reference] = {}
    row = PageRow([], [])
    for start, stop in pairwise(sorted({0, *breaks, *changes})):
        for number, reference in changes.get(start, ()):
            if reference.start == start:
                inside[number] = reference
                row.notes.append((number, reference))
            else:
                del inside[number]
        shortest = min(inside.values(), key=lambda reference: reference.end - reference.start, default=None)
        words = text[start:stop].rstrip() if stop in breaks else text[start:stop]
        ends = [number for number, reference in changes.get(stop, ()) if reference.end == stop]
        row.pieces.append(CheckedPiece(words, shortest.status if shortest else None, ends))
        if stop in breaks:
            yield row
            row = PageRow([], [])
