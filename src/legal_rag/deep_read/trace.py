"""Traces of deep reads, as rlms writes them (a JSON object a line): read back, and shown as a page."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import regex
from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from legal_rag.base.html import (
    NotebookFrame,
    displayed,
    frame_of_page,
    french_decimal,
    french_number,
    own_script,
    own_style,
    page_template,
)
from legal_rag.base.text import json_safe, storable
from legal_rag.deep_read.prompts import answer_text
from legal_rag.deep_read.rlm import prose_of
from legal_rag.law import MONTHS
from legal_rag.llm import Usage

if TYPE_CHECKING:
    from markupsafe import Markup

EXPECTED = "expected JSON lines as rlms writes them"
LARGEST = 2**53  # beyond it numbers are not exact in JSON's floats
PACKAGE = "legal_rag.deep_read"
NOTHING_ASKED = "(sans question)"
NARROW = "\u00a0"
TITLE = "Lecture approfondie"
ANSWERED, UNANSWERED = "Réponse rendue", "Arrêtée sans réponse finale"
NOT_PRINTED = regex.compile(r"[\p{C}\p{Zl}\p{Zp}--\n]", regex.V1)
# A question as we put it, or as rlms does.
ASKED = re.compile(r"^(?:Question :|Answer the following:) (.*?)\n\n(?:Tour 1/|Your context is a )", re.DOTALL)


def _coerce_text(value: Any) -> str:
    """Coerce what rlms may log in place of a text: None, an answer's value, a prompt's messages."""
    return storable("" if value is None else answer_text(value) if not isinstance(value, str) else value)


Text = Annotated[str, BeforeValidator(_coerce_text)]
Seconds = Annotated[float | None, Field(ge=0, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]


class _Line(BaseModel):
    """Part of a line; unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


@displayed
class TraceMessage(_Line):
    """One message of a conversation."""

    role: Text
    content: Text


class _ModelUsage(_Line):
    total_calls: Count = 0
    total_input_tokens: Count = 0
    total_output_tokens: Count = 0
    total_cost: Seconds = None  # unlike seconds, dollars; None is unknown

    def usage(self) -> Usage:
        cost = self.total_cost if self.total_cost is not None or self.total_calls else 0.0
        return Usage(self.total_calls, 0, self.total_input_tokens, self.total_output_tokens, cost)


@displayed
class TracedCall(_Line):
    """One call of the sub-model."""

    prompt: Text
    reply: Text = Field(validation_alias="response")
    seconds: Seconds = Field(None, validation_alias="execution_time")
    error: Text = ""  # in French, set if there is no reply
    models: dict[str, _ModelUsage] = Field({}, validation_alias=AliasPath("usage_summary", "model_usage_summaries"))

    @property
    def usage(self) -> Usage:
        """Tokens, and dollars."""
        return reduce(Usage.plus, (model.usage() for model in self.models.values()), Usage())


@displayed
class Block(_Line):
    """A program, and its result."""

    code: Text
    stdout: Text = Field("", validation_alias=AliasPath("result", "stdout"))
    stderr: Text = Field("", validation_alias=AliasPath("result", "stderr"))
    seconds: Seconds = Field(None, validation_alias=AliasPath("result", "execution_time"))
    calls: tuple[TracedCall, ...] = Field((), validation_alias=AliasPath("result", "rlm_calls"))


@displayed
class Iteration(_Line):
    """A turn of the root model."""

    number: int = Field(validation_alias="iteration")  # from 1
    time: Text = Field("", validation_alias="timestamp")  # at its end: ISO 8601
    messages: tuple[TraceMessage, ...] = Field(validation_alias="prompt")  # the whole conversation before the reply
    response: Text
    blocks: tuple[Block, ...] = Field(validation_alias="code_blocks")
    final_answer: Text | None = None
    seconds: Seconds = Field(None, validation_alias="iteration_time")  # in all

    @property
    def calls(self) -> tuple[TracedCall, ...]:
        """All calls of the sub-model."""
        return tuple(call for block in self.blocks for call in block.calls)

    @property
    def failed(self) -> bool:
        """Whether a program ended with an error."""
        return any(block.stderr.strip() for block in self.blocks)


def _usage_of(calls: Iterable[TracedCall]) -> Usage:
    return reduce(Usage.plus, (call.usage for call in calls), Usage())


@displayed
@dataclass(frozen=True)
class Trace:
    """A run, up to the last turn that ended."""

    path: Path
    metadata: Mapping[str, Any]  # root_model, max_iterations, backend, environment_type…
    started: str  # ISO 8601; empty if unknown
    iterations: tuple[Iteration, ...]  # numbered from 1

    @property
    def final_answer(self) -> str | None:
        """The answer that the run ended with; None if there is none."""
        return self.iterations[-1].final_answer if self.iterations else None

    @property
    def calls(self) -> list[TracedCall]:
        """All calls of the sub-model."""
        return [call for turn in self.iterations for call in turn.calls]

    @property
    def usage(self) -> Usage:
        """Usage of the sub-model in all turns; rlms does not log the root model's."""
        return _usage_of(self.calls)

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON can hold it, without what the models were sent."""
        return {
            "metadata": dict(self.metadata),
            "started": self.started,
            "final_answer": self.final_answer,
            "usage": self.usage._asdict(),
            "iterations": [turn.model_dump(exclude={"messages"}) for turn in self.iterations],
        }


def read_trace(path: str | Path) -> Trace:
    """Read a trace; a last line that a kill cut off is skipped.

    FileNotFoundError if there is no such file, ValueError if it is not a trace or is damaged.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no trace at {path}")
    metadata: Mapping[str, Any] = {}
    turns: list[Iteration] = []
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            entry = json_safe(json.loads(line))
            if isinstance(entry, dict) and entry.get("type") == "metadata":
                metadata = entry
            else:
                turns.append(Iteration.model_validate(entry))
                if turns[-1].number != len(turns):
                    raise ValueError(f"it is iteration {turns[-1].number}, not {len(turns)}")
        except (ValueError, RecursionError) as error:  # any JSON may be there
            if number == len(lines) > 1 and not line.endswith(b"\n"):
                break
            raise ValueError(f"not a trace: {path}, line {number}: {_explain_error(error)} ({EXPECTED})") from error
    if not metadata and not turns:
        raise ValueError(f"not a trace: {path} holds no whole line ({EXPECTED})")
    fields = {name: value for name, value in metadata.items() if name not in ("type", "timestamp")}
    return Trace(path, fields, _coerce_text(metadata.get("timestamp")), tuple(turns))


def _explain_error(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError):
        return "no JSON object"
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the line'}: {first['msg']}"


class ViewLimits(NamedTuple):
    """How much of a trace a page shows."""

    turns: int = 300
    calls: int = 60  # of one block
    text: int = 40_000  # characters of a thought, a program, an answer
    printed: int = 20_500  # characters of what a block printed
    call: int = 3_000  # characters of a prompt or a reply of the sub-model


SHOWN = ViewLimits()


class Excerpt(NamedTuple):
    """The beginning of a text, and how many of its characters are left out."""

    text: str
    left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self.text)


def render_trace(trace: Trace) -> str:
    """Write a trace as a self-contained page, which runs nothing but its own script."""
    from legal_rag.report.page import answer_html

    limits, beginning = SHOWN, trace.iterations[0].messages if trace.iterations else ()
    asked = next(filter(None, (ASKED.match(message.content) for message in beginning[:3])), None)
    question = excerpt(asked[1] if asked else "", limits.text)
    turns = trace.iterations[: limits.turns]
    script, style = own_script(PACKAGE, "trace.js"), own_style(PACKAGE, "trace.css")
    values = {
        "limits": limits,
        "question": question,
        "answered": trace.final_answer is not None,
        "state": ("⏳", UNANSWERED) if trace.final_answer is None else ("✓", ANSWERED),
        "answer": excerpt(trace.final_answer or "", limits.text),
        "facts": _list_facts(trace),
        "turns": turns,
        "left_out": len(trace.iterations) - len(turns),
        "beginning": beginning,
        "most_seconds": max([turn.seconds or 0.0 for turn in turns], default=0.0),
        "excerpt": excerpt,
        "thought_of": lambda turn: excerpt(prose_of(turn.response), limits.text),
        "turn_measures": _turn_measures,
        "calls_measures": _calls_measures,
        "call_measures": _call_measures,
        "seconds": _format_duration,
        "visible": visible,
        "highlight": _highlight_python,
        "prose": lambda text: answer_html(text.text),
        "counted": counted,
        "first_line": _first_line,
        "nothing_asked": NOTHING_ASKED,
        "file": trace.path.name,
    }
    heading = f"{' '.join(question.text.split())[:100] or TITLE} — {TITLE}"
    return page_template(PACKAGE, "trace.html.j2").render(**frame_of_page(heading, script, style), **values)


def show_trace(trace: Trace, height: int = 720) -> Any:
    """Return a trace's page in an isolated frame, `height` pixels high, for a notebook to display."""
    return NotebookFrame(render_trace(trace), TITLE, height)


def excerpt(text: str, most: int) -> Excerpt:
    """Cut a text to its first `most` characters, and escape those that are not printed."""
    return Excerpt(visible(text[:most]), max(0, len(text) - most))


def visible(text: str) -> str:
    """Escape every character that is not printed, except line breaks and spaces."""
    return NOT_PRINTED.sub(lambda match: _escape_char(match.group()), text.replace("\r\n", "\n").expandtabs(4))


def counted(n: int, one: str, many: str = "") -> str:
    """Write a number and what it counts: « 2 tours »."""
    return f"{french_number(n)} {(many or f'{one}s') if n > 1 else one}"


def _escape_char(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _first_line(text: Excerpt) -> str:
    return next((line.strip() for line in text.text.split("\n") if line.strip()), "")


def _highlight_python(text: Excerpt) -> "Markup":
    from markupsafe import Markup
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    marked = highlight(text.text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return Markup(marked.rstrip("\n"))  # noqa: S704 - the formatter escapes what it is given


def _turn_measures(turn: Iteration) -> str:
    calls = turn.calls
    number = counted(len(calls), "appel du sous-modèle", "appels du sous-modèle") + _free_and_failed(calls)
    return _join_measures([_format_duration(turn.seconds), number if calls else ""])


def _calls_measures(calls: Sequence[TracedCall]) -> str:
    """Sum calls up; they overlap, so their durations add up to more than the elapsed time."""
    n_calls = french_number(len(calls)) + _free_and_failed(calls)
    seconds = f"{_format_duration(sum(call.seconds or 0.0 for call in calls))} en durées cumulées"
    return _join_measures([n_calls, seconds, _format_tokens(_usage_of(calls))])


def _call_measures(call: TracedCall) -> str:
    duration = _format_duration(call.seconds) if call.usage.calls or call.error else "reprise sans appel"
    return _join_measures([duration, _format_tokens(call.usage)])


def _free_and_failed(calls: Sequence[TracedCall]) -> str:
    """« , dont 3 repris sans frais et 1 en échec »."""
    free = sum(not call.usage.calls and not call.error for call in calls)
    failed = sum(bool(call.error) for call in calls)
    parts = [f"{french_number(free)} repris sans frais"] if free else []
    parts += [f"{french_number(failed)} en échec"] if failed else []
    return f", dont {' et '.join(parts)}" if parts else ""


def _list_facts(trace: Trace) -> list[tuple[str, str]]:
    usage, calls, most = trace.usage, trace.calls, trace.metadata.get("max_iterations")
    turns = len(trace.iterations)
    seconds, read = sum(turn.seconds or 0.0 for turn in trace.iterations), french_number(usage.prompt_tokens)
    facts = [
        ("Modèle", visible(str(trace.metadata.get("root_model") or ""))[:100]),
        ("Tours", f"{turns} sur {most} au plus" if isinstance(most, int) else str(turns)),
        ("Appels du sous-modèle", french_number(len(calls)) + _free_and_failed(calls)),
        ("Durée", _format_duration(seconds)),
        ("Jetons du sous-modèle", f"{read} lus, {french_number(usage.completion_tokens)} écrits"),
        ("Coût", "prix inconnu" if usage.cost is None else usage.cost and f"{french_decimal(usage.cost, 4)}{NARROW}$"),
        ("Début", _format_date(trace.started)),
    ]
    return [(name, str(value)) for name, value in facts if value]


def _format_date(iso: str) -> str:
    """Format a timestamp in French; empty if it cannot be parsed."""
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        return ""
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year} à {moment:%H:%M}"


def _format_duration(seconds: float | None) -> str:
    return "" if seconds is None else f"{french_decimal(seconds, 1)}{NARROW}s"


def _format_tokens(usage: Usage) -> str:
    return counted(usage.tokens, "jeton") if usage.tokens else ""


def _join_measures(parts: Iterable[str]) -> str:
    return " · ".join(part for part in parts if part)
