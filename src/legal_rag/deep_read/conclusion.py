"""How a deep read ends: its answer's citations are checked, and what was found so far stands in where there is none.

In: what a run came to, and its log. Out: the `Prediction`.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from legal_rag.budget import Usage
from legal_rag.citations import Citation, CitationEnricher, EnrichedResponse, format_marker
from legal_rag.deep_read.answer_texts import answer_text
from legal_rag.evidence import abstention
from legal_rag.failures import UNCITED, EmptyAnswerError, notice_of, reason_in_french
from legal_rag.prediction import Event, Passage, Prediction, Status
from legal_rag.retriever import Corpus
from legal_rag.run_log import RunLog

MOST_READ = 40  # documents in which uncited facts of an answer are looked for
MOST_PASSAGES = 3  # shown in place of an answer
SHOWN_CHARS = 600  # of each
COMPUTED = "Réponse calculée par programme, sans citation ; une trace (--trace) garde le programme"
NO_RESULT = "La lecture approfondie s'est arrêtée sans résultat."
SO_FAR = "Passages trouvés :"


def conclude(
    question: str,
    value: Any,
    log: RunLog,
    corpus: Corpus,
    *,
    usage: Usage,
    stopped: str = "",
    failed: bool = False,
    computed: bool = False,
    said: Sequence[str] = (),
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
        said: What else the reader is to know, in French without full stops.
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
        log.events[-1] = log.events[-1]._replace(input={**log.events[-1].input, "value": value})
    for event in log.news():
        on_event(event)
    without = computed and answer is not None and not answer.citations
    return log.prediction(
        question,
        given,
        corpus,
        mode="deep_read",
        status=_status(given, stopped, failed=failed),
        notice=notice_of(given, stopped, *said, COMPUTED if without else ""),
        usage=usage,
    )


def _status(answer: EnrichedResponse, stopped: str, *, failed: bool) -> Status:
    if stopped:
        return "model_failed" if failed else "exhausted"
    return "abstained" if answer.abstained and not _holds(answer) else "answered"


def _holds(answer: EnrichedResponse) -> bool:
    return any(citation.holds for citation in answer.citations)


def _checked(value: Any, log: RunLog, corpus: Corpus, *, plain: bool) -> EnrichedResponse | None:
    text = "" if value is None else answer_text(value)
    if not text:
        return None
    read = [] if plain else list(log.sources)[:MOST_READ]
    return CitationEnricher(corpus).enrich(text, read=read)


def _found_so_far(log: RunLog) -> EnrichedResponse:
    """Quote the best passages that were found; without any, say that there is no result."""
    best = sorted(log.passages.values(), key=lambda one: -(one.score or 0.0))[:MOST_PASSAGES]
    if not best:
        return abstention()._replace(text=NO_RESULT)
    lines, citations = [SO_FAR], []
    for passage in best:
        line, citation = _quoted(passage)
        lines.append(line)
        citations.append(citation)
    return EnrichedResponse("\n\n".join(lines), citations, [], [], 1.0, abstained=False)


def _quoted(passage: Passage) -> tuple[str, Citation]:
    quote = passage.text[:SHOWN_CHARS]
    if len(quote) < len(passage.text):
        quote = quote[: quote.rfind(" ") + 1].rstrip() or quote
    span = (passage.char_start, passage.char_start + len(quote))
    return f"« {quote} » {format_marker(passage.doc_id, *span)}", Citation(passage.doc_id, *span, quote, "verified")
