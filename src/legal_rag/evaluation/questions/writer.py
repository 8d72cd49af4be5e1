"""The DSPy program that writes a question and its answer for a document, and its retries."""

import copy
import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Literal

import dspy

from legal_rag.base.html import displayed
from legal_rag.base.text import Span
from legal_rag.corpus.chunking import draw_window
from legal_rag.corpus.documents import Document
from legal_rag.evaluation.questions.checks import QuestionSettings, judge, qa_reward, tidy
from legal_rag.evaluation.questions.dataset import CheckpointRecord, Documents, make_row, usage_columns
from legal_rag.llm import (
    UNLIMITED,
    Completion,
    Endpoint,
    LenientAdapter,
    Message,
    ModelError,
    Throttle,
    UsageTracker,
    ask,
    lm_of,
    model_of,
)

REPLY_TOKENS = 1000  # a question, its answer and a summary of two or three sentences, or advice on them


@displayed
class FullQAExtraction(dspy.Signature):
    """Analyse un texte juridique français et génère une question-réponse fondée.

    La question porte sur un point de droit ou de fait précis, que seul ce texte permet de trancher. Elle nomme la
    matière dont il s'agit, de sorte qu'on la comprenne sans avoir le texte sous les yeux : n'écris ni « selon le
    texte » ni « cette décision ». La réponse est copiée du texte, mot pour mot, et ne figure pas dans la question.
    """

    context: str = dspy.InputField(desc="Texte d'une décision juridique en français")
    summary: str = dspy.OutputField(desc="Résumé concis en 2-3 phrases, en français")
    main_topic: str = dspy.OutputField(desc="Sujet principal en quelques mots, en français")
    question: str = dspy.OutputField(desc="Question courte (max 15 mots) sur le sujet principal, en français")
    answer: str = dspy.OutputField(
        desc="Citation EXACTE du texte (max 10 mots), doit apparaître verbatim dans le contexte"
    )
    # With a default: a weak model that leaves it out is not asked again for that.
    language: Literal["français"] = dspy.OutputField(desc="La langue de sortie - toujours français", default="français")


class Writer:
    """A strategy of asking, shared by threads: each call works on copies.

    'refine' tells the model after each try what to do better (`dspy.Refine`), which takes another request; 'best-of-n'
    only tries again (`dspy.BestOfN`).
    """

    def __init__(self, settings: QuestionSettings) -> None:
        """Take from the settings `strategy`, `tries`, and `threshold` of `qa_reward`."""
        repeat, tries = dspy.BestOfN if settings.strategy == "best-of-n" else dspy.Refine, settings.tries
        predict = dspy.Predict(FullQAExtraction)
        self._module = repeat(predict, tries, qa_reward, threshold=settings.threshold, fail_count=2 * tries)

    def __call__(self, context: str, lm: dspy.BaseLM) -> dspy.Prediction | None:
        """Return the best reply, good or not; None if none could be read, or the model failed."""
        # The module itself counts `fail_count` down, and raises when it falls below the number of tries made.
        return predicted(copy.copy(self._module), lm, context=context)


def predicted(module: dspy.Module, lm: dspy.BaseLM, **inputs: str) -> dspy.Prediction | None:
    """Return a module's reply; None if none could be read, or the model failed."""
    # A trace that is dropped afterwards: DSPy's would hold every text that was shown.
    with dspy.context(lm=lm, adapter=LenientAdapter(), trace=[], warn_on_type_mismatch=False):
        try:
            return module(**inputs)
        # What a model replies may fail to parse in as many ways as there are models, and the tries were made.
        except Exception:
            return None


def prompt_hash(*signatures: type[dspy.Signature]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of prompts, without a document."""
    return sha256("".join(map(prompt_of, signatures)).encode()).hexdigest()[:16]


def prompt_of(signature: type[dspy.Signature], context: str = "") -> str:
    """Return the text of a first request about a document, all messages joined."""
    inputs = dict.fromkeys(signature.input_fields, "") | {"context": context}
    messages = dspy.ChatAdapter().format(signature, [], inputs)
    return "\n".join(str(message["content"]) for message in messages)


def requests_at_most(settings: QuestionSettings) -> tuple[int, int]:
    """Return the most requests for one document: for pairs, and for advice (`dspy.Refine`)."""
    return settings.tries, 0 if settings.strategy == "best-of-n" else settings.tries - 1


class ModelQuestions:
    """Asks a model about documents, by their ids; threads may share it."""

    def __init__(self, library: Documents, lm: dspy.BaseLM, settings: QuestionSettings, throttle: Throttle) -> None:
        self._library, self._settings, self._throttle = library, settings, throttle
        self._model = model_of(lm, cache=False)  # a new try wants a new reply
        self._writer = Writer(settings)
        self._prompt_hash = prompt_hash(FullQAExtraction)

    def __call__(self, doc_id: str) -> CheckpointRecord:
        """Ask about a document until a pair passes, or tries are used up."""
        started = time.perf_counter()
        document = self._library.document(doc_id)
        start, end = shown_of(document, self._settings)
        context = document.content[start:end]
        asked = DocumentRequests(self._throttle, sampling_seed(self._settings.seed, doc_id))
        reply = self._writer(context, lm_of(self._model, asked))
        verdict = judge(context, reply)
        record = CheckpointRecord(
            doc_id=doc_id,
            content_hash=document.content_hash,
            status="rejected",
            reason=next(iter(verdict.problems), ""),
            **usage_columns(asked.tracker.usage._replace(calls=asked.replies)),
            seconds=round(time.perf_counter() - started, 3),
        )
        if reply is None or verdict.span is None or verdict.score < self._settings.threshold:
            return replace(record, status="failed", reason=asked.failure.kind) if asked.failure else record
        row = make_row(
            document,
            tidy(reply.question),
            (start + verdict.span[0], start + verdict.span[1]),
            main_topic=tidy(reply.main_topic or ""),
            summary=tidy(reply.summary or ""),
            score=verdict.score,
            model=self._model.model,
            prompt_hash=self._prompt_hash,
        )
        return replace(record, status="accepted", reason="", row=row)


def shown_of(document: Document, settings: QuestionSettings) -> Span:
    """Return the window of a document that the model is shown."""
    return draw_window(document.content, f"{settings.seed}:{document.id}", settings.context_chars)


def sampling_seed(seed: int, doc_id: str) -> int:
    """Return the seed of the first request about a document."""
    return int.from_bytes(sha256(f"{seed}:{doc_id}".encode()).digest()[:3], "big")


class DocumentRequests:
    """Makes the requests about one document: each has its own seed, and none follows a failure."""

    def __init__(self, throttle: Throttle, seed: int) -> None:
        self._throttle, self._seed = throttle, seed
        self.tracker = UsageTracker(UNLIMITED)
        self.replies = 0
        self.failure: ModelError | None = None

    def __call__(self, endpoint: Endpoint, messages: Sequence[Message]) -> Completion:
        """Make a request; ModelError if the model failed, now or before, or its reply was cut off."""
        if self.failure is not None:
            raise self.failure
        if endpoint.sender is None:  # other clients may refuse one
            endpoint = replace(endpoint, seed=self._seed + self.replies)
        try:
            throttle, tracker = self._throttle, self.tracker
            reply = ask(endpoint, messages, tracker=tracker, throttle=throttle, reply_tokens=REPLY_TOKENS)
        except ModelError as error:
            self.failure = error
            raise
        self.replies += 1
        if reply.cut_off:  # it may be incomplete
            raise ModelError("unreadable", "cut off")
        return reply
