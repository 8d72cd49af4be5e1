"""Downloads: a zip from an address or a path, whole and unmixed, into a folder.

In: an http(s) address, or a local path. Out: the zip's path in the target folder. A file there that does not end in
`.part` is complete; `<file>.json` beside it says which version of which source it is.
"""

import hashlib
import itertools
import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from legal_rag.folders import locked, require_space
from legal_rag.progress import byte_bar
from legal_rag.zips import ZIP_START, require_zip

if TYPE_CHECKING:
    from requests import Response, Session

TIMEOUT = (15, 60)  # seconds to connect, and between two pieces
RESUMPTIONS = 5  # in one call, each only if the attempt before it brought something
SERVER_RETRIES = 2  # after 429 and 5xx
BLOCK_BYTES = 2**16  # what a cut loses at most
MAX_NAME = 120  # characters of a file name


class Version(NamedTuple):
    """Which source a file comes from, and what its server says of the version."""

    source: str  # SHA-256 of the address, which may hold a key and is therefore not kept itself
    bytes: int | None = None
    etag: str = ""
    last_modified: str = ""

    @property
    def validator(self) -> str:
        """The value for `If-Range`: a strong ETag or a date, or nothing."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.last_modified

    def agrees_with(self, other: "Version") -> bool:
        """Tell whether nothing that both know differs."""
        return all(not ours or not theirs or ours == theirs for ours, theirs in zip(self, other, strict=True))


def fetch_zip(source: str | Path, target_folder: str | Path) -> Path:
    """Bring a zip into a folder, under the name that its address ends in.

    A download that was cut off goes on where it stopped, unless the file has changed meanwhile. What is already
    there is not fetched again.

    Args:
        source: An http(s) address, or a local path.
        target_folder: Created if need be.

    Returns:
        The zip's path in the folder.

    Raises:
        FileNotFoundError: If there is no such file, here or on the server.
        ConnectionError: If the server cannot be reached, refuses, or breaks off; what came is kept for the next call.
        ValueError: If it is not a zip, if the address is of another kind, or if another process is fetching it.
        OSError: If the disk is too full.
    """
    folder = Path(target_folder).expanduser().absolute()
    if is_address(source):
        return _fetch(str(source), folder / file_name_of(str(source)))
    path = Path(source).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no such zip: {path} (expected a path, or an address that begins with https://)")
    return _copy(path.resolve(), folder / path.name)


def is_address(source: str | Path) -> bool:
    """Tell an http(s) address from a path.

    Raises:
        ValueError: If it is an address of another kind.
    """
    scheme = re.match(r"([a-z][a-z0-9+.-]*)://", str(source), re.IGNORECASE)
    if scheme and scheme[1].lower() not in ("http", "https"):
        raise ValueError(f"cannot fetch {_shown(str(source))}: {scheme[1]} (expected http, https, or a local path)")
    return scheme is not None


def file_name_of(address: str) -> str:
    """Return a plain file name for an address, ending in `.zip`: never a path, never hidden, never empty."""
    last = re.split(r"[/\\]", unquote(urlsplit(address).path))[-1]
    stem = re.sub(r"[^\w.-]+", "_", last.removesuffix(".zip")).strip("._")
    return (stem[:MAX_NAME] or "download") + ".zip"


def _copy(source: Path, target: Path) -> Path:
    if target.exists() and target.samefile(source):
        return target
    require_zip(source)
    status = source.stat()
    version = Version(_digest(str(source)), status.st_size, last_modified=str(status.st_mtime_ns))
    with locked(target):
        known = _read_version(target)
        if not (known and known == version and _size(target) == version.bytes):
            require_space(target.parent, status.st_size)
            part = _part_of(target)
            shutil.copyfile(source, part)
            _write_version(part, version)
            _finish(part, target)
    return target


def _fetch(address: str, target: Path) -> Path:
    version = Version(_digest(address))
    with locked(target):
        if not _is_there(target, version):
            part = _part_of(target)
            _download(address, part, version)
            try:
                require_zip(part, _shown(address))
            except ValueError:
                part.unlink()  # a next attempt would only continue it
                raise
            _finish(part, target)
    return target


def _is_there(target: Path, version: Version) -> bool:
    """Tell whether a file is there and not known to be another; one put there by hand is taken as it is."""
    known = _read_version(target)
    return target.is_file() and (known is None or known.agrees_with(version._replace(bytes=_size(target))))


def _download(address: str, part: Path, version: Version) -> None:
    import requests

    with _session() as session:
        for attempt in range(1 + RESUMPTIONS):
            before = _size(part)
            try:
                _download_once(session, address, part, version)
                return
            except requests.RequestException as error:
                if attempt == RESUMPTIONS or _size(part) <= before:
                    kept = f" ({_size(part):,} bytes are kept for the next attempt)" if _size(part) else ""
                    raise ConnectionError(f"cannot fetch {_shown(address)}: {_reason(error)}{kept}") from error


def _session() -> "Session":
    import requests
    from urllib3.util import Retry

    retry = Retry(
        total=None,
        connect=0,
        read=0,
        other=0,
        status=SERVER_RETRIES,
        status_forcelist=(429, 500, 502, 503, 504),
        backoff_factor=0.2,  # seconds
        raise_on_status=False,
        respect_retry_after_header=False,  # a server could ask for hours
    )
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=retry))
    return session


def _download_once(session: "Session", address: str, part: Path, version: Version) -> None:
    """Ask for what is missing of a file, or for all of it if what is there is of another version."""
    known = _read_version(part)
    done = _size(part) if known and known.agrees_with(version) else 0
    headers = {"Accept-Encoding": "identity"}  # Content-Length and Range then count the zip's own bytes
    if known and done:
        if done == known.bytes:
            return
        headers |= {"Range": f"bytes={done}-"} | ({"If-Range": known.validator} if known.validator else {})
    with session.get(address, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if not (known and done and response.status_code in (206, 416)):
            _receive(response, address, part, version)
            return
        if _continues(response, done, known):
            _receive(response, address, part, known, done)
            return
    part.unlink()  # the rest of another file than ours: all of it is needed
    _download_once(session, address, part, version)


def _continues(response: "Response", done: int, known: Version) -> bool:
    """Tell whether an answer is the rest of the very file that the first bytes came from."""
    content_range = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""), re.ASCII)
    if response.status_code != 206 or not content_range or int(content_range[1]) != done:
        return False
    total = None if content_range[2] == "*" else int(content_range[2])
    return known.agrees_with(_version_of(response, known.source, total))


def _receive(response: "Response", address: str, part: Path, version: Version, done: int = 0) -> None:
    """Write an answer's body behind the `done` bytes already there, or in their place if there are none."""
    import requests

    _refuse_bad_answer(response, address, 206 if done else 200)
    blocks = response.iter_content(BLOCK_BYTES)
    if not done:
        first = next(blocks, b"")
        _refuse_other_content(first, response, address)
        length = response.headers.get("Content-Length", "")
        version = _version_of(
            response, version.source, int(length) if length.isascii() and length.isdecimal() else None
        )
        part.unlink(missing_ok=True)
        _write_version(part, version)
        blocks = itertools.chain([first], blocks)
    require_space(part.parent, (version.bytes or done) - done)
    with part.open("ab") as file, byte_bar(f"Downloading {part.stem}", version.bytes, done) as bar:
        for block in blocks:
            file.write(block)
            bar.update(len(block))
    if version.bytes not in (None, _size(part)):  # a server may send less of a range than was asked for
        raise requests.ConnectionError(f"{_size(part):,} bytes received of {version.bytes:,}")


def _refuse_bad_answer(response: "Response", address: str, expected: int) -> None:
    status = f"the server answers {response.status_code} {response.reason}"
    if response.status_code in (404, 410):
        raise FileNotFoundError(f"no zip at {_shown(address)}: {status}")
    if response.status_code != expected:
        raise ConnectionError(f"cannot fetch {_shown(address)}: {status} (expected {expected})")
    if (coding := response.headers.get("Content-Encoding", "identity")) != "identity":
        raise ConnectionError(f"cannot fetch {_shown(address)}: sent with Content-Encoding {coding!r} (expected none)")


def _refuse_other_content(first: bytes, response: "Response", address: str) -> None:
    """Refuse a web page or the like before all of it is fetched."""
    if not first.startswith(ZIP_START):
        kind = response.headers.get("Content-Type", "no content type")
        raise ValueError(f"not a zip: {_shown(address)} ({kind}, begins with {first[:16]!r})")


def _version_of(response: "Response", source: str, total: int | None) -> Version:
    return Version(source, total, response.headers.get("ETag", ""), response.headers.get("Last-Modified", ""))


def _part_of(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def _finish(part: Path, target: Path) -> None:
    # In this order: a kill in between leaves no file beside the record of another.
    _record_of(target).unlink(missing_ok=True)
    os.replace(part, target)
    os.replace(_record_of(part), _record_of(target))


def _record_of(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _read_version(path: Path) -> Version | None:
    try:
        return Version(**json.loads(_record_of(path).read_text("utf-8")))
    except (OSError, ValueError, TypeError):  # none, or not one of ours
        return None


def _write_version(path: Path, version: Version) -> None:
    _record_of(path).write_text(json.dumps(version._asdict()), encoding="utf-8")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _shown(address: str) -> str:
    """Return an address without what may hold a key: user, password, query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _reason(error: Exception) -> str:
    """Return what lies at the bottom of a chain of errors; those above quote the whole address."""
    inner: object = error
    while isinstance(inner, Exception):
        error = inner
        inner = getattr(error, "reason", None) or (error.args[0] if error.args else None)
    return (str(error).strip() or type(error).__name__).splitlines()[0]
