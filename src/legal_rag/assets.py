"""Assets: an encoder and an index, brought from wherever they are to where a retriever can be built from them.

In: addresses or paths of zips, or folders, however they are nested. Out: the two folders that count.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from legal_rag.downloads import fetch_zip, is_address
from legal_rag.library import DEFAULT_NAME, MANIFEST, Library, is_library
from legal_rag.plaid_format import METADATA, PLAID_FOLDER, open_files, plaid_folder_of
from legal_rag.zips import ZipLimits, extract_zip

__all__ = [
    "Assets",
    "ZipLimits",
    "extract_zip",
    "fetch_zip",
    "find_encoder_root",
    "find_index_root",
    "plaid_folder_of",
    "prepare_assets",
]

DEFAULT_ASSETS = "assets"


@dataclass(frozen=True)
class Assets:
    """What a retriever is built from."""

    encoder: Path | None  # a model folder; None: the one that the index or the caller names
    index: Path  # a Library, or an index of the old form


def prepare_assets(
    encoder: str | Path | None,
    index: str | Path,
    target_folder: str | Path = DEFAULT_ASSETS,
    *,
    index_name: str = DEFAULT_NAME,
) -> Assets:
    """Fetch, unpack and check an encoder and an index; what is already there is neither fetched nor unpacked again.

    Args:
        encoder: A zip's address or path, or a folder, which is used where it is; None if it does not come as files.
        index: The same for the index.
        target_folder: Where zips are downloaded and unpacked.
        index_name: The index to take where there are several.

    Raises:
        FileNotFoundError: If a source does not exist, or holds no encoder or no complete index.
        ConnectionError: If a server cannot be reached, refuses, or breaks off.
        ValueError: If a zip is damaged or hostile, or an index contradicts itself.
        OSError: If the disk is too full.
    """
    target = Path(target_folder).expanduser()
    encoder_root = None if encoder is None else find_encoder_root(_unpacked(encoder, target, "encoder"))
    index_root = find_index_root(_unpacked(index, target, "index"), index_name)
    if is_library(index_root):
        for folder in Library(index_root).shard_folders:
            open_files(folder)
    else:
        open_files(plaid_folder_of(index_root))
    return Assets(encoder_root, index_root)


def find_encoder_root(folder: str | Path) -> Path:
    """Find the encoder in a tree of folders: the topmost with `modules.json`, or with `config.json` and weights.

    Raises:
        FileNotFoundError: If there is none, or it has no weights.
        ValueError: If there are several beside one another, or weights are there as pickles only.
    """
    folder = _require_folder(folder)
    root = _topmost(
        [path for path in _folders(folder) if _is_encoder(path)],
        f"encoder in {folder} (expected modules.json, or config.json beside *.safetensors)",
    )
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
        ValueError: If there are several beside one another, none of that name.
    """
    folder = _require_folder(folder)
    if folder.name == PLAID_FOLDER and _is_plaid(folder):
        return folder.parent
    found = [path for path in _folders(folder) if is_library(path) or _is_plaid(plaid_folder_of(path))]
    named = [path for path in found if path.name == index_name]
    expected = f"a Library's {MANIFEST}, or {index_name}/{PLAID_FOLDER} with its metadata.json"
    return _topmost(named or found, f"index in {folder} (expected {expected})")


def _unpacked(source: str | Path, target: Path, what: str) -> Path:
    if is_address(source):
        zip_path = fetch_zip(source, target / "downloads")
    else:
        zip_path = Path(source).expanduser()
        if zip_path.is_dir():
            return zip_path
        if not zip_path.is_file():
            raise FileNotFoundError(f"no {what} at {source} (expected a zip's address or path, or a folder)")
    return extract_zip(zip_path, target / what / zip_path.stem)


def _require_folder(folder: str | Path) -> Path:
    path = Path(folder).expanduser().absolute()
    if not path.is_dir():
        raise FileNotFoundError(f"no such folder: {path}")
    return path


def _folders(top: Path) -> Iterator[Path]:
    """Walk a tree from the top, past what macOS adds to a zip, hidden folders, and the insides of an index."""
    for name, subfolders, _ in os.walk(top):
        yield Path(name)
        if is_library(Path(name)):
            subfolders.clear()
        hidden = ("__MACOSX", PLAID_FOLDER)
        subfolders[:] = sorted(sub for sub in subfolders if sub not in hidden and not sub.startswith("."))


def _topmost(found: Sequence[Path], what: str) -> Path:
    if not found:
        raise FileNotFoundError(f"no {what}")
    depth = min(len(path.parts) for path in found)
    top = [path for path in found if len(path.parts) == depth]
    if len(top) > 1:
        raise ValueError(f"more than one {what}: {', '.join(map(str, top[:5]))}")
    return top[0]


def _is_encoder(folder: Path) -> bool:
    if (folder / "modules.json").is_file():
        return True
    weights = ("*.safetensors", "pytorch_model*.bin")
    return (folder / "config.json").is_file() and any(True for kind in weights for _ in folder.glob(kind))


def _is_plaid(folder: Path) -> bool:
    return (folder / METADATA).is_file() and (folder / "centroids.npy").is_file()
