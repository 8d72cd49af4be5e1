"""Progress bars on stderr: shown in a terminal and in a notebook, not in a log."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm


def progress(what: str, **settings: Any) -> "tqdm":
    """Open a bar.

    Args:
        what: What is going on, e.g. `Indexing`.
        settings: Further ones of tqdm's, such as `iterable`, `total` and `unit`.
    """
    from tqdm import tqdm

    watched = sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")
    return tqdm(desc=what, file=sys.stderr, disable=not watched, **settings)


def byte_bar(what: str, total: int | None, done: int = 0) -> "tqdm":
    """Open a bar that counts bytes.

    Args:
        what: What is going on, e.g. `Downloading index.zip`.
        total: Bytes in all, if known.
        done: Bytes that were there before.
    """
    return progress(what, total=total, initial=done, unit="B", unit_scale=True)
