"""Near misses: accepted questions with a fact changed, so that no document of the corpus answers them."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import dspy

from legal_rag.base.html import displayed
from legal_rag.base.text import fold_text
from legal_rag.corpus.documents import Document
from legal_rag.evaluation.questions.checks import REFERENCE_TO_TEXT, QuestionSettings, faults, tidy
from legal_rag.evaluation.questions.dataset import CheckpointRecord, RecordMaker, question_id, usage_columns
from legal_rag.evaluation.questions.writer import DocumentRequests, predicted, prompt_hash, sampling_seed, shown_of
from legal_rag.law import find_amounts, find_dates, find_durations
from legal_rag.library.bm25 import lexical_words
from legal_rag.library.library import Library
from legal_rag.llm import Throttle, lm_of, model_of
from legal_rag.retriever.retriever import SearchHit, jaccard

Search = Callable[..., Sequence[SearchHit] | None]  # of a question and how many; None if the encoder cannot read it
SEARCHED: Final = 30  # passages found for a near miss, none of which may hold what it changes
READ: Final = 5  # of them, the best, of which the model says whether they answer
SAME_TOPIC: Final = 0.5  # share of content words (Jaccard) that a near miss has in common with its question


@displayed
class NearMiss(dspy.Signature):
    """Change un seul fait d'une question, de sorte que plus aucune décision n'y réponde.

    La nouvelle question garde le sujet de l'ancienne et presque tous ses mots. Un seul fait y diffère : une année, une
    juridiction, un montant, le rôle d'une partie ou la condition de la règle. Elle reste plausible pour un juriste,
    mais le texte ne permet plus d'y répondre. Ne nie pas la question : remplace un fait par un autre.
    """

    context: str = dspy.InputField(desc="Texte d'une décision juridique en français")
    question: str = dspy.InputField(desc="Question à laquelle ce texte répond")
    answer: str = dspy.InputField(desc="Sa réponse, copiée du texte")
    near_question: str = dspy.OutputField(desc="La même question, un seul fait changé, en français")


@displayed
class CanAnswer(dspy.Signature):
    """Dis si un passage, lu seul, permet de répondre à une question.

    Un passage du même sujet n'y répond pas s'il parle d'une autre année, d'une autre juridiction, d'un autre montant,
    d'une autre partie ou d'une autre condition que la question.
    """

    passage: str = dspy.InputField(desc="Passage d'une décision juridique en français")
    question: str = dspy.InputField()
    answers: Literal["oui", "non"] = dspy.OutputField(desc="oui si le passage répond à la question, sinon non")


def with_near_misses(
    make: RecordMaker, library: Library, lm: dspy.BaseLM, search: Search, settings: QuestionSettings, throttle: Throttle
) -> RecordMaker:
    """Add to a share of the accepted records, drawn by the seed, a near miss, or why there is none."""
    model = model_of(lm, cache=False)

    def made(doc_id: str) -> CheckpointRecord:
        record = make(doc_id)
        if record.row is None:
            return record
        started, row = time.perf_counter(), {**record.row, "answerable": True, "near_doc_id": None}
        if random.Random(f"{settings.seed}:near:{doc_id}").random() >= settings.unanswerable:  # noqa: S311
            return replace(record, row=row)
        asked = DocumentRequests(throttle, sampling_seed(settings.seed, doc_id))
        question, reason = _near_miss(library, row, lm_of(model, asked), search, settings)
        usage = record.usage.plus(asked.tracker.usage._replace(calls=asked.replies))
        seconds = round(record.seconds + time.perf_counter() - started, 3)
        record = replace(record, row=row, near_reason=reason, seconds=seconds, **usage_columns(usage))
        if asked.failure:
            return replace(record, status="failed", reason=asked.failure.kind, row=None, near_reason="")
        if reason:
            return record
        near = {"id": question_id(doc_id, (0, 0), question), "question": question, "main_topic": row["main_topic"]}
        near |= {"key_entities": [], "model": model.model, "prompt_hash": prompt_hash(NearMiss)}
        near |= {"answerable": False, "near_doc_id": doc_id}
        return replace(record, near_miss=dict.fromkeys(row) | near)  # no document, answer or score

    return made


def _near_miss(
    library: Library, row: dict[str, Any], lm: dspy.BaseLM, search: Search, settings: QuestionSettings
) -> tuple[str, str]:
    """Return the changed question, and why the last try is no near miss ('' if it is)."""
    document, question, reason = library.document(row["doc_id"]), "", ""
    context = document.content[slice(*shown_of(document, settings))]
    for _ in range(settings.tries):
        given = {"context": context, "question": row["question"], "answer": row["answer"]}
        reply = predicted(dspy.Predict(NearMiss), lm, **given)
        question = tidy(reply.near_question or "") if reply else ""
        if reason := near_miss_problem(question, row["question"]):
            continue
        if (hits := search(question, SEARCHED)) is None:
            reason = "wrong_form"
            continue
        texts = [f"{_head(library.document(hit.doc_id))}\n{hit.text}" for hit in hits]
        whole = f"{_head(document)}\n{document.content}"
        if any(holds_change(text, question, row["question"]) for text in (whole, *texts)):
            reason = "stated"
        elif any(_answers(lm, text, question) for text in (context, *texts[:READ])):
            reason = "answered"
        else:
            return question, ""
    return question, reason


def near_miss_problem(question: str, original: str) -> str:
    """Return why a question is no near miss of its original, whatever the corpus holds; '' if it may be one."""
    if not question:
        return "unreadable"
    if wrong := faults(question):
        return "not_french" if wrong == {"not_french"} else "wrong_form"
    if REFERENCE_TO_TEXT.search(fold_text(question)):
        return "refers_to_text"
    words, others = set(lexical_words(question)), set(lexical_words(original))
    return "" if words - others and jaccard(words, others) >= SAME_TOPIC else "not_near"


def holds_change(text: str, question: str, original: str) -> bool:
    """Tell whether a text holds what a question adds to its original.

    That is all its new words, in any form, or one of its new amounts, dates and durations, however written.
    """
    words = set(lexical_words(question)) - set(lexical_words(original))
    return words <= set(lexical_words(text)) or not (_values(question) - _values(original)).isdisjoint(_values(text))


def _values(text: str) -> set[Any]:
    amounts = {(amount.value, amount.currency) for amount in find_amounts(text)}
    durations = {(duration.value, duration.unit) for duration in find_durations(text)}
    return amounts | durations | {date.value for date in find_dates(text)}


def _head(document: Document) -> str:
    """Write what a passage does not repeat: of which court and date its decision is."""
    parts = (document.title, document.juridiction, document.formation, document.citation.text, document.decision_date)
    return " ; ".join(filter(None, parts))


def _answers(lm: dspy.BaseLM, passage: str, question: str) -> bool:
    """Ask the model whether a passage answers a question; a reply that cannot be read counts as yes."""
    reply = predicted(dspy.Predict(CanAnswer), lm, passage=passage, question=question)
    return reply is None or reply.answers != "non"


def requests_at_most(settings: QuestionSettings) -> tuple[int, int]:
    """Return the most requests for one near miss: for questions, and for verdicts on passages."""
    return settings.tries, settings.tries * (1 + READ)
