"""Build an index on a Ray cluster: a shard is a task."""

import json
import logging
import os
import platform
import shutil
import tempfile
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legal_rag.base.files import progress
from legal_rag.base.sqlite import connect_snapshot, connect_to_read, connect_to_write
from legal_rag.corpus.chunking import Chunk, Chunker
from legal_rag.corpus.documents import Document, SourceOptions
from legal_rag.encoder.encoder import Encoder, EncoderIdentity, build_encoder, check_encoder
from legal_rag.indexer.build import finish_build, resumed_build
from legal_rag.indexer.config import IndexConfig, IndexReport, chunker_of, open_documents
from legal_rag.indexer.pipeline import (
    CODEBOOK,
    CODEC,
    FullShard,
    Stopwatch,
    chunks_of,
    encode_shards,
    prefetched,
    prepare_codebook,
    write_shards,
)
from legal_rag.indexer.shards import (
    ATTEMPTS,
    discard_attempts,
    discard_plaid,
    install_shard,
    is_complete,
    shard_home,
)
from legal_rag.library.library import STORE
from legal_rag.library.ray_cluster import LASTING, WorkerShare, ray_cluster, ray_errors, share_out
from legal_rag.library.store import StoreWriter

if TYPE_CHECKING:
    from ray import ObjectRef


BATCH_DOCUMENTS = 32  # chunked by one task
BATCHES_PER_WORKER = 4  # in progress or waiting to be stored: bounds the memory of this process
BATCHES_PER_COMMIT = 8  # stored in one transaction, and lost by a kill


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """What workers need to know about a build."""

    cfg: IndexConfig  # without its source, which may not be picklable
    identity: EncoderIdentity  # of the encoder that the build began with
    folder: Path  # of the build, on storage that all machines share

    @property
    def sampled(self) -> Path:
        """The folder of the codebook, and of the batches it was trained on."""
        return self.folder / CODEBOOK


class DocumentCutter:
    """A Ray actor that chunks documents."""

    def __init__(self, plan: BuildPlan) -> None:
        self._plan = plan

    def cut(self, documents: Sequence[Document]) -> list[list[Chunk]]:
        """Return the chunks of each document, without text, which the document holds.

        Raises:
            OSError: If the encoder cannot be loaded on this machine.
        """
        _, chunker = _load_tools(self._plan)
        chunked = (chunks_of(document, chunker) for document in documents)
        return [[chunk._replace(text="", header="") for chunk in chunks] for chunks in chunked]


class ShardMaker:
    """A Ray actor that makes shards, with an encoder loaded once."""

    def __init__(self, plan: BuildPlan) -> None:
        self._plan = plan

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Make the `FullShard` with the fields of `row`; return seconds by stage, and what failed.

        What a user can fix is one line in `failure`: Ray would wrap an exception in its own traces.
        """
        shard, watch, failure = FullShard(**row), Stopwatch(), ""
        try:
            make_shard(self._plan, shard, watch)
        except (OSError, ValueError) as error:
            failure = f"shard {shard.number} on {platform.node()}: {error}"
        return {"seconds": json.dumps(watch.seconds), "failure": failure}


def make_shard(plan: BuildPlan, shard: FullShard, watch: Stopwatch) -> None:
    """Encode a shard's chunks, write its files in a temporary folder, and install them, unless it is complete.

    Raises:
        OSError: If this machine does not see the folder of the build, cannot load its encoder, or the disk is full.
    """
    if not (plan.folder / STORE).is_file():
        raise FileNotFoundError(f"no {plan.folder / STORE} here (expected the Library's folder on shared storage)")
    home = shard_home(plan.folder, shard.number)
    if is_complete(home, shard.n_chunks):
        return
    encoder, chunker = _load_tools(plan)
    prefix = f"{shard.number}-{platform.node()}-{os.getpid()}-"
    attempt = Path(tempfile.mkdtemp(prefix=prefix, dir=plan.folder / ATTEMPTS))
    try:
        with (
            closing(connect_snapshot(plan.folder / STORE)) as connection,
            prefetched(encode_shards(attempt, connection, [shard], chunker, encoder, watch, plan.sampled)) as batches,
        ):
            deque(write_shards(attempt, batches, plan.identity.dim, plan.sampled / CODEC, plan.cfg, watch), maxlen=0)
        install_shard(shard_home(attempt, shard.number), home, shard.n_chunks)
    finally:
        shutil.rmtree(attempt, ignore_errors=True)


@cache
def _load_tools(plan: BuildPlan) -> tuple[Encoder, Chunker]:
    """Load the encoder on a worker, and make the chunker.

    Raises:
        OSError: If the encoder is missing on this machine, or is not the build's; not a ValueError, which would discard
            the other machines' work.
    """
    try:
        encoder = build_encoder(plan.cfg.encoder)
        check_encoder(encoder.identity, plan.identity, documents=True)
    except (OSError, ValueError) as error:
        raise OSError(f"the encoder cannot be used on {platform.node()}: {error}") from error
    return encoder, chunker_of(plan.cfg, encoder)


def build_index_on_ray(
    cfg: IndexConfig, encoder: Encoder | None = None, *, address: str | None = None, workers: int | None = None
) -> IndexReport:
    """Build a Library from a source on a Ray cluster; with the result and errors of `build_index`.

    Args:
        cfg: What to build, and where: on storage that all machines share.
        encoder: A loaded one, instead of the one `cfg` names; workers load it again by its identity.
        address: The cluster's, as for `ray.init`; None takes the one that `RAY_ADDRESS` names, or this machine alone.
        workers: Shards made at once; None makes one for each GPU, or, where there is none, for each machine.

    Returns:
        The report; seconds of encoding and writing are summed over workers.

    Raises:
        FileNotFoundError: If the source, the ids file or the encoder does not exist.
        ValueError: If Ray is not installed, the cluster is too small, or as for `build_index`.
        OSError: If a disk is full, a worker cannot load the encoder, or the cluster is lost; what was done stays for
            the next attempt.
    """
    if not cfg.n_bits:
        raise ValueError("workers make PLAID shards: n_bits must be 1, 2 or 4, got 0 (build this index without Ray)")
    report = IndexReport()
    watch = Stopwatch(report.seconds)
    with watch.timed("total"):
        allowed = cfg.encoder.trust_remote_code
        config = encoder.identity.config(trust_remote_code=allowed) if encoder else cfg.encoder
        with watch.timed("open"):
            documents = open_documents(cfg, report)
            encoder = encoder or build_encoder(cfg.encoder)
        chunker_of(cfg, encoder)  # wrong settings fail here, before any worker starts
        name = encoder.identity.name
        if Path(name).is_dir():  # workers may run in another folder
            name = str(Path(name).absolute())
        with ray_cluster(address, workers):
            share = share_out(workers)  # before the scratch folder is opened: a ValueError would discard an attempt
            with resumed_build(cfg, encoder) as (scratch, store):
                cfg_of_workers = replace(cfg, source="", options=SourceOptions(), encoder=replace(config, name=name))
                plan = BuildPlan(cfg=cfg_of_workers, identity=encoder.identity, folder=scratch.absolute())
                with watch.timed("shards"):
                    fill_on_ray(documents, store, plan, share, encoder, watch)
                finish_build(scratch, store, encoder, cfg, report)
    return report


def fill_on_ray(
    documents: Iterable[Document],
    store: StoreWriter,
    plan: BuildPlan,
    share: WorkerShare,
    encoder: Encoder,
    watch: Stopwatch,
) -> None:
    """Store documents and write their shards into `plan.folder`, resuming an earlier attempt; see `fill_shards`.

    Raises:
        OSError: If a worker cannot read, write or load the encoder, or the cluster is lost.
    """
    discard_attempts(plan.folder)
    with ray_errors():
        store_documents_on_ray(documents, store, plan, share, watch)
        (plan.folder / ATTEMPTS).mkdir()
        if store.n_chunks:
            chunker, shards = chunker_of(plan.cfg, encoder), list(_all_shards(store))
            with closing(connect_to_read(store.path)) as connection:
                prepare_codebook(plan.folder, connection, shards, chunker, encoder, plan.cfg, watch)
            _make_shards(list(_missing_shards(shards, plan)), plan, share, watch)
    discard_attempts(plan.folder)


def store_documents_on_ray(
    documents: Iterable[Document], store: StoreWriter, plan: BuildPlan, share: WorkerShare, watch: Stopwatch
) -> None:
    """Chunk documents on workers, and store both in the documents' order.

    The write-ahead log is merged into the store's file at the end, since machines cannot share it.
    """
    new = (document for document in watch.timing("read", documents) if not store.holds_next(document))
    batches = iter(lambda: list(islice(new, BATCH_DOCUMENTS)), [])
    with progress("Storing", unit=" documents") as bar, closing(_cut_in_order(batches, plan, share)) as in_order:
        for number, (batch, cut) in enumerate(watch.timing("chunk", in_order), start=1):
            for document, chunks in zip(batch, cut, strict=True):
                store.add(document, chunks)
            if number % BATCHES_PER_COMMIT == 0:
                store.commit()
            bar.update(len(batch))
    store.end_of_source()
    store.commit()
    with closing(connect_to_write(store.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _all_shards(store: StoreWriter) -> Iterator[FullShard]:
    for number in range(store.n_shards):
        yield FullShard(number, min(store.shard_chunks, store.n_chunks - number * store.shard_chunks))


def _missing_shards(shards: Iterable[FullShard], plan: BuildPlan) -> Iterator[FullShard]:
    for shard in shards:
        home = shard_home(plan.folder, shard.number)
        if not is_complete(home, shard.n_chunks):
            discard_plaid(home)
            home.mkdir(parents=True, exist_ok=True)
            yield shard


def _make_shards(shards: Sequence[FullShard], plan: BuildPlan, share: WorkerShare, watch: Stopwatch) -> None:
    """Make shards on workers; a worker that dies is restarted with its shard."""
    if not shards:
        return
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = [{"number": shard.number, "n_chunks": shard.n_chunks} for shard in shards]
    made = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
        ShardMaker,
        fn_constructor_args=(plan,),
        # One shard at a time each: a second one would wait behind a slow worker while others are idle.
        compute=ray.data.ActorPoolStrategy(size=min(share.n_workers, len(rows)), max_tasks_in_flight_per_actor=1),
        num_cpus=share.n_cpus,
        num_gpus=share.n_gpus or None,
    )
    # Closing ends the workers also after an error: none may go on when the folder is no longer this build's.
    with progress("Indexing", unit=" shards", total=len(rows)) as bar, closing(iter(made.iter_rows())) as rows_made:
        for row in rows_made:
            if row["failure"]:
                raise OSError(row["failure"])
            watch.add(json.loads(row["seconds"]))
            bar.update()


def _cut_in_order(
    batches: Iterable[list[Document]], plan: BuildPlan, share: WorkerShare
) -> Generator[tuple[list[Document], list[list[Chunk]]]]:
    """Yield batches of documents with their chunks, in order, while workers chunk further ones."""
    import ray

    batches = iter(batches)
    first = next(batches, None)
    if first is None:
        return
    start = ray.remote(**LASTING)(DocumentCutter).remote
    cutters = [start(plan) for _ in range(share.n_workers)]
    waiting: deque[tuple[list[Document], ObjectRef]] = deque()
    try:
        for batch, cutter in zip(chain([first], batches), cycle(cutters), strict=False):
            waiting.append((batch, cutter.cut.remote(batch)))
            if len(waiting) == BATCHES_PER_WORKER * share.n_workers:
                oldest, result = waiting.popleft()
                yield oldest, ray.get(result)
        for batch, result in waiting:
            yield batch, ray.get(result)
    finally:
        for cutter in cutters:  # their memory is needed by `ShardMaker`
            ray.kill(cutter)
