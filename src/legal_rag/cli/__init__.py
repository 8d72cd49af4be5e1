"""The command line: each command parses its arguments and makes one library call.

Results go to stdout, messages to stderr. An expected error is one line and status 1; a bug keeps its traceback.
"""

import logging
import os
import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from json import JSONDecodeError
from pathlib import Path
from traceback import walk_tb
from typing import Any, NoReturn, TextIO

import click

from legal_rag.base.extras import missing_extra
from legal_rag.base.files import beside
from legal_rag.base.sqlite import BUSY_OR_FULL
from legal_rag.base.text import REPLACEMENT, UNPRINTABLE, one_line
from legal_rag.cli.settings import FILE, Invocation, Setting, read_settings
from legal_rag.encoder.runtime import OpenVinoError

COMMANDS = {  # name: module, short help, example; read without importing the commands
    "index": ("library", "Build a Library from a source.", "--source decisions.jsonl.gz"),
    "add": ("library", "Add documents to a Library; changed ones are replaced.", "new-decisions.jsonl.gz"),
    "update": ("library", "Apply increments: new, changed and withdrawn documents.", "CASS_20251201-210000.tar.gz"),
    "remove": ("library", "Remove documents from a Library.", "JURITEXT000007022836"),
    "compact": ("library", "Rewrite a Library without removed documents.", ""),
    "info": ("library", "Print what a Library holds and how it was made.", "--index-name decisions"),
    "doctor": ("library", "Check a Library for damage.", ""),
    "corpus-index": ("library", "Build the corpus index, which deep-read needs.", ""),
    "rebuild": ("library", "Add or renew words, entities, corpus index, outlines, graph.", "--only trees --dry-run"),
    "export": ("library", "Write a Library as an index that PyLate opens.", "--pylate pylate_index"),
    "import-pylate": ("library", "Make a Library of an index that PyLate made.", "colbert --encoder OWNER/NAME"),
    "search": ("search", "Rank passages for a query.", "--juridiction 'Cass. soc.' 'obligation de reclassement'"),
    "lookup": ("search", "Print a whole document.", "'n° 87-13.415'"),
    "ask": ("ask", "Answer a question with checked citations.", "--html reponse.html 'Que doit le bailleur ?'"),
    "verify": ("ask", "Check decisions, articles and quotations of any text.", "--html page.html conclusions.docx"),
    "deep-read": ("ask", "Answer a question over many decisions, or whole ones.", "--model MODEL 'Combien cassent ?'"),
    "mcp": ("ask", "Serve Libraries to a client of the Model Context Protocol.", "--index-name decisions"),
    "trace": ("ask", "Show a deep read turn by turn.", "trace.jsonl --html trace.html"),
    "graph": ("search", "Show, search and export the graph of decisions, articles and parties.", "show 'article 1240'"),
    "answers": ("ask", "List, show or delete saved answers.", ""),
    "extract": ("library", "Extract parties, dates, amounts, articles…, grounded in the text.", "--source contracts/"),
    "evaluate": ("evaluate", "Measure retrieval over many questions.", "--queries questions.jsonl --mode hybrid"),
    "pool": ("evaluate", "Judge what several systems rank first: sheets, kappa, merged qrels.", "merge a.csv b.csv"),
    "compare": ("evaluate", "Compare systems over many questions.", "--queries questions.jsonl bm25s hybrid"),
    "probe": ("evaluate", "Count a model's errors in French law that checks mark, or do not.", "--model MODEL"),
    "questions": ("evaluate", "Generate a dataset of grounded questions and answers.", "--output dataset"),
    "reproduce": ("evaluate", "Run published figures' commands in a clone, and compare.", "'sample-*' --log log.jsonl"),
}
# After an interruption.
RESUMED = "index add update compact corpus-index rebuild extract compare questions probe reproduce".split()
DAMAGED = re.compile("damaged|incomplete|no lexical index")  # how errors of an index's files begin
TEXT_ARGUMENTS = {"query", "question", "identifier", "name", "first", "second"}  # which may hold blanks
MOST_CHARS = 2000  # characters of an error: an id or a value in it may be of any length
FAILED = {"verify": 2}  # status after an expected error, where 1 means something else
# The colours and weights that commands and progress bars use: SGR, which changes how text looks and nothing else.
STYLES = ("\x1b[0m", "\x1b[2m")

_UNPRINTABLE_OR_STYLE = re.compile(f"{'|'.join(map(re.escape, STYLES))}|{UNPRINTABLE.pattern}")


class _LazyGroup(click.Group):
    """Command group that imports a command's module only when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, example = COMMANDS[cmd_name]
        name = f"{cmd_name.replace('-', '_')}_command"
        command: click.Command = getattr(import_module(f"legal_rag.cli.{module}"), name)
        further = ", ".join(str(each.name) for each in command.params if isinstance(each, Setting))
        command.epilog = f"Set in {FILE} alone: {further}.\n\n" * bool(further)
        command.epilog += f"Example:\n\n\b\n  legal-rag {cmd_name} {example}"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if near := get_close_matches(args[0], COMMANDS, n=1):
                ctx.fail(f"{error.format_message()} Did you mean {near[0]!r}?")
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, short_help) for name, (_, short_help, _) in COMMANDS.items()])


@click.group(
    cls=_LazyGroup,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120, "show_default": True},
)
@click.option(
    "--config",
    metavar="FILE",
    help=f"A file of settings; else the nearest {FILE}, from the current folder upwards.",
)
@click.version_option(package_name="legal-rag")
@click.pass_context
def commands(ctx: click.Context, config: str | None) -> None:
    """Ask French court decisions in French: answers made of quotations checked against the text."""
    asked = ctx.ensure_object(Invocation)
    asked.command = str(ctx.invoked_subcommand)
    asked.settings = read_settings(config)
    ctx.default_map = asked.settings.of_command(commands, asked.command)


class PrintableStream:
    """A text stream whose writes lose what is unprintable; all else is the stream's own.

    It has no `buffer`, by which click would write past it. Progress bars move the cursor: they write to `raw`.
    """

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        """Write a text; what the stream's encoding lacks is escaped, as on stderr."""
        cleaned = _UNPRINTABLE_OR_STYLE.sub(
            lambda match: match.group() if len(match.group()) > 1 else REPLACEMENT, text
        )
        try:
            self.raw.write(cleaned)
        except UnicodeEncodeError:
            encoding = self.raw.encoding or "ascii"
            self.raw.write(cleaned.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        """Write lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.raw, name)


@contextmanager
def printable_streams() -> Iterator[None]:
    """Put a `PrintableStream` before stdout and stderr for a while."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (raw if isinstance(raw, PrintableStream) else PrintableStream(raw) for raw in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def run() -> NoReturn:
    """Run the command line and leave the process with its status."""
    sys.stdout, sys.stderr = PrintableStream(sys.stdout), PrintableStream(sys.stderr)
    sys.exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, by default of the process's own arguments; nothing that it prints steers a terminal.

    Returns:
        0, or what the command gives; after an expected error, which is one line on stderr, 1, or as in `FAILED`.
    """
    with printable_streams():
        return _run_command(list(sys.argv[1:] if argv is None else argv) or ["--help"])


def _run_command(arguments: list[str]) -> int:
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    os.environ["RUST_BACKTRACE"] = "0"  # a panic in Rust code is reported in one line
    asked = Invocation()
    try:
        status = commands.main(args=arguments, prog_name="legal-rag", standalone_mode=False, obj=asked)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except BaseException as error:
        if (message := _message_of(error, asked)) is None:
            raise
        return _fail(message, FAILED.get(asked.command, 1))
    return status or 0


def _message_of(error: BaseException, asked: Invocation) -> str | None:
    """Return the line that tells a user of an error; None for a bug."""
    if isinstance(error, click.Abort):
        return "interrupted" + ": the same command resumes" * (asked.command in RESUMED)
    if isinstance(error, click.ClickException):
        return error.format_message() + _hint_of(error)
    if isinstance(error, ModuleNotFoundError):
        missing = missing_extra(error)
        return None if missing is None else str(missing)
    if not _is_expected(error, asked.indexes) and (damage := _explain_damage(error, asked.indexes)):
        return damage
    if not isinstance(error, ValueError | LookupError | OSError | sqlite3.DatabaseError | OpenVinoError):
        return None
    if isinstance(error, KeyError | IndexError | UnicodeError | BrokenPipeError):
        return None  # a bug, or a closed pipe, not something the user can fix
    text = str(error) or type(error).__name__
    mends = ": 'legal-rag doctor' says what mends it" if DAMAGED.match(text) and "legal-rag" not in text else ""
    return text + mends


def _hint_of(error: click.ClickException) -> str:
    """Say how to pass what a command took for one argument too many."""
    context = getattr(error, "ctx", None)
    if context is None or not error.message.startswith("Got unexpected extra argument"):
        return ""
    names = {param.name for param in context.command.params}
    if names & TEXT_ARGUMENTS:
        return " (put a text with blanks in quotation marks)"
    takes_none = not any(isinstance(param, click.Argument) for param in context.command.params)
    return " (expected a file or a folder as --source FILE)" if takes_none and "source" in names else ""


def _is_expected(error: BaseException, indexes: Sequence[Path]) -> bool:
    """Tell whether an error was raised with a line for the user, not by a bug or a damaged index."""
    if isinstance(error, OSError) and isinstance(error.filename, str):  # from the system: it names no remedy
        within = [start for index in indexes for start in (f"{index}{os.sep}", str(beside(index, "")))]
        return not error.filename.startswith(tuple(within))
    if isinstance(error, ValueError) and _raised_in(error).startswith("numpy."):
        return False
    if isinstance(error, sqlite3.DatabaseError):
        return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in BUSY_OR_FULL
    if isinstance(error, KeyError | IndexError | UnicodeError | JSONDecodeError):
        return False
    return isinstance(error, ValueError | LookupError | OSError | OpenVinoError)


def _raised_in(error: BaseException) -> str:
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return str(frames[-1].f_globals.get("__name__")) if frames else ""


def _explain_damage(error: BaseException, indexes: Sequence[Path]) -> str | None:
    """Return what is wrong with the files of a command's indexes, if that may be why it failed."""
    # A panic in Rust code is no Exception.
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        return None
    from legal_rag.indexer.doctor import damage_of

    return next(filter(None, (damage_of(index) for index in indexes if index.is_dir())), None)


def _fail(message: str, status: int) -> int:
    click.echo(f"legal-rag: {one_line(message[:MOST_CHARS])}{'…' * (len(message) > MOST_CHARS)}", err=True)
    return status
