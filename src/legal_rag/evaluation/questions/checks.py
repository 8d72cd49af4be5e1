"""Settings of a generation, checks of a question–answer pair, and its reward."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from legal_rag.base.html import displayed
from legal_rag.base.text import (
    Span,
    cuts_number,
    find_exact,
    find_folded,
    fold_text,
    is_whole,
    normalized,
    storable,
    widened,
)
from legal_rag.corpus.files import is_french
from legal_rag.library.bm25 import lexical_words

STRATEGIES: Final = ("refine", "best-of-n")
WORKERS: Final = 8  # requests to a model under way at once; changes nothing in what is kept
LOWEST_THRESHOLD: Final = 0.5  # exclusive: what is not grounded, not French or out of form is never kept

QUESTION_CHARS: Final = (10, 150)
ANSWER_CHARS: Final = (1, 100)
SUMMARY_CHARS: Final = 20  # fewer say too little to tell the language by

Problem = Literal[
    "unreadable",
    "ungrounded",
    "not_french",
    "wrong_form",
    "broken_off",
    "given_away",
    "refers_to_text",
    "names_no_matter",
]
# What each problem takes off a score of 100; with one of the first four, no threshold is reached.
PENALTIES: Final[dict[Problem, int]] = {
    "ungrounded": 50,
    "not_french": 50,
    "wrong_form": 50,
    "broken_off": 50,
    "given_away": 10,
    "refers_to_text": 10,
    "names_no_matter": 10,
}
MARGIN: Final = " \t\n\u00a0\u202f«»“”\"'"  # around an answer, where models put it

# Folded text. A decision that is named ("l'arrêt du 12 mai 2010", "l'arrêt Blanco") may be asked about; one that is
# only pointed at ("cet arrêt", "l'arrêt attaqué", "que dit l'arrêt ?") cannot be found by its question.
_TEXT = r"(?:texte|document|extrait|passage|décision|arrêt|jugement|ordonnance)"
_THESE = rf"(?:{_TEXT}s?|affaires?|litiges?|avis)"
_END = r"(?=\s*(?:[,;:?.!)]|$))"
_ASKS = r"(?= (?:quel|qui|que|quoi|comment|pourquoi|combien|où|quand|est-ce|à|de quel)\w*\b)"
_SAYS = r"(?= (?:mentionne|indique|précise|dit|retient|prévoit|énonce|sur|\w+-(?:t-)?(?:il|elle)\b))"
REFERENCE_TO_TEXT = re.compile(
    rf"\b(?:ce|cet|cette|ces|l[ea] présente?|les présente?s|du présent|de la présente) {_THESE}\b"
    rf"|\b(?:l[ea] |l'|du |au ){_TEXT}(?:{_END}|{_ASKS}|{_SAYS}| (?:attaquée?|commentée?|examinée?)\b)"
    r"|\b(?:texte|document|extrait|passage|contexte) (?:ci-dessus|fourni|donné|suivant)\b"
    r"|\ben l'espèce\b|\bci-dessus\b|\bsusvisée?s?\b|\bsusmentionnée?s?\b"
)
# What every decision is about: a question made of these alone could be asked of any.
COMMON_WORDS: Final = frozenset(
    lexical_words(
        "décision arrêt jugement ordonnance avis texte document extrait passage contexte affaire litige procédure "
        "cour cours tribunal conseil constitutionnel juge juges juridiction chambre cassation appel instance état "
        "question réponse demande demandeur défendeur requérant requête pourvoi moyen partie parties motif motifs "
        "solution objet sujet date nom principal principale unique statuer décider juger rejeter rendre dire fonder "
        "casser cassé annuler annulé violer violé viser visé allouer allouée condamner condamné somme montant "
        "condamnation dépens article loi s'élève attaqué attaquée "
        "quel quelle quelles comment pourquoi combien quand où qui que quoi lequel laquelle est sont était été a ont "
        "avait fait être avoir présent présente rendu rendue pris prise jugé décidé statué retient retenu mentionne"
    )
)
NEGATIONS: Final = re.compile(r"\b(?:ne|n|pas|non|sans|aucune?|ni)\b(?!-)")  # "non-concurrence" denies nothing
# Folded: articles and other determiners, prepositions, and conjunctions that introduce a clause. Left out is what may
# also end a phrase ("deux mois après", "l'une", "quelqu'un").
BROKEN_OFF: Final = re.compile(
    r"(?:\b(?:[cdjlmnst]|\w*qu)'|(?<![\w-])(?:(?<!l')(?<!quelqu')une?|les?|la|des?|du|aux?|ce|cet|cette|ces|mes?|mon|ma|"
    r"ses?|son|sa|leurs?|notre|nos|votre|vos|chaque|quels?|quelles?|ledit|ladite|lesdite?s|dudit|desdite?s|audit|auxdite?s|"
    r"à|en|dans|par|pour|sur|sous|avec|sans|chez|vers|envers|entre|parmi|selon|malgré|dès|via|contre|et|ou|ni|mais|car|"
    r"que|si|dont|ne|lorsque|puisque|quoique))$"
)
SHORTEST_PIECE: Final = 12  # characters of an answer that may end within a word


@displayed
@dataclass(frozen=True, kw_only=True)
class QuestionSettings:
    """Everything that decides which questions are kept; saved in the checkpoint and on the card."""

    seed: int = 0  # of the documents drawn, the windows, the splits and the model's sampling
    strategy: str = "refine"  # see `legal_rag.evaluation.questions.writer.Writer`
    tries: int = 3  # for each document, at most
    threshold: float = 1.0  # of `qa_reward`, above 0.5 and at most 1
    context_chars: int = 8000  # of a document that the model is shown
    unanswerable: float = 0.0  # share of questions, 0 to 1, that get a near miss: see `.near_misses`

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ValueError(f"no strategy {self.strategy!r} (there are: {', '.join(STRATEGIES)})")
        if not LOWEST_THRESHOLD < self.threshold <= 1:
            raise ValueError(f"threshold must be above {LOWEST_THRESHOLD} and at most 1, got {self.threshold}")
        for name, least in (("tries", 1), ("context_chars", 500)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if not 0 <= self.unanswerable <= 1:
            raise ValueError(f"unanswerable must be a share from 0 to 1, got {self.unanswerable}")


@displayed
class QAPair(BaseModel):
    """A question in French and its answer, word for word from a text; see the limits above, in characters."""

    question: str = Field(min_length=QUESTION_CHARS[0], max_length=QUESTION_CHARS[1])
    answer: str = Field(min_length=ANSWER_CHARS[0], max_length=ANSWER_CHARS[1])
    main_topic: str = ""

    @field_validator("question", "answer", "main_topic", mode="before")
    @classmethod
    def _tidy(cls, value: Any) -> Any:
        return tidy(value) if isinstance(value, str) else value

    @field_validator("question")
    @classmethod
    def _asks_in_french(cls, question: str) -> str:
        if not question.endswith("?"):
            raise PydanticCustomError("not_a_question", "a question ends in '?'")
        if not is_french(question):
            raise PydanticCustomError("not_french", "the question is not in French")
        return question


class Verdict(NamedTuple):
    """What a reply is worth."""

    span: Span | None  # of the answer, in the text that was shown, widened to whole words
    problems: tuple[Problem, ...]  # the gravest first
    score: float  # 0 to 1


def find_span(context: str, answer: str) -> Span | None:
    """Find an answer in a text: exactly, else up to typographic normalisation (`legal_rag.base.text`).

    The first occurrence that neither begins nor ends within a word wins, else the first of all. Blanks and quotation
    marks around the answer are ignored where the text has none. `context[start:end]` is the answer as the text writes
    it; None if it is not there.
    """
    for variant in dict.fromkeys((answer, answer.strip(), answer.strip(MARGIN))):
        if not variant.strip():
            return None
        if spans := find_exact(variant, context) or find_folded(variant, context):
            return next((span for span in spans if is_whole(context, span)), spans[0])
    return None


def span_grounding_reward(args: Mapping[str, Any], pred: Any, trace: Any = None) -> float:
    """Score an answer's grounding: 1 if verbatim in its text, 0.8 up to typographic normalisation, else 0.

    A metric of DSPy: `args` has `context`, the text; `pred` has `answer`; `trace` is not used.
    """
    answer = (getattr(pred, "answer", None) or "").strip()
    if answer and answer in args["context"]:
        return 1.0
    return 0.8 if find_span(args["context"], answer) else 0.0


def qa_reward(args: Mapping[str, Any], pred: Any, trace: Any = None) -> float:
    """Score a question and its answer from 0 to 1; see `PENALTIES`.

    1 takes: a verbatim answer that does not break off, French, lengths within limits, a question mark, an answer that
    the question does not give away, and a question that avoids "the text" and "this decision" and names a matter of the
    text.

    A metric of DSPy: `args` has `context`, the text; `pred` has `question`, `answer`, and perhaps `summary` and
    `main_topic`; `trace` is not used.
    """
    return judge(args["context"], pred).score


def judge(context: str, pred: Any) -> Verdict:
    """Check a reply in every way; see `qa_reward`."""
    names = ("question", "answer", "summary", "main_topic")
    return _judge(context, *(tidy(getattr(pred, name, None) or "") for name in names))


@functools.lru_cache(maxsize=256)  # the strategies judge a reply, and so does their caller
def _judge(context: str, question: str, answer: str, summary: str, topic: str) -> Verdict:
    if not question or not answer:
        return Verdict(None, ("unreadable",), 0.0)
    span = _find_grounded(context, answer)
    asked, folded = set(lexical_words(question)), fold_text(question)
    flags: dict[Problem, bool] = {
        "ungrounded": span is None,
        "not_french": not is_french(question) or (len(summary) >= SUMMARY_CHARS and not is_french(summary)),
        "wrong_form": bool(faults(question, answer, topic) - {"not_french"}),
        "broken_off": breaks_off(answer if span is None else context[slice(*span)]),
        "given_away": _is_given_away(folded, asked, answer),
        "refers_to_text": bool(REFERENCE_TO_TEXT.search(folded)),
        "names_no_matter": not (asked - COMMON_WORDS) & set(lexical_words(context)),
    }
    problems = tuple(problem for problem, is_so in flags.items() if is_so)
    score = max(0, 100 - sum(PENALTIES[problem] for problem in problems)) / 100
    return Verdict(span, problems, score)


def tidy(text: str) -> str:
    """Write a reply's text in NFC, on one line, its blanks single and plain."""
    return " ".join(normalized(storable(text)).split())


def breaks_off(answer: str) -> bool:
    """Tell whether an answer ends in an article, a preposition or another word that something must follow."""
    return BROKEN_OFF.search(fold_text(answer).strip(MARGIN.replace("'", ""))) is not None


def faults(question: str, answer: str = "…", topic: str = "") -> set[str]:
    """Return the kinds of what is wrong with the form of a question and its answer; see `QAPair`."""
    try:
        QAPair(question=question, answer=answer, main_topic=topic)
    except ValidationError as error:
        return {fault["type"] for fault in error.errors()}
    return set()


def _find_grounded(context: str, answer: str) -> Span | None:
    """Find an answer's span, widened to whole words where a model cut a long one; part of a number does not count."""
    span = find_span(context, answer)
    if span is None or cuts_number(context, span):
        return None
    start, end = widened(context, span)
    added = context[start : span[0]] + context[span[1] : end]
    return (start, end) if not added or (added.isalpha() and len(answer) >= SHORTEST_PIECE) else None


def _is_given_away(question: str, asked: set[str], answer: str) -> bool:
    """Tell whether an answer only repeats words of the question; to deny them, or to choose, is more than that."""
    words = set(lexical_words(answer))
    denies = NEGATIONS.search(fold_text(answer)) and not NEGATIONS.search(question)
    return words <= asked and not (words and (denies or " ou " in question))
