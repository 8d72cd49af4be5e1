"""Build an index on a Ray cluster: a shard is a task."""

import platform
import shutil
import tempfile
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from legal_rag.base.files import progress
from legal_rag.base.sqlite import connect_snapshot, connect_to_read, connect_to_write
from legal_rag.corpus.chunking import Chunker
from legal_rag.corpus.documents import SourceOptions
from legal_rag.encoder.encoder import Encoder, EncoderIdentity, build_encoder, check_encoder
from legal_rag.indexer.build import finish_build, resumed_build
from legal_rag.indexer.config import IndexConfig, IndexReport, chunker_of, open_documents
from legal_rag.indexer.pipeline import (
    CODEBOOK,
    CODEC,
    FullShard,
    Stopwatch,
    discard_plaid,
    encode_shards,
    install_shard,
    is_complete,
    keep_shards,
    prefetched,
    prepare_codebook,
    shard_home,
    store_documents,
    write_shards,
)
from legal_rag.library.library import STORE
from legal_rag.library.ray import RETRIES, WorkerShare, ray_cluster, ray_errors, share_out


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """What workers need to know about a build."""

    cfg: IndexConfig  # without its source, which may not be picklable
    identity: EncoderIdentity  # of the encoder that the build began with
    folder: Path  # of the build, on storage that all machines share


def build_index_on_ray(
    cfg: IndexConfig, encoder: Encoder | None = None, *, address: str | None = None, workers: int | None = None
) -> IndexReport:
    """Build a Library on a Ray cluster, in a folder that all machines share, with the result of `build_index`.

    Workers load the encoder by its identity. `address` is the cluster's, see `ray_cluster`; `workers` make a shard each
    at once, see `share_out`. Seconds of encoding and writing are summed over them. FileNotFoundError if the source, the
    ids file or the encoder does not exist; ValueError if Ray is not installed, the cluster is too small, or as for
    `build_index`; OSError if a disk is full, a worker cannot load the encoder, or the cluster is lost; what was done
    stays for the next attempt.
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
        chunker = chunker_of(cfg, encoder)
        name = encoder.identity.name
        if Path(name).is_dir():  # workers may run in another folder
            name = str(Path(name).absolute())
        with ray_cluster(address, workers):
            share = share_out(workers)
            with resumed_build(cfg, encoder) as (scratch, store):
                cfg_of_workers = replace(cfg, source="", options=SourceOptions(), encoder=replace(config, name=name))
                plan = BuildPlan(cfg=cfg_of_workers, identity=encoder.identity, folder=scratch.absolute())
                with watch.timed("shards"):
                    shards = store_documents(documents, store, chunker, watch)
                    with closing(connect_to_write(store.path)) as connection:  # machines cannot share its log
                        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    with closing(connect_to_read(store.path)) as connection:
                        codec = keep_shards(scratch, store, connection) / CODEC
                        with progress("Sampling", unit=" chunks") as bar:
                            prepare_codebook(codec, connection, shards, chunker, encoder, cfg, watch, bar)
                    _make_shards(shards, plan, share, watch)
                finish_build(scratch, store, encoder, cfg, report)
    return report


def _make_shards(shards: Sequence[FullShard], plan: BuildPlan, share: WorkerShare, watch: Stopwatch) -> None:
    """Make the shards that are missing, `share.n_workers` at once; Ray repeats one whose worker died.

    OSError if a worker cannot read, write or load the encoder, or the cluster is lost.
    """
    import ray

    options: dict[str, Any] = {"num_cpus": share.n_cpus, "num_gpus": share.n_gpus or None, "max_retries": RETRIES}
    task = ray.remote(scheduling_strategy="SPREAD", **options)(make_shard)
    missing = [shard for shard in shards if not is_complete(shard_home(plan.folder, shard.number), shard.n_chunks)]
    for shard in missing:
        discard_plaid(shard_home(plan.folder, shard.number))
    waiting, running = deque(missing), list[Any]()
    with ray_errors(), progress("Indexing", unit=" shards", total=len(missing)) as bar:
        try:
            while waiting or running:
                while waiting and len(running) < share.n_workers:
                    running.append(task.remote(plan, waiting.popleft()))
                (made,), running = ray.wait(running)
                watch.add(ray.get(made))
                bar.update()
        finally:  # none may go on when the folder is no longer this build's
            for result in running:
                ray.cancel(result, force=True)
            ray.wait(running, num_returns=len(running)) if running else None


def make_shard(plan: BuildPlan, shard: FullShard) -> dict[str, float]:
    """Encode a shard's chunks, write its files in a temporary folder, and install them; return seconds by stage.

    OSError if this machine does not see the folder of the build, cannot load its encoder, or the disk is full.
    """
    if not (plan.folder / STORE).is_file():
        raise FileNotFoundError(f"no {plan.folder / STORE} here (expected the Library's folder on shared storage)")
    encoder, chunker = _load_tools(plan)
    watch, codebook, home = Stopwatch(), plan.folder / CODEBOOK, shard_home(plan.folder, shard.number)
    attempt = Path(tempfile.mkdtemp(prefix=f"{shard.number}-", dir=codebook))
    try:
        with (
            closing(connect_snapshot(plan.folder / STORE)) as connection,
            prefetched(encode_shards(attempt, connection, [shard], chunker, encoder, watch, {})) as batches,
        ):
            deque(write_shards(attempt, batches, plan.identity.dim, codebook / CODEC, watch), maxlen=0)
        home.mkdir(parents=True, exist_ok=True)
        install_shard(shard_home(attempt, shard.number), home, shard.n_chunks)
    finally:
        shutil.rmtree(attempt, ignore_errors=True)
    return watch.seconds


@cache
def _load_tools(plan: BuildPlan) -> tuple[Encoder, Chunker]:
    """Load the encoder on a worker, and make the chunker.

    OSError if the encoder is missing on this machine, or is not the build's.
    """
    try:
        encoder = build_encoder(plan.cfg.encoder)
        check_encoder(encoder.identity, plan.identity, documents=True)
    except (OSError, ValueError) as error:
        raise OSError(f"the encoder cannot be used on {platform.node()}: {error}") from error
    return encoder, chunker_of(plan.cfg, encoder)
