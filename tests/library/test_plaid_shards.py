from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.plaid_cases import One, checksums, random_passages, reference_engine, write

from legal_rag.library import PlaidShards
from legal_rag.library.plaid.codec import copy_passages
from legal_rag.library.plaid.files import open_files
from legal_rag.library.plaid.search import MappedShard, ShardHits, ShardSize, search_shards

LENGTHS = [3, 1, 12, 7, 1, 30, 2, 5, 9, 4] * 6
ALL = list(range(len(LENGTHS)))


@pytest.fixture(scope="session")
def passages():
    return random_passages(LENGTHS)


@pytest.fixture(scope="session")
def queries():
    return [*random_passages([5, 1, 20, 33], seed=1)]


@pytest.fixture(scope="session")
def folder(passages, tmp_path_factory):
    return write(tmp_path_factory.mktemp("shards") / "one", passages)


def keep(folder, positions, target):
    """Write a shard of some passages of another."""
    copy_passages([folder], np.array([(0, position) for position in positions]), target)


@pytest.fixture(scope="session")
def thirds(folder, tmp_path_factory):
    """Cut the shard in three that have its centroids, so that every passage decompresses to the same vectors."""
    root = tmp_path_factory.mktemp("thirds")
    for number in range(3):
        keep(folder, ALL[number * 20 : number * 20 + 20], root / str(number))
    return [root / str(number) for number in range(3)]


class Apart:
    """Shards held in several places, each asked as a process of its own would be."""

    def __init__(self, places):
        self.places, self.dim = places, places[0].dim
        self.sizes = [size for place in places for size in place.sizes]

    def _gather(self, ask, *by_shard):
        answers, at = [], 0
        for place in self.places:
            end = at + len(place.sizes)
            answers += ask(place, *(one[at:end] for one in by_shard))
            at = end
        return answers

    def scores(self, queries, candidates, window_weight=0.0):
        return self._gather(lambda place, own: place.scores(queries, own, window_weight), candidates)

    def best(self, queries, k, subsets, window_weight=0.0):
        return self._gather(lambda place, own: place.best(queries, k, own, window_weight), subsets)


def test_hits_do_not_depend_on_where_the_shards_lie(thirds, queries):
    together = PlaidShards(thirds)
    apart = Apart([PlaidShards(thirds[:1]), PlaidShards(thirds[1:])])
    subsets = [None, np.array([1, 5, 6, 13]), None]
    for one in (None, subsets):
        expected = search_shards(together, queries, 7, one)
        assert search_shards(apart, queries, 7, one) == expected


def test_several_shards_give_the_exact_hits_of_one_and_a_batch_what_each_query_gives_alone(folder, thirds, queries):
    for query in queries:
        expected = One(folder).search(query, 15)
        found = PlaidShards(thirds).search(query, 15)
        assert [shard * 20 + position for shard, position, _ in found] == expected.positions.tolist()
        assert [score for _, _, score in found] == expected.scores.tolist()
    shards = PlaidShards(thirds)
    subsets = [np.array([0, 3, 4, 19]), None, np.array([], dtype=np.int64)]
    for one in (None, subsets):
        for query, hits in zip(queries, search_shards(shards, queries, 6, one), strict=True):
            assert hits == shards.search(query, 6, one)


def test_no_query_and_no_shard_have_no_hits(thirds, queries):
    assert search_shards(PlaidShards(thirds), [], 5) == []
    assert search_shards(PlaidShards([]), queries, 5, []) == [[], [], [], []]


@pytest.mark.parametrize("k", [0, 1, 25, 1000])
def test_hits_are_as_many_as_asked_for_or_as_there_are(thirds, queries, k):
    hits = PlaidShards(thirds).search(queries[0], k)
    assert len({hit[:2] for hit in hits}) == min(k, len(LENGTHS))


def test_excluded_passages_are_never_hits(folder, queries):
    excluded = np.array([0, 5, 17, 40, 59])
    shard = One(folder, excluded=excluded)
    assert sorted(shard.search(queries[0], 100).positions.tolist()) == [p for p in ALL if p not in excluded]
    subset = np.array([4, 5, 6, 59])
    assert sorted(shard.search(queries[0], 100, subset).positions.tolist()) == [4, 6]
    assert shard.search(queries[0], 100, np.array([5, 59])).positions.tolist() == []


@pytest.mark.slow
def test_fast_plaid_leaves_excluded_passages_out(folder, tmp_path, queries):
    excluded = np.array([0, 5, 17, 40, 59])
    keep(folder, ALL, tmp_path / "copy")
    shard = reference_engine(tmp_path / "copy", excluded)
    assert not set(excluded) & set(shard.search(queries[0], 100).positions)
    assert set(shard.search(queries[0], 100, np.array([4, 5, 6, 59])).positions) <= {4, 6}
    assert shard.search(queries[0], 100, np.array([5, 59])).positions.tolist() == []


def test_a_shard_whose_passages_are_all_excluded_has_no_hit(thirds, queries):
    shards = PlaidShards(thirds, [np.arange(20), np.array([], dtype=np.int64), np.arange(20)])
    assert {shard for shard, _, _ in shards.search(queries[0], 60)} == {1}
    none = PlaidShards(thirds, [np.arange(20)] * 3)
    assert none.search(queries[0], 5) == []


@pytest.mark.parametrize("excluded", [[60], [-1], [3, 1000], [0.5]])
def test_an_excluded_passage_that_is_not_there_is_refused(folder, excluded):
    with pytest.raises(ValueError, match=r"excluded passages .*expected positions from 0 to 59"):
        PlaidShards([folder], excluded=[np.array(excluded)])


def test_exclusions_and_subsets_for_another_number_of_shards_are_refused(thirds, queries):
    with pytest.raises(ValueError, match="1 lists of excluded passages do not fit 3 shards"):
        PlaidShards(thirds, excluded=[np.array([1])])
    with pytest.raises(ValueError, match="2 subsets do not fit 3 shards"):
        PlaidShards(thirds).search(queries[0], 5, [None, None])


def test_shards_whose_sizes_are_known_are_opened_when_they_are_searched(thirds, tmp_path, queries):
    folders, sizes = [*thirds[:2], tmp_path / "not-there"], [ShardSize(20, 148)] * 3
    shards = PlaidShards(folders, sizes=sizes)
    assert len(shards.search(queries[0], 50, [None, np.array([3]), np.array([], dtype=np.int64)])) == 21
    hits = [[ShardHits(np.array(some, dtype=np.int64), np.zeros(len(some), np.float32))] for some in ([5], [], [])]
    assert [len(one.scores) for (one,) in shards.scores(queries[:1], hits)] == [1, 0, 0]
    with pytest.raises(FileNotFoundError, match=r"no metadata.json in .*not-there"):
        shards.search(queries[0], 50)


def test_a_shard_of_another_size_than_recorded_or_of_another_codebook_is_refused(thirds, folder, tmp_path):
    with pytest.raises(ValueError, match=r"n_passages=20, n_tokens=148\), expected ShardSize\(n_passages=21"):
        PlaidShards(thirds, sizes=[ShardSize(21, 148)] * 3)
    for how in ({"dim": 16}, {"n_bits": 2}):
        other = write(tmp_path / str(how), random_passages([20], dim=how.get("dim", 32)), n_bits=how.get("n_bits", 4))
        with pytest.raises(ValueError, match="has a codebook of another shape than the other shards"):
            PlaidShards([folder, other])


def test_given_passages_of_all_shards_get_the_scores_of_a_search(thirds, queries):
    shards = PlaidShards(thirds)
    found = {hit[:2]: hit[2] for hit in shards.search(queries[2], 60)}
    wanted = [np.array([1, 19]), np.array([], dtype=np.int64), np.array([0])]
    hits = [[ShardHits(some, np.zeros(len(some), np.float32))] * 2 for some in wanted]
    scored = shards.scores([queries[1], queries[2]], hits)
    assert [[found[shard, p] for p in one[1].positions] for shard, one in enumerate(scored)] == [
        one[1].scores.tolist() for one in scored
    ]


def test_equal_scores_come_in_the_order_of_shard_and_position(tmp_path, queries):
    shard = write(tmp_path / "same", random_passages([6, 6, 6, 6]))
    for name in ("0.codes.npy", "0.residuals.npy"):
        values = np.load(shard / name)
        np.save(shard / name, np.concatenate([values[:6]] * 4))
    hits = PlaidShards([shard, shard]).search(queries[0], 3)
    assert [hit[:2] for hit in hits] == [(0, 0), (0, 1), (0, 2)]


def test_two_searches_at_once_give_what_one_gives(thirds, queries):
    shards = PlaidShards(thirds)
    expected = [shards.search(query, 5) for query in queries]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert list(pool.map(lambda query: shards.search(query, 5), queries)) == expected


@pytest.mark.parametrize("dropped", [[], [0], [59], [1, 2, 3, 30, 58]])
def test_a_copy_keeps_the_other_passages_bit_by_bit(folder, tmp_path, queries, dropped):
    kept = np.setdiff1d(ALL, dropped)
    keep(folder, kept, tmp_path / "copy")
    assert (checksums(tmp_path / "copy") == checksums(folder)) == (not dropped)
    one, copy = MappedShard(folder), MappedShard(tmp_path / "copy")
    np.testing.assert_array_equal(copy.token_vectors(np.arange(len(kept))), one.token_vectors(kept))
    expected = One(folder).search(queries[0], 60, kept)
    found = One(tmp_path / "copy").search(queries[0], 60)
    assert kept[found.positions].tolist() == expected.positions.tolist()


def lists_of(folder):
    return np.split(np.load(folder / "ivf.npy"), np.cumsum(np.load(folder / "ivf_lengths.npy"))[:-1])


def test_a_copy_has_the_lists_of_its_own_passages_and_is_not_written_over_another(folder, tmp_path):
    keep(folder, np.setdiff1d(ALL, [0, 7]), tmp_path / "copy")
    files = open_files(tmp_path / "copy")
    codes, ends = np.array(files.parts[0].codes), np.cumsum(files.passage_tokens)
    listed = lists_of(tmp_path / "copy")
    for centroid in range(len(files.centroids)):
        holders = np.searchsorted(ends, np.flatnonzero(codes == centroid), side="right")
        assert listed[centroid].tolist() == np.unique(holders).tolist()
    with pytest.raises(FileExistsError, match="copy"):
        keep(folder, [1], tmp_path / "copy")


@pytest.mark.slow
def test_fast_plaid_opens_a_copy(folder, tmp_path, queries):
    keep(folder, np.setdiff1d(ALL, [3, 4]), tmp_path / "copy")
    own = One(tmp_path / "copy").search(queries[0], 5)
    other = reference_engine(tmp_path / "copy").search(queries[0], 5)
    np.testing.assert_allclose(own.scores, other.scores, atol=0.05)


@pytest.mark.parametrize("position", [60, -1])
def test_copying_what_is_not_there_is_refused(folder, tmp_path, position):
    with pytest.raises(ValueError, match="has only 60 passages"):
        keep(folder, [0, position], tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
