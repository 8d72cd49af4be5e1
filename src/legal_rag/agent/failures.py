"""Failures of an answer, and their French descriptions."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from legal_rag.library.filters import UnsupportedFilterError
from legal_rag.llm import ModelError

if TYPE_CHECKING:
    from legal_rag.citations.enricher import EnrichedResponse

logger = logging.getLogger(__name__)


class UnusableAnswerError(ModelError):
    """The model's answer cannot be given to a reader; `reason` says why, in French without a full stop."""

    def __init__(self, reason: str) -> None:
        super().__init__("unreadable", reason)

    @property
    def reason(self) -> str:
        """Why, in French without a full stop."""
        return self.said


UNCITED = "La réponse du modèle ne citait aucun passage vérifiable"
ONLY_SUPPORTED = (
    "La réponse du modèle ne citait rien mot pour mot ; les passages qu'elle indiquait ont les mêmes faits et les mêmes"
    " mots, ce qui ne prouve pas qu'ils disent la même chose"
)
NOT_FRENCH = "La réponse du modèle n'était pas en français"
INDEX_FAILED = (
    "Recherche impossible : l'index est endommagé, ou a changé depuis son ouverture ; "
    "la question et les filtres n'y sont pour rien"
)
_UNVERIFIED = ("Une citation n'a pas pu être vérifiée", "{} citations n'ont pas pu être vérifiées")
_REMOVED = ("Une citation a été retirée", "{} citations ont été retirées")


def reason_in_french(error: Exception) -> str:
    """Describe what ended an answer, without a full stop."""
    kind = f"Le modèle de langage n'a pas pu répondre (erreur {type(error).__name__})"
    return error.reason if isinstance(error, ModelError) else kind


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
    cited = [singular if n == 1 else plural.format(n) for n, (singular, plural) in counted if n]
    return ". ".join(filter(None, [*reasons, *cited])) or None
