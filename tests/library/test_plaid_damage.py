import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.plaid_cases import One, random_passages, write

from legal_rag.library.plaid.codec import copy_passages, join_shards
from legal_rag.library.plaid.files import parts_of
from legal_rag.library.plaid.search import MappedShard, max_sim

LENGTHS = [9] * 20
QUERY = random_passages([4], seed=1)[0]


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    return write(tmp_path_factory.mktemp("damage") / "whole", random_passages(LENGTHS))


@pytest.fixture
def copy(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "copy"))


@pytest.mark.parametrize(
    "name",
    "metadata.json centroids.npy 0.codes.npy 0.residuals.npy doclens.0.json".split(),
)
def test_a_missing_file_or_folder_is_named(copy, name, tmp_path):
    (copy / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"incomplete PLAID index: no {name}"):
        MappedShard(copy)
    with pytest.raises(FileNotFoundError, match=r"no metadata.json in .*nowhere"):
        MappedShard(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["0.codes.npy", "0.residuals.npy", "centroids.npy", "bucket_weights.npy"])
@pytest.mark.parametrize("kept", [0, 5, 60, -4])
def test_a_file_cut_short_is_refused(copy, name, kept):
    path = copy / name
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=rf"damaged PLAID index: .*{name}"):
        MappedShard(copy)


def test_a_pickle_in_place_of_an_array_is_refused_unread(copy, tmp_path):
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "exploded",)

    np.save(copy / "0.codes.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"damaged PLAID index: .*codes.npy"):
        MappedShard(copy)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("head", [b"{'descr': '<i8'", b"{'descr': (((", b"'\\N{x", b"\xff{", b"[" * 500, b"9" * 5_000])
def test_whatever_stands_in_the_head_of_an_array_is_one_error_and_so_is_a_zip(copy, head):
    path = copy / "0.codes.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(100))
    with pytest.raises(ValueError, match=r"damaged PLAID index: .*codes.npy"):
        MappedShard(copy)
    with path.open("wb") as file:
        np.savez(file, codes=np.arange(3))
    with pytest.raises(ValueError, match=r"damaged PLAID index: .*codes.npy"):
        MappedShard(copy)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"num_chunks": 1}', '{"num_chunks": null, "nbits": 4}', "\x80"])
def test_a_damaged_metadata_file_is_refused(copy, text):
    (copy / "metadata.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"damaged PLAID index: .*metadata.json"):
        MappedShard(copy)


def test_lengths_of_another_index_negative_ones_and_those_whose_sum_overflows_are_refused(copy):
    lengths = json.loads((copy / "doclens.0.json").read_text())
    for wrong, problem in (
        (lengths[:-1], rf"{sum(lengths[:-1])} tokens announced, {sum(lengths)} found"),
        ([lengths[0] + lengths[1] + 5, -5, *lengths[2:]], "damaged PLAID index"),
        ([2**39] * 20, "damaged PLAID index"),
    ):
        (copy / "doclens.0.json").write_text(json.dumps(wrong))
        with pytest.raises(ValueError, match=problem):
            MappedShard(copy)


@pytest.mark.parametrize(("number", "dtype"), [(-1, np.int16), (128, np.int16), (-1, np.int32), (10**6, np.int32)])
def test_tokens_of_unknown_centroids_are_refused_where_a_search_meets_them(copy, number, dtype):
    values = np.load(copy / "0.codes.npy").astype(dtype)
    values[3] = number
    np.save(copy / "0.codes.npy", values)
    assert len(np.load(copy / "centroids.npy")) <= 128
    with pytest.raises(ValueError, match=r"^damaged PLAID index: .* \(tokens of unknown centroids\)$"):
        One(copy).search(QUERY, 1)


@pytest.mark.parametrize("position", [-1, 20])
def test_a_passage_that_is_not_there_is_not_scored(whole, position):
    with pytest.raises(ValueError, match=rf"whole has 20 passages, none at {position}"):
        max_sim(QUERY, [MappedShard(whole)], [np.array([position])])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        *(({"nbits": n_bits}, "(bits a dimension|bytes wide)") for n_bits in (0, 2, 3, 8)),
        ({"num_chunks": 0}, r"\(no passage\)"),
    ],
)
def test_another_number_of_bits_than_the_files_have_and_no_passage_are_refused(copy, changes, problem):
    metadata = json.loads((copy / "metadata.json").read_text())
    (copy / "metadata.json").write_text(json.dumps({**metadata, **changes}))
    with pytest.raises(ValueError, match=rf"damaged PLAID index: .*{problem}"):
        MappedShard(copy)


@pytest.mark.parametrize(
    "lengths", '{} null 3 [9.0] ["9"] [true] [[9]] [0] [-9] [1e3] [36893488147419103232] [null]'.split()
)
def test_lengths_that_are_no_list_of_positive_numbers_are_refused(copy, lengths):
    (copy / "doclens.0.json").write_text(lengths)
    with pytest.raises(ValueError, match=r"damaged PLAID index: .*doclens.0.json \(expected a list of positive whole"):
        MappedShard(copy)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("0.codes.npy", np.int32(3)),
        ("0.codes.npy", np.zeros(180, dtype=np.float32)),
        ("0.codes.npy", np.zeros(180, dtype=np.uint64)),
        ("0.codes.npy", np.zeros((180, 1), dtype=np.int32)),
        ("0.codes.npy", np.zeros(180, dtype=">i4")),
        ("0.residuals.npy", np.zeros((180, 8), dtype=np.uint8)),
        ("0.residuals.npy", np.zeros((180, 16), dtype=np.uint16)[:, ::2]),
        ("0.residuals.npy", np.zeros((180, 16), dtype=np.int8)),
        ("centroids.npy", np.float32(1)),
        ("centroids.npy", np.zeros((4, 32), dtype=np.int64)),
        ("centroids.npy", np.zeros((4, 0), dtype=np.float32)),
        ("bucket_weights.npy", np.zeros(15, dtype=np.float32)),
        ("bucket_weights.npy", np.zeros((4, 4), dtype=np.float32)),
    ],
)
def test_arrays_of_another_shape_or_type_are_refused(copy, name, value):
    np.save(copy / name, value)
    with pytest.raises(ValueError, match="^damaged PLAID index: [^\n]*$"):
        MappedShard(copy)


@pytest.mark.parametrize("change", [[-5, 5], [5, 0]])
def test_lists_that_do_not_add_up_are_not_joined_to_others(copy, tmp_path, change):
    lengths = np.load(copy / "ivf_lengths.npy")
    lengths[:2] = lengths[:2].sum() * (change[0] < 0), 0
    lengths[:2] += np.array(change, dtype=lengths.dtype)
    np.save(copy / "ivf_lengths.npy", lengths)
    with pytest.raises(ValueError, match="lists of unknown centroids"):
        join_shards(tmp_path / "joined", None, [parts_of(copy)])
    assert not (tmp_path / "joined" / "metadata.json").exists()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["centroids.npy", "bucket_weights.npy"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_are_none_give_poor_scores_and_no_crash(copy, name, value):
    values = np.load(copy / name)
    values[...] = value
    np.save(copy / name, values)
    hits = One(copy).search(QUERY, 2)
    assert len(set(hits.positions)) == 2


def test_opening_reads_no_codes_and_a_damaged_shard_is_not_copied(copy, tmp_path):
    values = np.load(copy / "0.codes.npy").astype(np.int32)
    for place, number in ((slice(None), -1), (170, 10**6)):
        damaged = values.copy()
        damaged[place] = number
        np.save(copy / "0.codes.npy", damaged)
        shard = MappedShard(copy)
        with pytest.raises(ValueError, match="tokens of unknown centroids"):
            shard.token_vectors(np.arange(20))
    with pytest.raises(ValueError, match=r"damaged PLAID index: .*tokens of unknown centroids"):
        copy_passages([copy], np.array([(0, 18)]), tmp_path / "smaller")
