"""Show a trace as text or as a page."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from textwrap import indent, wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.agent.budget import Usage
from legal_rag.corpus.cleaning import storable
from legal_rag.corpus.patterns.dates import MONTHS
from legal_rag.deep_read.models import SubCall
from legal_rag.deep_read.rlm import prose_of
from legal_rag.deep_read.trace import Block, Iteration, Trace
from legal_rag.html import (
    frame_of_page,
    french_decimal,
    french_number,
    notebook_frame,
    own_script,
    own_style,
    page_template,
)

if TYPE_CHECKING:
    from markupsafe import Markup

PACKAGE = "legal_rag.deep_read"
WIDTH = 110  # characters of a line of prose in a terminal
BAR = "  │ "
NOTHING_ASKED = "(sans question)"
NARROW = "\u00a0"
TITLE = "Lecture approfondie"
ANSWERED, UNANSWERED = "Réponse rendue", "Arrêtée sans réponse finale"
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


class Shown(NamedTuple):
    """A text, and how many of its characters are left out."""

    text: str
    left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self.text)


class ShownCall(NamedTuple):
    """A call of the sub-model."""

    number: int
    prompt: Shown
    reply: Shown
    error: str
    told: str  # duration, tokens


class ShownBlock(NamedTuple):
    """A program that was run."""

    code: Shown
    printed: Shown
    error: Shown
    calls: Sequence[ShownCall]
    n_calls: int
    asked: str  # how many calls, and what they came to; empty if there were none
    seconds: str


class ShownTurn(NamedTuple):
    """A turn of the root model."""

    number: int
    thought: Shown
    blocks: Sequence[ShownBlock]
    told: str  # duration, tokens, calls of the sub-model
    seconds: float
    failed: bool  # a program ended with an error
    final: bool  # the run ended with it
    note: str  # that it was interrupted or done again


class ShownTrace(NamedTuple):
    """A run."""

    question: Shown
    answered: bool
    answer: Shown
    facts: Sequence[tuple[str, str]]  # name and value
    turns: Sequence[ShownTurn]
    left_out: int  # turns


def format_trace(trace: Trace) -> str:
    """Write a trace as text for a terminal; control characters in it are escaped."""
    shown = _shown_trace(trace, IN_TERMINAL)
    lines = [f"{TITLE} : {_one_line(shown.question) or NOTHING_ASKED}"]
    lines += [f"{name} : {said}" for name, said in shown.facts]
    for turn in shown.turns:
        lines += ["", *_turn_lines(turn)]
    if shown.left_out:
        lines += ["", f"[{counted(shown.left_out, 'autre tour non montré', 'autres tours non montrés')}]"]
    lines += ["", f"{ANSWERED} :" if shown.answered else f"{UNANSWERED}."]
    if shown.answer:
        lines.append(_barred(shown.answer))
    return "\n".join(lines)


def render_trace(trace: Trace) -> str:
    """Write a trace as a self-contained page, which runs nothing but its own script."""
    from legal_rag.report.page import answer_html

    shown = _shown_trace(trace, ON_PAGE)
    beginning = trace.iterations[0].messages if trace.iterations else ()
    script, style = own_script(PACKAGE, "trace.js"), own_style(PACKAGE, "trace.css")
    values = {
        "trace": shown,
        "state": ("✓", ANSWERED) if shown.answered else ("⏳", UNANSWERED),
        "beginning": [(one.role, shown_text(one.content, ON_PAGE.text)) for one in beginning],
        "most_seconds": max([turn.seconds for turn in shown.turns], default=0.0),
        "highlight": _highlighted,
        "prose": lambda text: answer_html(text.text, [], [], markdown=True),
        "number": french_number,
        "counted": counted,
        "first_line": _first_line,
        "nothing_asked": NOTHING_ASKED,
        "file": trace.path.name,
    }
    heading = f"{_one_line(shown.question)[:100] or TITLE} — {TITLE}"
    return storable(page_template(PACKAGE, "trace.html.j2").render(**frame_of_page(heading, script, style), **values))


def show_trace(trace: Trace, height: int = 720) -> Any:
    """Return a trace's page in an isolated frame, `height` pixels high, for a notebook to display."""
    return notebook_frame(render_trace(trace), TITLE, height)


def _turn_lines(turn: ShownTurn) -> Iterator[str]:
    told = f" — {turn.told}" if turn.told else ""
    yield f"Tour {turn.number}{told}"
    if turn.note:
        yield f"  [{turn.note}]"
    if turn.thought:
        yield from (f"  {line}" for line in _wrapped(turn.thought))
    for block in turn.blocks:
        yield from _block_lines(block)


def _block_lines(block: ShownBlock) -> Iterator[str]:
    for name, text in (("Programme", block.code), ("Affiché", block.printed), ("Erreur", block.error)):
        if text:
            yield f"  {name}{_left_out(text)} :"
            yield _barred(text)
    if block.asked:
        yield f"  Appels du sous-modèle : {block.asked}"
    for call in block.calls:
        reply = f"échec : {call.error}" if call.error else f"« {_one_line(call.reply)} »"
        yield f"    {call.number}. « {_one_line(call.prompt)} » → {reply}{f' ({call.told})' if call.told else ''}"
    if block.n_calls > len(block.calls):
        yield f"    … et {counted(block.n_calls - len(block.calls), 'autre')}"


def _left_out(text: Shown) -> str:
    more = counted(text.left_out, "caractère de plus", "caractères de plus")
    return f" ({more} dans la trace)" if text.left_out else ""


def _barred(text: Shown) -> str:
    return indent(text.text, BAR, lambda line: True)


def _wrapped(text: Shown) -> Iterator[str]:
    for line in text.text.split("\n"):
        yield from wrap(line, WIDTH) or [""]


def _one_line(text: Shown) -> str:
    line = " ".join(text.text.split())
    return f"{line}…" if text.left_out else line


def _first_line(text: Shown) -> str:
    return next((line.strip() for line in text.text.split("\n") if line.strip()), "")


def _highlighted(text: Shown) -> "Markup":
    from markupsafe import Markup
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    marked = highlight(text.text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return Markup(marked.rstrip("\n"))  # noqa: S704 - the formatter escapes what it is given


def _shown_trace(trace: Trace, limits: ViewLimits) -> ShownTrace:
    again = {one.number for one in trace.superseded}
    return ShownTrace(
        shown_text(_question(trace), limits.text),
        trace.final_answer is not None,
        shown_text(trace.final_answer or "", limits.text),
        _facts(trace),
        [_turn(one, limits, again=one.number in again) for one in trace.iterations[: limits.turns]],
        max(0, len(trace.iterations) - limits.turns),
    )


def _question(trace: Trace) -> str:
    """Return the question of a run; in rlms' own traces it stands in the prompt alone."""
    own = trace.run.get("question")
    if isinstance(own, str):
        return own
    for message in trace.iterations[0].messages[:3] if trace.iterations else ():
        if match := ASKED.match(message.content):
            return match[1]
    return ""


def visible(text: str) -> str:
    """Escape every character that is not printed, except line breaks and spaces."""
    kept = text.replace("\r\n", "\n").expandtabs(4)
    if kept.isascii() and kept.replace("\n", "").isprintable():
        return kept
    return "".join(one if _is_printed(one) else _escaped(one) for one in kept)


def counted(n: int, one: str, many: str = "") -> str:
    """Write a number and what it counts: « 2 tours »."""
    return f"{french_number(n)} {(many or f'{one}s') if n > 1 else one}"


def _is_printed(character: str) -> bool:
    return character.isprintable() or character == "\n" or unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def shown_text(text: str, most: int) -> Shown:
    """Cut a text to its first `most` characters, and escape those that are not printed."""
    return Shown(visible(text[:most]), max(0, len(text) - most))


def _turn(iteration: Iteration, limits: ViewLimits, *, again: bool) -> ShownTurn:
    calls = iteration.calls
    told = [_seconds(iteration.seconds), _tokens(iteration.usage), _asked(calls)]
    blocks = [_block(one, limits) for one in iteration.blocks]
    return ShownTurn(
        iteration.number,
        shown_text(prose_of(iteration.response), limits.text),
        blocks,
        _joined(told),
        iteration.seconds or 0.0,
        any(one.stderr.strip() for one in iteration.blocks),
        iteration.final_answer is not None,
        "Ce tour a été interrompu, puis repris." if again else "",
    )


def _block(block: Block, limits: ViewLimits) -> ShownBlock:
    calls = [_call(number, call, limits) for number, call in enumerate(block.calls[: limits.calls], 1)]
    return ShownBlock(
        shown_text(block.code, limits.text),
        shown_text(block.stdout.rstrip("\n"), limits.printed),
        shown_text(block.stderr.strip("\n"), limits.printed),
        calls,
        len(block.calls),
        _joined([_number_of(block.calls), *_sums(block.calls)]) if block.calls else "",
        _seconds(block.seconds),
    )


def _call(number: int, call: SubCall, limits: ViewLimits) -> ShownCall:
    again = "" if call.usage.calls or call.error else "reprise sans appel"
    told = _joined([again or _seconds(call.seconds), _tokens(call.usage)])
    prompt, reply = shown_text(call.prompt, limits.call), shown_text(call.reply, limits.call)
    return ShownCall(number, prompt, reply, visible(call.error), told)


def _sums(calls: Sequence[SubCall]) -> list[str]:
    """Add calls up; they overlap, so that their durations add up to more than passes."""
    usage = reduce(Usage.plus, (call.usage for call in calls), Usage())
    return [f"{_seconds(sum(call.seconds for call in calls))} en durées cumulées", _tokens(usage)]


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
        ("Appels du sous-modèle", _number_of(calls)),
        ("Durée", _seconds(seconds)),
        ("Jetons", f"{french_number(usage.prompt_tokens)} lus, {french_number(usage.completion_tokens)} écrits"),
        ("Coût", _cost(usage)),
        ("Début", _moment(trace.started)),
    ]
    return [(name, value) for name, value in facts if value]


def _asked(calls: Sequence[SubCall]) -> str:
    """« 14 appels du sous-modèle, dont 3 repris sans frais »."""
    number, *rest = _number_of(calls).split(",", 1)
    named = f"{number} appel{'s' if len(calls) > 1 else ''} du sous-modèle"
    return ",".join([named, *rest]) if calls else ""


def _number_of(calls: Sequence[SubCall]) -> str:
    """« 14, dont 3 repris sans frais et 1 en échec »."""
    again = sum(1 for call in calls if not call.usage.calls and not call.error)
    failed = sum(1 for call in calls if call.error)
    parts = [f"{french_number(again)} repris sans frais"] if again else []
    parts += [f"{french_number(failed)} en échec"] if failed else []
    return french_number(len(calls)) + (f", dont {' et '.join(parts)}" if parts else "")


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
