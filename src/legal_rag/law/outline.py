"""The outline of a document: a tree of spans, built from a decision's main parts, headings, numbers and paragraphs."""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count, pairwise
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.law.parts import is_part_heading, main_parts
from legal_rag.law.reading import Reading, read
from legal_rag.law.scanning import BLANK
from legal_rag.law.sentences import split_sentences
from legal_rag.law.tree import PART_TITLES, Kind, Part, TreeNode
from legal_rag.law.words import HEADINGS, Heading, letters_of, spelt

# A section ends where another of the same or a smaller rank begins. Numbered titles ("I.", "A.") have no fixed rank:
# they are nested in the heading that contains the first of them.
MESSAGE, BOOK, PART, CAPITALS, SUBJECT, ARTICLE, STEP, WEAK = 7, 10, 20, 30, 40, 50, 55, 60
NUMBERED_TITLE = 59
PARAGRAPH, ITEM = 100, 200  # numbered texts, and those of an enumeration inside them

HEADING_CHARS = 250  # of a heading written in the text
TITLE_CHARS = 80  # of a title that is the beginning of a longer text

_MANY, _MEAN_CHARS = 1000, 50  # lines, and characters from one to the next
_LETTERS_APART = re.compile(r"(?:\w[ \t\u00a0\u202f'’]+){3,}\w\b")
_EDGE = " \t\n\r\u00a0\u202f:;,.-–—*•#_|"

# The (first) sign after a number distinguishes numberings: "1.", "1)", "1°/".
_SIGN = rf"{BLANK}?(?P<sign>[.)°/:–—-]|[oº](?={BLANK}?[)/]))(?!\.)[.)°/:–— -]{{0,3}}"
_NUMBERED = re.compile(
    rf"^{BLANK}*+(?:[«\"“]{BLANK}?)?(?P<number>(?P<figures>\d{{1,3}}(?:\.\d{{1,2}}){{0,4}})|(?P<roman>[IVX]{{1,6}})"
    rf"|(?P<upper>[A-Z])|(?P<lower>[a-z]))"
    rf"(?:{_SIGN}|(?<=\.\d)(?={BLANK})|(?<=\.\d\d)(?={BLANK})){BLANK}*+(?=[^\W\d_]|[«\"“(\[])(?!\.)(?P<rest>[^\n]*)",
    re.MULTILINE,
)
_ORDER = ("figures", "roman", "upper", "lower")
_STARTS = {"roman": 1, "upper": ord("A"), "lower": ord("a")}  # runs of letters begin with their first
_ROMAN = {"I": 1, "V": 5, "X": 10}
_OPEN = 8  # open runs of one kind at most, so that a page of "1." takes linear time
_GAP = 2  # one figure may be missing
_TITLE_LINE = 120  # characters of a numbered title at most
_LEAST_PARAGRAPH, _LEAST_ITEM = 60, 150  # characters on the average, below which a run needs no sections

Shape = tuple[str, int, str]  # kind of number, number of components, sign


class Mark(NamedTuple):
    """The beginning of a section."""

    start: int
    end: int  # of its title or number in the text
    title: str
    rank: int
    kind: Kind = "heading"
    family: str = ""  # of numbered titles: those numbered alike in one section are siblings
    deciding: bool = False  # opens the operative part, where no short line is a heading
    line_end: int = 0  # of the last of a run of numbered texts, which ends with its line


def _title_of(text: str, start: int, end: int, most: int = HEADING_CHARS) -> str:
    """Make a title of a span: one line, without surrounding signs, cut after a word if long."""
    words = " ".join(text[start : min(end, start + most + 100)].split())
    title = words.lstrip(_EDGE) if words.endswith("...") else words.strip(_EDGE)
    if len(title) <= most:
        return title or words[:most] or "…"
    return title[: most + 1].rsplit(" ", 1)[0][:most].rstrip(" ,;:.") + "…"


def _is_dense(n_lines: int, text: str) -> bool:
    """Do too many lines look like headings for any to be one, as in a table or a list?"""
    return n_lines > _MANY and n_lines * _MEAN_CHARS > len(text)


class _NumberedLine(NamedTuple):
    start: int  # of the number, or of the quotation mark before it
    number_end: int  # with its sign
    end: int  # of the line
    numbers: tuple[int, ...]
    is_title: bool


@dataclass(eq=False)
class _Run:
    """Lines of one shape whose numbers follow one another."""

    shape: Shape
    lines: list[_NumberedLine]
    within: "_Run | None" = None  # the run that continues after it
    depth: int = field(default=0)

    def takes(self, line: _NumberedLine) -> bool:
        """Does the line continue the run?"""
        last = self.lines[-1].numbers
        most = _GAP if self.shape[0] == "figures" else 1
        return line.numbers[:-1] == last[:-1] and 0 < line.numbers[-1] - last[-1] <= most


def _numbered_marks(text: str) -> list[Mark]:
    lines: dict[Shape, list[_NumberedLine]] = defaultdict(list)
    matches = list(_NUMBERED.finditer(text))
    for match in matches if not _is_dense(len(matches), text) else []:
        shape, line = _parse_numbered_line(match)
        lines[shape].append(line)
    runs = [run for shape, same_shape in lines.items() for run in _group_runs(shape, same_shape)]
    return sorted(mark for run in runs for mark in _marks_of_run(text, run))


def _parse_numbered_line(match: re.Match[str]) -> tuple[Shape, _NumberedLine]:
    kind = next(name for name in _ORDER if match[name])
    written = match["number"]
    if kind == "figures":
        numbers = tuple(map(int, written.split(".")))
    else:
        numbers = (_roman(written) if kind == "roman" else ord(written),)
    length = match.end() - match.start("number")
    ending = match["rest"].rstrip()[-3:]
    is_title = length <= _TITLE_LINE and (
        kind in ("roman", "upper") or ending[-1:] not in (".", ";", ",") or ending == "..."
    )
    sign = re.sub("[–—]", "-", match["sign"] or "")
    line = _NumberedLine(match.start("number"), match.start("rest"), match.end(), numbers, is_title)
    return (kind, len(numbers), sign), line


def _roman(written: str) -> int:
    values = [_ROMAN[letter] for letter in written]
    return sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))


def _group_runs(shape: Shape, lines: list[_NumberedLine]) -> Iterator[_Run]:
    waiting: list[_Run] = []
    runs: list[_Run] = []
    for line in lines:
        taking = next((run for run in reversed(waiting) if run.takes(line)), None)
        if taking is None:
            taking = _Run(shape, [])
            runs.append(taking)
            waiting = [*waiting[1 - _OPEN :], taking]
        else:
            inner = waiting[waiting.index(taking) + 1 :]
            for run in inner:
                run.within = run.within or taking
            del waiting[-len(inner) or len(waiting) :]
        taking.lines.append(line)
    for run in runs:
        run.depth = run.within.depth + 1 if run.within else 0
        yield run


def _marks_of_run(text: str, run: _Run) -> Iterator[Mark]:
    """Yield the marks of a run, unless it is too short for numbering or its texts for sections."""
    kind, size, sign = run.shape
    first, last = run.lines[0], run.lines[-1]
    is_title = 2 * sum(line.is_title for line in run.lines) > len(run.lines)
    numbered = kind == "figures" and sign == "."
    if kind in _STARTS and first.numbers[0] > _STARTS[kind]:
        return  # initials of names
    if len(run.lines) == 1 and (not numbered or first.numbers != (1,) or is_title):
        return
    if is_title:
        for line in run.lines if not _is_list(text, run) else []:
            title = _title_of(text, line.start, line.end)
            yield Mark(line.start, line.end, title, NUMBERED_TITLE, family=f"{run.shape}{run.depth}")
        return
    if _mean_chars(run) < (_LEAST_PARAGRAPH if numbered else _LEAST_ITEM):
        return
    rank = (PARAGRAPH if numbered else ITEM + 10 * _ORDER.index(kind)) + min(size - 1 + run.depth, 9)
    for line in run.lines:
        title = _title_of(text, line.start, line.end, TITLE_CHARS)
        line_end = line.end if line is last and not line.is_title else 0
        yield Mark(line.start, line.number_end, title, rank, "number", line_end=line_end)


def _is_list(text: str, run: _Run) -> bool:
    """Do short lines follow one another without text below them?"""
    bare = sum(not text[line.end : after.start].strip(' \n\t«"“') for line, after in pairwise(run.lines))
    return 2 * bare > len(run.lines) - 1


def _mean_chars(run: _Run) -> float:
    first, last = run.lines[0], run.lines[-1]
    between = last.start - first.start
    return (between + last.end - last.start) / len(run.lines)


_UPPER, _LOWER = "A-ZÀ-ÖØ-ÞŒŸ", "a-zß-öø-ÿœ"
_LINE_END = r"[ \t\u00a0\u202f\r]{0,4}$"
_LINE = rf"[^\n]{{0,{HEADING_CHARS}}}$"  # the rest of a line too short for a paragraph


class Rule(NamedTuple):
    """One kind of heading."""

    rank: int
    pattern: str  # matched at the first letter of a line, after its bullet; the match is the heading
    accepts: Callable[[str], bool] = bool
    over_text: bool = False  # running text, or a heading of a lower rank, must follow
    deciding: bool = False  # opens the operative part


# Further words in capitals; the last is complete, not the capital of a lower-case word.
_MORE = rf"(?:,?{BLANK}{{1,2}}(?:[{_UPPER}'’/]{{2,30}}|[AÀ])(?![\w'’])){{0,16}}"


def _known_rules(headings: Iterable[Heading] = HEADINGS) -> Iterator[Rule]:
    """Make the rules for known headings, in capitals anywhere in a line; `_known_line` finds those of a whole line."""
    kinds: dict[tuple[int, bool, bool, bool], list[Heading]] = defaultdict(list)
    for heading in headings:
        if heading.section != "none":
            kinds[_SECTIONS[heading.section], heading.more, heading.alone, heading.part == "ruling"].append(heading)
    for (rank, more, alone, deciding), rows in kinds.items():
        words = spelt((row.words for row in rows), BLANK)
        led = rf"{words}(?![\w'’]|{BLANK}QU[E'’]){_MORE if more else ''}{BLANK}?[:,.]?"
        if alone:
            led = rf"(?i:{words}){BLANK}?:"
        elif deciding:
            led += rf"|(?i:{words})\b"
        yield Rule(rank, led, deciding=deciding)


def _known_line(text: str, start: int) -> tuple[Rule, int] | None:
    """Return the rule of a known heading that is the whole line at `start`, in any case, and its end."""
    line = _SHORT_LINE.match(text, start)
    heading = _BY_LETTERS.get(letters_of(line[1])) if line else None
    if line is None or heading is None or heading.section == "none":
        return None
    return Rule(_SECTIONS[heading.section], _SHORT_LINE.pattern, deciding=heading.part == "ruling"), line.end()


_SHORT_LINE = re.compile(rf"([\w \t\u00a0\u202f'’,.-]{{2,60}}?){BLANK}?[:;,.]?(?={_LINE_END})", re.MULTILINE)
_SECTIONS = {"part": PART, "step": STEP, "weak": WEAK}
_BY_LETTERS = {letters_of(heading.words): heading for heading in HEADINGS}


def _is_open(heading: str) -> bool:
    """Does the line end unlike a sentence?"""
    line = heading.rstrip()
    return line[-1] not in ".;," or line.endswith("...")


def _is_title(heading: str) -> bool:
    """Does the line read as a title: ends with a colon, or is short and has no final punctuation?"""
    line = heading.rstrip()
    return line.endswith(":") or (len(line) <= 120 and _is_open(heading))


_NO_HEADING = re.compile(
    r"R[EÉ]PUBLIQUE|AU NOM DU PEUPLE|COUR|TRIBUNAL|CONSEIL D['’][EÉ]TAT|(?:LE )?CONSEIL (?:DE|CONSTITUTIONNEL,)"
    r"|\w+ ?CHAMBRE|CHAMBRE|AUDIENCE|ARR[EÊ]T|R[OÔ]LE|L[AE] (?:COUR|GREFFI|PR[EÉ]SID)|GREFFI|PR[EÉ]SIDEN|GROSSE|COPIE"
    r"|M\.|MM\.|MMES?\b|MADAME|MONSIEUR|MA[IÎ]TRE|S\.?[AC]\.? |SARL|SAS\b|SC[IP]\b|C ?/|[A-Z]\.[ -]"
    r"|AUX MOTIFS|ALORS|ATTENDU|CONSID[EÉ]RANT|VU\b|QU['’E]|EN CE QU|DIT\b|MAIS\b|ET\b"
)


def _in_capitals(heading: str) -> bool:
    """Is a line in capitals made of words, not the letterhead of a court, a party or a signature?"""
    letters = sum(map(str.isalpha, heading))
    return (
        letters >= 5
        and letters >= 0.6 * len(heading.strip())
        and not _NO_HEADING.match(heading)
        and "..." not in heading
    )


def _is_title_in_capitals(heading: str) -> bool:
    return _is_title(heading) and _in_capitals(heading)


_SAYS = re.compile(
    r"^(?:Vu|Après|Ont)\b|\b(?:a|ont|est|sont|était|étaient|avait|avaient|sera|seront|fait|font|doit|dit|demande"
    r"|demandent|conclut|concluent|sollicite|sollicitent|soutient|soutiennent|prétend|expose|exposent|invoque|oppose"
    r"|réplique|rappelle"
    r"|se|je|il|elle|ils|elles|nous|vous|qui|que)\b|\bqu['’]"
    r"|(?: de| du| des| à| le| la| les| par| pour| avec) ?:?$"
)


def _names_a_part(heading: str) -> bool:
    """Is a short line a label of what follows, rather than a statement?"""
    first, *others = heading.split()
    small = sum(word[0].islower() for word in others)
    return (
        2 * small > len(others)
        and not first.endswith(("ant", "..."))
        and "...," not in first
        and not _SAYS.search(heading)
    )


_ORDINAL = (
    r"(?:[Pp]remi[eè]re?|[Ss]econde?|[A-ZÀ-Ý]?[a-zà-ÿ]{2,9}i[eè]me|[Dd]erni[eè]re?|[Uu]nique"
    r"|PREMI[EÈ]RE?|SECONDE?|[A-Z]{3,9}I[EÈ]ME|DERNI[EÈ]RE?|UNIQUE)"
)
_STEPS = "(?i:résolution|resolution|moyen|partie|branche|grief|question|point|délibération)s?"
_ORDER_TITLE = r"(?:\d{1,3}(?:er|ER)?|[IVXLC]{1,7}|[A-Z]|(?i:premier|première|préliminaire|unique))(?![\w'’])"
_BOOKS = ("PARTIE", "LIVRE", "TITRE", "SOUS-TITRE", "CHAPITRE", "SECTION", "SOUS-SECTION", "PARAGRAPHE")
_ARTICLE_N = rf"(?:ARTICLE|Article|Art\.){BLANK}{{1,3}}{_ORDER_TITLE}{BLANK}?"
_ABOUT = r"(?:(?:(?:Mais|MAIS|Et|ET) )?(?i:sur)|(?i:en ce qui concerne|quant à|quant aux?))\b"
_MAIL = "(?:À|A|To|Date|Envoyé|Sent|Cc|Copie)"

RULES: tuple[Rule, ...] = (
    *(Rule(n, rf"#{{{n}}}(?!#){BLANK}+[^\n]{{1,{HEADING_CHARS}}}") for n in range(1, 7)),
    Rule(MESSAGE, rf"(?:De|From|Expéditeur){BLANK}?:{_LINE}(?=\n{_MAIL}{BLANK}?:)"),
    Rule(CAPITALS, rf"(?:Objet|OBJET|Subject|Sujet){BLANK}?:{BLANK}?\S{_LINE}"),
    *(Rule(BOOK + n, rf"(?i:{book}){BLANK}{{1,3}}{_ORDER_TITLE}{_LINE}", _is_title) for n, book in enumerate(_BOOKS)),
    *_known_rules(),
    Rule(PART, rf"(?i:moyens? (?:de cassation )?annex[ée]e?s?)\b{_LINE}(?:\s{{1,4}}Moyens? produits?\b{_LINE})?"),
    Rule(PART, rf"(?i:moyens? produits?)\b{_LINE}", _is_title),
    Rule(PART, rf"(?:ANNEXE|Annexe)S?(?:{BLANK}{_ORDER_TITLE})?{_LINE}", _is_title),
    Rule(WEAK, rf"(?:ARR[ÊE]T|(?i:entre(?: les soussign[ée]e?s)?)){BLANK}?:?(?={_LINE_END})", _is_title),
    Rule(ARTICLE, rf"{_ARTICLE_N}(?:[.:–—-]|[{_UPPER}]|(?={_LINE_END})){_LINE}", _is_title),
    Rule(ARTICLE, rf"{_ARTICLE_N}(?:[.:–—-]|(?={BLANK}[{_UPPER}]))"),
    Rule(SUBJECT, rf"{_ABOUT}{_LINE}(?!\n[{_LOWER}])", _is_open),
    Rule(SUBJECT, rf"{_ABOUT}[^\n:;]{{3,150}}:(?={BLANK}[{_UPPER}«])"),
    Rule(SUBJECT, rf"SUR{_MORE}(?={BLANK}[{_UPPER}][{_LOWER}])"),
    Rule(SUBJECT, rf"(?i:au fond|en la forme){BLANK}?[:,](?={_LINE_END})"),
    Rule(SUBJECT, rf"(?:{_ORDINAL}{BLANK}{_STEPS}|(?i:moyen){BLANK}{_ORDINAL})\b[^\n]{{0,60}}$", _is_title),
    Rule(CAPITALS, rf"[{_UPPER}][^{_LOWER}\n]{{3,159}}$", _is_title_in_capitals, over_text=True),
    Rule(CAPITALS, rf"[{_UPPER}][^{_LOWER}\d\n:]{{4,120}}:(?={BLANK}\S)", _in_capitals),
    Rule(WEAK, rf"[{_UPPER}][^\n:;]{{3,80}}:(?={_LINE_END})", _names_a_part),
    Rule(WEAK, rf"[{_UPPER}][{_LOWER}]+(?:[ '’-][^\W\d_]+){{1,9}}(?={_LINE_END})", _names_a_part, over_text=True),
)

# Known headings within a line of a text that lost its line breaks: in capitals, after a sentence.
INLINE: tuple[Rule, ...] = (
    *_known_rules(heading for heading in HEADINGS if heading.inline == "anywhere"),
    Rule(PART, "(?:MOYENS? ANNEXES?|Moyens? annexés?) au présent arrêt"),
)


# A line that may be a heading, after its bullet.
_TEXT_LINE = re.compile(rf"^{BLANK}*+(?:[-–—•*.]{BLANK}{{0,3}})?(?=[A-ZÀ-ÖØ-ÞŒŸ#][^\n]{{2}})", re.MULTILINE)
_NEXT_LINE = re.compile(rf"\s*+(?:[-–—•*.]{BLANK}{{0,3}})?([^\s][^\n]{{0,90}})")
_NUMBER_ONLY = re.compile(r"\w+\.?\s\w+")  # "Article premier": what follows makes it a title
_TEXT_CHARS = 60  # a line as long as this is running text
_BEHIND = re.compile(rf"(?<=[.;:,»)\]*_-]){BLANK}{{0,2}}(?=[A-ZÉ])")  # where a heading may begin inside a line


class _Table:
    """Rules, tried in order by one pattern."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._any = re.compile("|".join(f"({rule.pattern})" for rule in rules), re.MULTILINE)

    def first(self, text: str, start: int) -> tuple[Rule, int] | None:
        """Return the first rule by which a heading begins at `start`, and the heading's end."""
        match = self._any.match(text, start)
        if match is None or match.lastindex is None:
            return None
        first, *others = self._rules[match.lastindex - 1 :]
        if first.accepts(match.group()):
            return first, match.end()
        for rule in others:
            match = _compiled(rule.pattern).match(text, start)
            if match and rule.accepts(match.group()):
                return rule, match.end()
        return None


@cache  # on first use: few are needed alone
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


_LINES, _WITHIN = _Table(RULES), _Table(INLINE)


def _headings(text: str, numbered: Sequence[Mark]) -> list[Mark]:
    """Return the marks of a text's headings, in order; lines in `numbered` are not headings of another kind."""
    ranks = {mark.start: mark.rank for mark in numbered}
    candidates: list[tuple[int, Rule, int]] = []
    for match in _TEXT_LINE.finditer(text):
        start = match.end()
        within = candidates and start < candidates[-1][2]
        if start not in ranks and not within and (heading := _known_line(text, start) or _LINES.first(text, start)):
            candidates.append((start, *heading))
    if _is_dense(len(candidates), text):
        return []
    body = _body_start(candidates, numbered)
    kept: list[Mark] = []
    for start, rule, end in reversed(candidates):
        if not rule.over_text or (start >= body and _precedes_text(text, end, rule.rank, ranks)):
            ranks[start] = rule.rank
            kept.append(_mark(text, start, end, rule))
    return sorted([*kept, *(mark for mark in _inline_marks(text) if mark.start not in ranks)])


def _body_start(candidates: Sequence[tuple[int, Rule, int]], numbered: Sequence[Mark]) -> int:
    """Return where a decision's first known part or numbered title begins; 0 for other texts.

    Before it, what looks like a heading names the court, its judges or the parties.
    """
    parts = [(start, rule.deciding) for start, rule, _ in candidates if rule.rank == PART]
    if not any(deciding for _, deciding in parts):
        return 0
    starts = [mark.start for mark in numbered if mark.kind == "heading"]
    starts += [start for start, deciding in parts if not deciding]
    deciding = min(start for start, decides in parts if decides)
    return min([start for start in starts if start < deciding], default=0)


def _precedes_text(text: str, end: int, rank: int, ranks: Mapping[int, int]) -> bool:
    """Does running text, or a heading of a lower rank, follow the line?"""
    following = _NEXT_LINE.match(text, end)
    if following is None:
        return False
    line = following[1]
    if following.start(1) in ranks:
        return ranks[following.start(1)] > rank
    return len(line) >= _TEXT_CHARS and (line[0].isupper() or line[0] in '«"“-–—(') and not line.isupper()


def _inline_marks(text: str) -> Iterator[Mark]:
    for match in _BEHIND.finditer(text):
        if heading := _WITHIN.first(text, match.end()):
            yield _mark(text, match.end(), heading[1], heading[0])


def _mark(text: str, start: int, end: int, rule: Rule) -> Mark:
    line_end = text.find("\n", start, end)
    title = _title_of(text, start, line_end if line_end > 0 else end)
    if rule.rank == ARTICLE and _NUMBER_ONLY.fullmatch(title):
        following = _NEXT_LINE.match(text, end)
        title = _title_of(text, start, following.end() if following else end, TITLE_CHARS)
    if _LETTERS_APART.match(title) and (heading := _BY_LETTERS.get(letters_of(title))):
        title = heading.words
    return Mark(start, end, title, rule.rank, deciding=rule.deciding)


PART_CHARS = 3000  # of a part at most
_LEAST_CHARS = 1200  # of a part that ends before a paragraph
_NEAR = 600  # characters before its end searched first for a part's last sentence

# A paragraph begins after a line break, or, in a text of one line, at a court's next reason.
_PARAGRAPH = re.compile(
    r"(?<=\n)[^\S\n]*+(?=[A-ZÀ-ÖØ-ÞŒ«\"\d–—-])"
    r"|(?<=[.;,:]) (?=(?:\d{1,3}\. ?)?(?:(?:MAIS |Mais )?(?:ATTENDU|[Aa]ttendu)|CONSID[EÉ]RANT|[Cc]onsid[ée]rant|Vu)\b)"
)
_NEW_PARAGRAPH = re.compile(r"(?<=\n)[^\S\n]*+(?=[A-ZÀ-ÖØ-ÞŒ])")
_STARS = re.compile(r"^[^\S\n]*+\*(?:[ *-]{0,80}\*)?[^\S\n]*+\n\s*+(?=[^\s*])", re.MULTILINE)
_BEHIND_PART = re.compile(r"[.;]?\s*")
_SIGNED = re.compile(r"^(?=(?:Fait (?:à|le|en)|FAIT (?:À|A|LE|EN)|Signé)\b)", re.MULTILINE)
_END = Mark(sys.maxsize, sys.maxsize, "", 0)  # after the last mark of any text
_MAIN, _LOWEST = 0, 1000  # ranks above and below all others
_BULLET_CHARS = 12  # or number, before a heading
FRONT = "En-tête"  # title of the text before the first heading


def build_tree(text: str | Reading) -> TreeNode:
    """Build a document's outline: a decision's main parts, headings, then numbers; long stretches in bounded pieces.

    Linear in the length of any text, and deterministic.
    """
    reading = read(text)
    return _make_node(reading.text, _nest_marks(_all_marks(reading), len(reading.text)), 0, count())


@dataclass
class _Draft:
    mark: Mark
    rank: int
    end: int = 0
    children: list["_Draft"] = field(default_factory=list)


def _all_marks(reading: Reading) -> list[Mark]:
    text = reading.text
    numbered = _numbered_marks(text)
    titled = _headings(text, numbered)
    by_start = {mark.start: mark for mark in (*_separated(text), *_closing(reading, titled), *titled, *numbered)}
    parts = [_main_part(text, part, by_start) for part in main_parts(reading.paragraphs, len(text))]
    if len(parts) == 1 and parts[0].start == parts[0].end:  # an excerpt: one section for all of it is useless
        parts = []
    following = pairwise([*sorted([*parts, *by_start.values()], key=lambda mark: (mark.start, mark.rank)), _END])
    marks = [mark._replace(end=min(mark.end, after.start)) for mark, after in following]
    has_front = marks and text[: marks[0].start].strip()
    return [*([Mark(0, 0, FRONT, _LOWEST)] if has_front else []), *_with_rests(text, marks)]


def _main_part(text: str, part: Part, by_start: dict[int, Mark]) -> Mark:
    """Return the mark of a main part; its own heading is removed from `by_start`."""
    near = next((at for at in range(part.start, part.start + _BULLET_CHARS) if at in by_start), None)
    mark = Mark(part.start, part.start, PART_TITLES[part.kind], _MAIN, part.kind, deciding=part.kind == "ruling")
    if near is None or not is_part_heading(part.kind, text, part.start):
        return mark
    heading = by_start.pop(near)
    return mark._replace(end=heading.end, title=heading.title)


def _separated(text: str) -> list[Mark]:
    starts = [match.end() for match in _STARS.finditer(text)]
    return [] if _is_dense(len(starts), text) else [_part(text, start, len(text), WEAK) for start in starts]


def _closing(reading: Reading, titled: list[Mark]) -> Iterator[Mark]:
    """Yield the mark of the text after the operative part, or of an agreement's last lines."""
    text, part = reading.text, reading.operative
    match = _BEHIND_PART.match(text, part.end) if part else _SIGNED.search(text)
    articles = [mark.start for mark in titled if mark.rank == ARTICLE] if part and part.in_articles else []
    if match and max([*articles, -1]) < match.end() < len(text):
        yield _part(text, match.end(), len(text), PART)


def _with_rests(text: str, marks: list[Mark]) -> Iterator[Mark]:
    """Yield marks, and those of text after the last item of a numbered run."""
    for mark, following in pairwise([*marks, _END]):
        yield mark
        if mark.line_end and (rest := _NEW_PARAGRAPH.search(text, mark.line_end, following.start)):
            yield _part(text, rest.end(), following.start, mark.rank)


def _part(text: str, start: int, end: int, rank: int) -> Mark:
    """Return the mark of a section titled by the beginning of its text."""
    return Mark(start, start, _title_of(text, start, end, TITLE_CHARS), rank, "part")


def _nest_marks(marks: list[Mark], length: int) -> _Draft:
    document = _Draft(Mark(0, 0, "", -1, "document"), -1, length)
    open_ones = [document]
    for mark in marks:
        if (mark.rank == WEAK or mark.deciding) and any(draft.mark.deciding for draft in open_ones):
            continue
        rank = _close_sections(open_ones, mark)
        draft = _Draft(mark, rank, length)
        open_ones[-1].children.append(draft)
        open_ones.append(draft)
    return document


def _close_sections(open_ones: list[_Draft], mark: Mark) -> int:
    """Close the sections that end at a mark, and return its rank among those that stay open."""
    rank = mark.rank
    if mark.family:
        sisters = [draft.rank for draft in open_ones if draft.mark.family == mark.family]
        above = [draft.rank for draft in open_ones if draft.rank < WEAK]
        rank = sisters[0] if sisters else max(above[-1], PART) + 1
    while open_ones[-1].rank >= rank:
        open_ones.pop().end = mark.start
    return rank


def _make_node(text: str, draft: _Draft, level: int, numbers: "count[int]") -> TreeNode:
    node_id = f"{next(numbers):04d}"
    children = [_make_node(text, child, level + 1, numbers) for child in _with_parts(text, draft)]
    mark = draft.mark
    heading = (mark.start, mark.end)
    return TreeNode(node_id, mark.title, level, mark.start, draft.end, heading, mark.kind, tuple(children))


def _with_parts(text: str, draft: _Draft) -> Iterator[_Draft]:
    """Yield a section's children; its own text is cut into parts if it is long."""
    first = draft.children[0].mark.start if draft.children else draft.end
    parts = _split_long(text, draft.mark.end, first) if first - draft.mark.end > PART_CHARS else ()
    for start, end in parts:
        yield _Draft(_part(text, start, end, PARAGRAPH), PARAGRAPH, end)
    yield from draft.children


def _split_long(text: str, start: int, end: int) -> Iterator[Span]:
    while end - start > PART_CHARS:
        cut = _part_end(text, start, start + PART_CHARS)
        yield start, cut
        start = cut
    yield start, end


def _part_end(text: str, start: int, limit: int) -> int:
    """Return where a part that begins at `start` ends, at `limit` at the latest."""
    if match := _PARAGRAPH.search(text, start + _LEAST_CHARS, limit):
        return match.end()
    for begun in (limit - _NEAR, start):
        sentences = split_sentences(text[begun:limit])
        if len(sentences) > 1:
            return begun + sentences[-1][0]
    blank = text.rfind(" ", start + _LEAST_CHARS, limit)
    return blank + 1 if blank > 0 else limit
