"""Export a Library as an index that PyLate opens."""

import pickle  # noqa: TID251 - written for PyLate, which reads nothing else
from pathlib import Path
from typing import NamedTuple

from legal_rag.corpus.chunking import chunk_id
from legal_rag.files import made_once
from legal_rag.library.foreign import PYLATE_IDS, write_mapping
from legal_rag.library.library import MAPPING, Library
from legal_rag.library.plaid.files import PLAID_FOLDER

PYLATE_POSITIONS = "documents_ids_to_plaid_ids"  # PyLate's other map, from id to position
PROBES = 8  # centroids that PyLate tries for each token of a question by default


class PylateIndex(NamedTuple):
    """An exported index: the arguments of `pylate.indexes.PLAID` that open it, and its size."""

    index_folder: str
    index_name: str
    n_ivf_probe: int  # for as thorough a search as one shard gets by default
    chunks: int


def export_pylate(library: Library, folder: str | Path) -> PylateIndex:
    """Write a Library as one PLAID index of PyLate's form, ids those of chunks, with a `doc_mapping.json` at its root.

    A Library of one codebook gives the same scores there; of several, which are put together, nearly the same.

    Args:
        library: An open Library; what was removed from it is left out.
        folder: A new folder: it gets `<name of the Library>/fast_plaid_index`.

    Raises:
        ValueError: If the folder exists, or the Library has no PLAID index.
    """
    from legal_rag.library.plaid.writer import merge_shards

    target, name = Path(folder).expanduser(), library.path.name
    if target.exists():
        raise ValueError(f"will not overwrite {target} (expected a new folder)")
    if not library.manifest["plaid"]["n_bits"]:
        raise ValueError(f"{library.path} has no PLAID index to export (it was built with --n-bits 0)")
    counts = [shard["chunks"] for shard in library.manifest["shards"]]
    shards = list(zip(library.shard_folders, library.removed_positions(), strict=True))
    shards = [shard for shard, n_chunks in zip(shards, counts, strict=True) if len(shard[1]) < n_chunks]
    ids = list(library.chunk_ids())
    with made_once(target) as scratch:
        n_codebooks = merge_shards(shards, scratch / name / PLAID_FOLDER)
        names = dict(enumerate(chunk_id(*one) for one in ids))
        for file, value in ((PYLATE_IDS, names), (PYLATE_POSITIONS, {one: at for at, one in names.items()})):
            (scratch / name / f"{file}.pkl").write_bytes(pickle.dumps(value))
        write_mapping(scratch / MAPPING, library.manifest["source"], (doc_id for doc_id, _ in ids))
    return PylateIndex(str(target), name, PROBES * n_codebooks, len(ids))
