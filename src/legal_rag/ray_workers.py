"""What workers of a distributed build do: cut documents into chunks, make shards.

In: a `BuildPlan`, and documents or a shard's number. Out: chunks, or a shard's files in their place. A worker has its
own encoder, loaded for the first task and kept for the next ones; nothing it does alone changes what others made.
"""

import json
import os
import platform
import shutil
import tempfile
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from legal_rag.chunking import Chunk, ChunkConfig, Chunker, build_chunker
from legal_rag.corpus import Document
from legal_rag.encoder import Encoder, EncoderConfig, EncoderIdentity, build_encoder
from legal_rag.library import STORE
from legal_rag.library_encoder import check_encoder
from legal_rag.pipeline import (
    FullShard,
    ShardSettings,
    Stopwatch,
    chunks_of,
    encode_shards,
    prefetched,
    write_shards,
)
from legal_rag.shard_draft import ATTEMPTS, adopt_shard, is_complete, shard_home
from legal_rag.sqlite import connect_snapshot


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """What a worker needs to know of a build."""

    encoder: EncoderConfig
    identity: EncoderIdentity  # of the encoder that the build began with
    chunks: ChunkConfig
    settings: ShardSettings
    folder: Path  # of the build, on storage that all machines share


class DocumentCutter:
    """A worker that cuts documents into chunks."""

    def __init__(self, plan: BuildPlan) -> None:
        self._plan = plan

    def cut(self, documents: Sequence[Document]) -> list[list[Chunk]]:
        """Return the chunks of each document, without their text, which the document holds.

        Raises:
            OSError: If this machine has not the encoder.
        """
        _, chunker = _tools(self._plan)
        return [[chunk._replace(text="", header="") for chunk in chunks_of(one, chunker)] for one in documents]


class ShardMaker:
    """A worker that makes shards, with an encoder loaded for the first and kept for the next ones."""

    def __init__(self, plan: BuildPlan) -> None:
        self._plan = plan

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Make one shard.

        Args:
            row: The fields of a `FullShard`.

        Returns:
            `number`; `seconds` by stage, as JSON; and `failure`, one line, empty if there was none. An exception would
            bring Ray's own traces along, and only what a user can mend is not one.
        """
        shard, watch, failure = FullShard(**row), Stopwatch(), ""
        try:
            make_shard(self._plan, shard, watch)
        except (OSError, ValueError) as error:
            failure = f"shard {shard.number} on {platform.node()}: {error}"
        return {"number": shard.number, "seconds": json.dumps(watch.seconds), "failure": failure}


def make_shard(plan: BuildPlan, shard: FullShard, watch: Stopwatch) -> None:
    """Encode a shard's chunks and write its files into a folder of their own, then put them into the shard's.

    A shard that is there already, complete, stays as it is.

    Raises:
        OSError: If this machine does not see the folder of the build, has not its encoder, or the disk is full.
    """
    if not (plan.folder / STORE).is_file():
        raise FileNotFoundError(f"no {plan.folder / STORE} here (expected the Library's folder on shared storage)")
    home = shard_home(plan.folder, shard.number)
    if is_complete(home, shard.n_chunks):
        return
    encoder, chunker = _tools(plan)
    whose = f"{shard.number}-{platform.node()}-{os.getpid()}-"
    attempt = Path(tempfile.mkdtemp(prefix=whose, dir=plan.folder / ATTEMPTS))
    try:
        with (
            closing(connect_snapshot(plan.folder / STORE)) as connection,
            prefetched(encode_shards(attempt, connection, [shard], chunker, encoder, watch)) as windows,
        ):
            deque(write_shards(attempt, windows, plan.identity.dim, plan.settings, watch), maxlen=0)
        adopt_shard(shard_home(attempt, shard.number), home, shard.n_chunks)
    finally:
        shutil.rmtree(attempt, ignore_errors=True)


@cache
def _tools(plan: BuildPlan) -> tuple[Encoder, Chunker]:
    """Load the encoder on a worker, and make the chunker.

    Raises:
        OSError: If it is not to be had on this machine, or is another one than the build began with; not a ValueError,
            after which what is done would be discarded: the other machines' work is good.
    """
    try:
        encoder = build_encoder(plan.encoder)
        check_encoder(encoder.identity, plan.identity, documents=True)
    except (OSError, ValueError) as error:
        raise OSError(f"the encoder cannot be used on {platform.node()}: {error}") from error
    return encoder, build_chunker(plan.chunks, encoder.count_tokens, encoder.identity.document_length)
