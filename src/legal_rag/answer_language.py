"""Whether an answer is in French, whatever it quotes.

In: an answer with its quotations and markers. Out: yes or no; of an answer too short to tell, yes.
"""

import re

from legal_rag.languages import is_french

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
