"""What the views of a trace tell: each turn's thought, programs, what they printed and whom they asked, in French.

In: a `Trace`, whose texts may hold anything. Out: texts in which nothing is hidden: what steers a terminal or turns the
order of letters stands there as its code; what is longer than the view shows is cut, and said to be.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from legal_rag.budget import Usage
from legal_rag.deep_read.code_reading import code_blocks, prose_of
from legal_rag.deep_read.trace_values import Block, Iteration, SubCall, Trace, Unfinished
from legal_rag.html_pages import french_decimal, french_number
from legal_rag.legal_patterns.dates import MONTHS

NARROW = "\u00a0"
TITLE = "Lecture approfondie"
ANSWERED, UNANSWERED = "Réponse rendue", "Arrêtée sans réponse finale"
ASKED = re.compile(r"^Answer the following: (.*?)\n\nYour context is a ", re.DOTALL)  # as rlms puts the question


class Limits(NamedTuple):
    """How much a view shows."""

    turns: int
    calls: int  # of one block
    text: int  # characters of a thought, a program, an answer
    printed: int  # characters of what a block printed
    call: int  # characters of a prompt or a reply of the sub-model


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


def shown_trace(trace: Trace, limits: Limits) -> ShownTrace:
    """Put together what a view tells of a trace."""
    again = {one.number for one in trace.superseded}
    turns = [_turn(one, limits, again=one.number in again) for one in trace.iterations[: limits.turns]]
    done = len(trace.iterations)
    turns += [_unfinished(one, limits) for one in trace.unfinished if one.number > done]
    return ShownTrace(
        shown_text(question_of(trace), limits.text),
        trace.final_answer is not None,
        shown_text(trace.final_answer or "", limits.text),
        _facts(trace),
        turns,
        max(0, done - limits.turns),
    )


def question_of(trace: Trace) -> str:
    """Return the question of a run: as this project wrote it down, else as rlms put it to the model."""
    own = trace.run.get("question")
    if isinstance(own, str):
        return own
    for message in trace.iterations[0].messages[:3] if trace.iterations else ():
        if match := ASKED.match(message.content):
            return match[1]
    return ""


def visible(text: str) -> str:
    """Return text with every character that is not seen, line breaks and spaces apart, written as its code."""
    kept = text.replace("\r\n", "\n").expandtabs(4)
    if kept.isascii() and kept.replace("\n", "").isprintable():
        return kept
    return "".join(one if _is_seen(one) else _code(one) for one in kept)


def counted(n: int, one: str, many: str = "") -> str:
    """Write a number and what it counts: « 2 tours »."""
    return f"{french_number(n)} {(many or f'{one}s') if n > 1 else one}"


def _is_seen(character: str) -> bool:
    return character.isprintable() or character == "\n" or unicodedata.category(character) == "Zs"


def _code(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def shown_text(text: str, most: int) -> Shown:
    """Return the first `most` characters of a text, all of them to be seen, and how many are left out."""
    return Shown(visible(text[:most]), max(0, len(text) - most))


def _turn(iteration: Iteration, limits: Limits, *, again: bool) -> ShownTurn:
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


def _unfinished(turn: Unfinished, limits: Limits) -> ShownTurn:
    """Tell of the turn that a kill cut short: what its programs printed is lost."""
    code = Block("\n\n".join(code_blocks(turn.response)), "", "", None, turn.calls, None)
    return ShownTurn(
        turn.number,
        shown_text(prose_of(turn.response), limits.text),
        [_block(code, limits)] if code.code or turn.calls else [],
        _joined([_tokens(turn.usage), _asked(turn.calls)]),
        0.0,
        failed=False,
        final=False,
        note="Ce tour a été interrompu : ce que son programme a affiché n’est pas connu.",
    )


def _block(block: Block, limits: Limits) -> ShownBlock:
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


def _call(number: int, call: SubCall, limits: Limits) -> ShownCall:
    again = "" if call.usage.calls or call.error else "reprise sans appel"
    told = _joined([again or _seconds(call.seconds), _tokens(call.usage)])
    prompt, reply = shown_text(call.prompt, limits.call), shown_text(call.reply, limits.call)
    return ShownCall(number, prompt, reply, visible(call.error), told)


def _sums(calls: Sequence[SubCall]) -> list[str]:
    """Tell what calls came to: they go on side by side, so that their durations add up to more than passes."""
    usage = _sum(call.usage for call in calls)
    return [f"{_seconds(sum(call.seconds for call in calls))} en durées cumulées", _tokens(usage)]


def _facts(trace: Trace) -> list[tuple[str, str]]:
    usage, most = trace.usage, trace.metadata.get("max_iterations")
    begun: tuple[Iteration | Unfinished, ...] = (*trace.iterations, *trace.unfinished)
    calls = [call for one in begun for call in one.calls]
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
    """Tell how many calls there were: « 14 appels du sous-modèle, dont 3 repris sans frais »."""
    number, *rest = _number_of(calls).split(",", 1)
    named = f"{number} appel{'s' if len(calls) > 1 else ''} du sous-modèle"
    return ",".join([named, *rest]) if calls else ""


def _number_of(calls: Sequence[SubCall]) -> str:
    """Tell how many calls there were: « 14, dont 3 repris sans frais et 1 en échec »."""
    again = sum(1 for call in calls if not call.usage.calls and not call.error)
    failed = sum(1 for call in calls if call.error)
    parts = [f"{french_number(again)} repris sans frais"] if again else []
    parts += [f"{french_number(failed)} en échec"] if failed else []
    return french_number(len(calls)) + (f", dont {' et '.join(parts)}" if parts else "")


def _moment(iso: str) -> str:
    """Write a point in time as the French do; what is none is left out."""
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        return ""
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year} à {moment:%H:%M}"


def _sum(usages: Iterable[Usage]) -> Usage:
    total = Usage()
    for usage in usages:
        total = total.plus(usage)
    return total


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
