"""The rules of a regulation by patterns: sentences of a statute or a staff handbook that set a duration or a sum."""

import re
from collections.abc import Iterator
from functools import cache

from legal_rag.corpus.folding import Span
from legal_rag.corpus.patterns import LegalAmount, LegalDuration, find_amounts, find_durations
from legal_rag.corpus.patterns.scanning import SPACE
from legal_rag.corpus.sentences import split_sentences, without_blanks
from legal_rag.corpus.words import read_words
from legal_rag.extraction.entities import BENEFIT_RULE, LEAVE_RULE, WORKING_TIME_RULE, Entity, rule_entity

SUBJECTS = {
    LEAVE_RULE: "leave_subjects",
    WORKING_TIME_RULE: "working_time_subjects",
    BENEFIT_RULE: "benefit_subjects",
}
SENTENCE_CHARS = 1000  # of a rule; a longer sentence is a list that lost its signs


def find_rules(text: str) -> list[Entity]:
    """Find the sentences that set a duration or a sum on a known subject, in the classes of `regulation`.

    A sentence without a subject of its own, such as an item of a list, has that of the one before it.
    """
    durations, amounts = iter([*find_durations(text), None]), iter([*find_amounts(text), None])
    duration, amount, subject = next(durations), next(amounts), None
    found = []
    for start, end in without_blanks(text, split_sentences(text)):
        subject = _subject(text, start, end) or subject
        timed, paid = [], []
        while duration is not None and duration.start < end:
            timed += [duration] if duration.start >= start else []
            duration = next(durations)
        while amount is not None and amount.start < end:
            paid += [amount] if amount.start >= start else []
            amount = next(amounts)
        if subject is not None and (timed or paid) and end - start <= SENTENCE_CHARS:
            name, rule_type = subject
            set_values = dict(_attributes(text, timed, paid))
            found.append(rule_entity(name, text, start, end, rule_type=rule_type, **set_values))
    return found


def _attributes(text: str, timed: list[LegalDuration], paid: list[LegalAmount]) -> Iterator[tuple[str, str]]:
    """Yield what a rule sets, by its first duration and its first sum."""
    for duration in timed[:1]:
        yield "duration", text[duration.start : duration.end]
        yield "value", f"{duration.value.normalize():f}"
        yield "unit", duration.unit
        if duration.each:
            yield "period", duration.each
    for amount in paid[:1]:
        yield "amount", text[amount.start : amount.end]
        yield "currency", amount.currency


def _subject(text: str, start: int, end: int) -> tuple[str, str] | None:
    """Return the class and the first subject of a sentence, in lower case."""
    match = _subjects().search(text, start, end)
    if match is None:
        return None
    span: Span = match.span()
    return str(match.lastgroup), " ".join(text[slice(*span)].lower().split())


@cache
def _subjects() -> re.Pattern[str]:
    lists = read_words("legal_rag.extraction.rules")
    groups = "|".join(f"(?P<{name}>{'|'.join(lists[words])})" for name, words in SUBJECTS.items())
    apostrophes = groups.replace("'", "['’]").replace(" ", SPACE)
    return re.compile(rf"(?<!\w)(?:{apostrophes})(?!\w)", re.IGNORECASE)
