"""README and `docs/`: links lead somewhere, commands are understood, Python runs; what `docs/seeds.md` says is true."""

import itertools
import re
import runpy
import shlex
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from docx import Document as WordDocument
from markdown_it import MarkdownIt
from markdown_it.token import Token
from support import ROOT

from legal_rag.cli import commands, main
from legal_rag.evaluation.reproductions import read_table

GUIDE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FIGURES = [ROOT / "benchmarks" / "README.md", *sorted((ROOT / "benchmarks" / "pages").glob("*.md"))]
PAGES = [*GUIDE, *FIGURES, ROOT / "CHANGELOG.md", *sorted((ROOT / "src").rglob("README.md"))]
PAGES += sorted((ROOT / "collections").glob("*.md"))
MARKDOWN = MarkdownIt("commonmark").enable("table")
COMPILED_ONLY = ('model="', "RayRetriever", "StdioServer", "cuda")  # in blocks for a model, a cluster, a server, a GPU

SEEDS = (ROOT / "docs" / "seeds.md").read_text("utf-8")
ROWS = re.findall(r"^\| \d.*", SEEDS, re.MULTILINE)
SHOWN = [span for row in ROWS for span in re.findall("`([^`]+)`", row.rstrip(" |").rsplit(" | ", 1)[1])]
FILES = [span for span in SHOWN if re.fullmatch(r"[\w/]+\.py", span)]
COMMANDS = [span for span in SHOWN if re.match(r"(legal-rag|make|pip|python|ls)\b", span)]
EXPRESSIONS = [span for span in SHOWN if span not in {*FILES, *COMMANDS, "lm"}]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def tokens_of(page: Path) -> list[Token]:
    blocks = MARKDOWN.parse(page.read_text("utf-8"))
    return [*blocks, *(inline for block in blocks for inline in block.children or ())]


def code_blocks(page: Path, language: str) -> list[str]:
    return [token.content for token in tokens_of(page) if token.type == "fence" and token.info == language]


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives a page's headings."""
    blocks = MARKDOWN.parse(page.read_text("utf-8"))
    titles = [after.content for block, after in itertools.pairwise(blocks) if block.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def addresses(page: Path) -> list[str]:
    found = []
    for token in tokens_of(page):
        if token.type.startswith("html"):
            found += re.findall(r'(?:href|src|srcset)="([^"]+)"', token.content)
        found += [str(token.attrs[name]) for name in ("href", "src") if name in token.attrs]
    return found


def is_broken(address: str, page: Path) -> bool:
    path, _, anchor = address.partition("#")
    target = page.parent / path if path else page
    return not target.exists() or (anchor != "" and anchor not in anchors(target))


def shown_commands(page: Path) -> list[list[str]]:
    """Return the words of each command that a page's console blocks and code spans show."""
    lines = [line for block in code_blocks(page, "console") for line in block.replace("\\\n", " ").splitlines()]
    lines += [token.content for token in tokens_of(page) if token.type == "code_inline"]
    commands = []
    for line in lines:
        if re.match(r"(\$ )?([A-Z_]+=\S* )*(legal-rag|make|python) ", line):
            for part in line.removeprefix("$ ").split(" && "):
                words = shlex.split(part, comments=True)
                commands.append([word for word in words if not re.match("[A-Z_]+=", word)])
    return commands


def misunderstood(words: list[str]) -> str:
    """Return why a command of a page does not exist, or nothing; nothing is run."""
    program, *arguments = words
    if program == "make":
        targets = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        return "" if arguments[0] in " ".join(targets).split() else f"no target {arguments[0]}"
    if program == "python":
        return "" if arguments[0].startswith("-") or (ROOT / arguments[0]).is_file() else f"no file {arguments[0]}"
    command: click.Command = commands
    while isinstance(command, click.Group):
        if arguments[0] == "--config":
            arguments = arguments[2:]
        name, *arguments = arguments
        subcommand = command.get_command(click.Context(command), name)
        if subcommand is None:
            return f"no command {name}"
        command = subcommand
    try:
        command.make_context(command.name, arguments)
    except click.MissingParameter:  # a command that is only named
        return ""
    except click.ClickException as error:
        return error.message
    return ""


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(page):
    assert [one for one in addresses(page) if not one.startswith("http") and is_broken(one, page)] == []


@pytest.mark.parametrize("page", [page for page in GUIDE if code_blocks(page, "toml")], ids=name_of)
def test_the_settings_of_a_page_are_read(page, tmp_path):
    for block in code_blocks(page, "toml"):
        (tmp_path / "legal-rag.toml").write_text(block, "utf-8")
        assert main(["--config", str(tmp_path / "legal-rag.toml"), "info", "--settings"]) == 0


def test_each_page_is_in_the_navigation_of_the_site():
    project = tomllib.loads((ROOT / "docs" / "zensical.toml").read_text("utf-8"))["project"]
    names = re.findall(r"[\w-]+\.md", str(project["nav"]))
    pages = runpy.run_path(str(ROOT / "docs" / "make_site.py"))["PAGES"]
    assert sorted(names) == sorted(pages.values())
    assert set(PAGES) <= set(pages)


@pytest.mark.parametrize("page", [*GUIDE, *FIGURES], ids=name_of)
def test_the_commands_of_a_page_are_understood(page):
    assert [(words, reason) for words in shown_commands(page) if (reason := misunderstood(words))] == []


def test_the_page_of_reproductions_is_that_of_the_table():
    written = (ROOT / "docs" / "reproductions.md").read_text("utf-8")
    page = runpy.run_path(str(ROOT / "docs" / "write_reproductions.py"))["page"]
    assert page(read_table(ROOT), written) == written


PROGRAMS = [page for page in GUIDE if page.stem != "seeds" and code_blocks(page, "python")]


@pytest.fixture(scope="module")
def workplace(tiny_library, tmp_path_factory):
    """Make a folder with what the pages name: indexes and a brief; no model is there to be asked."""
    folder = tmp_path_factory.mktemp("workplace")
    index = shutil.copytree(tiny_library.path, folder / "index" / "legal_french_index")
    brief = WordDocument()
    brief.add_paragraph("Cass. soc., 9 janv. 2018, n° 16-99.999, l'aurait jugé.")
    brief.save(str(folder / "conclusions.docx"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("GENERATOR_API_BASE", "GENERATOR_API_KEY", "GENERATOR_MODEL_ID", "LANGEXTRACT_API_KEY"):
            patch.delenv(name, raising=False)
        assert main(["extract"]) == 0
        for place in ("index/decisions", "index/travail", "demo_output/sample"):
            shutil.copytree(index, folder / place)
        yield folder


@pytest.mark.parametrize("page", PROGRAMS, ids=name_of)
def test_the_python_of_a_page_runs(page, workplace):
    names: dict[str, object] = {}
    for block in code_blocks(page, "python"):
        code = compile(block, f"<{name_of(page)}>", "exec")
        if not any(sign in block for sign in COMPILED_ONLY):
            exec(code, names)  # noqa: S102


@pytest.fixture(scope="module")
def names(workplace):
    """Run the first block of Python of `docs/seeds.md`."""
    names: dict[str, Callable] = {}
    exec(code_blocks(ROOT / "docs" / "seeds.md", "python")[0], names)  # noqa: S102
    return names


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_of_the_page_is_true(names, expression):
    assert eval(expression, names)  # noqa: S307


def test_files_of_the_page_are_there_and_each_promise_has_one_row():
    assert [path for path in FILES if not (ROOT / path).is_file()] == []
    spans = [part.split("-") for row in ROWS for part in row.split("|")[1].split(",")]
    assert sorted(n for span in spans for n in range(int(span[0]), int(span[-1]) + 1)) == list(range(1, 198))
