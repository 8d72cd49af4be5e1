"""Rows of a table of reproductions are run and compared; what moved, failed or is missing is said in a line."""

import json
import os
import subprocess
from decimal import Decimal

import pytest

from legal_rag.cli import main
from legal_rag.evaluation.reproductions import ExpectedFigure, append_to_log, read_log, read_table, reproduce

PRINTING = """[rows.{name}]
shows = "A figure"
command = '''python -c 'print("{printed}")' '''
seconds = 1
{more}

[rows.{name}.figures]
{figures}
"""
TWO_FIGURES = r"{\"a\": {\"b\": [0.12349, 7]}, \"ms\": 30}"


def row(name="one", printed=TWO_FIGURES, figures='"a.b.0" = 0.123', more=""):
    return PRINTING.format(name=name, printed=printed, figures=figures, more=more)


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Make a clone whose table is what `write` is given, be in a folder of it, and return `write`."""

    def write(*rows):
        (tmp_path / "benchmarks" / "reproductions.toml").write_text("\n".join(rows), "utf-8")
        return read_table(tmp_path)

    (tmp_path / "benchmarks").mkdir()
    monkeypatch.chdir(tmp_path / "benchmarks")
    monkeypatch.delenv("LEGAL_RAG_DATA", raising=False)
    return write


@pytest.fixture
def committed(clone, tmp_path):
    """Commit a table of two rows, of which one is right; return the clone's folder."""
    clone(row("right"), row("wrong", figures='"a.b.1" = 8'))
    for command in ("init -q", "add benchmarks", "-c user.name=a -c user.email=a@b.fr commit -qm table"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    return tmp_path


def run(capsys, *arguments):
    status = main(["reproduce", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err.splitlines()[-1] if printed.err else ""


@pytest.mark.parametrize(
    ("expected", "tolerance", "found", "is_met"),
    [
        ("0.123", "0", 0.12349, True),
        ("0.123", "0", 0.1236, False),
        ("7", "0", 7.0, True),
        ("1.0000", "0", 0.99994, False),
        ("0.90", "0.05", 0.949, True),
        ("0.90", "0.05", 0.956, False),
    ],
)
def test_a_figure_is_met_to_the_last_decimal_written_but_for_its_tolerance(expected, tolerance, found, is_met):
    assert ExpectedFigure(Decimal(expected), Decimal(tolerance)).is_met_by(found) is is_met


def test_a_row_is_run_and_compared_and_times_decide_nothing(clone, capsys):
    clone(row(figures='"a.b.0" = 0.123\n"a.b.1" = { expected = 9, tolerance = 2 }\n\n[rows.one.times]\n"ms" = 60'))
    status, out, _ = run(capsys)
    assert status == 0
    assert "ok       one" in out
    assert "ms: 30, 0.50 times 60" in out


def test_a_figure_that_moved_is_printed_with_what_was_expected_and_makes_status_1(clone, capsys):
    clone(row(), row("two", figures='"a.b.1" = { expected = 9, tolerance = 1 }'))
    status, out, _ = run(capsys)
    assert status == 1
    assert "a.b.1: expected 9, found 7 (tolerance 1)" in out
    assert "1 of 2 rows without a difference" in out


@pytest.mark.parametrize(("processor", "status"), [("abacus", 0), ("", 1)])
def test_on_another_processor_figures_may_differ_by_what_the_row_says(clone, capsys, processor, status):
    clone(f'processor = "{processor}"\n', row(figures='"a.b.0" = 0.150', more="elsewhere = 0.03"))
    assert run(capsys)[0] == status


def test_update_writes_found_figures_into_the_rows_asked_for_alone(clone, capsys):
    clone(row(figures='"a.b.0" = 0.00\n"a.b.1" = { expected = 0, tolerance = 1 }'), row("two", figures='"a.b.1" = 0'))
    assert run(capsys, "one", "--update")[0] == 1
    assert run(capsys, "one")[0] == 0
    table = read_table(clone.__closure__[0].cell_contents)
    assert {name: str(one.expected) for name, one in table.rows["one"].figures.items()} == {
        "a.b.0": "0.12",
        "a.b.1": "7",
    }
    assert str(table.rows["two"].figures["a.b.1"].expected) == "0"


def test_a_row_whose_data_is_missing_is_skipped_with_how_to_get_it(clone, capsys):
    needs = '[needs.data]\nfile = "$LEGAL_RAG_DATA/decisions.jsonl.gz"\nhow = "set LEGAL_RAG_DATA"\n'
    clone(needs, row(more='needs = ["data"]'))
    status, out, _ = run(capsys)
    assert status == 0
    assert "skipped  one" in out
    assert "/decisions.jsonl.gz: set LEGAL_RAG_DATA" in out
    assert "0 of 1 rows without a difference, 1 skipped" in out


def test_a_library_is_built_once_for_the_rows_that_need_it(clone, capsys, tmp_path):
    built = "import os; os.mkdir('$LIBRARIES/lib'); open('$LIBRARIES/lib/manifest.json', 'w')"  # twice is an error
    library = f'[libraries.lib]\nshows = ""\nseconds = 1\ncommand = """python -c "{built}" """\n'
    clone(library, row(more='libraries = ["lib"]'), row("two", more='libraries = ["lib"]'))
    assert run(capsys, "--libraries", str(tmp_path / "kept"))[0] == 0


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('[rows.one]\nshows = ""\nseconds = 1\n', "row 'one' has no 'command'"),
        (row(more="second = 2"), "row 'one': unknown 'second' (expected command, elsewhere,"),
        (row(more='needs = ["date"]'), "row 'one': no need 'date'"),
        (row(figures='"a" = "much"'), "row 'one': figure 'a' is 'much' (expected a number"),
        ("[rows.one\n", "reproductions.toml: Expected ']'"),
    ],
)
def test_a_table_that_is_wrong_is_refused_in_a_line(clone, capsys, tmp_path, table, message):
    (tmp_path / "benchmarks" / "reproductions.toml").write_text(table, "utf-8")
    status, _, line = run(capsys)
    assert status == 1
    assert message in line


@pytest.mark.parametrize(
    ("printed", "figures", "message"),
    [
        (TWO_FIGURES, '"a.b.2" = 1', "printed no figure 'a.b.2' (nearest: 'a.b."),
        ("Ranking 60 queries", '"a" = 1', "printed no JSON value: 'Ranking 60 queries"),
        (r'{}"); raise SystemExit("no index at lib', '"a" = 1', "python ended with status 1: no index at lib"),
    ],
)
def test_a_command_that_fails_is_said_in_a_line_and_the_other_rows_run(clone, capsys, printed, figures, message):
    clone(row("bad", printed, figures), row("good"))
    status, out, _ = run(capsys)
    assert status == 1
    assert message in out
    assert "ok       good" in out


def test_an_unknown_row_is_named_with_the_nearest(clone, capsys):
    clone(row("structure"))
    assert "no row 'structur' in benchmarks/reproductions.toml (nearest: 'structure')" in run(capsys, "structur")[2]


def test_a_folder_outside_of_a_clone_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "expected a clone of the repository" in run(capsys)[2]


def test_a_row_that_the_log_holds_as_right_for_the_commit_is_not_run_again(committed, capsys):
    log = committed / "log.jsonl"
    assert run(capsys, "--log", str(log))[0] == 1
    status, out, _ = run(capsys, "--log", str(log))
    assert status == 1
    assert "done     right" in out
    assert "moved    wrong" in out
    lines = read_log(log)
    assert [line["row"] for line in lines] == ["right", "wrong", "wrong"]
    assert lines[0]["clean"] is True
    assert lines[0]["machine"]["cores"] == os.cpu_count()
    assert f"right on {lines[0]['date']}" in run(capsys, "--list", "--log", str(log))[1]


def test_in_a_tree_that_was_changed_every_row_is_run(committed, capsys):
    log = committed / "log.jsonl"
    table = committed / "benchmarks" / "reproductions.toml"
    run(capsys, "right", "--log", str(log))
    table.write_text(table.read_text("utf-8") + "# changed\n", "utf-8")
    assert "ok       right" in run(capsys, "right", "--log", str(log))[1]
    assert [line["clean"] for line in read_log(log)] == [True, False]


@pytest.mark.parametrize("what", ["changed", "cut"])
def test_a_log_that_was_changed_in_the_midst_is_refused(tmp_path, capsys, clone, what):
    clone(row())
    log = tmp_path / "log.jsonl"
    for number in range(3):
        append_to_log(log, {"row": "one", "ok": True, "number": number})
    lines = log.read_text("utf-8").splitlines()
    lines[1:2] = [lines[1].replace('"number": 1', '"number": 9')] if what == "changed" else []
    log.write_text("\n".join(lines) + "\n", "utf-8")
    number = 3 if what == "changed" else 2
    assert (
        f"log.jsonl, line {number}: not what followed the line before: the log was changed"
        in run(capsys, "--log", str(log))[2]
    )
    assert log.read_text("utf-8").splitlines() == lines


def test_the_data_folder_is_in_the_log_by_its_content(clone, tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("LEGAL_RAG_DATA", str(data))
    digests = []
    for content in ("a", "b", "a"):
        (data / "decisions.jsonl").write_text(content, "utf-8")
        log = tmp_path / f"{len(digests)}.jsonl"
        table = clone(row())
        assert [one.status for one in reproduce(table, table.named([]), tmp_path, log)] == ["ok"]
        digests.append(json.loads(log.read_text("utf-8"))["data"])
    assert digests[0] == digests[2] != digests[1]
