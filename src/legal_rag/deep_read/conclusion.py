"""Turn what a run found into a checked answer: provenance of computed values, citations."""

import ast
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from legal_rag.agent.budget import Usage
from legal_rag.agent.event_log import EventLog
from legal_rag.agent.evidence import abstention
from legal_rag.agent.failures import UNCITED, EmptyAnswerError, notice_of, reason_in_french
from legal_rag.agent.highlighting import complete_evidence
from legal_rag.agent.prediction import Event, Passage, Prediction, Status
from legal_rag.agent.tags import take_tags, without_tags
from legal_rag.citations.checks import Citation
from legal_rag.citations.enricher import CitationEnricher, EnrichedResponse
from legal_rag.citations.markers import format_marker
from legal_rag.corpus.sentences import split_sentences, without_blanks
from legal_rag.library.corpus import Corpus

NOTHING = "(rien)"
DEEPEST = 4  # lists within lists; what lies deeper is written as JSON


def answer_text(value: Any) -> str:
    """Write a value that JSON can hold as text: nested lists become nested bullets, `**key** : value`."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping | list | tuple):
        return "\n".join(_lines(value, 0)) or NOTHING
    return _scalar(value)


def _lines(value: Any, depth: int) -> list[str]:
    pairs = value.items() if isinstance(value, Mapping) else ((None, one) for one in value)
    lines: list[str] = []
    for key, one in pairs:
        name = "" if key is None else f"**{_in_line(str(key))}** : "
        if not _is_group(one) or depth + 1 == DEEPEST:
            lines.append(f"{'  ' * depth}- {name}{_in_line(_scalar(one))}")
        elif _is_row(one):
            lines.append(f"{'  ' * depth}- {name}{', '.join(_in_line(_scalar(part)) for part in one)}")
        else:
            lines += [f"{'  ' * depth}- {name}".rstrip(), *_lines(one, depth + 1)]
    return lines


def _is_group(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and len(value) > 0


def _is_row(value: Any) -> bool:
    """Tell whether a list is short and flat, such as (year, count)."""
    return isinstance(value, Sequence) and len(value) <= 3 and not any(map(_is_group, value))


def _scalar(value: Any) -> str:
    if value is None or (isinstance(value, Mapping | list | tuple) and not value):
        return NOTHING
    if isinstance(value, bool):
        return "oui" if value else "non"
    if isinstance(value, float):
        return f"{value:.10g}".replace(".", ",") if math.isfinite(value) else NOTHING
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _in_line(text: str) -> str:
    return " ".join(text.split())


MAX_READ = 40  # documents in which uncited facts of an answer are looked for
MAX_PASSAGES = 3  # shown in place of an answer
SHOWN_CHARS = 600  # of each
COMPUTED = "Réponse calculée par programme, sans citation ; une trace (--trace) garde le programme"
NO_RESULT = "La lecture approfondie s'est arrêtée sans résultat."
SO_FAR = "Passages trouvés :"


def conclude(
    question: str,
    value: Any,
    log: EventLog,
    corpus: Corpus,
    *,
    usage: Usage,
    stopped: str = "",
    failed: bool = False,
    computed: bool = False,
    remarks: Sequence[str] = (),
    nearest: Callable[[], None] = lambda: None,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Prediction:
    """Check an answer and put the run together.

    Args:
        question: That was read for.
        value: The answer, a text or a plain value, or one that was checked already; empty if there is none.
        log: Of the run.
        corpus: Where its citations point.
        usage: Of all model calls.
        stopped: Why the run ended before its end, in French without a full stop; empty if it did not.
        failed: It ended because a model failed, not at a limit.
        computed: A program gave the answer: it may stand without citing a passage.
        remarks: For the reader, in French without full stops.
        nearest: Searches for the question itself, for the log, where the run found nothing that could stand in.
        on_event: Told what was checked and answered.
    """
    started = time.perf_counter()
    plain = not isinstance(value, str | EnrichedResponse)  # a list, a number: nothing is added to it
    answer = value if isinstance(value, EnrichedResponse) else _checked(value, log, corpus, plain=plain)
    if answer is None and not stopped:
        failed, stopped = True, reason_in_french(EmptyAnswerError())
    if answer and not plain and (answer.citations or answer.removed):  # a text that means to rest on passages must
        computed = False
    if answer and not (_holds(answer) or answer.abstained or computed):  # a model's words that rest on nothing
        answer, failed, stopped = None, failed or not stopped, stopped or UNCITED
    if answer and answer.abstained and not _holds(answer) and not computed:
        answer = abstention(answer.removed)  # a model's own words beside it cite nothing
    if answer is None and not log.passages:
        nearest()
    given = answer or _found_so_far(log)
    log.checked(given, time.perf_counter() - started)
    log.answered("deep_read", question, given, 0.0)
    if plain and answer:
        log.events[-1] = log.events[-1]._replace(input={**log.events[-1].input, "value": without_tags(value)})
    for event in log.news():
        on_event(event)
    without = computed and answer is not None and not answer.citations
    return log.prediction(
        question,
        given,
        complete_evidence(question, list(log.passages.values()), given.citations, corpus, None),
        corpus,
        mode="deep_read",
        status=_status(given, stopped, failed=failed),
        notice=notice_of(given, stopped, *remarks, COMPUTED if without else ""),
        usage=usage,
    )


def _status(answer: EnrichedResponse, stopped: str, *, failed: bool) -> Status:
    if stopped:
        return "model_failed" if failed else "exhausted"
    return "abstained" if answer.abstained and not _holds(answer) else "answered"


def _holds(answer: EnrichedResponse) -> bool:
    return any(citation.holds for citation in answer.citations)


def _checked(value: Any, log: EventLog, corpus: Corpus, *, plain: bool) -> EnrichedResponse | None:
    read = list(log.sources)[:MAX_READ]
    # Tags are not asked for here; a model that writes some shows them to nobody.
    text = "" if value is None else take_tags(answer_text(value), map(corpus.document, read))[1]
    if not text:
        return None
    read = [] if plain else read
    return CitationEnricher(corpus).enrich(text, read=read)


def _found_so_far(log: EventLog) -> EnrichedResponse:
    """Quote the best passages that were found; without any, say that there is no result."""
    best = sorted(log.passages.values(), key=lambda one: -(one.score or 0.0))[:MAX_PASSAGES]
    if not best:
        return abstention()._replace(text=NO_RESULT)
    citations = [_citation(passage) for passage in best]
    lines = [f"« {one.quote} » {format_marker(one.doc_id, one.char_start, one.char_end)}" for one in citations]
    return EnrichedResponse("\n\n".join([SO_FAR, *lines]), citations, [], [], 1.0, abstained=False)


def _citation(passage: Passage) -> Citation:
    sentences = without_blanks(passage.text, split_sentences(passage.text))
    whole = [end for _, end in sentences if end <= SHOWN_CHARS]
    cut = passage.text.rfind(" ", 0, SHOWN_CHARS) if len(passage.text) > SHOWN_CHARS else len(passage.text)
    quote = passage.text[: whole[-1] if whole else cut if cut > 0 else SHOWN_CHARS].rstrip()
    start = passage.char_start
    return Citation(passage.doc_id, start, start + len(quote), quote, "verified")


SHORTEST = 25  # characters of an answer that is a piece of a model's text; shorter ones are labels, units, names
GRAM = 4  # words in a row that show that a text is from another one, whatever was replaced or cut around them
MAX_LABEL = 8  # words in a row of a reply, or of a sentence that stands in the code; from there on they count as copied
MAX_TEMPLATE = 16  # words in a row of a sentence in the code that a program filled in
MAX_COPIED_SHARE = 0.5  # share of an answer's words that may be copied
WORD = re.compile(r"\w+")
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")  # in a reply that is JSON: \u00e9, \n
END = re.compile(r"[.!?;]\s|\s:\s|\n")  # of a sentence, of a line, of what a line of a table is about


def is_computed(value: Any, codes: Iterable[str], replies: Iterable[str]) -> bool:
    """Tell whether a program computed an answer, as far as its words show.

    Args:
        value: The answer: a text, or a plain value.
        codes: All that was run.
        replies: All that sub-models replied, and root models where no program answered.
    """
    text = answer_text(value)
    written, replies = [constants for code in codes if (constants := _constants(code))], list(map(_unescaped, replies))
    if not text or (isinstance(value, str) and _is_piece(text, (*(one for all_ in written for one in all_), *replies))):
        return False
    words = _words(text)
    positions = _positions_of_grams(words)
    in_reply = _covered(positions, len(words), replies)
    in_code = _covered(positions, len(words), (" ".join(constants) for constants in written))
    copied = {n for start, end in _stretches(in_reply, MAX_LABEL) for n in range(start, end)}
    copied |= {n for start, end in _stretches(in_code, MAX_TEMPLATE) for n in range(start, end)}
    for start, end in _sentences(text):
        if end - start >= MAX_LABEL and all(in_code[n] or in_reply[n] for n in range(start, end)):
            copied.update(range(start, end))
    return len(copied) <= MAX_COPIED_SHARE * len(words)


def _unescaped(reply: str) -> str:
    """Return a reply with the escapes of JSON decoded, so that its words are those that a program reads in it."""
    return ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", reply)


def _is_piece(text: str, texts: Iterable[str]) -> bool:
    squeezed = " ".join(text.split())
    return len(squeezed) >= SHORTEST and any(squeezed in " ".join(one.split()) for one in texts)


def _constants(code: str) -> list[str]:
    """Return the texts that stand in a program, in its order."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it did not run either
        return []
    found = [one for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return [str(one.value) for one in sorted(found, key=lambda one: (one.lineno, one.col_offset))]


def _words(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def _positions_of_grams(words: Sequence[str]) -> dict[tuple[str, ...], list[int]]:
    positions: dict[tuple[str, ...], list[int]] = {}
    for n in range(len(words) - GRAM + 1):
        positions.setdefault(tuple(words[n : n + GRAM]), []).append(n)
    return positions


def _covered(positions: dict[tuple[str, ...], list[int]], n_words: int, texts: Iterable[str]) -> list[bool]:
    """Tell which words of an answer stand in some texts, with their neighbours."""
    covered = [False] * n_words
    for text in texts:
        words = _words(text)
        for gram in {tuple(words[n : n + GRAM]) for n in range(len(words) - GRAM + 1)} & positions.keys():
            for position in positions[gram]:
                covered[position : position + GRAM] = [True] * GRAM
    return covered


def _stretches(covered: Sequence[bool], shortest: int) -> Iterator[tuple[int, int]]:
    start = 0
    for n, is_covered in enumerate([*covered, False]):
        if not is_covered:
            if n - start >= shortest:
                yield start, n
            start = n + 1


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins and ends, in words."""
    begin = 0
    for sentence in END.split(text):
        end = begin + len(_words(sentence))
        yield begin, end
        begin = end
