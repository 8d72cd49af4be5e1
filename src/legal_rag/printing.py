"""Strip control characters from untrusted text before a terminal or a page shows it, also in streams.

What steers a terminal instead of being shown: C0 controls but line feed and tab, DEL, C1 controls, and the characters
that override the direction of text (Unicode 16, section 23.2). Half a surrogate pair is no character at all.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
REPLACEMENT = "\ufffd"
# The colours and weights that commands and progress bars use: SGR, which changes how text looks and nothing else.
STYLES = ("\x1b[0m", "\x1b[2m")
_UNPRINTABLE_OR_STYLE = re.compile(f"{'|'.join(map(re.escape, STYLES))}|{UNPRINTABLE.pattern}")


def printable(text: str) -> str:
    """Replace each unprintable character with U+FFFD; the length stays, and with it every offset."""
    return UNPRINTABLE.sub(REPLACEMENT, text)


def one_line(text: str) -> str:
    """Write a text in one printable line, its blanks and line ends as single blanks."""
    return " ".join(printable(text).split())


def escaped_json(text: str) -> str:
    r"""Write the unprintable characters of a JSON text as `\uXXXX`: they occur only in its strings, whose values stay.

    Those that JSON itself escapes are escaped already.
    """
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


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
