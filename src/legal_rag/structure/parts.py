"""Parts: a long stretch of text without headings or numbers, cut into pieces of bounded length.

In: a span of a text. Out: spans that follow one another and are the whole of it, each cut before a paragraph where one
begins near, else behind a sentence, else behind a word.
"""

import re
from collections.abc import Iterator

from legal_rag.sentences import split_sentences

PART_CHARS = 3000  # of a part at most
_LEAST_CHARS = 1200  # of a part that ends before a paragraph
_NEAR = 600  # characters before its end where a part's last sentence is looked for first

# Where a paragraph begins: behind a line break, or, in a text of one line, where a court's next reason does.
_PARAGRAPH = re.compile(
    r"(?<=\n)[^\S\n]*+(?=[A-ZÀ-ÖØ-ÞŒ«\"\d–—-])"
    r"|(?<=[.;,:]) (?=(?:\d{1,3}\. ?)?(?:(?:MAIS |Mais )?(?:ATTENDU|[Aa]ttendu)|CONSID[EÉ]RANT|[Cc]onsid[ée]rant|Vu)\b)"
)


def split_long(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a span; one that is short enough is its only part."""
    while end - start > PART_CHARS:
        cut = _cut(text, start, start + PART_CHARS)
        yield start, cut
        start = cut
    yield start, end


def _cut(text: str, start: int, limit: int) -> int:
    """Return where a part that begins at `start` ends, at `limit` at the latest."""
    if found := _PARAGRAPH.search(text, start + _LEAST_CHARS, limit):
        return found.end()
    for begun in (limit - _NEAR, start):
        sentences = split_sentences(text[begun:limit])
        if len(sentences) > 1:
            return begun + sentences[-1][0]
    blank = text.rfind(" ", start + _LEAST_CHARS, limit)
    return blank + 1 if blank > 0 else limit
