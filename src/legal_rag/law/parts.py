"""The main parts of a decision, by French drafting rules: header, statement, claims, reasons, ruling, annex."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from legal_rag.base.text import Span, read_words
from legal_rag.law.ruling import Operative, operative_part
from legal_rag.law.tree import BEFORE_HEADING, NUMBER, PartKind, cues, heading_letters, headings

_LINE = re.compile(r"\S(?:[^\n]*\S)?")
_INLINE_HEADINGS, _AFTER_SENTENCE = (
    "|".join(map(heading_letters, read_words("legal_rag.law", "cues.toml")[name]))
    for name in ("inline_headings", "inline_after_sentence")
)
_INLINE = re.compile(  # where a line is cut: a heading in it, or a reason after another
    rf"(?<=[\s.;:,)»*_-])(?:{_INLINE_HEADINGS})(?![\w'’])"
    rf"|(?<=[.;:,*\])»])\s(?=(?:{_AFTER_SENTENCE})(?![\w'’]|\s(?:PROPRES|ADOPT|QU)))"
    r"|(?<=[.;])(?<!\d\.)\s{0,2}(?<!\d\.\s)(?<!\d\.\s\s)"
    r"(?=(?:(?:(?:MAIS|Mais)\s)?(?:ATTENDU|Attendu)|CONSID[EÉ]RANT|Considérant)\s)",
    re.MULTILINE,
)
_STATEMENT, _CLAIMS, _REASONS = map(
    re.compile, map(headings, ("statement_headings", "claims_headings", "reasons_headings"))
)
_SEIZES = re.compile(cues("seizes"))
_GROUND = re.compile(rf"{BEFORE_HEADING}{cues('grounds')}")
RULES_ON = re.compile(rf"{headings('ruling_headings')}|{BEFORE_HEADING}{cues('rules_on')}")
_ANNEX = re.compile(cues("annexes"))
_OF_A_GROUND = re.compile(r"\bmoyens?\b|\A\W*(?:motif|m\so\st\si\sf|sur\s(?:ce|quoi)\b|discussion)", re.IGNORECASE)
_MOTIFS = re.compile(
    rf"{BEFORE_HEADING}(?:{heading_letters('MOTIFS')}(?![\w'’])|S(?:UR|ur)\s(?:CE|ce|QUOI|quoi)\s?[:,]?\s*\Z)"
)
_OF_COUNCIL = re.compile(rf"{NUMBER}(?:CONSID[EÉ]RANT|[Cc]onsid[eé]rant)\b|1\s?\.(?!\d)\s?[A-ZÀ-Þ]")
_FIRST_NUMBER = re.compile(r"1\s?\.(?!\d)\s?[-–]?\s?(?=[A-ZÀ-ÖØ-Þ])")
REASON = re.compile(rf"{NUMBER}(?:attendu|considérant)\b", re.IGNORECASE)
_PRESENTS, _HAPPENED = re.compile(cues("presents"), re.IGNORECASE), re.compile(cues("happened"))
_OF_THE_PROCEDURE = re.compile(cues("of_the_procedure"), re.IGNORECASE)
_CONCLUDES = re.compile(cues("concludes"))
_QUASHES = re.compile(cues("quashes"), re.IGNORECASE)
_COURT_NAMED, _COURT_TOLD = re.compile(cues("court_named")), re.compile(cues("court_told"))
_PLEADS, _COURT_FORM = re.compile(cues("pleads")), re.compile(rf"{REASON.pattern}|(?:Vu|VU)\b", re.IGNORECASE)
_HEAD_CHARS = 4000  # in which a court is named: a summary may precede its name
_QUOTE_CHARS = 2000  # before a line, searched for the start of a quotation around it
_ACCOUNT_CHARS = 80  # of a sentence of narrative, at least
_ANNEX_FROM = 6  # no annex begins in the first sixth of a decision's lines

ZONES: dict[str, PartKind] = {
    "introduction": "header", "expose": "statement", "moyens": "claims", "motivations": "reasons",
    "dispositif": "ruling", "annexes": "annex",
}  # fmt: skip
SpeaksForItself = Callable[[str], bool]

_HEADINGS = {"statement": _STATEMENT, "claims": _CLAIMS, "reasons": _REASONS, "ruling": RULES_ON, "annex": _ANNEX}


def is_part_heading(kind: PartKind, text: str, start: int) -> bool:
    """Is the heading at `start` that of the main part itself, rather than of its subject?"""
    pattern = _HEADINGS.get(kind)
    return pattern is not None and pattern.match(text, start) is not None


def split_lines(text: str) -> Iterator[Span]:
    """Yield the lines that are not blank, without white space around, cut before a known heading within a line."""
    for match in _LINE.finditer(text):
        start, end = match.span()
        for within in _INLINE.finditer(text, start + 1, end):
            if before := text[start : within.start()].rstrip():
                yield start, start + len(before)
                start = within.start() + (text[within.start()] == " ")
        yield start, end


def part_of_each(text: str, lines: Sequence[Span], is_own_reason: SpeaksForItself) -> list[PartKind]:
    """Return the main part of each line.

    Args:
        text: A decision; in other texts no line opens reasons or a ruling.
        lines: As `split_lines` yields them.
        is_own_reason: Whether a line that begins like a reason is the court's own reasoning.
    """
    operative = operative_part(text)
    ruling, annex = _ruling(text, lines, operative)
    before = [text[start:end] for start, end in lines[:ruling]]
    opened = _account(before, bool(operative and operative.in_articles), is_own_reason)
    opened = {0: "header", **opened, ruling: "ruling", annex: "annex"}
    parts: list[PartKind] = []
    for number in range(len(lines)):
        parts.append(opened.get(number) or parts[-1])
    return parts


def part_of_zones(zones: object, lines: Sequence[Span], n_chars: int) -> list[PartKind] | None:
    """Return the main part of each line by the zones of a Judilibre record; None if they do not fit the text.

    Args:
        zones: Lists of {"start", "end"}, in characters, by the names in `ZONES`, as the Cour de cassation's Judilibre
            gives them; anything else is None.
        lines: As `split_lines` yields them.
        n_chars: The length of the text.
    """
    spans = sorted(_zone_spans(zones))
    fits = all(0 <= start < end <= n_chars for start, end, _ in spans)
    if not spans or not fits or any(zone[1] > other[0] for zone, other in pairwise(spans)):
        return None
    starts = [start for start, _, _ in spans]
    return [spans[max(0, bisect_right(starts, end - 1) - 1)][2] for _, end in lines]


def _zone_spans(zones: object) -> Iterator[tuple[int, int, PartKind]]:
    for name, part in ZONES.items():
        entries = zones.get(name) if isinstance(zones, Mapping) else None
        for entry in entries if isinstance(entries, list | tuple) else ():
            start, end = (entry.get("start"), entry.get("end")) if isinstance(entry, Mapping) else (None, None)
            yield (start, end, part) if isinstance(start, int) and isinstance(end, int) else (-1, -1, part)


def is_decision(text: str, lines: Sequence[Span]) -> bool:
    """Is a text a court's decision, by positive evidence: its court's name, reasons in a court's form, its ruling?

    Two of the three are required, and the ruling must be a formula unless the head names the court. Quotations do not
    count, and pleadings are never decisions.

    Args:
        text: Any text.
        lines: As `split_lines` yields them.
    """
    if any(_PLEADS.match(text, *line) for line in lines):
        return False
    head = text[:_HEAD_CHARS]
    is_named = _COURT_NAMED.search(head) is not None
    has_form = any(_has_courts_form(text, line) for line in lines)
    if is_named and has_form:
        return True
    rulings = [line for line in lines if RULES_ON.match(text, *line) and not _is_inside_quotation(text, line[0])]
    if is_named or not has_form:
        return is_named and bool(rulings)
    names_court = _COURT_TOLD.search(head) is not None  # administrative authorities decide too
    return any(_is_formula(text, line) and (names_court or "MOTIFS" in _first_letters(text, line)) for line in rulings)


def _has_courts_form(text: str, line: Span) -> bool:
    match = _COURT_FORM.match(text, *line) or _REASONS.match(text, *line)
    return match is not None and not _is_inside_quotation(text, line[0])


def _is_inside_quotation(text: str, start: int) -> bool:
    """Is a quotation still open at `start`?"""
    near = max(0, start - _QUOTE_CHARS)
    return text.rfind("«", near, start) > text.rfind("»", near, start)


def _ruling(text: str, lines: Sequence[Span], operative: Operative | None) -> tuple[int, int]:
    """Return the numbers of the lines that open the ruling and the annex; the number of lines for none."""
    none = len(lines)
    annexes = [n for n in range(none // _ANNEX_FROM + 1, none) if _ANNEX.match(text, *lines[n])]
    heads = [n for n, (start, end) in enumerate(lines) if RULES_ON.match(text, start, end)]
    heads = [n for n in heads if not annexes or n < annexes[-1]] or heads
    if heads:
        ruling = next((n for n in reversed(heads) if _is_formula(text, lines[n])), heads[-1])
    else:
        ruling = next((n for n, (_, end) in enumerate(lines) if operative and end >= operative.start), none)
    return ruling, next((n for n in annexes if n > ruling), none)


def _is_formula(text: str, line: Span) -> bool:
    letters = _first_letters(text, line)
    return "MOTIFS" in letters or "DECIDE" in letters or letters == "ORDONNE:"


def _first_letters(text: str, line: Span) -> str:
    """Return the first letters of a line, in capitals without accents or spaces."""
    return re.sub(r"\s", "", text[line[0] : min(line[1], line[0] + 120)]).upper().replace("É", "E")


def _account(words: Sequence[str], by_council: bool, is_own_reason: SpeaksForItself) -> dict[int, PartKind]:
    """Return which of the lines before the ruling open the statement, the claims and the reasons."""

    def first(*tests: Callable[[str], object], after: int = -1, before: int | None = None) -> int | None:
        until = len(words) if before is None else before
        return next((n for n in range(after + 1, until) if any(test(words[n]) for test in tests)), None)

    reasons = first(_REASONS.match, _GROUND.match, *([_OF_COUNCIL.match] if by_council else []))
    is_vague = reasons is not None and not by_council and not _OF_A_GROUND.search(words[reasons])
    if reasons is not None and is_vague:
        motifs = first(_MOTIFS.match, after=reasons)  # a party's argument may have headings too
        reasons, is_vague = (reasons, True) if motifs is None else (motifs, False)
    titled = first(_STATEMENT.match, before=reasons)
    account = first(_SEIZES.match, REASON.match, _is_account, before=reasons)
    is_earlier = account is not None and titled is not None and account < titled and _SEIZES.match(words[account])
    statement = account if titled is None or is_earlier else titled
    after = -1 if statement is None else statement
    if reasons is None:
        reasons = first(_FIRST_NUMBER.match, lambda line: _is_reason(line) and is_own_reason(line), after=after)
    elif is_vague:  # reasons that begin without a heading may have some further on
        own_reasons = first(lambda line: _is_reason(line) and is_own_reason(line), after=after, before=reasons)
        reasons = reasons if own_reasons is None else own_reasons
    if reasons is None and (quashes := first(_QUASHES.search, after=after)) is not None:
        reported = first(_is_reason, after=after, before=quashes)  # the reasoning that is quashed
        reasons = quashes if reported is None else reported
    if reasons is None:
        reasons = first(_CONCLUDES.match, after=after)
    claims = first(_CLAIMS.match, after=after, before=reasons)
    opened: dict[int | None, PartKind] = {statement: "statement", claims: "claims", reasons: "reasons"}
    return {number: kind for number, kind in opened.items() if number is not None}


def _is_account(words: str) -> bool:
    """Is a line a whole sentence of past events?"""
    is_sentence = len(words) >= _ACCOUNT_CHARS and words[0].isupper() and not REASON.match(words)
    return is_sentence and _HAPPENED.search(words) is not None and not _PRESENTS.search(words[:400])


def _is_reason(words: str) -> bool:
    return REASON.match(words) is not None and not _OF_THE_PROCEDURE.search(words[:300])
