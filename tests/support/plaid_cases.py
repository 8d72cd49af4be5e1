"""What the tests of PLAID share: passages of random tokens, shards written and searched one at a time."""

import hashlib

import numpy as np

from legal_rag.library.plaid.codec import train_codec
from legal_rag.library.plaid.cpu import MappedShard
from legal_rag.library.plaid.search import ShardHits, search_shards
from legal_rag.library.plaid.shards import FastPlaidShard
from legal_rag.library.plaid.writer import write_shard


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

    def scores(self, queries, candidates):
        return [self.shard.scores(queries, candidates[0])]

    def best(self, queries, k, subsets):
        return [self.shard.best(queries, k, subsets[0])]

    def search(self, query, k, subset=None):
        (hits,) = search_shards(self, [query], k, [subset])
        positions = np.array([position for _, position, _ in hits], dtype=np.int64)
        return ShardHits(positions, np.array([score for _, _, score in hits], dtype=np.float32))


def reference_engine(folder, excluded=None):
    """Open a shard with fast-plaid, all its centroids probed."""
    return One(folder, excluded, FastPlaidShard, device="cpu", n_probe=1000)


def checksums(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
