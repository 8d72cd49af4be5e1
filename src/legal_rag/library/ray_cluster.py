"""Connect to a Ray cluster and spread tasks over it."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from legal_rag.base.extras import install_command

# Actors are spread over machines and restarted when they die; ten times at most, since then something is wrong.
LASTING: dict[str, Any] = {"max_restarts": 10, "max_task_retries": 10, "scheduling_strategy": "SPREAD"}
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

    Args:
        address: As for `ray.init`; None takes the cluster that `RAY_ADDRESS` names, or else starts one on this machine.
        n_cpus: Processors of a cluster started here; None takes those of the machine.

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
    """Divide the connected cluster among workers.

    Args:
        n_workers: None makes one for each GPU, or, where there is none, for each machine.

    Raises:
        ValueError: If the cluster has fewer processors than workers are asked for.
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
