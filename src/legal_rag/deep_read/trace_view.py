"""Show a trace as text or as a page."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from textwrap import indent, wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import regex

from legal_rag.corpus.patterns.dates import MONTHS
from legal_rag.deep_read.models import SubCall
from legal_rag.deep_read.rlm import prose_of
from legal_rag.deep_read.trace import Block, Iteration, Trace
from legal_rag.html import (
    NotebookFrame,
    frame_of_page,
    french_decimal,
    french_number,
    own_script,
    own_style,
    page_template,
)
from legal_rag.llm import Usage

if TYPE_CHECKING:
    from markupsafe import Markup

PACKAGE = "legal_rag.deep_read"
WIDTH = 110  # characters of a line of prose in a terminal
BAR = "  │ "
NOTHING_ASKED = "(sans question)"
NARROW = "\u00a0"
TITLE = "Lecture approfondie"
ANSWERED, UNANSWERED = "Réponse rendue", "Arrêtée sans réponse finale"
REDONE = "Ce tour a été interrompu, puis repris."
NOT_PRINTED = regex.compile(r"[\p{C}\p{Zl}\p{Zp}--\n]", regex.V1)
ASKED = re.compile(r"^Answer the following: (.*?)\n\nYour context is a ", re.DOTALL)  # as rlms puts the question


class ViewLimits(NamedTuple):
    """How much of a trace a view shows."""

    turns: int
    calls: int  # of one block
    text: int  # characters of a thought, a program, an answer
    printed: int  # characters of what a block printed
    call: int  # characters of a prompt or a reply of the sub-model


IN_TERMINAL = ViewLimits(turns=100, calls=10, text=6_000, printed=1_500, call=100)
ON_PAGE = ViewLimits(turns=300, calls=60, text=40_000, printed=20_500, call=3_000)


class Excerpt(NamedTuple):
    """The beginning of a text, and how many of its characters are left out."""

    text: str
    left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self.text)


def format_trace(trace: Trace) -> str:
    """Write a trace as text for a terminal; control characters in it are escaped."""
    limits = IN_TERMINAL
    redone = {turn.number for turn in trace.superseded}
    lines = [f"{TITLE} : {_one_line(excerpt(_question(trace), limits.text)) or NOTHING_ASKED}"]
    lines += [f"{name} : {value}" for name, value in _facts(trace)]
    for turn in trace.iterations[: limits.turns]:
        lines += ["", *_turn_lines(turn, limits, is_redone=turn.number in redone)]
    if (left_out := len(trace.iterations) - limits.turns) > 0:
        lines += ["", f"[{counted(left_out, 'autre tour non montré', 'autres tours non montrés')}]"]
    lines += ["", f"{UNANSWERED}." if trace.final_answer is None else f"{ANSWERED} :"]
    if answer := excerpt(trace.final_answer or "", limits.text):
        lines.append(_barred(answer))
    return "\n".join(lines)


def render_trace(trace: Trace) -> str:
    """Write a trace as a self-contained page, which runs nothing but its own script."""
    from legal_rag.report.page import answer_html

    limits, question = ON_PAGE, excerpt(_question(trace), ON_PAGE.text)
    turns = trace.iterations[: limits.turns]
    script, style = own_script(PACKAGE, "trace.js"), own_style(PACKAGE, "trace.css")
    values = {
        "limits": limits,
        "question": question,
        "answered": trace.final_answer is not None,
        "state": ("⏳", UNANSWERED) if trace.final_answer is None else ("✓", ANSWERED),
        "answer": excerpt(trace.final_answer or "", limits.text),
        "facts": _facts(trace),
        "turns": turns,
        "redone": {turn.number for turn in trace.superseded},
        "left_out": len(trace.iterations) - len(turns),
        "beginning": trace.iterations[0].messages if trace.iterations else (),
        "most_seconds": max([turn.seconds or 0.0 for turn in turns], default=0.0),
        "excerpt": excerpt,
        "thought_of": lambda turn: excerpt(prose_of(turn.response), limits.text),
        "turn_measures": _turn_measures,
        "calls_measures": _calls_measures,
        "call_measures": _call_measures,
        "seconds": _seconds,
        "visible": visible,
        "highlight": _highlighted,
        "prose": lambda text: answer_html(text.text, [], [], markdown=True),
        "counted": counted,
        "first_line": _first_line,
        "redone_note": REDONE,
        "nothing_asked": NOTHING_ASKED,
        "file": trace.path.name,
    }
    heading = f"{_one_line(question)[:100] or TITLE} — {TITLE}"
    return page_template(PACKAGE, "trace.html.j2").render(**frame_of_page(heading, script, style), **values)


def show_trace(trace: Trace, height: int = 720) -> Any:
    """Return a trace's page in an isolated frame, `height` pixels high, for a notebook to display."""
    return NotebookFrame(render_trace(trace), TITLE, height)


def excerpt(text: str, most: int) -> Excerpt:
    """Cut a text to its first `most` characters, and escape those that are not printed."""
    return Excerpt(visible(text[:most]), max(0, len(text) - most))


def visible(text: str) -> str:
    """Escape every character that is not printed, except line breaks and spaces."""
    return NOT_PRINTED.sub(lambda match: _escaped(match.group()), text.replace("\r\n", "\n").expandtabs(4))


def counted(n: int, one: str, many: str = "") -> str:
    """Write a number and what it counts: « 2 tours »."""
    return f"{french_number(n)} {(many or f'{one}s') if n > 1 else one}"


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _turn_lines(turn: Iteration, limits: ViewLimits, *, is_redone: bool) -> Iterator[str]:
    measures = _turn_measures(turn)
    yield f"Tour {turn.number} — {measures}" if measures else f"Tour {turn.number}"
    if is_redone:
        yield f"  [{REDONE}]"
    if thought := excerpt(prose_of(turn.response), limits.text):
        for line in thought.text.split("\n"):
            yield from (f"  {part}" for part in wrap(line, WIDTH) or [""])
    for block in turn.blocks:
        yield from _block_lines(block, limits)


def _block_lines(block: Block, limits: ViewLimits) -> Iterator[str]:
    for name, text in (
        ("Programme", excerpt(block.code, limits.text)),
        ("Affiché", excerpt(block.stdout.rstrip("\n"), limits.printed)),
        ("Erreur", excerpt(block.stderr.strip("\n"), limits.printed)),
    ):
        more = counted(text.left_out, "caractère de plus", "caractères de plus")
        if text:
            yield f"  {name}{f' ({more} dans la trace)' if text.left_out else ''} :"
            yield _barred(text)
    if block.calls:
        yield f"  Appels du sous-modèle : {_calls_measures(block.calls)}"
    for number, call in enumerate(block.calls[: limits.calls], 1):
        prompt, reply = (_one_line(excerpt(text, limits.call)) for text in (call.prompt, call.reply))
        answered = f"échec : {visible(call.error)}" if call.error else f"« {reply} »"
        measures = _call_measures(call)
        yield f"    {number}. « {prompt} » → {answered}{f' ({measures})' if measures else ''}"
    if len(block.calls) > limits.calls:
        yield f"    … et {counted(len(block.calls) - limits.calls, 'autre')}"


def _barred(text: Excerpt) -> str:
    return indent(text.text, BAR, lambda line: True)


def _one_line(text: Excerpt) -> str:
    line = " ".join(text.text.split())
    return f"{line}…" if text.left_out else line


def _first_line(text: Excerpt) -> str:
    return next((line.strip() for line in text.text.split("\n") if line.strip()), "")


def _highlighted(text: Excerpt) -> "Markup":
    from markupsafe import Markup
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    marked = highlight(text.text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return Markup(marked.rstrip("\n"))  # noqa: S704 - the formatter escapes what it is given


def _question(trace: Trace) -> str:
    """Return the question of a run; in rlms' own traces it stands in the prompt alone."""
    own = trace.run.get("question")
    if isinstance(own, str):
        return own
    for message in trace.iterations[0].messages[:3] if trace.iterations else ():
        if match := ASKED.match(message.content):
            return match[1]
    return ""


def _turn_measures(turn: Iteration) -> str:
    """Write a turn's duration, tokens and calls of the sub-model."""
    calls = turn.calls
    number = counted(len(calls), "appel du sous-modèle", "appels du sous-modèle") + _free_and_failed(calls)
    return _joined([_seconds(turn.seconds), _tokens(turn.usage), number if calls else ""])


def _calls_measures(calls: Sequence[SubCall]) -> str:
    """Add calls up; they overlap, so that their durations add up to more than passes."""
    usage = reduce(Usage.plus, (call.usage for call in calls), Usage())
    seconds = f"{_seconds(sum(call.seconds for call in calls))} en durées cumulées"
    return _joined([french_number(len(calls)) + _free_and_failed(calls), seconds, _tokens(usage)])


def _call_measures(call: SubCall) -> str:
    duration = _seconds(call.seconds) if call.usage.calls or call.error else "reprise sans appel"
    return _joined([duration, _tokens(call.usage)])


def _free_and_failed(calls: Sequence[SubCall]) -> str:
    """« , dont 3 repris sans frais et 1 en échec »."""
    free = sum(not call.usage.calls and not call.error for call in calls)
    failed = sum(bool(call.error) for call in calls)
    parts = [f"{french_number(free)} repris sans frais"] if free else []
    parts += [f"{french_number(failed)} en échec"] if failed else []
    return f", dont {' et '.join(parts)}" if parts else ""


def _facts(trace: Trace) -> list[tuple[str, str]]:
    usage, most = trace.usage, trace.metadata.get("max_iterations")
    calls = [call for one in trace.iterations for call in one.calls]
    turns = len(trace.iterations)
    seconds = sum(one.seconds or 0.0 for one in (*trace.iterations, *trace.superseded))
    documents = trace.run.get("doc_ids")
    facts = [
        ("Modèle", visible(str(trace.metadata.get("root_model") or ""))[:100]),
        ("Décisions", counted(len(documents), "nommée") if isinstance(documents, list) and documents else ""),
        ("Tours", f"{turns} sur {most} au plus" if isinstance(most, int) else str(turns)),
        ("Appels du sous-modèle", french_number(len(calls)) + _free_and_failed(calls)),
        ("Durée", _seconds(seconds)),
        ("Jetons", f"{french_number(usage.prompt_tokens)} lus, {french_number(usage.completion_tokens)} écrits"),
        ("Coût", _cost(usage)),
        ("Début", _moment(trace.started)),
    ]
    return [(name, value) for name, value in facts if value]


def _moment(iso: str) -> str:
    """Write a point in time in French; what cannot be parsed is left out."""
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        return ""
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year} à {moment:%H:%M}"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{french_decimal(seconds, 1)}{NARROW}s"


def _tokens(usage: Usage | None) -> str:
    return counted(usage.tokens, "jeton") if usage and usage.tokens else ""


def _cost(usage: Usage) -> str:
    if usage.cost is None:
        return "prix inconnu"
    return f"{french_decimal(usage.cost, 4)}{NARROW}$" if usage.cost else ""


def _joined(parts: Iterable[str]) -> str:
    return " · ".join(part for part in parts if part)
