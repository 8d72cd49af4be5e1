"""What a terminal gets to see of texts that strangers wrote."""

import io
import json
import logging
import sys
import unicodedata

import pytest

from legal_rag.base.files import progress
from legal_rag.base.html import page_template, safe_json
from legal_rag.base.text import escaped_json, printable
from legal_rag.cli import PrintableStream, main, printable_streams
from legal_rag.cli.options import print_json

CLIPBOARD = "\x1b]52;c;ZXZpbA==\x07"  # OSC 52: puts text into the clipboard
HOSTILE = f"a{CLIPBOARD}b\x9b2Jc\u202egnp.exe\u2066d\x7f\ud800\r\x08e\x00"


def steering(text: str) -> set[str]:
    """Return what would steer a terminal, styles apart, which are words about looks."""
    text = text.replace("\x1b[2m", "").replace("\x1b[0m", "")
    return {one for one in text if unicodedata.category(one) in ("Cc", "Cs") and one not in "\n\t"} | (
        set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    )


@pytest.fixture(scope="module")
def hostile_place(tmp_path_factory, tiny_model_folder):
    """Build a Library of a decision whose every field would steer a terminal."""
    folder = tmp_path_factory.mktemp("hostile")
    row = {"id": "D1", "content": f"Le bail {HOSTILE} est résilié.\n\tFin.", "title": f"Titre {HOSTILE}"}
    row |= {"juridiction": f"Cour {HOSTILE}", "solution": HOSTILE, "decision_date": "2020-01-02"}
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    place = ["--index-folder", str(folder)]
    argv = ["index", "--source", str(folder / "rows.jsonl"), "--encoder", str(tiny_model_folder), "--no-corpus-index"]
    assert main([*argv, *place]) == 0
    return place


@pytest.mark.parametrize(
    "argv", [["search", "bail"], ["lookup", "D1"], ["lookup", "D1", "--outline"], ["ask", "bail"], ["info"], ["doctor"]]
)
def test_no_command_prints_what_steers_a_terminal(hostile_place, argv, capsys):
    main([*argv, *hostile_place])
    out, err = capsys.readouterr()
    assert out
    assert steering(out + err) == set()


@pytest.mark.parametrize("argv", [["search", "bail"], ["lookup", "D1"]])
def test_json_is_printable_and_holds_the_very_characters(hostile_place, argv, capsys):
    assert main([*argv, "--json", *hostile_place]) == 0
    out, _ = capsys.readouterr()
    assert steering(out) == set()
    assert CLIPBOARD in json.dumps(json.loads(out), ensure_ascii=False).encode().decode("unicode_escape")


def test_an_error_about_a_hostile_id_is_one_printable_line_and_escaped_json_the_same_value(hostile_place, capsys):
    assert main(["lookup", HOSTILE.replace("\ud800", ""), *hostile_place]) == 1
    _, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert steering(err) == set()
    value = {HOSTILE: [HOSTILE]}
    text = escaped_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert steering(text) == set()


@pytest.mark.parametrize("text", ["é\n\tœ «…»", "\x1b[2mgris\x1b[0m"])
def test_a_stream_leaves_text_and_styles_as_they_are(text):
    raw = io.StringIO()
    assert PrintableStream(raw).write(text) == len(text)
    assert raw.getvalue() == text


def test_offsets_stay_where_characters_are_replaced_and_what_an_encoding_lacks_is_escaped():
    assert len(printable(HOSTILE)) == len(HOSTILE)
    assert printable("a\x1b[31mb") == "a\ufffd[31mb"
    raw = io.TextIOWrapper(io.BytesIO(), "ascii")
    PrintableStream(raw).write("é\x1b")
    raw.flush()
    assert raw.buffer.getvalue() == b"\\xe9\\ufffd"


def test_print_json_logs_and_bars_are_printable_and_the_streams_come_back(capsys):
    before = sys.stdout, sys.stderr
    with printable_streams():
        assert sys.stdout is not before[0]
        print_json([HOSTILE])
        logging.StreamHandler(sys.stderr).emit(logging.makeLogRecord({"msg": HOSTILE}))
        list(progress(HOSTILE, iterable=[1]))
    assert (sys.stdout, sys.stderr) == before
    out, err = capsys.readouterr()
    assert steering(out + err) == set()


def test_a_page_shows_no_control_character():
    frame = {"heading": HOSTILE, "style": "", "script": "", "policy": ""}
    page = page_template("legal_rag.report", "outline.html.j2")
    assert type(page).__name__ == "PrintablePage"
    text = page.environment.from_string("<h1>{{ heading }}</h1>{{ data }}").render(**frame, data=safe_json([HOSTILE]))
    assert steering(text) == set()
