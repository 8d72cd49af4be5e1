"""A trace made readable: turn by turn, what the model thought, its programs, what they printed, and whom they asked.

In: a `Trace`. Out: text for a terminal, or one HTML page that asks the network for nothing, both in French.
"""

from collections.abc import Iterator, Sequence
from textwrap import indent, wrap
from typing import TYPE_CHECKING, Any

from legal_rag.cleaning import storable
from legal_rag.deep_read.trace_steps import (
    ANSWERED,
    TITLE,
    UNANSWERED,
    Limits,
    Shown,
    ShownBlock,
    ShownTurn,
    counted,
    shown_text,
    shown_trace,
)
from legal_rag.deep_read.trace_values import Message, Trace
from legal_rag.html_pages import frame_of_page, french_number, notebook_frame, own_script, own_style, page_template

if TYPE_CHECKING:
    from markupsafe import Markup

PACKAGE = "legal_rag"
IN_TERMINAL = Limits(turns=100, calls=10, text=6_000, printed=1_500, call=100)
ON_PAGE = Limits(turns=300, calls=60, text=40_000, printed=20_500, call=3_000)
WIDTH = 110  # characters of a line of prose in a terminal
BAR = "  │ "
NOTHING_ASKED = "(sans question)"


def format_trace(trace: Trace) -> str:
    """Write a trace as text for a terminal; nothing in it can steer the terminal."""
    shown = shown_trace(trace, IN_TERMINAL)
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
    """Write a trace as a page: programs can be folded, and it reads well on paper, on a phone and in the dark.

    Returns:
        The whole page. It runs and loads nothing but its own script and style.
    """
    from legal_rag.report_answer import answer_html

    shown = shown_trace(trace, ON_PAGE)
    script, style = own_script(PACKAGE, "trace.js"), own_style(PACKAGE, "trace.css")
    values = {
        "trace": shown,
        "state": ("✓", ANSWERED) if shown.answered else ("⏳", UNANSWERED),
        "beginning": [(one.role, shown_text(one.content, ON_PAGE.text)) for one in _beginning(trace)],
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
    """Return what a notebook displays of a trace: its page in a frame that reaches nothing around it.

    Args:
        trace: The trace.
        height: Of the frame, in pixels.
    """
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
    """Return the first line that says something."""
    return next((line.strip() for line in text.text.split("\n") if line.strip()), "")


def _beginning(trace: Trace) -> Sequence[Message]:
    """Return what the model was told before its first reply."""
    return trace.iterations[0].messages if trace.iterations else ()


def _highlighted(text: Shown) -> "Markup":
    """Return a program with its keywords, texts and comments marked."""
    from markupsafe import Markup
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    marked = highlight(text.text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return Markup(marked.rstrip("\n"))  # noqa: S704 - the formatter escapes what it is given
