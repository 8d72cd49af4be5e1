"""`docs/seeds.md`, on the sample: its expressions are true, its commands are understood, its files are there."""

import re
import shlex
import shutil
from collections.abc import Callable

import pytest
from support import ROOT

from legal_rag.cli import commands, main

PAGE = (ROOT / "docs" / "seeds.md").read_text("utf-8")
ROWS = re.findall(r"^\| \d.*", PAGE, re.MULTILINE)
SHOWN = [span for row in ROWS for span in re.findall("`([^`]+)`", row.rstrip(" |").rsplit(" | ", 1)[1])]
FILES = [span for span in SHOWN if re.fullmatch(r"[\w/]+\.py", span)]
COMMANDS = [span for span in SHOWN if re.match(r"(legal-rag|make|pip|python|ls)\b", span)]
EXPRESSIONS = [span for span in SHOWN if span not in {*FILES, *COMMANDS, "lm"}]


@pytest.fixture(scope="module")
def names(tiny_library, tmp_path_factory):
    """Run the page's first block of Python where its index is, its entities extracted."""
    folder = tmp_path_factory.mktemp("seeds")
    shutil.copytree(tiny_library.path, folder / "index" / "legal_french_index")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("GENERATOR_API_BASE", "GENERATOR_API_KEY", "GENERATOR_MODEL_ID", "LANGEXTRACT_API_KEY"):
            patch.delenv(name, raising=False)
        assert main(["extract"]) == 0
        names: dict[str, Callable] = {}
        exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], names)  # noqa: S102
        yield names


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_of_the_page_is_true(names, expression):
    assert eval(expression, names)  # noqa: S307


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith("legal-rag")])
def test_a_command_of_the_page_is_understood(command):
    _, name, *arguments = shlex.split(command)
    assert commands.get_command(None, name).make_context(name, arguments)


def test_files_of_the_page_are_there_and_each_promise_has_one_row():
    scripts = [word for one in COMMANDS if one.startswith("python") for word in one.split()[1:2]]
    linked = [f"docs/{path}" for path in re.findall(r"\]\(([\w./]+\.md)\)", PAGE)]
    assert [path for path in [*FILES, *scripts, *linked] if not (ROOT / path).is_file()] == []
    spans = [part.split("-") for row in ROWS for part in row.split("|")[1].split(",")]
    assert sorted(n for span in spans for n in range(int(span[0]), int(span[-1]) + 1)) == list(range(1, 198))
