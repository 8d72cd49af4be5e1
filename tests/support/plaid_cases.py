"""What the tests of PLAID share: passages of random tokens, shards written and searched one at a time."""

import hashlib

import numpy as np

from legal_rag.library.plaid.codec import train_codec, write_shard
from legal_rag.library.plaid.search import NO_HITS, MappedShard, ShardHits, in_scope, search_shards


def random_passages(lengths, *, dim=32, seed=0):
    vectors = np.random.default_rng(seed).standard_normal((sum(lengths), dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.split(vectors, np.cumsum(lengths)[:-1])


def random_codec(*, dim=32, n_bits=4, n_centroids=None, seed=0):
    return train_codec(random_passages([900], dim=dim)[0], n_bits=n_bits, seed=seed, n_centroids=n_centroids)


def max_sim(query, document):
    """Score by the definition: each query token's best match, summed (Khattab and Zaharia, ColBERT, 2020)."""
    return float((query @ document.T).max(axis=1).sum())


def write(folder, passages, *, n_bits=4, seed=42):
    vectors = np.concatenate(passages)
    write_shard(folder, vectors, [len(one) for one in passages], train_codec(vectors, n_bits=n_bits, seed=seed))
    return folder


class One:
    """One shard, searched by itself."""

    def __init__(self, folder, excluded=None, engine=MappedShard, **settings):
        self.shard = engine(folder, excluded, **settings)
        self.sizes, self.dim = [self.shard.size], self.shard.dim

    def best(self, queries, k, subsets, window_weight=0.0):
        return [self.shard.best(queries, k, subsets[0])]

    def search(self, query, k, subset=None):
        (hits,) = search_shards(self, [query], k, [subset])
        positions = np.array([position for _, position, _ in hits], dtype=np.int64)
        return ShardHits(positions, np.array([score for _, _, score in hits], dtype=np.float32))


class FastPlaidShard(MappedShard):
    """A shard that fast-plaid searches, all its centroids probed."""

    def __init__(self, folder, excluded):
        from fast_plaid.search import FastPlaid

        super().__init__(folder, excluded)
        self._index = FastPlaid(str(folder), device="cpu")

    def best(self, queries, k, subset=None):
        import torch

        names = in_scope(self._live, subset)
        found = []
        for query in queries:
            (hits,) = self._index.search(
                torch.from_numpy(query)[None],
                top_k=min(k, self.size.n_passages),
                n_ivf_probe=len(self._files.centroids),
                n_full_scores=4096,
                show_progress=False,
                subset=None if names is None else [names.tolist()],
            )
            found.append(ShardHits(*map(np.array, zip(*sorted(hits), strict=True))) if len(hits) else NO_HITS)
        return found


def reference_engine(folder, excluded=None):
    return One(folder, excluded, FastPlaidShard)


def checksums(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
