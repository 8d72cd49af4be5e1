"""How a program in the sandbox ended, and what it printed.

In: what a child sent, or how it came to an end. Out: a `SandboxResult`, bounded whatever the child said.
"""

import signal
from typing import Literal, NamedTuple

from legal_rag.deep_read.sandbox_child.wire import BROKEN, OUT_OF_MEMORY

Status = Literal["ok", "error", "timeout", "killed", "refused"]
MOST_ERROR = 10_000  # characters of what is told of an error


class SandboxResult(NamedTuple):
    """How a program ended."""

    status: Status
    output: str  # what it printed, to stdout and stderr, up to the limit; then how many characters more there were
    error: str | None = None  # its traceback, or one line in French that says what stopped it


class Output:
    """What a program printed, up to a limit."""

    def __init__(self, most: int) -> None:
        self._most, self._pieces, self._count = most, list[str](), 0
        self._n_beyond = 0

    def add(self, text: str) -> None:
        """Take a piece; what is beyond the limit is counted."""
        kept = text[: self._most - self._count]
        if kept:
            self._pieces.append(kept)
        self._count += len(kept)
        self._n_beyond += len(text) - len(kept)

    def text(self, *, cut_off: bool = False) -> str:
        """Return what there is.

        Args:
            cut_off: The program was stopped: had it printed more than may be kept, its child could not tell how much.
        """
        if self._n_beyond:
            return f"{''.join(self._pieces)}\n… [{self._n_beyond} caractères de plus]"
        if cut_off and self._count >= self._most:
            return f"{''.join(self._pieces)}\n… [la suite n'a pas été conservée]"
        return "".join(self._pieces)

    def result(self, error: str | None, beyond: int) -> SandboxResult:
        """Return how the program ended, as the child tells it."""
        self._n_beyond += max(0, beyond)
        if error is None:
            return SandboxResult("ok", self.text())
        return SandboxResult("error", self.text(), error[:MOST_ERROR])


def end_in_french(code: int | None) -> str:
    """Say how a child ended.

    Args:
        code: Its exit code, negative for a signal; None if it did not end, but closed the channel.
    """
    if code is None:
        return "le programme a fermé le canal"
    if code == OUT_OF_MEMORY:
        return "la mémoire était épuisée"
    if code == -signal.SIGKILL:
        return "le système a tué le processus du programme, sans doute faute de mémoire"
    if code == BROKEN:
        return "le programme a endommagé son propre processus"
    if code == -signal.SIGXCPU:
        return "trop de calcul"
    if code < 0:
        return f"le processus du programme s'est effondré ({signal.Signals(-code).name})"
    return f"le programme a mis fin à son processus (code {code})"
