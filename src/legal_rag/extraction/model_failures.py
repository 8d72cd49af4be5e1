"""What a model's server may answer instead of a reply: what passes, what does not, and how long to wait.

In: LangExtract's errors, each of which wraps a provider's own. Out: HTTP status, whether to ask again, seconds.
"""

import re

from langextract.core.exceptions import InferenceRuntimeError
from tenacity import RetryCallState
from tenacity.wait import wait_random_exponential

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds before trying again; doubled from time to time, at random below that
MOST_ASKED_WAIT = 900.0  # seconds that a server may ask to wait
LATER = {408, 409, 425, 429, 500, 502, 503, 504, 529}  # HTTP: the same request may succeed another time
_WRITTEN_STATUS = re.compile(r"^Bad status code from Ollama: (?P<status>\d{3})$")  # it is told in no other way


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that a provider's error is about, if any."""
    seen: BaseException | None = error
    while seen is not None:
        for name in ("status_code", "code"):
            value = getattr(seen, name, None)
            if isinstance(value, int):
                return value
        seen = getattr(seen, "original", None) or seen.__cause__
    written = _WRITTEN_STATUS.search(str(error))
    return int(written["status"]) if written else None


def may_pass(error: BaseException) -> bool:
    """Tell whether the same request may succeed later: a server that is away or asks to wait, a lost connection."""
    if not isinstance(error, InferenceRuntimeError):
        return False
    if (status := status_of(error)) is not None:
        return status in LATER
    names = {kind.__name__ for kind in type(getattr(error, "original", None)).__mro__}
    return bool(names & {"APIConnectionError", "APITimeoutError", "ConnectionError", "Timeout", "TransportError"})


def wait(state: RetryCallState) -> float:
    """Wait as long as the server asks, else at random up to a limit that doubles (full jitter)."""
    error = state.outcome.exception() if state.outcome else None
    response = getattr(getattr(error, "original", None), "response", None)
    asked = response.headers.get("retry-after") if response is not None and hasattr(response, "headers") else None
    if asked is not None and asked.replace(".", "", 1).isdecimal():
        return min(float(asked), MOST_ASKED_WAIT)
    return wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT, min=FIRST_WAIT / 2)(state)
