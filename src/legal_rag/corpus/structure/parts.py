"""The main parts of a decision, by French drafting rules: header, statement, claims, reasons, ruling, annex."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from legal_rag.corpus.folding import Span
from legal_rag.corpus.structure.cues import BEFORE_HEADING, NUMBER, cues, heading_letters, headings
from legal_rag.corpus.structure.decision import Operative, operative_part
from legal_rag.corpus.structure.tree import PartKind
from legal_rag.corpus.words import read_words

_LINE = re.compile(r"\S(?:[^\n]*\S)?")
_INLINE_HEADINGS, _AFTER_SENTENCE = (
    "|".join(map(heading_letters, read_words("legal_rag.corpus.structure", "cues.toml")[name]))
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
_PLEADS = re.compile(
    r"^\s*plaise\s(?:au|à\sla|aux)\s(?:président|tribunal|cour|conseil|juge)", re.IGNORECASE | re.MULTILINE
)
_RENDERS = re.compile(r"\ba\srendu\s(?:l['’]|la\s|le\s)(?:arrêt|avis|décision|jugement|ordonnance)\b")
_PRESENTS, _HAPPENED = re.compile(cues("presents"), re.IGNORECASE), re.compile(cues("happened"))
_OF_THE_PROCEDURE = re.compile(cues("of_the_procedure"), re.IGNORECASE)
_CONCLUDES = re.compile(cues("concludes"))
_QUASHES = re.compile(cues("quashes"), re.IGNORECASE)
_ACCOUNT_CHARS = 80  # of a sentence that tells what happened, at least
_ANNEX_FROM = 6  # no annex stands in the first sixth of a decision's lines

ZONES: dict[str, PartKind] = {
    "introduction": "header", "expose": "statement", "moyens": "claims", "motivations": "reasons",
    "dispositif": "ruling", "annexes": "annex",
}  # fmt: skip
SpeaksForItself = Callable[[str], bool]

_HEADINGS = {"statement": _STATEMENT, "claims": _CLAIMS, "reasons": _REASONS, "ruling": RULES_ON, "annex": _ANNEX}


def is_part_heading(kind: PartKind, text: str, start: int) -> bool:
    """Does the heading of a main part stand at `start`, rather than one of what it is about?"""
    pattern = _HEADINGS.get(kind)
    return pattern is not None and pattern.match(text, start) is not None


def split_lines(text: str) -> Iterator[Span]:
    """Yield the lines that are not blank, without white space around, cut where a known heading stands within one."""
    for match in _LINE.finditer(text):
        start, end = match.span()
        for within in _INLINE.finditer(text, start + 1, end):
            if before := text[start : within.start()].rstrip():
                yield start, start + len(before)
                start = within.start() + (text[within.start()] == " ")
        yield start, end


def part_of_each(text: str, lines: Sequence[Span], is_own_reason: SpeaksForItself) -> list[PartKind]:
    """Return the main part that each line stands in.

    Args:
        text: A decision; in another text no line opens reasons or a ruling.
        lines: As `split_lines` yields them.
        is_own_reason: Tells, of a line that begins as a reason does, whether the court speaks in it for itself.
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
    """Return the main part of each line by the zones of a Judilibre record; None where they do not fit the text.

    Args:
        zones: Lists of {"start", "end"}, in characters, by the names in `ZONES`, as the Cour de cassation's Judilibre
            gives them; anything else is None.
        lines: As `split_lines` yields them.
        n_chars: The length of the text.
    """
    spans = sorted(_zone_spans(zones))
    fits = all(0 <= start < end <= n_chars for start, end, _ in spans)
    if not spans or not fits or any(one[1] > other[0] for one, other in pairwise(spans)):
        return None
    starts = [start for start, _, _ in spans]
    return [spans[max(0, bisect_right(starts, end - 1) - 1)][2] for _, end in lines]


def _zone_spans(zones: object) -> Iterator[tuple[int, int, PartKind]]:
    for name, part in ZONES.items():
        found = zones.get(name) if isinstance(zones, Mapping) else None
        for one in found if isinstance(found, list | tuple) else ():
            start, end = (one.get("start"), one.get("end")) if isinstance(one, Mapping) else (None, None)
            yield (start, end, part) if isinstance(start, int) and isinstance(end, int) else (-1, -1, part)


def is_decision(text: str, lines: Sequence[Span], parts: Sequence[PartKind]) -> bool:
    """Tell by a court's own forms whether a text is a decision: a contract has numbers, a letter says that it decides.

    Those are the formula of a ruling, a reason that begins with "Attendu que" or "Considérant que", a heading of
    reasons, the sentence that an arrêt opens with. Pleadings have them too; they ask a court to decide.

    Args:
        text: Any text.
        lines: As `split_lines` yields them.
        parts: As `part_of_each` returns them.
    """
    if _PLEADS.search(text) or not {"reasons", "ruling"} & set(parts):
        return False
    return any(
        (part == "ruling" and RULES_ON.match(text, *line) is not None and _is_formula(text, line))
        or (part in ("statement", "reasons") and REASON.match(text, *line) is not None)
        or (part == "reasons" and _REASONS.match(text[slice(*line)]) is not None)
        or (part == "header" and _RENDERS.search(text, *line) is not None)
        for part, line in zip(parts, lines, strict=True)
    )


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
    letters = re.sub(r"\s", "", text[line[0] : min(line[1], line[0] + 120)]).upper().replace("É", "E")
    return "MOTIFS" in letters or "DECIDE" in letters


def _account(words: Sequence[str], by_council: bool, is_own_reason: SpeaksForItself) -> dict[int, PartKind]:
    """Return which of the lines before the ruling open the statement, the claims and the reasons."""

    def first(*tests: Callable[[str], object], after: int = -1, before: int | None = None) -> int | None:
        until = len(words) if before is None else before
        return next((n for n in range(after + 1, until) if any(test(words[n]) for test in tests)), None)

    reasons = first(_REASONS.match, _GROUND.match, *([_OF_COUNCIL.match] if by_council else []))
    is_vague = reasons is not None and not by_council and not _OF_A_GROUND.search(words[reasons])
    if reasons is not None and is_vague:
        motifs = first(_MOTIFS.match, after=reasons)  # what a party argues may have headings too
        reasons, is_vague = (reasons, True) if motifs is None else (motifs, False)
    titled = first(_STATEMENT.match, before=reasons)
    told = first(_SEIZES.match, REASON.match, _tells, before=reasons)
    is_earlier = told is not None and titled is not None and told < titled and _SEIZES.match(words[told])
    statement = told if titled is None or is_earlier else titled
    after = -1 if statement is None else statement
    if reasons is None:
        reasons = first(_FIRST_NUMBER.match, lambda line: _is_reason(line) and is_own_reason(line), after=after)
    elif is_vague:  # reasons that begin without a heading may have some further on
        own = first(lambda line: _is_reason(line) and is_own_reason(line), after=after, before=reasons)
        reasons = reasons if own is None else own
    if reasons is None and (quashes := first(_QUASHES.search, after=after)) is not None:
        reported = first(_is_reason, after=after, before=quashes)  # the reasoning that is quashed
        reasons = quashes if reported is None else reported
    if reasons is None:
        reasons = first(_CONCLUDES.match, after=after)
    claims = first(_CLAIMS.match, after=after, before=reasons)
    found: dict[int | None, PartKind] = {statement: "statement", claims: "claims", reasons: "reasons"}
    return {number: kind for number, kind in found.items() if number is not None}


def _tells(words: str) -> bool:
    """Does a line tell what happened, in a whole sentence?"""
    is_sentence = len(words) >= _ACCOUNT_CHARS and words[0].isupper() and not REASON.match(words)
    return is_sentence and _HAPPENED.search(words) is not None and not _PRESENTS.search(words[:400])


def _is_reason(words: str) -> bool:
    return REASON.match(words) is not None and not _OF_THE_PROCEDURE.search(words[:300])
