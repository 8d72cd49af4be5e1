"""In which language a text is written: py3langid, a naive Bayes model over byte n-grams (Lui and Baldwin, 2012)."""

import functools
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
