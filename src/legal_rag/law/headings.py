"""Recognise headings and numbered paragraphs; a court's headings are added to `RULES` (and `INLINE`)."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from legal_rag.law.scanning import BLANK
from legal_rag.law.tree import Kind

# A section ends where another of the same or a smaller rank begins. Numbered titles ("I.", "A.") have no fixed rank:
# they are nested in the heading that contains the first of them.
MESSAGE, BOOK, PART, CAPITALS, SUBJECT, ARTICLE, STEP, WEAK = 7, 10, 20, 30, 40, 50, 55, 60
NUMBERED_TITLE = 59
PARAGRAPH, ITEM = 100, 200  # numbered texts, and those of an enumeration inside them

HEADING_CHARS = 250  # of a heading written in the text
TITLE_CHARS = 80  # of a title that is the beginning of a longer text

_MANY, _LEAST_CHARS = 1000, 50  # lines, and characters from one to the next
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

Match = re.Match[str]
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


def title_of(text: str, start: int, end: int, most: int = HEADING_CHARS) -> str:
    """Make a title of a span: one line, without surrounding signs, cut after a word if long."""
    words = " ".join(text[start : min(end, start + most + 100)].split())
    title = words.lstrip(_EDGE) if words.endswith("...") else words.strip(_EDGE)
    if len(title) <= most:
        return title or words[:most] or "…"
    return title[: most + 1].rsplit(" ", 1)[0][:most].rstrip(" ,;:.") + "…"


def is_spaced(words: str) -> bool:
    """Are the letters spaced, as in 'P A R C E S M O T I F S'?"""
    return _LETTERS_APART.match(words) is not None


def is_dense(n_lines: int, text: str) -> bool:
    """Do too many lines look like headings for any to be one, as in a table or a list?"""
    return n_lines > _MANY and n_lines * _LEAST_CHARS > len(text)


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


def numbered_marks(text: str) -> list[Mark]:
    """Return the marks of a text's numbered lines, in order."""
    lines: dict[Shape, list[_NumberedLine]] = defaultdict(list)
    matches = list(_NUMBERED.finditer(text))
    for match in matches if not is_dense(len(matches), text) else []:
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
            title = title_of(text, line.start, line.end)
            yield Mark(line.start, line.end, title, NUMBERED_TITLE, family=f"{run.shape}{run.depth}")
        return
    if _mean_chars(run) < (_LEAST_PARAGRAPH if numbered else _LEAST_ITEM):
        return
    rank = (PARAGRAPH if numbered else ITEM + 10 * _ORDER.index(kind)) + min(size - 1 + run.depth, 9)
    for line in run.lines:
        title = title_of(text, line.start, line.end, TITLE_CHARS)
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
_END = r"[ \t\u00a0\u202f\r]{0,4}$"
_LINE = rf"[^\n]{{0,{HEADING_CHARS}}}$"  # the rest of a line too short for a paragraph


class Rule(NamedTuple):
    """One kind of heading."""

    rank: int
    pattern: re.Pattern[str]  # matched at the first letter of a line, after its bullet; the match is the heading
    accepts: Callable[[Match], bool] = lambda match: True
    over_text: bool = False  # running text, or a heading of a lower rank, must follow
    deciding: bool = False  # opens the operative part


def _rule(rank: int, pattern: str, accepts: Callable[[Match], bool] = lambda match: True, **flags: bool) -> Rule:
    """Make a rule for headings, whole lines or their beginnings; `flags` are those of `Rule`."""
    return Rule(rank, re.compile(pattern, re.MULTILINE), accepts, **flags)


# Further words in capitals; the last is complete, not the capital of a lower-case word.
_MORE = rf"(?:,?{BLANK}{{1,2}}(?:[{_UPPER}'’/]{{2,30}}|[AÀ])(?![\w'’])){{0,16}}"


def _known_rule(rank: int, phrases: str, *, more: bool = False, alone: bool = False, deciding: bool = False) -> Rule:
    """Make a rule for known headings: in capitals anywhere in a line, in lower case only as a whole line.

    Args:
        rank: Their rank.
        phrases: In capitals, with accents, separated by bars; longer ones before their own prefixes.
        more: Further words in capitals belong to the heading.
        alone: Even in capitals, only a colon may follow in the line.
        deciding: They open the operative part.
    """
    known = phrases.split(" | ")
    _SPELT.update((_plain_capitals(words), words) for words in known)
    spelt = "|".join(map(_phrase, known))
    capitals = rf"(?:{spelt})(?![\w'’]|{BLANK}QU[E'’]){_MORE if more else ''}{BLANK}?[:,.]?"
    line, led = rf"(?i:{spelt}){BLANK}?[:;,.]?(?={_END})", rf"(?i:{spelt}){BLANK}?:"
    return Rule(rank, re.compile(f"{line}|{led if alone else capitals}", re.MULTILINE), deciding=deciding)


_SPELT: dict[str, str] = {}  # known headings, by their letters


def _plain_capitals(words: str) -> str:
    return "".join(filter(str.isalpha, words)).upper().translate(str.maketrans("ÉÈÔ", "EEO"))


def _respace(title: str) -> str:
    return _SPELT.get(_plain_capitals(title), title)


def _phrase(words: str) -> str:
    """Make a pattern for words in capitals, with or without accents, spaced or not."""
    letters = dict(zip("ÉÈEACÔ'", ("[EÉÈ]", "[EÉÈ]", "[EÉÈÊ]", "[AÀ]", "[CÇ]", "[OÔ]", "['’]"), strict=True))
    spelt = [f"{BLANK}?".join(letters.get(letter, letter) for letter in word) for word in words.split()]
    return f"{BLANK}{{1,4}}".join(spelt)


def _is_open(match: Match) -> bool:
    """Does the line end unlike a sentence?"""
    line = match.group().rstrip()
    return line[-1] not in ".;," or line.endswith("...")


def _is_title(match: Match) -> bool:
    """Does the line read as a title: ends with a colon, or is short and has no final punctuation?"""
    line = match.group().rstrip()
    return line.endswith(":") or (len(line) <= 120 and _is_open(match))


_NO_HEADING = re.compile(
    r"R[EÉ]PUBLIQUE|AU NOM DU PEUPLE|COUR|TRIBUNAL|CONSEIL D['’][EÉ]TAT|(?:LE )?CONSEIL (?:DE|CONSTITUTIONNEL,)"
    r"|\w+ ?CHAMBRE|CHAMBRE|AUDIENCE|ARR[EÊ]T|R[OÔ]LE|L[AE] (?:COUR|GREFFI|PR[EÉ]SID)|GREFFI|PR[EÉ]SIDEN|GROSSE|COPIE"
    r"|M\.|MM\.|MMES?\b|MADAME|MONSIEUR|MA[IÎ]TRE|S\.?[AC]\.? |SARL|SAS\b|SC[IP]\b|C ?/|[A-Z]\.[ -]"
    r"|AUX MOTIFS|ALORS|ATTENDU|CONSID[EÉ]RANT|VU\b|QU['’E]|EN CE QU|DIT\b|MAIS\b|ET\b"
)


def _in_capitals(match: Match) -> bool:
    """Is a line in capitals made of words, not the letterhead of a court, a party or a signature?"""
    line = match.group()
    letters = sum(map(str.isalpha, line))
    return letters >= 5 and letters >= 0.6 * len(line.strip()) and not _NO_HEADING.match(line) and "..." not in line


def _is_title_in_capitals(match: Match) -> bool:
    return _is_title(match) and _in_capitals(match)


_SAYS = re.compile(
    r"^(?:Vu|Après|Ont)\b|\b(?:a|ont|est|sont|était|étaient|avait|avaient|sera|seront|fait|font|doit|dit|demande"
    r"|demandent|conclut|concluent|sollicite|sollicitent|soutient|soutiennent|prétend|expose|exposent|invoque|oppose"
    r"|réplique|rappelle"
    r"|se|je|il|elle|ils|elles|nous|vous|qui|que)\b|\bqu['’]"
    r"|(?: de| du| des| à| le| la| les| par| pour| avec) ?:?$"
)


def _names_a_part(match: Match) -> bool:
    """Is a short line a label of what follows, rather than a statement?"""
    first, *others = match.group().split()
    small = sum(word[0].islower() for word in others)
    return (
        2 * small > len(others)
        and not first.endswith(("ant", "..."))
        and "...," not in first
        and not _SAYS.search(match.group())
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
    *(_rule(n, rf"#{{{n}}}(?!#){BLANK}+[^\n]{{1,{HEADING_CHARS}}}") for n in range(1, 7)),
    _rule(MESSAGE, rf"(?:De|From|Expéditeur){BLANK}?:{_LINE}(?=\n{_MAIL}{BLANK}?:)"),
    _rule(CAPITALS, rf"(?:Objet|OBJET|Subject|Sujet){BLANK}?:{BLANK}?\S{_LINE}"),
    *(_rule(BOOK + n, rf"(?i:{book}){BLANK}{{1,3}}{_ORDER_TITLE}{_LINE}", _is_title) for n, book in enumerate(_BOOKS)),
    _known_rule(PART, "PAR CES MOTIFS", deciding=True),
    _rule(PART, rf"Par{BLANK}ces{BLANK}motifs\b", deciding=True),
    _known_rule(PART, "LE CONSEIL CONSTITUTIONNEL DÉCIDE | DÉCIDE | ORDONNE | DISPOSITIF", alone=True, deciding=True),
    _rule(PART, rf"(?i:moyens? (?:de cassation )?annex[ée]e?s?)\b{_LINE}(?:\s{{1,4}}Moyens? produits?\b{_LINE})?"),
    _rule(PART, rf"(?i:moyens? produits?)\b{_LINE}", _is_title),
    _known_rule(PART, "MOTIFS DE LA DÉCISION | MOTIFS DE L'ARRÊT | MOTIFS | VISAS | DISCUSSION", more=True),
    _known_rule(
        PART,
        "FAITS ET PROCÉDURE | EXPOSÉ DU LITIGE | EXPOSÉ DES FAITS | EXPOSÉ | RAPPEL DES FAITS | LES FAITS | FAITS",
        more=True,
    ),
    _known_rule(PART, "LA PROCÉDURE | PROCÉDURE | PRÉTENTIONS DES PARTIES | PRÉTENTIONS", more=True),
    _known_rule(PART, "EXAMEN DU MOYEN | EXAMEN DES MOYENS | EXAMEN DES QUESTIONS | EXAMEN DU POURVOI"),
    _known_rule(PART, "PORTÉE ET CONSÉQUENCES DE LA CASSATION | SUR CE | SUR QUOI | CONSIDÉRANT CE QUI SUIT"),
    _rule(PART, rf"(?:ANNEXE|Annexe)S?(?:{BLANK}{_ORDER_TITLE})?{_LINE}", _is_title),
    _known_rule(STEP, "ÉNONCÉ DU MOYEN | ÉNONCÉ DES MOYENS | RÉPONSE DE LA COUR"),
    _known_rule(STEP, "RECEVABILITÉ DU MOYEN | BIEN-FONDÉ DU MOYEN"),
    _known_rule(WEAK, "APPELANT | APPELANTE | APPELANTS | APPELANTES | INTIMÉ | INTIMÉE | INTIMÉS | INTIMÉES"),
    _known_rule(WEAK, "DEMANDEUR | DEMANDEURS | DEMANDERESSE | DÉFENDEUR | DÉFENDEURS | DÉFENDERESSE | PARTIES"),
    _known_rule(WEAK, "COMPOSITION DE LA COUR | COMPOSITION DU TRIBUNAL | DÉBATS", more=True),
    _rule(WEAK, rf"(?:ARR[ÊE]T|(?i:entre(?: les soussign[ée]e?s)?)){BLANK}?:?(?={_END})", _is_title),
    _rule(ARTICLE, rf"{_ARTICLE_N}(?:[.:–—-]|[{_UPPER}]|(?={_END})){_LINE}", _is_title),
    _rule(ARTICLE, rf"{_ARTICLE_N}(?:[.:–—-]|(?={BLANK}[{_UPPER}]))"),
    _rule(SUBJECT, rf"{_ABOUT}{_LINE}(?!\n[{_LOWER}])", _is_open),
    _rule(SUBJECT, rf"{_ABOUT}[^\n:;]{{3,150}}:(?={BLANK}[{_UPPER}«])"),
    _rule(SUBJECT, rf"SUR{_MORE}(?={BLANK}[{_UPPER}][{_LOWER}])"),
    _rule(SUBJECT, rf"(?i:au fond|en la forme){BLANK}?[:,](?={_END})"),
    _rule(SUBJECT, rf"(?:{_ORDINAL}{BLANK}{_STEPS}|(?i:moyen){BLANK}{_ORDINAL})\b[^\n]{{0,60}}$", _is_title),
    _rule(CAPITALS, rf"[{_UPPER}][^{_LOWER}\n]{{3,159}}$", _is_title_in_capitals, over_text=True),
    _rule(CAPITALS, rf"[{_UPPER}][^{_LOWER}\d\n:]{{4,120}}:(?={BLANK}\S)", _in_capitals),
    _rule(WEAK, rf"[{_UPPER}][^\n:;]{{3,80}}:(?={_END})", _names_a_part),
    _rule(WEAK, rf"[{_UPPER}][{_LOWER}]+(?:[ '’-][^\W\d_]+){{1,9}}(?={_END})", _names_a_part, over_text=True),
)

# Known headings within a line of a text that lost its line breaks: in capitals, after a sentence.
INLINE: tuple[Rule, ...] = (
    _known_rule(PART, "PAR CES MOTIFS", deciding=True),
    _known_rule(PART, "EXPOSÉ DU LITIGE | EXPOSÉ DES FAITS | FAITS ET PROCÉDURE | SUR QUOI | SUR CE"),
    _known_rule(PART, "MOTIFS DE LA DÉCISION | MOTIFS DE L'ARRÊT"),
    _rule(PART, "(?:MOYENS? ANNEXES?|Moyens? annexés?) au présent arrêt"),
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
        self._any = re.compile("|".join(f"({rule.pattern.pattern})" for rule in rules), re.MULTILINE)

    def first(self, text: str, start: int) -> tuple[Rule, int] | None:
        """Return the first rule by which a heading begins at `start`, and the heading's end."""
        any_match = self._any.match(text, start)
        if any_match is None or any_match.lastindex is None:
            return None
        for rule in self._rules[any_match.lastindex - 1 :]:
            match = rule.pattern.match(text, start)
            if match and rule.accepts(match):
                return rule, match.end()
        return None


_LINES, _WITHIN = _Table(RULES), _Table(INLINE)


def headings(text: str, numbered: Sequence[Mark]) -> list[Mark]:
    """Return the marks of a text's headings, in order; lines in `numbered` are not headings of another kind."""
    ranks = {mark.start: mark.rank for mark in numbered}
    candidates: list[tuple[int, Rule, int]] = []
    for match in _TEXT_LINE.finditer(text):
        start = match.end()
        within = candidates and start < candidates[-1][2]
        if start not in ranks and not within and (heading := _LINES.first(text, start)):
            candidates.append((start, *heading))
    if is_dense(len(candidates), text):
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
    title = title_of(text, start, line_end if line_end > 0 else end)
    if rule.rank == ARTICLE and _NUMBER_ONLY.fullmatch(title):
        following = _NEXT_LINE.match(text, end)
        title = title_of(text, start, following.end() if following else end, TITLE_CHARS)
    return Mark(start, end, _respace(title) if is_spaced(title) else title, rule.rank, deciding=rule.deciding)
