"""Streams to a terminal without the control characters of untrusted text."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from legal_rag.base.text import REPLACEMENT, UNPRINTABLE

# The colours and weights that commands and progress bars use: SGR, which changes how text looks and nothing else.
STYLES = ("\x1b[0m", "\x1b[2m")

_UNPRINTABLE_OR_STYLE = re.compile(f"{'|'.join(map(re.escape, STYLES))}|{UNPRINTABLE.pattern}")


class PrintableStream:
    """A text stream whose writes lose what is unprintable; all else is the stream's own.

    It has no `buffer`, by which click would write past it. Progress bars move the cursor: they write to `raw`.
    """

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        """Write a text; what the stream's encoding lacks is escaped, as on stderr."""
        cleaned = _UNPRINTABLE_OR_STYLE.sub(
            lambda match: match.group() if len(match.group()) > 1 else REPLACEMENT, text
        )
        try:
            self.raw.write(cleaned)
        except UnicodeEncodeError:
            encoding = self.raw.encoding or "ascii"
            self.raw.write(cleaned.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        """Write lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.raw, name)


@contextmanager
def printable_streams() -> Iterator[None]:
    """Put a `PrintableStream` before stdout and stderr for a while."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (raw if isinstance(raw, PrintableStream) else PrintableStream(raw) for raw in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
