"""The main parts of a decision, and who speaks in each paragraph, by French drafting rules, without a model.

A decision reports what the parties argued and what the judges below held before its own reasoning. The heading above a
paragraph sets the expected speaker; each clause is then attributed by its verb.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Literal

from legal_rag.base.text import Span, read_words, words_of
from legal_rag.law.outcomes import Operative
from legal_rag.law.reading import Reading, read
from legal_rag.law.scanning import Around
from legal_rag.law.sentences import split_sentences
from legal_rag.law.tree import Paragraph, Part, PartKind, Speaker
from legal_rag.law.words import letters_of, phrases, spelt

_BEFORE_HEADING = r"(?:[-–—•*#§\s]|[IVX]{1,4}+\s?[-–—.)/]|[A-H]\s?[-–—.)/]|\d{1,2}+\s?[-–—.)°/]{1,2}+)*"
_NUMBER = r"(?:\d{1,3}\s?\.\s?[-–]?\s?)?"  # of a paragraph


def cues(*names: str) -> str:
    """Return one pattern of the alternatives in some lists; a blank in them is any white space."""
    phrases = [phrase for name in names for phrase in read_words("legal_rag.law", "cues.toml")[name]]
    return f"(?:{'|'.join(phrases)})".replace(" ", r"\s")


def _around(name: str, before: int, after: int, flags: int = re.IGNORECASE) -> Around:
    """Make a pattern of a list of cues that is tried around its words: see `Around`."""
    return Around(cues(name), read_words("legal_rag.law", "cues.toml")[f"{name}_words"], before, after, flags)


class _Opening:
    """How a part begins: with a heading in capitals, one in any case that is a whole line, or another pattern."""

    def __init__(self, part: PartKind, others: str = "(?!)") -> None:
        alone, in_text = (spelt(phrases(part=part, alone=alone)) for alone in (True, False))
        formula = f"(?i:{in_text})" if part == "ruling" else in_text
        self._pattern = re.compile(
            rf"{_BEFORE_HEADING}(?:{formula}(?![\w'’])|{alone}\s?(?::|$)|{others})", re.MULTILINE
        )
        self._letters = set(map(letters_of, phrases(part=part)))

    def match(self, words: str) -> bool:
        """Does a line begin so?"""
        return self.heads(words) or not self._letters.isdisjoint(_letters_of_line(words))

    def heads(self, text: str, start: int = 0) -> bool:
        """Does a heading in capitals begin at `start`?"""
        return self._pattern.match(text, start) is not None


_WHOLE_CHARS = 75  # of a line that is a heading in the table
_WHOLE = re.compile(rf"{_BEFORE_HEADING}(\w[^\n]{{2,}}?)\s*[:;,.]?\s*\Z")
_MORE = ("", "DELACOUR", "DELARRET", "ETMOTIFS")  # letters that may end it


@lru_cache(maxsize=16)  # each opening asks for them in turn
def _letters_of_line(words: str) -> set[str]:
    """Return the letters of a heading that a line may be, with and without those that may end it."""
    line = _WHOLE.match(words) if len(words) <= _WHOLE_CHARS else None
    letters = letters_of(line[1]) if line else ""
    return {letters.removesuffix(more) for more in _MORE}


_LINE = re.compile(r"\S(?:[^\n]*\S)?")
_WITHIN, _AFTER_SENTENCE = spelt(phrases(inline="anywhere")), spelt(phrases(inline="sentence"))
# Where a line is cut: before a heading in it, or a reason after another; both begin with a capital.
_CAPITAL = re.compile(r"[A-ZÀ-Þ](?<=[\s.;:,)»*\]_-].)")
_INLINE = re.compile(
    rf"(?<=[\s.;:,)»*_-]){_WITHIN}(?![\w'’])"
    rf"|(?<=[.;:,*\])»]\s){_AFTER_SENTENCE}(?![\w'’]|\s(?:PROPRES|ADOPT|QU))"
    r"|(?:(?<=[.;])|(?<=[.;]\s)|(?<=[.;]\s\s)|(?<=[.;][\"»]\s))(?<!\d\.)(?<!\d\.\s)(?<!\d\.\s\s)"
    r"(?:(?:MAIS|Mais)\s)?(?:ATTENDU|Attendu|CONSID[EÉ]RANT|Considérant)\s"
    rf"|(?<=[»\"]\s)(?i:{spelt(phrases(section='step'))})\s?:?\Z"
)
_STATEMENT, _CLAIMS, _REASONS = _Opening("statement"), _Opening("claims"), _Opening("reasons")
_SEIZES = re.compile(cues("seizes"))
_GROUND = re.compile(rf"{_BEFORE_HEADING}{cues('grounds')}")
_RULES_ON = _Opening("ruling", cues("rules_on"))
_FORMULA_OF_REASONS = re.compile(spelt(["MOTIFS"]), re.IGNORECASE)
_FORMULA = re.compile(rf"{spelt(['MOTIFS', 'DÉCIDE'])}|{spelt(['ORDONNE'])}\s?:\Z", re.IGNORECASE)
_FORMULA_WITHIN = 120  # characters of a line
_ANNEX = re.compile(cues("annexes"))
_OPENS_REASONS = spelt(phrase for kind in ("anywhere", "sentence") for phrase in phrases(part="reasons", inline=kind))
_ON_THE_MERITS = re.compile(rf"\bmoyens?\b|\A\W*{_OPENS_REASONS}", re.IGNORECASE)
_MOTIFS = re.compile(
    rf"{_BEFORE_HEADING}(?:{spelt(['MOTIFS'])}(?![\w'’])|(?i:{spelt(['SUR CE', 'SUR QUOI'])})\s?[:,]?\s*\Z)"
)
_OF_COUNCIL = re.compile(rf"{_NUMBER}(?:CONSID[EÉ]RANT|[Cc]onsid[eé]rant)\b|1\s?\.(?!\d)\s?[A-ZÀ-Þ]")
_FIRST_NUMBER = re.compile(r"1\s?\.(?!\d)\s?[-–]?\s?(?=[A-ZÀ-ÖØ-Þ])")
_REASON = re.compile(rf"{_NUMBER}(?:attendu|considérant)\b", re.IGNORECASE)
_PRESENTS, _HAPPENED = re.compile(cues("presents"), re.IGNORECASE), re.compile(cues("happened"))
_OF_THE_PROCEDURE = re.compile(cues("of_the_procedure"), re.IGNORECASE)
_CONCLUDES = re.compile(cues("concludes"))
_QUASHES = _around("quashes", 80, 60)
_COURT_NAMED, _COURT_TOLD = re.compile(cues("court_named")), re.compile(cues("court_told"))
_PLEADS, _COURT_FORM = re.compile(cues("pleads")), re.compile(rf"{_REASON.pattern}|(?:Vu|VU)\b", re.IGNORECASE)
_HEAD_CHARS = 4000  # in which a court is named: a summary may precede its name
_QUOTE_CHARS = 2000  # before a line, searched for the start of a quotation around it
_ACCOUNT_CHARS = 80  # of a sentence of narrative, at least
_ANNEX_FROM = 6  # no annex begins in the first sixth of a decision's lines

_ZONES: dict[str, PartKind] = {
    "introduction": "header", "expose": "statement", "moyens": "claims", "motivations": "reasons",
    "dispositif": "ruling", "annexes": "annex",
}  # fmt: skip

_OPENINGS = {"statement": _STATEMENT, "claims": _CLAIMS, "reasons": _REASONS, "ruling": _RULES_ON}


def is_part_heading(kind: PartKind, text: str, start: int) -> bool:
    """Is the heading at `start` that of the main part itself, rather than of its subject?"""
    if kind == "annex":
        return _ANNEX.match(text, start) is not None
    line = _LINE.match(text, start)
    return kind in _OPENINGS and line is not None and _OPENINGS[kind].match(line.group())


def _split_lines(text: str) -> Iterator[Span]:
    """Yield the lines that are not blank, without white space around, cut before a known heading within a line."""
    for match in _LINE.finditer(text):
        start, end = match.span()
        done = start
        for capital in _CAPITAL.finditer(text, start, end):
            at = capital.start()
            if at >= done and (within := _INLINE.match(text, at, end)):
                done = within.end()
                if before := text[start:at].rstrip():
                    yield start, start + len(before)
                    start = at
        yield start, end


def _part_of_each(reading: Reading, lines: Sequence[Span]) -> list[PartKind]:
    text, operative = reading.text, reading.operative
    ruling, annex = _ruling(text, lines, operative)
    before = [text[start:end] for start, end in lines[:ruling]]
    opened = _account(before, bool(operative and operative.in_articles))
    opened = {0: "header", **opened, ruling: "ruling", annex: "annex"}
    parts: list[PartKind] = []
    for number in range(len(lines)):
        parts.append(opened.get(number) or parts[-1])
    return parts


def _part_of_zones(zones: object, lines: Sequence[Span], n_chars: int) -> list[PartKind] | None:
    """Return the main part of each line by the zones of a Judilibre record; None if they do not fit the text."""
    spans = sorted(_zone_spans(zones))
    fits = all(0 <= start < end <= n_chars for start, end, _ in spans)
    if not spans or not fits or any(zone[1] > other[0] for zone, other in pairwise(spans)):
        return None
    starts = [start for start, _, _ in spans]
    return [spans[max(0, bisect_right(starts, end - 1) - 1)][2] for _, end in lines]


def _zone_spans(zones: object) -> Iterator[tuple[int, int, PartKind]]:
    for name, part in _ZONES.items():
        entries = zones.get(name) if isinstance(zones, Mapping) else None
        for entry in entries if isinstance(entries, list | tuple) else ():
            start, end = (entry.get("start"), entry.get("end")) if isinstance(entry, Mapping) else (None, None)
            yield (start, end, part) if isinstance(start, int) and isinstance(end, int) else (-1, -1, part)


def _is_decision(text: str, lines: Sequence[Span]) -> bool:
    """Is a text a court's decision, by positive evidence: its court's name, reasons in a court's form, its ruling?

    Two of the three are required, and the ruling must be a formula unless the head names the court. Quotations do not
    count, and pleadings are never decisions.
    """
    if any(_PLEADS.match(text, *line) for line in lines):
        return False
    head = text[:_HEAD_CHARS]
    is_named = _COURT_NAMED.search(head) is not None
    has_form = any(
        (_COURT_FORM.match(text, *line) or _REASONS.match(text[slice(*line)]))
        and not _is_inside_quotation(text, line[0])
        for line in lines
    )
    if is_named and has_form:
        return True
    rulings = [
        line for line in lines if _RULES_ON.match(text[slice(*line)]) and not _is_inside_quotation(text, line[0])
    ]
    if is_named or not has_form:
        return is_named and bool(rulings)
    names_court = _COURT_TOLD.search(head) is not None  # administrative authorities decide too
    formula = _FORMULA if names_court else _FORMULA_OF_REASONS
    return any(_has_formula(text, line, formula) for line in rulings)


def _is_inside_quotation(text: str, start: int) -> bool:
    near = max(0, start - _QUOTE_CHARS)
    return text.rfind("«", near, start) > text.rfind("»", near, start)


def _ruling(text: str, lines: Sequence[Span], operative: Operative | None) -> tuple[int, int]:
    """Return the numbers of the lines that open the ruling and the annex; the number of lines for none."""
    none = len(lines)
    annexes = [n for n in range(none // _ANNEX_FROM + 1, none) if _ANNEX.match(text, *lines[n])]
    heads = [n for n, (start, end) in enumerate(lines) if _RULES_ON.match(text[start:end])]
    heads = [n for n in heads if not annexes or n < annexes[-1]] or heads
    if heads:
        ruling = next((n for n in reversed(heads) if _has_formula(text, lines[n])), heads[-1])
    else:
        ruling = next((n for n, (_, end) in enumerate(lines) if operative and end >= operative.start), none)
    return ruling, next((n for n in annexes if n > ruling), none)


def _has_formula(text: str, line: Span, formula: re.Pattern[str] = _FORMULA) -> bool:
    start, end = line
    return formula.search(text, start, min(end, start + _FORMULA_WITHIN)) is not None


def _account(words: Sequence[str], by_council: bool) -> dict[int, PartKind]:
    """Return which of the lines before the ruling open the statement, the claims and the reasons."""

    def first(*tests: Callable[[str], object], after: int = -1, before: int | None = None) -> int | None:
        until = len(words) if before is None else before
        return next((n for n in range(after + 1, until) if any(test(words[n]) for test in tests)), None)

    reasons = first(_REASONS.match, _GROUND.match, *([_OF_COUNCIL.match] if by_council else []))
    is_vague = reasons is not None and not by_council and not _ON_THE_MERITS.search(words[reasons])
    if reasons is not None and is_vague:
        motifs = first(_MOTIFS.match, after=reasons)  # a party's argument may have headings too
        reasons, is_vague = (reasons, True) if motifs is None else (motifs, False)
    titled = first(_STATEMENT.match, before=reasons)
    account = first(_SEIZES.match, _REASON.match, _is_account, before=reasons)
    is_earlier = account is not None and titled is not None and account < titled and _SEIZES.match(words[account])
    statement = account if titled is None or is_earlier else titled
    after = -1 if statement is None else statement
    if reasons is None:
        reasons = first(_FIRST_NUMBER.match, _is_own_reason, after=after)
    elif is_vague:  # reasons that begin without a heading may have some further on
        own_reasons = first(_is_own_reason, after=after, before=reasons)
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
    is_sentence = len(words) >= _ACCOUNT_CHARS and words[0].isupper() and not _REASON.match(words)
    return is_sentence and _HAPPENED.search(words) is not None and not _PRESENTS.search(words[:400])


def _is_reason(words: str) -> bool:
    return _REASON.match(words) is not None and not _OF_THE_PROCEDURE.search(words[:300])


def _is_own_reason(words: str) -> bool:
    spoken: Counter[Speaker | None] = Counter()
    for speaker, length in _speakers_of_clauses(words, "reasons", "court") if _is_reason(words) else ():
        spoken[speaker] += length
    return bool(spoken) and spoken.most_common(1)[0][0] == "court"


def read_paragraphs(text: str | Reading, zones: object = None) -> list[Paragraph]:
    """Split a decision into paragraphs with their main parts and speakers; linear in its length.

    A paragraph is cut before the clause with which another begins to speak.
    Other texts have neither parts nor speakers. The `zones` of a record of the Cour de cassation's Judilibre, lists of
    {"start", "end"} in characters by the names in `_ZONES`, give the main parts if they fit the text.
    """
    reading = read(text)
    text = reading.text
    lines = list(_split_lines(text))
    parts = _part_of_zones(zones, lines, len(text))
    if parts is None:
        parts = []
        if _is_decision(text, lines):
            parts = _part_of_each(reading, lines)
        if not {"reasons", "ruling"} & set(parts):
            return [Paragraph(*line, None, None, censured=False) for line in lines]
    stretches = list(_stretches(text, lines, parts))
    censured = _censured(text, stretches)
    return [stretch._replace(censured=n in censured) for n, stretch in enumerate(stretches)]


def is_formula(text: str) -> bool:
    """Does a passage of a decision consist of formulas, which answer no question: costs, "le moyen n'est pas fondé"?"""
    return all(_ANSWERS_NOTHING.match(text[start:end].rstrip()) for start, end in split_sentences(text))


def main_parts(paragraphs: Sequence[Paragraph], length: int) -> list[Part]:
    """Group paragraphs into main parts, which cover a decision of `length` characters; none for other texts."""
    firsts = [(kind, next(group).start) for kind, group in groupby(paragraphs, key=lambda line: line.part) if kind]
    borders = [0, *(start for _, start in firsts[1:]), length]
    return [Part(kind, borders[n], borders[n + 1]) for n, (kind, _) in enumerate(firsts)]


_NEAR = 120  # characters from a clause's beginning, or before its verb
_ANSWERS_NOTHING = re.compile(rf"\W*{_NUMBER}{cues('formula_leads')}{{0,3}}{cues('formulas')}", re.IGNORECASE)
_CLAUSE = re.compile(r"[^;.]*(?:(?:\.(?!\s+[A-ZÀ-ÖØ-Þ«])|(?<=\b[A-Z])\.|(?<=\bMM)\.|(?<=\bart)\.)[^;.]*)*[;.]?\s*")
_ARGUES, _ANSWERED = re.compile(rf"\b{cues('argues')}"), re.compile(cues("answered"))
_RIGHTLY = re.compile(r"\s(?:donc\s)?(?:à\s(?:juste\stitre|bon\sdroit|raison)|justement|exactement|pertinemment)\b")
_EXPERT = re.compile(cues("experts"), re.IGNORECASE)
_QUOTED = re.compile(r"«[^«»]{40,}»|“[^“”]{40,}”|\"(?!\s*[;,.)»])[^\"«»]*\"")
_QUOTED_IN_PART = re.compile(r"«[^«»]{40,}»|“[^“”]{40,}”|(?<![^\s(:])\"(?=\S)[^\"]{40,}(?<=\S)\"")
_TESTIMONY_CHARS = 160
_LEADS_TO_TEXT = re.compile(rf"\b{cues('sources')}[^;]{{0,{_NEAR}}}\Z", re.IGNORECASE)
_TESTIMONY = re.compile(rf"[^\w·]·{{{_TESTIMONY_CHARS},}}[^\w·][\s;.,)]*\Z")
_CHARGES = _around("charges", 60, 60)
_DISPOSES = re.compile(
    r"\bmoyens?\b[^;]*?\b(?:est|sont|ne|n['’]est|manquent?|doi(?:ven)?t)\s[^;]{0,40}?"
    r"\b(?:inopérant|fondé|i?r?recevable|accueilli|écarté|en\sfait)s?\W*\Z"
)
_JUDGES = rf"(?i:\b{cues('judges')}\b)"
_RETAINS = re.compile(
    rf"{_JUDGES}(?:(?!\s(?:afin|pour)\squ)[^;]){{0,90}}?\s{cues('retains')}"
    r"|\bpar\s(?:un\s)?(?:jugement|arrêt|ordonnance)\b[^;]{0,200}?\sa\s(?:notamment\s)?"
    r"(?:condamné|débouté|déclaré|dit|fixé|ordonné|rejeté|alloué|mis)"
    r"|\b[Ll]a\sCommission\snationale\b[^;]{0,150}?\sa\srejeté\s[^;]{0,150}?\bmotifs?\b"
    r"|\srejeté\spar\sla\sCommission\snationale\b[^;]{0,200}?\bmotifs?\b"
)
_HOLDS = re.compile(
    rf"{_JUDGES}[^;]{{0,250}}?\s{cues('holds')}|\b(?:il|elle|ils|elles)\s(?:en\s)?(?:ajout|relèv|retien|énonc|constat|dédui)",
    re.IGNORECASE,
)
_TO_DECIDE = re.compile(  # "Pour rejeter la demande, l'arrêt…"
    rf"\W*{_NUMBER}(?:(?:et\s)?attendu\s(?:que|qu['’])\s?,?\s?|que\s)?pour\s[^;]{{2,900}}?{_JUDGES}", re.IGNORECASE
)
_ENDS_REPORT = re.compile(
    rf"\W*{_NUMBER}(?:mais\s(?:attendu|considérant)|(?:qu['’])?en\s(?:statuant|se\sdéterminant|décidant|jugeant))\b",
    re.IGNORECASE,
)
_ON_GROUNDS = re.compile(r"\W*(?:et\s)?aux\smotifs\b", re.IGNORECASE)
_WHEREAS = re.compile(
    r"(?:\W*\d{1,2}\s?[°o/).-]{1,3}\s?/?\s*)?\W*(?:E[Tt]\s)?(?:ALORS|Alors)\b|\W*(?:\d{1,2}\s?[°o/).-]{1,3}|[\"«“])\s*alors\b"
    r"|\W*[\"«“]\s*en\sce\squ|(?:(?:Mais|Et)\s)?Sur\s[^\n;:.]{0,120}\bmoyens?\b[^\n]{0,120}\bpris\sd"
)
_APPROVES = re.compile(cues("approves"), re.IGNORECASE)
_COURT_HOLDS = _around("court_holds", 40, 250, flags=0)
_COURT_ANSWERS = re.compile(r"\W*(?:Mais|En\s|que c['’]est|c['’]est)")
_GOES_ON = re.compile(rf"\W*{_NUMBER}(?:mais|et|or)?\s?(?:que,?\s)?{cues('goes_on')}", re.IGNORECASE)
_APPLIES, _QUALIFIES = (re.compile(cues(name), re.IGNORECASE) for name in ("applies", "qualifies"))
_STATES = re.compile(  # a legal text is reported
    rf"\W*{_NUMBER}(?:(?:attendu|considérant),?\s(?:{cues('in_passing')}\s)?(?:(?:que|qu['’])\s?,?\s?)?|(?:que|qu['’])\s?)?"
    rf"(?:{cues('in_passing')}\s)?(?:{cues('according_to')}[^;,]{{0,60}}?\b{cues('sources')}"
    rf"|(?:l['’]|les\s|le\s(?:\w+\s){{0,3}}de\sl['’]|(?:le|ce)\s(?:\w+\s)?(?=texte))?(?:textes?|articles?|dispositions\sd\w+\s(?:l['’])?articles?)\b"
    rf"[^;:]{{0,150}}?\s{cues('provides')}\w+|l['’]alinéa)",
    re.IGNORECASE,
)
_DERIVES = re.compile(  # what the court draws from texts, and not the text: "Il résulte de l'article 9 que…"
    rf"\W*{_NUMBER}(?:(?:attendu|considérant)\s(?:{cues('in_passing')}\s)?qu['’]\s?)?"
    rf"il\s(?:(?:en|s['’]en)\s)?(?:résulte|ressort|découle|dédui[st]e?|évince)\s[^;,]{{0,60}}?(?:\b{cues('sources')}|\bpoints?\b)",
    re.IGNORECASE,
)
_VISA = re.compile(rf"\W*(?:Vu|-)\s(?:,?\s?ensemble\s|enfin\s)?{cues('visas')}", re.IGNORECASE)
_CASE = re.compile(r"\W*(?:Vu|VU)\b")
_FILED = re.compile(rf"(?:[-–—]|\d{{1,2}}\s?°)\s?{cues('filed')}", re.IGNORECASE)  # in a list of what was filed
_DEMANDS, _ORDERED = (re.compile(rf"\W*(?:\d\W+)?{cues(name)}", re.IGNORECASE) for name in ("demands", "ordered"))
_PROCEEDINGS = re.compile(cues("proceedings"), re.IGNORECASE)
_TELLS_ON = re.compile(
    rf"\W*{_NUMBER}(?:(?:attendu|considérant)\s)?(?:et\s)?(?:que\s|qu['’]\s?)?(?:ils?|elles?)\s(?:\w+\s){{0,2}}"
    rf"{cues('tells_on')}",
    re.IGNORECASE,
)
_OPINES = re.compile(r"(?:estim|considèr|rappell|expliqu|expos)")  # verbs of judges as of parties
# "Il en résulterait une atteinte": an argument goes on; not "n'établit pas qu'il occuperait", "ne saurait".
_CONDITIONAL = re.compile(r"(?:(?!\bn(?:e\s|['’])).)*?\b(?!saur|pourr|devr)\w{2,}rai(?:en)?t\b")
_THEN_WHEREAS = re.compile(
    r"[;,.»\"]\s*(?:ALORS|alors|Alors)\b,?\s(?:d['’]une\spart,?\s|selon\sle\smoyen,?\s)?(?:QU|qu|«|:)"
)
_FORMAL, _NAMES = re.compile(rf"\W*{cues('formal')}", re.IGNORECASE), re.compile(cues("names"))
_TITLES = {who: {" ".join(words_of(phrase)) for phrase in phrases(speaks=who)} for who in ("party", "court")}
_TITLE_CUES = {who: re.compile(cues(f"{who}_titles"), re.IGNORECASE) for who in ("party", "court")}
_TITLE_WORDS = 6  # of a heading in the table, at most
_NO_NUMBER = re.compile(r"\A\d+[\s.)-]+")
_GROUND_TITLE = re.compile(
    rf"{_BEFORE_HEADING}(?:(?:Mais|Et)\s)?(?:S(?:ur|UR)|Concernant|Quant|En ce qui concerne)\s[^\n]{{3,400}}"
    r"(?:[^.;,\s]|\.\.\.|\b[A-Z]\.)\s?:?\s*\Z"
)
_OF_A_GROUND = re.compile(r"Sur\s[^\n,;]{0,60}\bmoyens?\b")  # of any length
_PLEADED = re.compile(r"\b(?:ils?|elles?)\s(?:soutien|font\svaloir|fait\svaloir|demand|conclu)")
_VERB = re.compile(
    r"\b(?:a|ont|est|sont|était|avait|sera|peut|doit|fait|avoir|être|n['’]a|dispose|résulte|constitue|demeure"
    r"|\w{3,}(?:era|eront|ait|aient|(?<!m)ent))\b"
)
_NUMBERED = re.compile(r"\d{1,3}\s?\.(?=\s|[A-ZÀ-Þ])")
_ENUMERATED = re.compile(  # an item, or the continuation of a clause
    r"(?!\d{1,3}\.\s[A-ZÀ-Þ])(?:[-–—•*]|\d{1,2}\s?[°o]?\s?[)/°.-]{1,2}\s?/?|[a-z]\s?[).])|[Qq]u['’e]|QU['’E]"
)
_ITEM = re.compile(r"\W*(?:\d{1,2}\s?°|[IVX]{1,4}\s?[-–.]|[a-z]\)|[-–—•])")
_BRANCH = re.compile(r"\W*\d{1,2}\s?°\s?/")
_TITLE_CHARS = 160
_ITEM_CHARS = 60  # of a list item at least, else it is a heading
_FORMULA_CHARS = 60  # of "PAR CES MOTIFS, la Cour :"
_CHARGED_CHARS = 600  # of a paragraph, in which a ground of appeal is announced
_STRETCH_CHARS = 60  # of the clauses by one speaker at least
_LOOK_BACK = 6  # stretches before the one that quashes

Stretch = tuple[Speaker | None, int]  # who speaks, in so many characters


def _stretches(text: str, lines: Sequence[Span], parts: Sequence[PartKind]) -> Iterator[Paragraph]:
    """Yield the lines, cut where another speaker begins."""
    reader = _SpeakerReader()
    for (start, end), part in zip(lines, parts, strict=True):
        for speaker, length in reader.read(text[start:end], part):
            yield Paragraph(start, start + len(text[start : start + length].rstrip()), part, speaker, censured=False)
            start += length


class _SpeakerReader:
    """Reads lines in order; remembers the speaker who may continue in the next."""

    def __init__(self) -> None:
        self._part: PartKind = "header"
        self._expected: Speaker = "court"  # under the heading, without other evidence
        self._last: Speaker | None = None  # of the line before, unless it was a heading
        self._quoted: Speaker | None = None  # author of the grounds or reasons being set out
        self._ended = True  # the line before ended a sentence
        self._numbered = False  # the paragraph before had a number

    def read(self, words: str, part: PartKind) -> list[Stretch]:
        """Return who speaks in a line, stretch by stretch."""
        if part != self._part:
            self._part, self._last, self._ended = part, None, True
            self._expected = "party" if part in ("claims", "annex") else "court"
            self._quoted = "party" if part == "annex" else None
        if part in ("header", "ruling"):
            formula = len(words) <= _FORMULA_CHARS and _RULES_ON.match(words)
            is_formal = part == "header" or formula or _FORMAL.match(words) or _NAMES.match(words)
            return [(None if is_formal else "court", len(words))]
        title = _speaker_of_heading(words, part)
        if title is not None:
            self._note_heading(words, title)
            return [(None, len(words))]
        stretches: list[Stretch] = [(None, len(words))] if _is_formal(words, part) else self._stretches(words)
        self._last = stretches[-1][0]
        self._ended = words[-1] in ".;:!?»"
        return stretches

    def _note_heading(self, words: str, title: Speaker | Literal[""]) -> None:
        """Update the state for a heading; a name isolated by a line break, or a party's own heading, is ignored."""
        if not title and (self._part == "statement" or not (self._ended or _GROUND_TITLE.match(words))):
            return
        self._expected, self._last, self._ended = title or self._expected, None, True
        self._quoted = "party" if self._part == "annex" else None

    def _stretches(self, words: str) -> list[Stretch]:
        if self._last == "text" and self._continues_text(words):
            return [("text", len(words))]
        self._numbered = _NUMBERED.match(words) is not None
        goes_on = bool(_ENUMERATED.match(words)) or not self._ended or words[0].islower() or words[0] in '"«“'
        self._quoted = self._quoting(words, goes_on)
        if self._quoted:
            return [(self._quoted, len(words))]
        is_broken = not self._ended and words[0].islower()
        reported = self._last if self._last in ("party", "lower_court") or is_broken else None
        goes_on = goes_on or (reported == "party" and self._part == "statement" and not _REASON.match(words))
        return _merge_short(_speakers_of_clauses(words, self._part, self._expected, reported, goes_on=goes_on))

    def _quoting(self, words: str, goes_on: bool) -> Speaker | None:
        """Return the author of the grounds or reasons that the line sets out, if any."""
        if self._part not in ("reasons", "annex"):
            return None
        if _ON_GROUNDS.match(words):
            whereas = _THEN_WHEREAS.search(words)
            return "party" if whereas and 2 * whereas.start() < len(words) else "lower_court"
        branch = self._last == "party" and _BRANCH.match(words)
        if branch or _WHEREAS.match(words) or _charges(words):
            return "party"
        return self._quoted if goes_on or self._part == "annex" else None

    def _continues_text(self, words: str) -> bool:
        """Is a line an item of the legal text reported before, or an unnumbered paragraph of it?"""
        if _ITEM.match(words):
            return True
        opens = _NUMBERED.match(words) or _REASON.match(words) or _VISA.match(words)
        return self._numbered and self._part == "reasons" and not opens


def _is_formal(words: str, part: PartKind) -> bool:
    """Is a line a reference to filings, or a formal clause?"""
    if _FORMAL.match(words):
        return True
    if part == "statement" and _FILED.match(words):
        return True
    cites = part == "statement" or (part == "reasons" and len(words) < _CHARGED_CHARS)
    return bool(cites and _CASE.match(words) and not _VISA.match(words))


def _speaker_of_heading(words: str, part: PartKind) -> Speaker | Literal[""] | None:
    """Return who speaks below a heading, "" if it does not show; None for a line that is not a heading."""
    if len(words) > _TITLE_CHARS or _VISA.match(words):
        return "" if _OF_A_GROUND.match(words) and _GROUND_TITLE.match(words) else None
    title = _NO_NUMBER.sub("", words.strip(" :.-–—*"))
    title_words = words_of(title[:_WHOLE_CHARS])[:_TITLE_WORDS]
    beginnings = {" ".join(title_words[:n]) for n in range(1, len(title_words) + 1)}
    for who in ("party", "court"):
        if beginnings & _TITLES[who] or _TITLE_CUES[who].match(title):
            return who
    if _REASON.match(words) or (_ENUMERATED.match(words) and words[-1] in ";.,"):
        return None
    if len(words) >= _ITEM_CHARS and (_ITEM.match(words) or words[0].isdigit()) and not _GROUND_TITLE.match(words):
        return None
    names = words[-1] not in ".;," and not _VERB.search(words) and not _ARGUES.search(words)
    if not (words.isupper() or names or (_GROUND_TITLE.match(words) and not _PLEADED.search(words))):
        return None
    return "party" if part in ("claims", "annex") else ""


def _speakers_of_clauses(
    words: str, part: PartKind, expected: Speaker, reported: Speaker | None = None, *, goes_on: bool = False
) -> list[Stretch]:
    """Return who speaks in each clause of a paragraph.

    `expected` speaks without other evidence; `reported` is the one whom the paragraph before reported and a pronoun may
    continue, or, if the paragraph `goes_on`, its beginning.
    """
    if _VISA.match(words):
        return [("text", len(words))]
    if _is_formal(words, part):
        return [(None, len(words))]
    if _charges(words) or _WHEREAS.match(words):
        return [("party", len(words))]
    reports = part == "reasons" and _TO_DECIDE.match(words) is not None
    spoken: list[Stretch] = []
    voice: Speaker = reported if reported and goes_on else expected
    ended = False  # the clause before ended a sentence
    for match in _CLAUSE.finditer(_without_quotations(words)):
        if clause := match.group():
            if part == "reasons" and voice == "party" and ended and not _CONDITIONAL.match(clause[:_NEAR]):
                voice = expected
            ended = clause.rstrip().endswith(".")
            reports = reports and not _ENDS_REPORT.match(clause)
            voice = "lower_court" if reports and not _QUASHES.search(clause) else _voice(clause, voice, part, reported)
            reported = voice if voice in ("party", "lower_court") else reported
            spoken += _before_testimony(clause, voice)
    return spoken


def _without_quotations(words: str) -> str:
    """Return a paragraph whose quotations are dots, so that their words tell nothing of who quotes them."""
    quoted = _QUOTED if words.count('"') % 2 == 0 else _QUOTED_IN_PART
    return quoted.sub(lambda match: f"{match[0][0]}{'·' * (len(match[0]) - 2)}{match[0][-1]}", words)


def _before_testimony(clause: str, voice: Speaker) -> list[Stretch]:
    """Cut a quotation of at least `_TESTIMONY_CHARS` off a clause's end: others say it, or a text."""
    quoted = _TESTIMONY.search(clause) if voice == "court" else None
    if quoted is None:
        return [(voice, len(clause))]
    by: Speaker | None = "text" if _LEADS_TO_TEXT.search(clause, 0, quoted.start()) else None
    return [(voice, quoted.start()), (by, len(clause) - quoted.start())]


def _charges(words: str) -> bool:
    """Does a paragraph set out a ground, rather than answer it: "le moyen qui fait grief à… est inopérant"?"""
    return _CHARGES.search(words[:_CHARGED_CHARS]) is not None and not _DISPOSES.search(words)


def _merge_short(clauses: Sequence[Stretch]) -> list[Stretch]:
    """Merge neighbouring clauses by one speaker; what is too short to tell by belongs to what is before it."""
    runs = [
        (speaker, sum(chars for _, chars in group)) for speaker, group in groupby(clauses, key=lambda each: each[0])
    ]
    merged: list[Stretch] = []
    for speaker, length in runs:
        before, chars = merged[-1] if merged else (speaker, 0)
        if chars < _STRETCH_CHARS or length < _STRETCH_CHARS or speaker == before:
            merged[-1:] = [(speaker if chars < min(length, _STRETCH_CHARS) else before, chars + length)]
        else:
            merged.append((speaker, length))
    return merged


def _voice(clause: str, before: Speaker, part: PartKind, reported: Speaker | None) -> Speaker:
    """Return the speaker of a clause that follows one by `before`."""
    if _COURT_HOLDS.search(clause) or (part == "reasons" and (_QUASHES.search(clause) or _DISPOSES.search(clause))):
        return "court"
    if _ON_GROUNDS.match(clause) or (part == "reasons" and _TO_DECIDE.match(clause)):
        return "lower_court"
    if part in ("statement", "claims") and _DEMANDS.match(clause):
        return "party"
    if part not in ("statement", "claims"):
        if before != "party" and _DERIVES.match(clause):
            return "court"
        if _STATES.match(clause) and not _APPLIES.search(clause):
            return "text"
    argues, retains = _ARGUES.search(clause), _RETAINS.search(clause)
    if before == "lower_court" and argues and _OPINES.match(argues.group()) and _TELLS_ON.match(clause):
        return before  # "L'arrêt ajoute que… Il considère que…"
    until = min(_NEAR, argues.start() if argues else _NEAR)
    if retains and retains.start() < until and not _COURT_ANSWERS.match(clause):
        return "court" if _APPROVES.search(clause) else "lower_court"
    if argues and not _is_answered(clause, argues):
        return "party"
    if reported and _TELLS_ON.match(clause):
        return reported
    if part in ("statement", "claims"):
        return _in_account(clause, before, part)
    comments = before == "text" and (_APPLIES.search(clause) or _QUALIFIES.search(clause))
    argued = before == "party" and _CONDITIONAL.match(clause[:_NEAR])
    return "court" if (_GOES_ON.match(clause) and not argued) or comments else before


def _in_account(clause: str, before: Speaker, part: PartKind) -> Speaker:
    """Return the speaker of a clause of the facts, the procedure or the claims whose verb is inconclusive."""
    if part == "statement" and _ORDERED.match(clause):
        return "lower_court"
    return "court" if _PROCEEDINGS.search(clause[:_NEAR]) else before


def _is_answered(clause: str, verb: re.Match[str]) -> bool:
    """Is the argument with the verb at `verb` quoted only to be answered, or approved, or not a party's?"""
    return bool(
        _ANSWERED.search(clause, 0, verb.start())
        or _RIGHTLY.match(clause, verb.end())
        or _EXPERT.search(clause, max(0, verb.start() - _NEAR), verb.start())
    )


def _censured(text: str, stretches: list[Paragraph]) -> set[int]:
    """Return the numbers of the stretches with reasoning of the judges below that the court then quashes.

    Sets their speaker to the lower court, where verbs alone were inconclusive.
    """
    censured: set[int] = set()
    for number, (start, end, part, speaker, _) in enumerate(stretches):
        if part == "reasons" and speaker == "court" and _QUASHES.search(text[start:end]):
            for before in range(number - 1, max(number - 1 - _LOOK_BACK, -1), -1):
                held = stretches[before]
                if not _is_held_below(text, held):
                    break
                stretches[before] = held._replace(speaker="lower_court")
                censured.add(before)
                if _TO_DECIDE.match(text[held.start : held.end]):
                    break
    return censured


def _is_held_below(text: str, stretch: Paragraph) -> bool:
    if stretch.part != "reasons" or stretch.speaker not in ("court", "lower_court"):
        return False
    held = text[stretch.start : stretch.end]
    return stretch.speaker == "lower_court" or bool(_HOLDS.search(held) and not _QUASHES.search(held))
