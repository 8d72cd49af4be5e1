"""Search shards held by Ray actors on many machines."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from legal_rag.encoder.encoder import Encoder
from legal_rag.library.library import Library
from legal_rag.library.plaid.search import SearchSettings, ShardHits, ShardSize
from legal_rag.library.plaid.shards import PlaidShards
from legal_rag.library.ray_cluster import LASTING, ray_cluster, ray_errors
from legal_rag.retriever.retriever import Retriever, open_with_encoder


class RayRetriever(Retriever):
    """A retriever whose PLAID shards are spread over Ray actors, balanced by tokens.

    Questions are encoded, and texts read, by this process. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        corpus: Library | str | Path,
        encoder: Encoder | None = None,
        *,
        n_actors: int = 2,
        address: str | None = None,
        settings: SearchSettings | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        """Start the actors; see `build_retriever` for the other arguments and for what it raises.

        Args:
            n_actors: How many hold the shards; at most one per shard is started.
            address: The cluster's, as for `ray.init`; None takes the one `RAY_ADDRESS` names, or this machine alone.

        Raises:
            ValueError: If `n_actors` is below 1, a shard is damaged, or Ray is not installed.
        """
        opened, encoder = open_with_encoder(corpus, encoder, trust_remote_code=trust_remote_code)
        self._n_actors, self._address = n_actors, address
        self._remote = RayShards(opened, n_actors, address=address)
        super().__init__(opened, encoder, settings, shards=self._remote)

    def __enter__(self) -> "RayRetriever":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the actors, and the cluster if it was started for them."""
        self._remote.close()

    def reload(self) -> "RayRetriever":
        """Return a retriever for the latest commit of the same Library, with new actors; close this one then."""
        return RayRetriever(
            self.corpus.reload(), self.encoder, n_actors=self._n_actors, address=self._address, settings=self._settings
        )


class RayShards:
    """Shards held by actors; see `legal_rag.library.plaid.search.Shards`."""

    def __init__(self, corpus: Library, n_actors: int, *, address: str | None = None) -> None:
        """Start actors, and let each open its shards; see `RayRetriever`.

        Raises:
            FileNotFoundError: If an actor's machine does not see the shards.
        """
        if n_actors < 1:
            raise ValueError(f"n_actors must be at least 1, got {n_actors}")
        shards = corpus.manifest["shards"]
        # A bare index does not record how many tokens its shard has.
        self._groups = spread([shard.get("tokens", shard["chunks"]) for shard in shards], n_actors)
        self._stack = ExitStack()
        try:
            self._stack.enter_context(ray_cluster(address))
            self._actors = [self._start_actor(corpus, group) for group in self._groups]
            dims = self._call_actors("dim", [() for _ in self._groups])
            if len(set(dims)) > 1:
                raise ValueError(f"shards of different dims: {sorted(set(dims))} (expected one)")
            self.dim: int = dims[0] if dims else 0
            self.sizes: list[ShardSize] = self._gather_by_shard("sizes")
        except BaseException:  # an interruption, too, must not leave actors behind
            self.close()
            raise

    def close(self) -> None:
        """End the actors, and the cluster if it was started for them."""
        self._stack.close()

    def scores(self, queries: Sequence[np.ndarray], candidates: Sequence[Sequence[ShardHits]]) -> list[list[ShardHits]]:
        """Return each shard's candidates with their scores; see `Shards`."""
        return self._gather_by_shard("scores", list(queries), args=candidates)

    def best(
        self, queries: Sequence[np.ndarray], k: int, subsets: Sequence[np.ndarray | None]
    ) -> list[list[ShardHits]]:
        """Return each shard's best passages; see `Shards`."""
        return self._gather_by_shard("best", list(queries), k, args=subsets)

    def _start_actor(self, corpus: Library, group: Sequence[int]) -> Any:
        import ray

        folders, excluded = corpus.shard_folders, corpus.removed_positions()
        # No processor is reserved, since it works only while a search lasts; Ray restarts it when it dies.
        remote = ray.remote(num_cpus=0, **LASTING)(ShardActor)
        actor = remote.remote(
            corpus.path.absolute(),
            corpus.manifest.get("lineage"),
            [folders[shard].absolute() for shard in group],
            [excluded[shard] for shard in group],
        )
        self._stack.callback(ray.kill, actor)
        return actor

    def _gather_by_shard(self, question: str, *shared: Any, args: Sequence[Any] | None = None) -> list[Any]:
        """Call a method of `PlaidShards` on all actors, each with its own shards' arguments; merge answers by shard."""
        asked = [(*shared, [args[shard] for shard in group]) if args is not None else shared for group in self._groups]
        answers: dict[int, Any] = {}
        for group, answer in zip(self._groups, self._call_actors(question, asked), strict=True):
            answers.update(zip(group, answer, strict=True))
        return [answers[shard] for shard in range(len(answers))]

    def _call_actors(self, question: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        import ray

        calls = [actor.ask.remote(question, *values) for actor, values in zip(self._actors, arguments, strict=True)]
        with ray_errors():
            return ray.get(calls)


class ShardActor:
    """A Ray actor with some shards of a Library, opened on the first call, which raises any error."""

    def __init__(
        self,
        library: Path,
        build_id: str | None,  # None for a bare index
        folders: Sequence[Path],
        excluded: Sequence[np.ndarray],
    ) -> None:
        self._library, self._build_id = library, build_id
        self._folders, self._excluded = folders, excluded

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
        shards = PlaidShards(self._folders, "cpu", self._excluded)
        self._check_build()
        return shards

    def _check_build(self) -> None:
        if self._build_id is not None and Library(self._library).build_id != self._build_id:
            raise ValueError(f"{self._library} was built anew since it was opened: open it again")


def spread(tokens: Sequence[int], n_groups: int) -> list[list[int]]:
    """Divide shards, by their numbers of tokens, into at most `n_groups` groups of about as many each; none is empty.

    The largest shards are placed first, each where there is least (Graham, 1969: at most a third more in a group than
    the best division has).
    """
    groups: list[list[int]] = [[] for _ in range(min(n_groups, len(tokens)))]
    load = [0] * len(groups)
    for shard in sorted(range(len(tokens)), key=lambda shard: -tokens[shard]):
        lightest = load.index(min(load))
        groups[lightest].append(shard)
        load[lightest] += tokens[shard]
    return [sorted(group) for group in groups]
