"""Saved answers: atomic, listed, read again, kept when the index is replaced, and nothing outside their folder."""

import json
import threading
from dataclasses import replace

import pytest

from legal_rag.agent import Prediction, Usage
from legal_rag.agent.prediction import CitedDocument, Event, Passage, TokenMatch
from legal_rag.citations import Citation
from legal_rag.graph import (
    AnswerFacts,
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
    KnowledgeGraph,
    add_answer,
)
from legal_rag.indexer import IndexConfig, build_index, compact_index, examine
from legal_rag.indexer.commit import carrying_answers
from legal_rag.library.library import locked_answers
from legal_rag.report import SavedAnswers

USAGE = Usage(2, 1, 1200, 80, 0.004)
ANSWER = Prediction(
    question="Quel est le délai d'appel ?",
    answer="Il est d'« un mois » [Source: A, chars 3-10].\n\nLe 12 mai, rien.",
    mode="agent",
    status="answered",
    notice="Une citation a été retirée",
    documents=[CitedDocument("A", "Arrêt « A »", "2001-02-03", "Cass.", "soc.", "Rejet", ("1240",))],
    citations=[Citation("A", 3, 10, "un mois", "verified")],
    ungrounded_claims=["Le 12 mai, rien."],
    grounding_rate=0.5,
    evidence=[
        Passage(
            "A", "A-0", 3, 10, "un mois", 0.75, "Arrêt « A »", "2001-02-03", "de ", ".", (TokenMatch(0, 4, 3, 5, 1.0),)
        )
    ],
    events=[
        Event("think", "search_legal_docs", {"thought": "Je cherche.", "arguments": {"k": 5}}, [], 1.5, USAGE),
        Event("search", "search_legal_docs", {"query": "délai d'appel", "k": 5}, ["A-0"], 0.25),
    ],
    trajectory={"thought_0": "Je cherche.", "tool_name_0": "search_legal_docs", "tool_args_0": {"k": 5}},
    usage=USAGE,
    seconds=2.5,
)


@pytest.fixture
def store(tmp_path):
    return SavedAnswers(tmp_path / "runs")


@pytest.fixture
def library(index_of):
    return index_of([{"id": one, "content": f"Le délai d'appel de {one} est d'un mois."} for one in ("a", "b")])


def test_an_answer_comes_back_as_it_was_saved(store):
    assert store.list() == []
    assert not store.folder.exists()
    assert store.load(store.save(ANSWER)) == ANSWER
    empty = Prediction(question="?", answer="", mode="evidence", status="abstained", usage=Usage(cost=None))
    assert store.load(store.save(empty)) == empty
    answer_id = store.save(replace(ANSWER, question="délai \udcff ?"))  # which UTF-8 cannot hold
    assert store.load(answer_id).question == "délai \ufffd ?"


def test_answers_are_listed_newest_first_each_with_what_it_came_to(store):
    first, second = store.save(ANSWER), store.save(replace(ANSWER, question="Et le délai de pourvoi ?"))
    assert first < second
    newest, oldest = store.list()
    assert (newest.answer_id, newest.question, oldest.answer_id) == (second, "Et le délai de pourvoi ?", first)
    assert oldest.citations == {"verified": 1}
    assert (oldest.mode, oldest.status, oldest.seconds) == ("agent", "answered", 2.5)
    assert (oldest.model_calls, oldest.cost) == (2, 0.004)
    assert oldest.time[:10] == f"{first[:4]}-{first[4:6]}-{first[6:8]}"
    assert oldest.time.endswith("+00:00")


def test_nothing_but_whole_answers_lies_in_the_folder_and_a_removed_one_is_gone(store):
    answer_id = store.save(ANSWER)
    assert [path.name for path in store.folder.iterdir()] == [f"{answer_id}.json"]
    value = json.loads((store.folder / f"{answer_id}.json").read_text("utf-8"))
    assert (list(value), value["format_version"]) == (["format_version", "saved_at", "prediction"], 1)
    store.remove(answer_id)
    assert store.list() == []
    with pytest.raises(LookupError, match=f"no saved answer {answer_id} in "):
        store.load(answer_id)


@pytest.mark.parametrize(
    "answer_id",
    [
        "",
        "..",
        "../20251123-101530-123456-0a1b2c3d",
        "/etc/passwd",
        "20251123-101530-123456-0a1b2c3d.json",
        "20251123-101530-123456-0a1b2c3d\n",
        "20251123-101530-123456-0a1b2c3d/../x",
        "20251123-101530-123456-0A1B2C3D",
        "٢٠٢٥١١٢٣-101530-123456-0a1b2c3d",
    ],
)
def test_what_is_no_answer_s_id_is_refused(store, answer_id):
    outside = store.folder.parent / "20251123-101530-123456-0a1b2c3d.json"
    outside.write_text(json.dumps({"format_version": 1, "saved_at": "", "prediction": ANSWER.to_record()}))
    for use in (store.load, store.remove):
        with pytest.raises(ValueError, match="not the id of a saved answer: "):
            use(answer_id)
    assert outside.is_file()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "JSONDecodeError"),
        ("[]", "TypeError"),
        ("{}", "KeyError: 'format_version'"),
        ('{"format_version": 99, "saved_at": "", "prediction": {}}', "its format is 99, this version reads 1"),
        ('{"format_version": 1, "saved_at": ""}', "KeyError: 'prediction'"),
        ('{"format_version": 1, "saved_at": "", "prediction": {}}', "not a saved answer: question is missing, got {}"),
        ('{"format_version": 1, "saved_at": "", "prediction": 7}', "not a saved answer"),
        (
            json.dumps({"format_version": 1, "saved_at": "", "prediction": ANSWER.to_record() | {"seconds": "x"}}),
            "not a saved answer: seconds should be a valid number, unable to parse string as a number, got 'x'",
        ),
        ("[" * 100_000, "RecursionError"),
        (b"\xff\xfe\x00", "UnicodeDecodeError"),
    ],
    ids=["empty", "list", "object", "later", "cut", "bare", "number", "types", "deep", "bytes"],
)
def test_a_damaged_answer_is_told_and_passed_over(store, caplog, text, line):
    answer_id, damaged = store.save(ANSWER), "20200101-000000-000000-00000000"
    (store.folder / f"{damaged}.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    (store.folder / "notes.json").write_text("{}")  # somebody else's
    with pytest.raises(ValueError, match="damaged answer: ") as caught:
        store.load(damaged)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [one.answer_id for one in store.list()] == [answer_id]
    assert [record.message for record in caplog.records] == [str(caught.value)]
    store.remove(damaged)
    assert store.list()[0].answer_id == answer_id


def test_a_place_where_nothing_can_be_written_is_told_before_and_after(tmp_path):
    (tmp_path / "file").write_text("")
    store = SavedAnswers(tmp_path / "file" / "runs")
    for use in (store.check_writable, lambda: store.save(ANSWER)):
        with pytest.raises(OSError, match="no answer can be saved in .*Not a directory"):
            use()


def test_an_index_that_is_gone_keeps_no_answers(library):
    store = SavedAnswers.of(library)
    library.path.rename(library.path.parent / "elsewhere")
    with pytest.raises(OSError, match="no answer can be saved in .*: No such file"):
        store.save(ANSWER)
    assert not library.path.exists()


def test_an_index_s_answers_lie_in_its_folder_and_outlive_a_new_build_and_a_compaction(library, tiny_encoder):
    store = SavedAnswers.of(library)
    kept, removed = store.save(ANSWER), store.save(ANSWER)
    assert (library.path / "runs" / f"{kept}.json").is_file()
    assert examine(library) == []
    rows = [{"id": "c", "content": "Le délai de pourvoi est de deux mois."}]
    build_index(IndexConfig(source=rows, index_folder=str(library.path.parent)), tiny_encoder)
    store.remove(removed)
    compact_index(library.path.parent)
    assert [one.answer_id for one in store.list()] == [kept]
    assert store.load(kept) == ANSWER
    assert examine(library.reload()) == []


def test_an_answer_saved_while_the_index_is_replaced_is_not_lost(library, tmp_path):
    old, new = library.path, tmp_path / "new"
    store = SavedAnswers.of(library)
    before = store.save(ANSWER)
    (new / "runs").mkdir(parents=True)
    (new / "runs" / "20200101-000000-000000-00000000.json").write_text("left by an attempt that was cut off")
    saving = threading.Thread(target=store.save, args=(ANSWER,))
    with carrying_answers(old, new):
        saving.start()
        old.rename(tmp_path / "previous")
        new.rename(old)
    saving.join()
    assert len(store.list()) == 2
    assert store.list()[1].answer_id == before


def test_an_index_that_another_process_does_not_let_go_is_told(library, monkeypatch):
    monkeypatch.setattr("legal_rag.library.library.LOCK_SECONDS", 0.0)
    store, line = SavedAnswers.of(library), "no answer can be saved in .*: another process has been"
    with locked_answers(library.path), pytest.raises(OSError, match=line):
        store.save(ANSWER)


OWN = replace(ANSWER, answer_id="20251123-101530-123456-0a1b2c3d")
TAGS = ExtractionResult(
    [ExtractedEntity("délai d'appel", "concept", 0.9, "Un délai.")],
    [ExtractedRelationship("a", "délai d'appel", "interprets", 0.8)],
    [ExtractedEpisode("Chercher le délai", "appel", "success", ("Lire a.",), ("a",))],
)


def test_an_answer_is_saved_under_its_own_id_once(store):
    assert [store.save(OWN), store.save(OWN)] == [OWN.answer_id] * 2
    assert [one.answer_id for one in store.list()] == [OWN.answer_id]


@pytest.mark.parametrize("answer_id", ["../../outside", "x", "", "20251123-101530-123456-0a1b2c3d\n"])
def test_an_id_that_is_none_is_not_a_file_s_name(store, answer_id):
    saved = store.save(replace(ANSWER, answer_id=answer_id))
    assert [path.name for path in store.folder.iterdir()] == [f"{saved}.json"]
    assert [path.name for path in store.folder.parent.iterdir()] == ["runs"]


def test_what_the_tags_said_comes_back_and_an_answer_older_than_tags_is_read(store):
    answer = replace(OWN, extraction=TAGS, graph=AnswerFacts(1, 0, 1, 0, 1))
    loaded = store.load(store.save(answer))
    assert loaded == answer
    assert loaded.to_record()["extraction"]["episodes"][0]["lessons"] == ["Lire a."]
    record = {key: one for key, one in ANSWER.to_record().items() if key not in ("answer_id", "extraction", "graph")}
    value = {"format_version": 1, "saved_at": "", "prediction": record}
    (store.folder / f"{OWN.answer_id}.json").write_text(json.dumps(value))
    assert store.load(OWN.answer_id) == ANSWER


def test_a_removed_answer_takes_its_edges_with_it(library):
    store, other = SavedAnswers.of(library), "20251123-101530-123456-ffffffff"
    for answer_id in (store.save(OWN), other):
        add_answer(library, answer_id, TAGS, ["a"])
    store.remove(OWN.answer_id)
    assert [one.answer_id for one in KnowledgeGraph(library).episodes()] == [other]
    store.remove(other)  # which was never saved
    assert KnowledgeGraph(library).episodes() == []
    with pytest.raises(LookupError, match="no saved answer 20251123-101530-123456-ffffffff"):
        store.remove(other)


def test_an_answer_whose_edges_cannot_be_deleted_stays(library, monkeypatch):
    store = SavedAnswers.of(library)
    add_answer(library, store.save(OWN), TAGS, ["a"])
    monkeypatch.setattr("legal_rag.library.library.LOCK_SECONDS", 0.0)
    with locked_answers(library.path), pytest.raises(OSError, match="another process has been writing there"):
        store.remove(OWN.answer_id)
    assert store.load(OWN.answer_id) == OWN


def test_an_answer_takes_its_edges_if_any_out_of_its_index(library):
    store = SavedAnswers.of(library)
    store.save(OWN)
    store.remove(OWN.answer_id)
    assert store.list() == []
    add_answer(library, store.save(OWN), TAGS, ["a"])
    store.remove(OWN.answer_id)
    assert (store.list(), KnowledgeGraph(library).counts()["answers"]) == ([], 0)
