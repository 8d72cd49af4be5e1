import json
import logging
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from legal_rag.encoder import EncoderConfig, build_encoder, openvino, runtime
from legal_rag.encoder.checkpoint import Overrides, load_checkpoint
from legal_rag.encoder.openvino import convert_checkpoint, converted_folder, fingerprint, write_conversion
from legal_rag.encoder.runtime import OpenVinoError, compile_model

TEXTS = [
    "La cour d'appel a violé l'article L. 1152-1 du code du travail.",
    "Il résulte de l'arrêt attaqué que M. X... a été licencié pour faute grave le 3 février 1998.",
    "Bail commercial; résiliation",
    "x",
]


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("LEGAL_RAG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def build(folder, **settings):
    return build_encoder(EncoderConfig(name=str(folder), **settings))


@pytest.fixture(scope="module")
def converted(tiny_model_folder, tmp_path_factory):
    """A cache that holds the small model's conversion."""
    folder = tmp_path_factory.mktemp("converted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEGAL_RAG_CACHE", str(folder))
        build(tiny_model_folder, backend="openvino")
    return folder


@pytest.fixture
def filled_cache(own_cache, converted):
    """A copy of it, to look into or to damage."""
    return shutil.copytree(converted, own_cache)


def cosines(found, expected):
    return np.concatenate([(a * b).sum(axis=1) for a, b in zip(found, expected, strict=True)])


def in_full_precision(encoder, monkeypatch):
    """Return the torch encoder without its autocast."""
    monkeypatch.setattr(encoder._model, "_in_bfloat16", False)
    return encoder


@pytest.fixture
def in_torch(tiny_model_folder, monkeypatch):
    return in_full_precision(build(tiny_model_folder, backend="torch"), monkeypatch)


def test_without_a_gpu_the_encoder_runs_in_openvino(tiny_encoder, tiny_model_folder):
    assert tiny_encoder.backend == "openvino"
    assert build(tiny_model_folder, trust_remote_code=True).backend == "torch"  # a model allowed to bring code


def test_both_backends_have_one_identity_and_count_alike(tiny_encoder, in_torch):
    assert in_torch.backend == "torch"
    assert tiny_encoder.identity == in_torch.identity
    assert tiny_encoder.count_tokens(TEXTS) == in_torch.count_tokens(TEXTS)
    assert tiny_encoder.count_query_tokens(TEXTS[0]) == in_torch.count_query_tokens(TEXTS[0])


@pytest.mark.parametrize("kind", ["encode_documents", "encode_queries"])
def test_int8_vectors_are_near_those_of_torch_in_full_precision(tiny_encoder, in_torch, kind):
    found = cosines(getattr(tiny_encoder, kind)(TEXTS), getattr(in_torch, kind)(TEXTS))
    assert found.mean() > 0.998
    assert found.min() > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["encode_documents", "encode_queries"])
def test_the_bundled_encoder_in_int8_is_near_torch_in_full_precision(bundled, monkeypatch, sample_rows, kind):
    texts = [row["content"][2500:2700] for row in sample_rows[40:50]]
    expected = in_full_precision(build("bundled", backend="torch"), monkeypatch)
    assert cosines(getattr(bundled, kind)(texts), getattr(expected, kind)(texts)).mean() > 0.998


def test_unquantised_vectors_are_those_of_torch(own_cache, tiny_model_folder, in_torch, monkeypatch):
    monkeypatch.setattr(runtime, "PRECISION", "f32")
    encoder = build(tiny_model_folder, backend="openvino")
    for kind in ("encode_documents", "encode_queries"):
        for found, expected in zip(getattr(encoder, kind)(TEXTS), getattr(in_torch, kind)(TEXTS), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-4)


def test_conversion_is_done_once_to_a_graph_a_tokenizer_and_settings(filled_cache, tiny_model_folder):
    first = build(tiny_model_folder, backend="openvino")
    (folder,) = (filled_cache / "openvino").glob("*/")
    names = ["compiled", "encoder.json", "openvino.bin", "openvino.xml", "tokenizer.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    second, third = build(tiny_model_folder, backend="openvino"), build_encoder(first.identity.config())
    assert third.identity == first.identity
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert list((filled_cache / "openvino").glob("*/")) == [folder]
    for found, expected in zip(second.encode_documents(TEXTS), first.encode_documents(TEXTS), strict=True):
        np.testing.assert_array_equal(found, expected)


def compiled_graphs(cache):
    return {path: path.read_bytes() for path in cache.glob("openvino/*/compiled/*.blob")}


def test_the_compiled_graph_is_kept_without_the_weights_and_gives_the_same_bits(filled_cache, tiny_model_folder):
    first = build(tiny_model_folder, backend="openvino")
    kept = compiled_graphs(filled_cache)
    (weights,) = filled_cache.glob("openvino/*/openvino.bin")
    assert 0 < sum(map(len, kept.values())) < weights.stat().st_size
    loaded = build(tiny_model_folder, backend="openvino")
    assert loaded._model._compiled.get_property("LOADED_FROM_CACHE")
    assert compiled_graphs(filled_cache) == kept
    for found, expected in zip(loaded.encode_documents(TEXTS), first.encode_documents(TEXTS), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("content", [b"", b"\xff" * 5000, None])
def test_a_compiled_graph_that_is_damaged_or_cannot_be_kept_is_made_anew(filled_cache, tiny_model_folder, content):
    expected = build(tiny_model_folder, backend="openvino").encode_queries(TEXTS[:1])[0]
    for path in compiled_graphs(filled_cache):
        path.chmod(0o600)
        path.write_bytes(content or b"")
    if content is None:
        (folder,) = filled_cache.glob("openvino/*/compiled")
        shutil.rmtree(folder)
        folder.write_text("no folder can be made here: file modes do not bind root")
    again = build(tiny_model_folder, backend="openvino")
    np.testing.assert_array_equal(again.encode_queries(TEXTS[:1])[0], expected)


CONVERTED_WITHOUT_TORCH = """
import sys
sys.modules |= dict.fromkeys(("torch", "transformers", "pylate", "sentence_transformers"))  # as if not installed
from legal_rag.encoder import build_encoder
encoder = build_encoder(sys.argv[1])
print(encoder.backend, len(encoder.encode_queries(["la cour"])[0]))
"""


def test_a_converted_encoder_needs_no_torch(filled_cache, tiny_model_folder, tiny_encoder):
    command = [sys.executable, "-c", CONVERTED_WITHOUT_TORCH, str(tiny_model_folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"openvino {len(tiny_encoder.encode_queries(['la cour'])[0])}\n", done.stderr


@pytest.mark.slow
def test_converting_twice_gives_the_same_vectors_and_leaves_the_loggers_as_they_were(own_cache, tiny_model_folder):
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    build(tiny_model_folder)
    assert (root.level, list(root.handlers)) == before
    first = build(tiny_model_folder, backend="openvino").encode_documents(TEXTS)
    shutil.rmtree(own_cache)
    second = build(tiny_model_folder, backend="openvino").encode_documents(TEXTS)
    for found, expected in zip(second, first, strict=True):
        np.testing.assert_array_equal(found, expected)


INTERRUPTED = """
import gc, signal, sys
from legal_rag.encoder.encoder import build_encoder
first, second = build_encoder(sys.argv[1]), build_encoder(sys.argv[1])
assert first.backend == "openvino"
del first
gc.collect()
del second
gc.collect()
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
def test_an_interruption_after_encoders_were_let_go_does_not_end_the_process(tiny_model_folder):
    command = [sys.executable, "-c", INTERRUPTED, str(tiny_model_folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "interrupted\n")


@pytest.mark.slow
def test_another_process_gives_the_same_bits(tiny_encoder, tiny_model_folder, tmp_path):
    code = (
        "import sys, json, numpy; from legal_rag.encoder.encoder import build_encoder;"
        "numpy.savez(sys.argv[2], *build_encoder(sys.argv[1]).encode_documents(json.loads(sys.argv[3])))"
    )
    target = tmp_path / "vectors.npz"
    subprocess.run([sys.executable, "-c", code, str(tiny_model_folder), str(target), json.dumps(TEXTS)], check=True)
    with np.load(target) as found:
        for name, expected in zip(found.files, tiny_encoder.encode_documents(TEXTS), strict=True):
            np.testing.assert_array_equal(found[name], expected)


@pytest.mark.slow
def test_a_model_whose_projection_is_drawn_at_random_loads_equal_from_the_cache(own_cache, tiny_model_folder, tmp_path):
    """A plain BERT gets a projection from PyLate, drawn anew at each load unless it is kept with the conversion."""
    plain = tmp_path / "plain"
    shutil.copytree(tiny_model_folder, plain)
    shutil.rmtree(plain / "1_Dense")
    for name in ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"):
        (plain / name).unlink()
    first, second = (build(plain, backend="openvino").encode_documents(TEXTS) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])


def test_marker_tokens_that_are_not_the_models_own_leave_it_in_torch(filled_cache, tiny_model_folder):
    with pytest.warns(UserWarning, match="marker tokens other than its own"):
        assert build(tiny_model_folder, document_prefix="").backend == "torch"
    with pytest.raises(OpenVinoError, match="marker tokens other than its own"):
        build(tiny_model_folder, backend="openvino", query_prefix="[X] ")


@pytest.mark.parametrize("name", ["model.safetensors", "1_Dense/model.safetensors"])
def test_a_folder_is_known_by_its_content_and_one_changed_byte_is_another_model(tiny_model_folder, tmp_path, name):
    shutil.copytree(tiny_model_folder, tmp_path / "copy")
    assert fingerprint(tmp_path / "copy") == fingerprint(tiny_model_folder)
    path = tmp_path / "copy" / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert fingerprint(tmp_path / "copy") != fingerprint(tiny_model_folder)


def test_precision_source_and_version_decide_on_the_folder(tmp_path, monkeypatch):
    folder = converted_folder(tmp_path, "a")
    assert folder.parent == tmp_path / "openvino"
    assert converted_folder(tmp_path, "a") == folder != converted_folder(tmp_path, "b")
    with monkeypatch.context() as patch:
        patch.setattr(runtime, "PRECISION", "f32")
        assert converted_folder(tmp_path, "a") != folder
    monkeypatch.setattr(openvino, "CONVERTER_VERSION", openvino.CONVERTER_VERSION + 1)
    assert converted_folder(tmp_path, "a") != folder


def test_importing_the_room_imports_no_torch_and_reports_nothing_to_the_makers_of_openvino(tiny_encoder):
    code = "import sys, legal_rag.encoder, legal_rag.encoder.encoder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert sys.modules["openvino_telemetry"] is None


@pytest.mark.slow
def test_a_killed_conversion_leaves_no_model_and_the_next_one_makes_it(own_cache, tiny_model_folder):
    code = """
import os, signal, sys
from legal_rag.encoder import build_encoder, openvino
openvino.write_vocabulary = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
build_encoder(sys.argv[1])
"""
    assert subprocess.run([sys.executable, "-c", code, str(tiny_model_folder)]).returncode == -signal.SIGKILL
    assert list(own_cache.glob("openvino/.converting-*/openvino.xml"))
    assert [path for path in (own_cache / "openvino").glob("*/") if not path.name.startswith(".")] == []
    assert build(tiny_model_folder, backend="openvino").backend == "openvino"


@pytest.mark.slow
def test_a_second_process_that_was_faster_wins(filled_cache, tiny_model_folder):
    encoder = build(tiny_model_folder, backend="openvino")
    (target,) = (filled_cache / "openvino").glob("*/")
    before = (target / "openvino.xml").read_bytes()
    write_conversion(target, convert_checkpoint(load_checkpoint(str(tiny_model_folder), Overrides())))
    assert (target / "openvino.xml").read_bytes() == before
    assert list(target.parent.glob("*/")) == [target]
    assert encoder.backend == "openvino"


@pytest.mark.parametrize("content", [None, b"", b"<?xml version='1.0'?><net></net>"])
def test_a_missing_or_damaged_converted_model_is_one_clear_error(tmp_path, content):
    path = tmp_path / "openvino.xml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OpenVinoError, match=r"^OpenVINO does not run .*openvino\.xml: \S") as caught:
        compile_model(path)
    assert "\n" not in str(caught.value)


def test_a_model_that_cannot_be_run_falls_back_to_torch_with_a_warning(filled_cache, tiny_model_folder):
    build(tiny_model_folder)
    (folder,) = (filled_cache / "openvino").glob("*/")
    (folder / "openvino.xml").write_text("<net")
    with pytest.warns(UserWarning, match="OpenVINO does not run .*; the encoder runs in torch, more slowly"):
        encoder = build(tiny_model_folder)
    assert encoder.backend == "torch"
    with pytest.raises(OpenVinoError, match="OpenVINO does not run"):
        build(tiny_model_folder, backend="openvino")


def test_a_model_that_cannot_be_converted_leaves_nothing(tmp_path, tiny_model_folder):
    loaded = load_checkpoint(str(tiny_model_folder), Overrides())
    whole = convert_checkpoint(loaded)
    loaded.body.encoder = None  # so that tracing fails
    with pytest.raises(OpenVinoError, match="OpenVINO cannot convert this encoder: "):
        convert_checkpoint(loaded)
    with pytest.raises(OpenVinoError, match="OpenVINO cannot convert this encoder: "):
        write_conversion(tmp_path / "openvino" / "abc", whole._replace(graph=None))
    assert list((tmp_path / "openvino").iterdir()) == []


@pytest.mark.slow
def test_threads_that_meet_in_the_first_question_do_not_wait_for_each_other(tiny_model_folder):
    """OpenVINO's Python side prepares itself in its first call, which two threads must not be in at once."""
    script = """
import faulthandler, sys, threading
from legal_rag.encoder.encoder import build_encoder
encoder = build_encoder(sys.argv[1])
faulthandler.dump_traceback_later(60, exit=True)
sys.setswitchinterval(1e-7)  # Python's lock goes from thread to thread as often as can be
meeting = threading.Barrier(6)
def ask():
    import numpy
    ids = numpy.ones((2, 16), dtype=numpy.int64)
    meeting.wait()
    encoder._model(ids, ids)
threads = [threading.Thread(target=ask) for _ in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    command = [sys.executable, "-c", script, str(tiny_model_folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
