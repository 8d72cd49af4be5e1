"""The doctor vouches for every byte, says what it cannot vouch for, and names what mends what it finds."""

import shutil
from pathlib import Path

import pytest

from legal_rag.cli import main
from legal_rag.indexer import IndexConfig, add_documents, build_index, compact_index, examine, remove_documents
from legal_rag.indexer.doctor import damage_of
from legal_rag.library import Library
from legal_rag.library.manifest import CHECKSUMS


@pytest.fixture
def library(copied):
    return Library(copied)


@pytest.fixture
def index(library):
    return {"index_folder": str(library.path.parent), "index_name": library.path.name}


@pytest.fixture
def place(library):
    return ["--index-folder", str(library.path.parent), "--index-name", library.path.name]


def _interrupt(*names):
    raise KeyboardInterrupt


def written(library):
    return sorted(path for path in library.path.rglob("*") if path.is_file() and path.stat().st_size)


def test_a_changed_bit_of_any_file_is_found_and_the_file_named(library):
    for file in written(library):
        whole = file.read_bytes()
        for at in (0, len(whole) // 3, len(whole) - 1):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 2]) + whole[at + 1 :])
            problem = damage_of(library.path)
            assert problem is not None
            assert file.relative_to(library.path).as_posix() in problem
            assert "legal-rag" in problem or "build it again" in problem or "SHA-256" in problem
        file.write_bytes(whole)
    assert damage_of(library.path) is None
    assert examine(library) == []


def test_an_added_document_leaves_everything_vouched_for(library, tiny_encoder, index):
    add_documents(IndexConfig(source=[{"id": "neuf", "content": "Le bail est résilié."}], **index), tiny_encoder)
    assert examine(library.reload()) == []
    remove_documents(["neuf"], **index)
    assert examine(library.reload()) == []


def test_a_commit_cut_off_before_its_checksums_is_told_and_can_be_compacted(library, tiny_encoder, monkeypatch, index):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("legal_rag.indexer.commit.record_checksums", _interrupt)
        add_documents(IndexConfig(source=[{"id": "neuf", "content": "Le bail est résilié."}], **index), tiny_encoder)
    problems = examine(library.reload())
    remedy = "after an 'add' or 'remove' that was cut off, the same command again"
    store = "corpus.sqlite: no checksum of it was recorded"
    assert any(problem.startswith(f"{store} ({remedy}") for problem in problems)
    compact_index(**index)
    assert examine(library.reload()) == []


def test_a_library_without_checksums_is_told_and_compacting_records_them(library, tiny_encoder, index):
    (library.path / CHECKSUMS).unlink()
    add_documents(IndexConfig(source=[{"id": "neuf", "content": "Le bail est résilié."}], **index), tiny_encoder)
    (problem,) = examine(library.reload())
    assert problem == f"{CHECKSUMS}: missing: most files cannot be verified ('legal-rag compact' records all anew)"
    assert damage_of(library.path) is None
    compact_index(**index)
    assert examine(library.reload()) == []


def test_the_store_of_another_library_is_refused(library, tmp_path, tiny_encoder, capsys, place):
    index = {"index_folder": str(tmp_path), "index_name": "other"}
    other = build_index(IndexConfig(source=[{"id": "x", "content": "Autre."}], **index), tiny_encoder)
    shutil.copy(Path(other.path) / "corpus.sqlite", library.path / "corpus.sqlite")
    assert main(["search", "bail", "--mode", "bm25", *place]) == 1
    assert "corpus.sqlite is of another Library ('legal-rag index' builds it anew)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("lexical/chunks/meta.json", "rebuild --only words"),
        ("outlines.sqlite", "rebuild --only trees"),
        ("graph.sqlite", "rebuild --only graph"),
        ("corpus_index.sqlite", "corpus-index"),
        ("chunk_vectors/frame.npy", "rebuild --only vectors"),
        ("doc_mapping.json", "legal-rag index"),
        (CHECKSUMS, "legal-rag compact"),
    ],
)
def test_what_mends_a_file_is_named_and_mends_it(library, name, remedy, place):
    (library.path / name).write_bytes(b"damaged")
    problems = [problem for problem in examine(library) if problem.startswith((name, f"{name.split('/')[0]}:"))]
    assert problems
    assert remedy in problems[0]
    commands = {"trees": "--only trees", "graph": "--only graph", "words": "--only words", "vectors": "--only vectors"}
    if part := next((one for one in commands if one in remedy), None):
        if "sqlite" in name:
            (library.path / name).unlink()
        assert main(["rebuild", *commands[part].split(), "--force", *place]) == 0
    elif name == CHECKSUMS:
        compact_index(library.path.parent, library.path.name)
    elif name == "corpus_index.sqlite":
        assert main(["corpus-index", *place]) == 0
    else:
        return
    assert examine(library.reload()) == []


@pytest.mark.parametrize("name", ["entities.sqlite", "graph.sqlite", "outlines.sqlite", "corpus_index.sqlite"])
def test_compacting_records_no_damage_as_whole(library, name):
    file = library.path / name
    if not file.is_file():
        pytest.skip(f"this Library has no {name}")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match=f"{name}: not what was written"):
        compact_index(library.path.parent, library.path.name)
    assert any(problem.startswith(name) for problem in examine(library.reload()))
