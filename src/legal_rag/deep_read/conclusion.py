"""Turn what a run found into a checked answer: provenance of computed values, citations."""

import json
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from legal_rag.agent.event_log import EventLog
from legal_rag.agent.evidence import abstention
from legal_rag.agent.failures import UNCITED, notice_of
from legal_rag.agent.highlighting import complete_evidence
from legal_rag.agent.prediction import Event, Passage, Prediction, Status
from legal_rag.agent.tags import take_tags, without_tags
from legal_rag.citations.checks import Citation
from legal_rag.citations.enricher import CitationEnricher, EnrichedResponse
from legal_rag.citations.markers import format_marker
from legal_rag.corpus.sentences import split_sentences, without_blanks
from legal_rag.deep_read.provenance import Account
from legal_rag.library.corpus import Corpus
from legal_rag.llm import ModelError, Usage

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
MAX_WORDS = 12  # in a line of an answer; a longer one is prose, which needs a citation wherever it stands
MAX_TOLD = 5  # derivations in a notice, and values that have none
COMPUTED = "Réponse calculée par programme, refaite d'après ce que les fonctions du corpus ont rendu"
UNVERIFIED = "Sorti d'un programme, non vérifié"
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
    account: Account | None = None,
    seen: Collection[str] = (),
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
        account: A program gave the answer, and what of it is derived from what the functions returned: all of it may
            stand without citing a passage; the rest is marked as not verified, prose is not shown.
        seen: Ids of documents that a citation may hold of, besides those that the log has.
        remarks: For the reader, in French without full stops.
        nearest: Searches for the question itself, for the log, where the run found nothing that could stand in.
        on_event: Told what was checked and answered.
    """
    started = time.perf_counter()
    plain = not isinstance(value, str | EnrichedResponse)  # a list, a number: nothing is added to it
    answer = value if isinstance(value, EnrichedResponse) else _checked(value, log, corpus, seen, plain=plain)
    if answer is None and not stopped:
        failed, stopped = True, ModelError("empty").reason
    shown_as: Account | None = None  # what is said of an answer that no citation holds up
    if answer and account and not _holds(answer):
        cites = bool(answer.citations or answer.removed)  # what means to rest on passages must
        withheld = cites or answer.abstained or _is_prose(answer.text)
        shown_as = account if account.is_computed or not withheld else None
    if answer and account and plain and _holds(answer) and account.unverified:
        shown_as = account
    if answer and not (_holds(answer) or answer.abstained or shown_as):  # a model's words that rest on nothing
        answer, failed, stopped = None, failed or not stopped, stopped or UNCITED
    if answer and answer.abstained and not _holds(answer) and not shown_as:
        answer = abstention(answer.removed)  # a model's own words beside it cite nothing
    if answer is None and not log.passages:
        nearest()
    given = answer or _found_so_far(log)
    log.checked(given, time.perf_counter() - started)
    log.answered("deep_read", question, given, 0.0)
    if plain and answer:
        _tell_in_event(log, value=without_tags(value))
    if answer and shown_as:
        _tell_in_event(log, derived=list(shown_as.derived), unverified=list(shown_as.unverified))
    for event in log.news():
        on_event(event)
    return log.prediction(
        question,
        given,
        complete_evidence(question, list(log.passages.values()), given.citations, corpus, None),
        corpus,
        mode="deep_read",
        status=_status(given, stopped, shown_as if answer else None, failed=failed),
        notice=notice_of(given, stopped, *remarks, *(_provenance_notice(shown_as) if answer and shown_as else ())),
        usage=usage,
    )


def _tell_in_event(log: EventLog, **values: Any) -> None:
    log.events[-1] = log.events[-1]._replace(input={**log.events[-1].input, **values})


def _status(answer: EnrichedResponse, stopped: str, account: Account | None, *, failed: bool) -> Status:
    if stopped:
        return "model_failed" if failed else "exhausted"
    if account:
        return "answered" if account.is_computed else "unverified"
    return "abstained" if answer.abstained and not _holds(answer) else "answered"


def _provenance_notice(account: Account) -> Iterator[str]:
    """Say how the values of an answer were made again, and which were not, in French without full stops."""
    if account.unverified or not account.derived:
        yield _listed(UNVERIFIED, account.unverified)
    if account.derived:
        yield _listed(COMPUTED if account.is_computed else "Le reste est refait", account.derived)


def _listed(head: str, said: Sequence[str]) -> str:
    more = f" ; et {len(said) - MAX_TOLD} de plus, dans les étapes" if len(said) > MAX_TOLD else ""
    return f"{head} : {' ; '.join(said[:MAX_TOLD])}{more}" if said else head


def _is_prose(text: str) -> bool:
    return any(len(line.split()) > MAX_WORDS for line in text.splitlines())


def _holds(answer: EnrichedResponse) -> bool:
    return any(citation.holds for citation in answer.citations)


def _checked(
    value: Any, log: EventLog, corpus: Corpus, seen: Collection[str], *, plain: bool
) -> EnrichedResponse | None:
    read = list(log.sources)[:MAX_READ]
    # Tags are not asked for here; a model that writes some shows them to nobody.
    text = "" if value is None else take_tags(answer_text(value), map(corpus.document, read))[1]
    if not text:
        return None
    read = [] if plain else read
    return CitationEnricher(corpus).enrich(text, read=read, seen=frozenset([*log.sources, *seen]))


def is_cited(corpus: Corpus, seen: Collection[str]) -> Callable[[str], bool]:
    """Return what tells whether all of a text rests on citations that hold, of documents that were shown."""

    def tells(text: str) -> bool:
        checked = CitationEnricher(corpus).enrich(text, read=[], seen=seen)
        holds = bool(checked.citations) and all(citation.holds for citation in checked.citations)
        return holds and not (checked.removed or checked.ungrounded_claims or checked.cut)

    return tells


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
