"""A Ray cluster: connections to it, workers of equal size, and shards held by its actors for searching."""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legal_rag.base.extras import install_command
from legal_rag.library.library import Library
from legal_rag.library.plaid.files import PlaidParts
from legal_rag.library.plaid.search import PlaidShards, ShardHits, ShardSize

RETRIES = 10  # of a task or an actor whose worker died; then something is wrong
MISSING = f"the engine 'ray' needs Ray: {install_command('ray')}"

_lock = threading.Lock()
_users = 0  # of the connection made here; the last one closes it


class WorkerShare(NamedTuple):
    """Workers of equal size, and the resources of each."""

    n_workers: int
    n_cpus: int
    n_gpus: int  # 0 or 1


@contextmanager
def ray_cluster(address: str | None = None, n_cpus: int | None = None) -> Iterator[None]:
    """Connect to a cluster; a connection that the process already has is used, and stays open.

    `address` is as for `ray.init`; None takes the cluster that `RAY_ADDRESS` names, or else starts one on this machine,
    with `n_cpus` processors, by default all.

    Raises:
        ValueError: If Ray is not installed.
        ConnectionError: If no cluster answers at the address.
    """
    global _users
    try:
        import ray
    except ImportError as error:
        raise ValueError(MISSING) from error

    address = address or os.environ.get("RAY_ADDRESS") or "local"
    with _lock:
        ours = bool(_users) or not ray.is_initialized()
        if ours and not _users:
            settings: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
            if address == "local":
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry from a cluster of this process
                settings |= {"num_cpus": n_cpus, "include_dashboard": False}
            ray.init(address, **settings)
        _users += ours
    try:
        yield
    finally:
        with _lock:
            _users -= ours
            if ours and not _users:
                ray.shutdown()


@contextmanager
def ray_errors() -> Iterator[None]:
    """Re-raise a worker's ValueError or OSError as it was there; raise OSError where the cluster is lost."""
    from ray.exceptions import RayError, RayTaskError

    try:
        yield
    except RayTaskError as error:
        if isinstance(error.cause, ValueError | OSError):
            raise error.cause from None
        raise
    except RayError as error:
        raise OSError(f"the Ray cluster is lost ({type(error).__name__}: {str(error).splitlines()[0]})") from error


def share_out(n_workers: int | None) -> WorkerShare:
    """Divide the connected cluster among workers: by default one for each GPU, or else for each machine.

    ValueError if the cluster has fewer processors than workers are asked for.
    """
    import ray

    machines = [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    cpus = [int(machine["CPU"]) for machine in machines]
    gpus = sum(int(machine.get("GPU", 0)) for machine in machines)
    n_workers = gpus or len(cpus) if n_workers is None else n_workers
    if not 1 <= n_workers <= sum(cpus):
        raise ValueError(f"workers must be 1 to {sum(cpus)}, the cluster's processors; got {n_workers}")
    share = max(size for size in range(1, max(cpus) + 1) if sum(n // size for n in cpus) >= n_workers)
    return WorkerShare(n_workers, share, int(gpus >= n_workers))


class RayShards:
    """Shards held by actors; see `legal_rag.library.plaid.search.Shards`."""

    def __init__(self, corpus: Library, n_actors: int, *, address: str | None = None) -> None:
        """Start actors, and let each open its shards; see `RayRetriever`.

        FileNotFoundError if an actor's machine does not see the shards.
        """
        if n_actors < 1:
            raise ValueError(f"n_actors must be at least 1, got {n_actors}")
        n_shards = len(corpus.manifest["shards"])  # of about as many tokens each
        self._groups = [range(first, n_shards, n_actors) for first in range(min(n_actors, n_shards))]
        self._stack = ExitStack()
        try:
            self._stack.enter_context(ray_cluster(address))
            self._actors = [self._start_actor(corpus, group) for group in self._groups]
            self.dim = int(corpus.manifest["encoder"]["dim"])
            self.sizes: list[ShardSize] = self._gather_by_shard("sizes")
        except BaseException:  # an interruption, too, must not leave actors behind
            self.close()
            raise

    def close(self) -> None:
        """End the actors, and the cluster if it was started for them."""
        self._stack.close()

    def scores(
        self, queries: Sequence[np.ndarray], candidates: Sequence[Sequence[ShardHits]], window_weight: float = 0.0
    ) -> list[list[ShardHits]]:
        """Return each shard's candidates with their scores; see `Shards`."""
        return self._gather_by_shard("scores", list(queries), args=candidates, last=(window_weight,))

    def best(
        self, queries: Sequence[np.ndarray], k: int, subsets: Sequence[np.ndarray | None], window_weight: float = 0.0
    ) -> list[list[ShardHits]]:
        """Return each shard's best passages; see `Shards`."""
        return self._gather_by_shard("best", list(queries), k, args=subsets, last=(window_weight,))

    def _start_actor(self, corpus: Library, group: Sequence[int]) -> Any:
        import ray

        shards, excluded = corpus.shards, corpus.removed_positions()
        # No processor is reserved, since it works only while a search lasts; Ray restarts it when it dies.
        lasting = {"max_restarts": RETRIES, "max_task_retries": RETRIES, "scheduling_strategy": "SPREAD"}
        actor = ray.remote(num_cpus=0, **lasting)(ShardActor).remote(
            corpus.path,
            corpus.build_id,
            [shards[shard] for shard in group],
            [excluded[shard] for shard in group],
        )
        self._stack.callback(ray.kill, actor)
        return actor

    def _gather_by_shard(
        self, question: str, *shared: Any, args: Sequence[Any] | None = None, last: Sequence[Any] = ()
    ) -> list[Any]:
        """Call a method of `PlaidShards` on all actors, each with its own shards' arguments; merge answers by shard."""
        import ray

        asked = [
            (*shared, [args[shard] for shard in group], *last) if args is not None else shared for group in self._groups
        ]
        calls = [actor.ask.remote(question, *values) for actor, values in zip(self._actors, asked, strict=True)]
        with ray_errors():
            answered = ray.get(calls)
        answers: dict[int, Any] = {}
        for group, answer in zip(self._groups, answered, strict=True):
            answers.update(zip(group, answer, strict=True))
        return [answers[shard] for shard in range(len(answers))]


class ShardActor:
    """A Ray actor with some shards of a Library, opened on the first call, which raises any error."""

    def __init__(
        self, library: Path, build_id: str, places: Sequence[PlaidParts], excluded: Sequence[np.ndarray]
    ) -> None:
        self._library, self._build_id = library, build_id
        self._places, self._excluded = places, excluded

    def ask(self, question: str, *values: Any) -> Any:
        """Return an attribute of the shards, or call a method with `values`."""
        answer = getattr(self._shards, question)
        return answer(*values) if values else answer

    def process(self) -> int:
        """Return the actor's process id."""
        return os.getpid()

    @cached_property
    def _shards(self) -> PlaidShards:
        self._check_build()  # a restarted actor may find another build; or it comes while the shards are opened
        shards = PlaidShards(self._places, self._excluded)
        self._check_build()
        return shards

    def _check_build(self) -> None:
        if Library(self._library).build_id != self._build_id:
            raise ValueError(f"{self._library} was built anew since it was opened: open it again")
