"""What can be wrong with a language model, and how that is said in French.

In: the error that a run ended with. Out: a few words for the reader; a provider's own are for the debug log.
"""


class EmptyAnswerError(Exception):
    """The model wrote nothing, and nothing again when it was asked once more."""


class NotFrenchError(Exception):
    """The model wrote in another language, and again when it was asked once more."""


class UnreadableReplyError(Exception):
    """The model's replies have none of the forms that are understood."""


TIMEOUT = "délai dépassé"
# The names of DSPy's errors (importing DSPy takes a second) and of these, and what they mean to the reader.
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


def reason_in_french(error: Exception) -> str:
    """Say what kind of failure it was, as a sentence without its full stop."""
    if isinstance(error, NotFrenchError):
        return "La réponse du modèle n'était pas en français"
    return f"Le modèle de langage n'a pas pu répondre ({_kind(error)})"


def _kind(error: Exception) -> str:
    said = str(error).casefold()
    if "timed out" in said or "timeout" in said:  # also reported as lost connections
        return TIMEOUT
    for kind in type(error).__mro__:
        if kind.__name__ in FAILURES:
            return FAILURES[kind.__name__]
    return f"erreur {type(error).__name__}"
