"""Updating a Library: what increments add, change and withdraw; nothing of what is gone stays anywhere."""

import io
import json
import random
import shutil
import sqlite3
import tarfile
import unicodedata
import zlib
from contextlib import closing, suppress
from pathlib import Path

import pytest
import tantivy
from support.dila_files import OTHERS, write_archive
from support.killable import LONGEST_S, Killable, run_command, run_until

from legal_rag.agent.prediction import Passage, Prediction, new_answer_id
from legal_rag.cli import main
from legal_rag.corpus import read_documents
from legal_rag.extraction import ExtractionSettings
from legal_rag.graph import ExtractedEntity, ExtractionResult
from legal_rag.graph.answers import add_answer
from legal_rag.indexer import (
    IndexConfig,
    build_index,
    compact_index,
    examine,
    extract_library,
    open_index,
    remove_documents,
    update_library,
)
from legal_rag.indexer.erasure import is_erasing
from legal_rag.library.manifest import read_checksums
from legal_rag.library.outlines import whole_outline_of
from legal_rag.report.saved_answers import SavedAnswers
from legal_rag.retriever import Retriever

SHARD_CHUNKS = 24
WITHDRAWN, RENAMED, KEPT = "FICTIF0103", "FICTIF0107", "FICTIF0105"
# Words of the documents that go, in no other; the second and third in both, so that statistics hold them.
GONE = ("Théophraste Quénélzac", "clause zorglubesque", "Zorglubs")
NEEDLES = (b"quenelz", b"theophrast", b"zorglub")
PLANTED = (
    f"\nMonsieur {GONE[0]}, domicilié à Lyon, et la société Quénélzac Frères ont été assignés."
    f"\nLa {GONE[1]} est une {GONE[1]} : les {GONE[2]} l'ont dit."
)
QUERY = "trouble anormal de voisinage"


@pytest.fixture(scope="module")
def rows(sample_rows):
    """Ten decisions, two of which hold the planted names and words."""
    planted = {WITHDRAWN, RENAMED}
    return [
        {**row, "content": row["content"] + PLANTED, "title": f"{row['title']}, {GONE[0]}", "avocat": GONE[0]}
        if row["id"] in planted
        else row
        for row in sample_rows[:10]
    ]


@pytest.fixture(scope="module")
def built(rows, tiny_encoder, tmp_path_factory):
    return build(rows, tiny_encoder, tmp_path_factory.mktemp("built"))


def build(rows, encoder, folder):
    """Build a Library with all its parts."""
    config = IndexConfig(source=rows, shard_chunks=SHARD_CHUNKS, index_folder=str(folder))
    build_index(config, encoder)
    extract_library(open_index(config), ExtractionSettings())
    return folder


@pytest.fixture
def config(tmp_path, built):
    folder = shutil.copytree(built, tmp_path / "indexes")
    return IndexConfig(index_folder=str(folder))


@pytest.fixture(scope="module")
def increment(sample_rows):
    """A new decision, one without the name it had, one as it was."""
    renamed = next(row for row in sample_rows if row["id"] == RENAMED)
    kept = next(row for row in sample_rows if row["id"] == KEPT)
    return [sample_rows[12], {**renamed, "content": renamed["content"] + "\nMonsieur X a été assigné."}, kept]


def save_answer(library, doc_id):
    """Save an answer that quotes the end of a document and that names, in the graph, what it reads there."""
    content, answer_id = library.document(doc_id).content, new_answer_id()
    start = len(content) - len(PLANTED)
    quoted = Passage(doc_id, f"{doc_id}-0", start, len(content), content[start:], 1.0, "", "")
    SavedAnswers.of(library).save(
        Prediction(question="?", answer="!", mode="evidence", status="answered", answer_id=answer_id, evidence=[quoted])
    )
    return answer_id


def traces(folder):
    """Return the files below a folder in which a planted word is, in whatever case, with or without accents."""
    found = set()
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            texts = [data, *_inflated(data)]
            if any(needle in _folded(text) for text in texts for needle in NEEDLES):
                found.add(path.relative_to(folder).as_posix())
    return found


def _folded(data):
    decomposed = unicodedata.normalize("NFKD", data.decode("utf-8", "ignore")).lower()
    return decomposed.encode("ascii", "ignore") + data.decode("utf-16-le", "ignore").lower().encode("ascii", "ignore")


def _inflated(data):
    """Yield whatever zlib has compressed anywhere in some bytes."""
    at = data.find(b"\x78\x9c")
    while at >= 0:
        with suppress(zlib.error):
            yield zlib.decompressobj().decompress(data[at:])
        at = data.find(b"\x78\x9c", at + 1)


def counts_of_terms(path, *terms):
    """Return in how many entries of the index of words, deleted ones included, each term is."""
    searchers = [tantivy.Index.open(str(path / "lexical" / name)).searcher() for name in ("chunks", "documents")]
    return [searcher.doc_freq("text", term) for searcher in searchers for term in terms]


def test_an_update_adds_changes_and_withdraws_and_nothing_stays_of_what_is_gone(config, increment, tiny_encoder):
    library = open_index(config)
    about, others = save_answer(library, WITHDRAWN), save_answer(library, KEPT)
    told = ExtractionResult([ExtractedEntity(GONE[0], "person", 1.0, f"dit {GONE[0]}")])
    add_answer(library, "unsaved", told, [RENAMED])
    stems = ("zorglubesqu", "quenelzac", "theophrast")
    assert all(counts_of_terms(library.path, *stems))
    holding = {name.partition("/")[0].partition("_pages")[0] for name in traces(library.path)}
    assert holding == {
        "corpus.sqlite",
        "corpus_index.sqlite",
        "entities.html",
        "entities.json",
        "entities.jsonl",
        "entities.sqlite",
        "extraction_index.txt",
        "graph.sqlite",
        "runs",
    }
    report = update_library(config, [increment], removed=[WITHDRAWN, "ABSENT"], encoder=tiny_encoder)
    assert (report.added, report.changed) == ([increment[0]["id"]], [RENAMED])
    assert (report.removed, report.absent, report.unchanged) == ([WITHDRAWN], ["ABSENT"], [KEPT])
    assert sorted(report.answers) == sorted([about, "unsaved"])
    opened = open_index(config)
    assert traces(Path(config.index_folder)) == set()
    assert not any(counts_of_terms(opened.path, *stems))
    assert [answer.answer_id for answer in SavedAnswers.of(opened).list()] == [others]
    assert [path.name for path in opened.path.parent.iterdir() if path.is_dir()] == [opened.path.name]
    assert examine(opened) == []
    assert set(read_checksums(opened.path)) >= {"corpus.sqlite", "entities.sqlite", f"runs/{others}.json"}


def test_an_updated_library_finds_what_one_built_of_the_final_documents_finds(
    config, rows, increment, tiny_encoder, tmp_path
):
    update_library(config, [increment], removed=[WITHDRAWN], encoder=tiny_encoder)
    updated = open_index(config)
    extract_library(updated, ExtractionSettings())
    new = {row["id"]: row for row in increment}
    final = [row for row in rows if row["id"] not in {WITHDRAWN, *new}]
    order = [*(row["id"] for row in final), *(doc_id for doc_id in updated if doc_id in new)]
    by_id = {row["id"]: row for row in final} | new
    fresh = IndexConfig(index_folder=str(build([by_id[doc_id] for doc_id in order], tiny_encoder, tmp_path / "fresh")))
    built = open_index(fresh)
    assert {document.id: document for document in updated.documents()} == {
        document.id: document for document in built.documents()
    }
    for mode, tolerance in (("bm25", 0.0), ("colbert", 0.2)):  # one bit a dimension: another codebook, other scores
        found, expected = (
            {hit.chunk_id: hit for hit in Retriever(one, tiny_encoder).search(QUERY, 1000, mode=mode)}
            for one in (updated, built)
        )
        assert found.keys() == expected.keys()
        for chunk_id, hit in found.items():
            other = expected[chunk_id]
            assert hit.score == pytest.approx(other.score, rel=tolerance)
            assert (hit.char_start, hit.char_end, hit.text) == (other.char_start, other.char_end, other.text)
    for doc_id in built:
        assert updated.entities_of(doc_id) == built.entities_of(doc_id)
        assert whole_outline_of(updated, doc_id) == whole_outline_of(built, doc_id)
    assert graph_of(updated) == graph_of(built)


def graph_of(library):
    """Return a graph's nodes and edges by keys and places."""
    edges = """
        SELECT a.key, e.type, b.key, t.doc_id, s.kind, support, char_start, char_end, n, detail
        FROM edges AS e JOIN nodes AS a ON a.node_key = from_key JOIN nodes AS b ON b.node_key = to_key
        LEFT JOIN texts AS t USING (text_key) JOIN sources AS s USING (source_key)
    """
    with closing(sqlite3.connect(library.path / "graph.sqlite")) as connection:
        nodes = connection.execute("SELECT key, type, name, cited, degree FROM nodes").fetchall()
        return sorted(nodes), sorted(connection.execute(edges).fetchall())


def test_a_name_of_the_graph_is_written_as_a_document_that_is_left_writes_it(tiny_encoder, tmp_path):
    courts = {"a": "COUR D'APPEL DE RIOM", "b": "Cour d'appel de Riom", "c": "Cour d’appel de RIOM"}
    rows = [{"id": doc_id, "content": "Le bail.", "juridiction": court} for doc_id, court in courts.items()]
    config = IndexConfig(source=rows, n_bits=0, index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    assert courts["a"] in names_of(open_index(config))
    update_library(config, removed=["a"])
    assert courts["b"] in names_of(open_index(config))
    assert courts["a"] not in names_of(open_index(config))


def names_of(library):
    with closing(sqlite3.connect(library.path / "graph.sqlite")) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM nodes")}


def test_of_several_sources_the_last_word_counts(config, sample_rows, tiny_encoder):
    first = {**sample_rows[12], "title": "Premier titre"}
    second = {**sample_rows[12], "title": "Second titre"}
    report = update_library(config, [[first, sample_rows[13]], [second]], removed=[sample_rows[13]["id"]],
                            encoder=tiny_encoder)  # fmt: skip
    assert (report.added, report.removed, report.absent) == ([second["id"]], [], [sample_rows[13]["id"]])
    assert open_index(config).document(second["id"]).title == "Second titre"


def archive(path, members):
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return path


def decision(doc_id, text):
    return (
        f"<TEXTE_JURI_JUDI><META><META_COMMUN><ID>{doc_id}</ID></META_COMMUN><META_SPEC><META_JURI>"
        f"<TITRE>Titre</TITRE><DATE_DEC>2024-01-09</DATE_DEC></META_JURI></META_SPEC></META>"
        f"<TEXTE><BLOC_TEXTUEL><CONTENU>{text}</CONTENU></BLOC_TEXTUEL></TEXTE></TEXTE_JURI_JUDI>"
    )


def test_increments_of_dila_are_applied_in_the_order_of_their_days(config, tiny_encoder, tmp_path):
    ids = [f"JURITEXT00004000000{number}" for number in range(4)]
    days = tmp_path / "days"
    days.mkdir()
    archive(
        days / "CASS_20240110-200000.tar.gz",
        {f"juri/{doc_id}.xml": decision(doc_id, "Le trouble anormal de voisinage.") for doc_id in ids[:3]},
    )
    archive(
        days / "CASS_20240111-200000.tar.gz",
        {
            "liste_suppression_cass.dat": f"juri/{ids[0]}\njuri/{ids[3]}\n",
            f"juri/{ids[1]}.xml": decision(ids[1], "M. X a été assigné."),
        },
    )
    report = update_library(config, [days], encoder=tiny_encoder)
    assert (sorted(report.added), report.absent) == (ids[1:3], [ids[0], ids[3]])
    assert "M. X" in open_index(config).document(ids[1]).content
    only_withdraws = archive(
        tmp_path / "CASS_20240112-200000.tar.gz", {"liste_suppression_cass.dat": f"juri/{ids[2]}\n"}
    )
    report = update_library(config, [only_withdraws])
    assert (report.removed, report.bad) == ([ids[2]], [])
    assert ids[2] not in open_index(config)


@pytest.mark.parametrize("unpacked", [False, True])
@pytest.mark.parametrize(
    "members", [dict(OTHERS), {**OTHERS, "20260101/liste_suppression_legi.dat": b"legi/x/LEGISCTA000006132319\n"}]
)
def test_an_increment_of_sections_alone_has_nothing_to_apply(config, tmp_path, capsys, members, unpacked):
    source = write_archive(tmp_path / "LEGI_20260101-000000.tar.gz", members)
    if unpacked:
        source = tmp_path / "unpacked"
        with tarfile.open(tmp_path / "LEGI_20260101-000000.tar.gz") as tar:
            tar.extractall(source, filter="data")
    manifest = open_index(config).manifest
    assert main(["update", str(source), "--index-folder", config.index_folder]) == 0
    told = capsys.readouterr()
    assert told.out == f"nothing to apply, neither documents nor withdrawals: {open_index(config).path}\n"
    assert open_index(config).manifest == manifest


@pytest.mark.parametrize(
    "members",
    [
        {"a.txt": b"Le bail."},
        {"a.xml": b"<html/>"},
        {"a.xml": b"rien"},
        {**OTHERS, "b.xml": b"<ARTICLE><META>"},
        {**OTHERS, "b.xml": b"<TEXTE_JURI_JUDI/>"},
    ],
)
def test_an_archive_without_documents_that_is_not_such_an_increment_is_an_error(config, tmp_path, capsys, members):
    source = write_archive(tmp_path / "LEGI_20260101-000000.tar.gz", members)
    assert main(["update", str(source), "--index-folder", config.index_folder]) == 1
    told = capsys.readouterr()
    assert f"no document in {source}" in told.err
    assert told.out == ""


def test_a_folder_of_sections_and_of_a_table_without_documents_is_an_error(config, tmp_path, capsys):
    write_archive(tmp_path / "days" / "LEGI_20260101-000000.tar.gz", OTHERS)
    (tmp_path / "days" / "b.jsonl").write_text("rien\n", "utf-8")
    assert main(["update", str(tmp_path / "days"), "--index-folder", config.index_folder]) == 1
    assert "no document in" in capsys.readouterr().err


def test_an_update_without_anything_new_writes_nothing(config, rows):
    manifest = open_index(config).manifest
    report = update_library(config, [rows[:2]], removed=["ABSENT"])
    assert (len(report.unchanged), report.absent) == (2, ["ABSENT"])
    assert open_index(config).manifest == manifest


def test_no_update_empties_a_library(config, rows):
    with pytest.raises(ValueError, match="no document would be left"):
        update_library(config, removed=[row["id"] for row in rows])
    assert len(open_index(config)) == len(rows)


def test_an_answer_on_a_text_that_is_as_it_was_stays(config, rows, tiny_encoder):
    answer = save_answer(open_index(config), KEPT)
    kept = next(row for row in rows if row["id"] == KEPT)
    report = update_library(config, [[{**kept, "solution": "Cassation"}]], encoder=tiny_encoder)
    assert (report.changed, report.answers) == ([KEPT], [])
    assert SavedAnswers.of(open_index(config)).load(answer).answer == "!"


def test_an_update_erases_what_a_removal_left(config):
    remove_documents([WITHDRAWN, RENAMED], config.index_folder, config.index_name)
    assert traces(Path(config.index_folder))
    update_library(config, removed=["ABSENT"])
    assert traces(Path(config.index_folder)) == set()


def test_a_damaged_graph_keeps_no_text_from_going(config):
    graph = open_index(config).path / "graph.sqlite"
    graph.write_bytes(graph.read_bytes()[:4096] + b"Zorglubs" * 4096)
    update_library(config, removed=[WITHDRAWN, RENAMED])
    assert traces(Path(config.index_folder)) == set()
    assert examine(open_index(config)) == []


def killed(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "is_committed"),
    [
        ("commit.LibraryUpdate._copy_rows", False),
        ("commit.LibraryUpdate._write_manifest", False),
        ("update.has_removed", True),
        ("update.compact_locked", True),
        ("commit.put_in_place", True),
    ],
)
def test_an_update_cut_off_leaves_the_old_state_or_the_new_and_the_same_command_ends_it(
    config, rows, increment, tiny_encoder, monkeypatch, place, is_committed
):
    before = {document.id: document for document in read_documents(rows)}
    new = {document.id: document for document in read_documents(increment)}
    after = {doc_id: document for doc_id, document in (before | new).items() if doc_id != WITHDRAWN}
    with monkeypatch.context() as patch:
        patch.setattr(f"legal_rag.indexer.{place}", killed)
        with pytest.raises(KeyboardInterrupt):
            update_library(config, [increment], removed=[WITHDRAWN], encoder=tiny_encoder)
    cut_off = {document.id: document for document in open_index(config).documents()}
    assert cut_off == (after if is_committed else before)
    update_library(config, [increment], removed=[WITHDRAWN], encoder=tiny_encoder)
    assert {document.id: document for document in open_index(config).documents()} == after
    assert traces(Path(config.index_folder)) == set()
    assert examine(open_index(config)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "argument", "writer"),
    [
        ("indexer.update.has_removed", "", "compact"),
        ("indexer.update.has_removed", "", "remove"),
        ("indexer.erasure.remove_answer", "", "compact"),
        ("indexer.erasure.record_checksums", "", "compact"),  # one answer is deleted, the other not
        ("indexer.erasure.forget_entities", "", "compact"),
        ("indexer.erasure.delete_outputs", "", "compact"),
        ("indexer.erasure.leaving_bad_graph", "", "compact"),
        ("indexer.compaction._move_rows", "", "compact"),
        ("indexer.commit.carrying_answers", "", "compact"),
        ("indexer.commit.put_in_place", "", "compact"),
        ("base.files.os.replace", ".compacting", "compact"),  # between the two renamings of a swap
        ("indexer.commit.discard_attempt", "", "remove"),
        ("indexer.commit.end_erasing", "", "compact"),
    ],
)
def test_whoever_writes_after_a_kill_erases_what_an_update_withdrew(
    config, sample_rows, tmp_path, place, argument, writer
):
    library = open_index(config)
    *_, kept = (save_answer(library, doc_id) for doc_id in (WITHDRAWN, RENAMED, KEPT))
    withdrawn = tmp_path / "withdrawn.txt"
    withdrawn.write_text(f"{WITHDRAWN}\n{RENAMED}", "utf-8")
    command = ["update", "--removed", str(withdrawn), "--index-folder", config.index_folder]
    run = Killable(run_until, place, argument, main, command)
    run.wait_until_ready()
    assert run.killed_after(LONGEST_S)
    assert WITHDRAWN not in open_index(config)
    arguments = [sample_rows[0]["id"]] if writer == "remove" else []
    assert main([writer, *arguments, "--index-folder", config.index_folder]) == 0
    opened = open_index(config)
    assert traces(Path(config.index_folder)) == set()
    assert [answer.answer_id for answer in SavedAnswers.of(opened).list()] == [kept]
    assert examine(opened) == []
    assert not is_erasing(opened.path)


def test_an_update_cut_off_before_its_commit_has_nothing_erased(config, increment, tiny_encoder, monkeypatch):
    library = open_index(config)
    answer = save_answer(library, WITHDRAWN)
    with monkeypatch.context() as patch:
        patch.setattr("legal_rag.indexer.commit.LibraryUpdate._write_manifest", killed)
        with pytest.raises(KeyboardInterrupt):
            update_library(config, [increment], removed=[WITHDRAWN], encoder=tiny_encoder)
    assert is_erasing(library.path)
    assert compact_index(config.index_folder).answers == []
    opened = open_index(config)
    assert {document.id: document for document in opened.documents()} == {
        document.id: document for document in library.documents()
    }
    assert [known.answer_id for known in SavedAnswers.of(opened).list()] == [answer]
    assert opened.entities_of(WITHDRAWN)
    assert not is_erasing(opened.path)


def test_what_a_swap_cut_off_left_of_the_folder_before_goes_too(config):
    path = open_index(config).path
    before = shutil.copytree(path, path.parent / "before")
    update_library(config, removed=[WITHDRAWN, RENAMED])
    before.rename(path.parent / f".{path.name}.previous")
    update_library(config, removed=["ABSENT"])
    assert traces(Path(config.index_folder)) == set()


def test_an_interrupted_build_goes_too_when_something_is_withdrawn(config):
    path = open_index(config).path
    shutil.copytree(path, path.parent / f".{path.name}.building")
    update_library(config, removed=[WITHDRAWN, RENAMED])
    assert traces(Path(config.index_folder)) == set()


def test_an_update_that_is_refused_marks_nothing(config, rows):
    with pytest.raises(ValueError, match="no document would be left"):
        update_library(config, removed=[row["id"] for row in rows])
    assert not is_erasing(open_index(config).path)


def test_a_build_after_an_update_cut_off_keeps_no_answer_on_what_was_withdrawn(
    config, rows, tiny_encoder, monkeypatch, caplog
):
    answer = save_answer(open_index(config), KEPT)
    save_answer(open_index(config), WITHDRAWN)
    with monkeypatch.context() as patch:
        patch.setattr("legal_rag.indexer.update.has_removed", killed)
        with pytest.raises(KeyboardInterrupt):
            update_library(config, removed=[WITHDRAWN, RENAMED])
    left = [row for row in rows if row["id"] not in {WITHDRAWN, RENAMED}]
    build_index(IndexConfig(source=left, shard_chunks=SHARD_CHUNKS, index_folder=config.index_folder), tiny_encoder)
    assert "an update was cut off" in caplog.text
    assert traces(Path(config.index_folder)) == set()
    assert [known.answer_id for known in SavedAnswers.of(open_index(config)).list()] == [answer]


@pytest.mark.slow
def test_kills_at_random_moments_leave_a_library_that_the_same_command_updates(config, rows, increment, tmp_path):
    source, withdrawn = tmp_path / "increment.jsonl", tmp_path / "withdrawn.txt"
    source.write_text("".join(json.dumps(row) + "\n" for row in increment), "utf-8")
    withdrawn.write_text(WITHDRAWN, "utf-8")
    command = ("update", str(source), "--removed", str(withdrawn), "--index-folder", config.index_folder)
    before, seconds = {row["id"] for row in rows}, random.Random(7)
    after, kills = (before - {WITHDRAWN}) | {increment[0]["id"]}, 0
    while True:
        run = Killable(run_command, *command)
        run.wait_until_ready()
        if not run.killed_after(seconds.uniform(0, 0.5 * (1 + kills))):
            break
        kills += 1
        assert set(open_index(config)) in (before, after)
    assert set(open_index(config)) == after
    assert traces(Path(config.index_folder)) == set()
    assert examine(open_index(config)) == []


def test_the_chunk_vectors_of_a_compaction_are_those_there_were(config, increment, tiny_encoder):
    vectors = open_index(config).chunk_vectors().decode()
    remove_documents([KEPT], config.index_folder, config.index_name)
    left = open_index(config).chunk_vectors().decode()
    compact_index(config.index_folder, config.index_name)
    assert len(left) < len(vectors)
    assert (open_index(config).chunk_vectors().decode() == left).all()


def test_the_command_line_updates(config, increment, tmp_path, capsys):
    source, withdrawn = tmp_path / "increment.jsonl", tmp_path / "withdrawn.txt"
    source.write_text("".join(json.dumps(row) + "\n" for row in increment), "utf-8")
    withdrawn.write_text(f"{WITHDRAWN}\n", "utf-8")
    arguments = ["update", str(source), "--removed", str(withdrawn), "--index-folder", config.index_folder]
    assert main(arguments) == 0
    told = capsys.readouterr()
    assert told.out.startswith("1 added, 1 changed, 1 removed, 1 unchanged, 0 not there: ")
    assert f"changed: {RENAMED}\n" in told.err
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["unchanged"], report["absent"]) == ([row["id"] for row in increment], [WITHDRAWN])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["update"], "give sources, or --removed"),
        (["update", "absent.jsonl"], "no such file or folder: absent.jsonl"),
        (["update", "--removed", "absent.txt"], "no such ids file"),
    ],
)
def test_bad_input_is_one_line(config, arguments, problem, capsys):
    assert main([*arguments, "--index-folder", config.index_folder]) != 0
    assert problem in capsys.readouterr().err
    assert open_index(config).commit == 1
