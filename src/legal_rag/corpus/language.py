"""Language identification: is a text French?"""

import functools
import re
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier


# Languages that models answer in, and enough others; with all hundred, a few French questions come out as Walloon.
LANGUAGES = "fr en de es it pt nl ca ro la pl sv tr ru el ar zh".split()
FEWEST_LETTERS = 15  # below this, "Oui." or "60 jours :" could be any language
MAX_CHARS = 5000  # of an answer that are classified

_QUOTED = re.compile(r"«[^»]*»|“[^”]*”|\"[^\"]*\"|\[[^\[\]]*\]|`[^`]*`|\bhttps?://\S+|\b[A-Z]{4,}\d*\b")
_LETTER = re.compile(r"[^\W\d_]")

_loading = threading.Lock()


@functools.lru_cache(maxsize=1024)
def is_french(text: str) -> bool:
    """Is French the likeliest language of a text, however short? "What is unique?" is not French."""
    with _loading:  # else each thread would load its own model
        identifier = _identifier()
    return bool(identifier.classify(text)[0] == "fr")


def is_french_answer(answer: str) -> bool:
    """Is an answer French, apart from its quotations and markers?"""
    prose = " ".join(_QUOTED.sub(" ", answer[:MAX_CHARS]).split())
    return len(_LETTER.findall(prose)) < FEWEST_LETTERS or is_french(prose)


@functools.cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(LANGUAGES)
    return identifier
