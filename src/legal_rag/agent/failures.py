"""Failures of a model, and their French descriptions."""

import logging
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from legal_rag.library.filters import UnsupportedFilterError

if TYPE_CHECKING:
    from legal_rag.citations.enricher import EnrichedResponse

logger = logging.getLogger(__name__)


class ModelFailureError(Exception):
    """The model gave no usable answer; the cause is the client's error, if it is not one of DSPy's."""


class EmptyAnswerError(ModelFailureError):
    """The model wrote nothing, even when asked again."""


class NotFrenchError(ModelFailureError):
    """The model wrote in another language, even when asked again."""


class UncitedAnswerError(ModelFailureError):
    """The answer quotes no passage word for word, and does not abstain."""

    def __init__(self, *, supported: bool = False) -> None:
        """`supported`: passages that it points to have the same facts and words."""
        super().__init__(ONLY_SUPPORTED if supported else UNCITED)
        self.supported = supported


class UnreadableReplyError(ModelFailureError):
    """The model's replies cannot be parsed."""


UNCITED = "La réponse du modèle ne citait aucun passage vérifiable"
ONLY_SUPPORTED = (
    "La réponse du modèle ne citait rien mot pour mot ; les passages qu'elle indiquait ont les mêmes faits et les mêmes"
    " mots, ce qui ne prouve pas qu'ils disent la même chose"
)
INDEX_FAILED = (
    "Recherche impossible : l'index est endommagé, ou a changé depuis son ouverture ; "
    "la question et les filtres n'y sont pour rien"
)
TIMEOUT, REDIRECTED = "délai dépassé", "adresse redirigée"
# DSPy's errors and ours, by name: importing DSPy takes a second.
FAILURES = {
    "LMTimeoutError": TIMEOUT,
    "LMAuthError": "clé refusée",
    "LMBillingError": "crédit épuisé",
    "LMRateLimitError": "trop de demandes",
    "ContextWindowExceededError": "texte trop long pour lui",
    "LMUnsupportedModelError": "modèle inconnu du serveur",
    "LMInvalidRequestError": "demande refusée par le serveur",
    "LMServerError": "erreur du serveur",
    "LMProviderError": "erreur du serveur",
    "LMTransportError": "serveur injoignable",
    "LMConfigurationError": "réglage incomplet",
    "LMUnexpectedError": "réponse illisible",
    "UnreadableReplyError": "réponse illisible",
    "EmptyAnswerError": "réponse vide",
}
REMEDIES = {
    FAILURES["LMAuthError"]: "vérifiez la clé",
    REDIRECTED: "donnez l'adresse finale du serveur",
    FAILURES["LMTransportError"]: "vérifiez l'adresse, et que le serveur y est en marche",
    FAILURES["LMUnsupportedModelError"]: "vérifiez le nom du modèle, et l'adresse, qui finit d'ordinaire par /v1",
    FAILURES["LMInvalidRequestError"]: "vérifiez le nom du modèle",
}
_VARIABLE = re.compile(r"\b[A-Z]+(?:_[A-Z]+)*_API_KEY\b")  # of the environment
_UNVERIFIED = ("Une citation n'a pas pu être vérifiée", "{} citations n'ont pas pu être vérifiées")
_REMOVED = ("Une citation a été retirée", "{} citations ont été retirées")


def reason_in_french(error: Exception) -> str:
    """Describe a model's failure, without a full stop; a provider's message is for the log, but for a key it lacks."""
    if isinstance(error, UncitedAnswerError):
        return ONLY_SUPPORTED if error.supported else UNCITED
    if isinstance(error, NotFrenchError):
        return "La réponse du modèle n'était pas en français"
    kind = _kind(error)
    missing = _VARIABLE.search(str(error)) if kind == FAILURES["LMConfigurationError"] else None
    return f"Le modèle de langage n'a pas pu répondre ({kind}{f' : {missing.group()}' if missing else ''})"


def bug_in_french(error: Exception) -> str:
    """Describe a bug of this package, without a full stop."""
    return f"Une erreur interne de legal_rag ({type(error).__name__}) a interrompu l'agent ; le journal dit où"


@contextmanager
def search_errors(refusal: str) -> Iterator[None]:
    """Turn the errors of a search into a ValueError in French, for a model; failures of the index are logged.

    Its message is `refusal` if the corpus is not indexed for the filters, `INDEX_FAILED` if the index cannot be read.
    """
    try:
        yield
    except UnsupportedFilterError as error:
        raise ValueError(refusal) from error
    except (ValueError, LookupError, OSError, sqlite3.Error) as error:
        logger.warning("the index could not be searched: %s", error, exc_info=True)
        raise ValueError(INDEX_FAILED) from error


def notice_of(answer: "EnrichedResponse", *reasons: str) -> str | None:
    """Join reasons (French, without full stops; empty ones are skipped) and the counts of citations that failed."""
    if answer.cut:
        reasons = (*reasons, "La réponse, trop longue pour être vérifiée, a été coupée")
    counted = ((answer.counts.get("unverified", 0), _UNVERIFIED), (len(answer.removed), _REMOVED))
    cited = [one if n == 1 else many.format(n) for n, (one, many) in counted if n]
    return ". ".join(filter(None, [*reasons, *cited])) or None


def _kind(error: Exception) -> str:
    described = str(error).casefold()
    if "timed out" in described or "timeout" in described:  # also reported as lost connections
        return TIMEOUT
    if "redirects (" in described:  # see `legal_rag.exchange`
        return REDIRECTED
    for kind in type(error).__mro__:
        if kind.__name__ in FAILURES:
            return FAILURES[kind.__name__]
    return f"erreur {type(error.__cause__ or error).__name__}"
