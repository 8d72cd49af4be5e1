"""Language identification: is a text French?"""

import functools
import re
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier


# Told apart from French: those that models fall into, and enough others that nothing is taken for French for want of
# a better name. All hundred at once would take a few French questions for Walloon.
LANGUAGES = "fr en de es it pt nl ca ro la pl sv tr ru el ar zh".split()

_loading = threading.Lock()


@functools.lru_cache(maxsize=1024)
def is_french(text: str) -> bool:
    """Tell whether French is the likeliest language of a text, however short: "What is unique?" is not French."""
    with _loading:  # else each thread would load a model of its own
        identifier = _identifier()
    return bool(identifier.classify(text)[0] == "fr")


@functools.cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(LANGUAGES)
    return identifier


FEWEST_LETTERS = 15  # below, "Oui." or "60 jours :" could be any language
MOST_CHARS = 5000  # of an answer that are looked at
_QUOTED = re.compile(r"«[^»]*»|“[^”]*”|\"[^\"]*\"|\[[^\[\]]*\]|`[^`]*`|\bhttps?://\S+|\b[A-Z]{4,}\d*\b")
_LETTER = re.compile(r"[^\W\d_]")


def is_french_answer(answer: str) -> bool:
    """Tell whether the model's own words, quotations and markers apart, are French."""
    own = " ".join(_QUOTED.sub(" ", answer[:MOST_CHARS]).split())
    if len(_LETTER.findall(own)) < FEWEST_LETTERS:
        return True
    return is_french(own)
