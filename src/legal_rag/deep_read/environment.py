"""The sandbox as an environment of rlms."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlm.core.types import ModelUsageSummary, REPLResult, RLMChatCompletion, UsageSummary

from legal_rag.agent.budget import BudgetExceededError, Usage
from legal_rag.agent.model_calls import UsageTracker
from legal_rag.deep_read.conclusion import answer_text
from legal_rag.deep_read.models import RecordedModel
from legal_rag.deep_read.reading import SandboxRefusedError
from legal_rag.deep_read.sandbox.sandbox import Limits, Sandbox, SandboxResult
from legal_rag.deep_read.trace import SubCall

MOST_SHOWN_VARIABLES = 40
MOST_ANSWER = 200_000  # characters
# Runs in the sandbox, before the model's own code: what rlms' protocol promises, and FINAL for any value.
PRELUDE = """
answer = {"content": "", "ready": False}
history = []
_OWN_NAMES = frozenset()

def _plain(value, depth=0):
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if depth > 20:
        return str(value)
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(one, depth + 1) for one in value), key=str)
    if isinstance(value, (list, tuple)):
        return [_plain(one, depth + 1) for one in value]
    return _plain(list(value), depth + 1) if hasattr(value, "__iter__") else str(value)

def FINAL(value=""):
    _take_final(_plain(value))

def FINAL_VAR(name):
    FINAL(globals().get(name, name) if isinstance(name, str) else name)

def SHOW_VARS():
    names = {k: type(v).__name__ for k, v in globals().items() if k not in _OWN_NAMES and not k.startswith("_")}
    return f"Variables : {names}" if names else "Aucune variable."

_OWN_NAMES = frozenset(globals())
"""
AFTER = """
_take_state(
    _plain(answer) if isinstance(answer, dict) else {"content": _plain(answer), "ready": False},
    [name for name in globals() if name not in _OWN_NAMES and not name.startswith("_")],
)
if not isinstance(answer, dict):
    answer = {"content": "", "ready": False}
"""


class _RunStopped(BaseException):
    """Leaves a program, whatever it catches, because the run has come to a limit."""

    def __init__(self, error: BudgetExceededError) -> None:
        super().__init__(str(error))
        self.error = error


class SandboxEnvironment:
    """Runs code in a sandbox and keeps its state from block to block; close it with `cleanup`."""

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]],
        values: Mapping[str, Any],
        sub: RecordedModel,
        meter: UsageTracker,
        *,
        recurse: Callable[[str], str] | None = None,
        limits: Limits | None = None,
        accept_no_walls: bool = False,
    ) -> None:
        """Start a sandbox.

        Args:
            functions: Which the programs may call, by name; those that ask a model ask `sub`.
            values: Which they find, by name; plain ones.
            sub: The sub-model, whose calls are told with each block.
            meter: Of the run, which ends a block when its seconds have passed.
            recurse: Answers a prompt by a deep read of its own; None asks the sub-model.
            limits: Of each block; None takes the sandbox's own.
            accept_no_walls: Run where the system has no walls.
        """
        self._sub, self._meter = sub, meter
        self.final: Any = None  # what FINAL or `answer` gave
        self.partial: Any = ""  # what `answer` holds that is not ready
        self.is_final = False
        self._names: Sequence[str] = ()
        asking: dict[str, Callable[..., Any]] = {
            "rlm_query": lambda prompt, model=None: self._each(recurse, [prompt])[0],
            "rlm_query_batched": lambda prompts, model=None: self._each(recurse, list(prompts)),
        }
        self._ask = functions["llm_query_batched"]
        guarded = {name: self._guarded(function) for name, function in {**functions, **asking}.items()}
        given: dict[str, Callable[..., Any]] = {"_take_final": self._take_final, "_take_state": self._take_state}
        given |= guarded  # those above are no calls: an answer is taken at any time
        self._sandbox = Sandbox(given, limits or Limits(), values=values, accept_no_walls=accept_no_walls)
        self._begun = False

    def execute_code(self, code: str) -> REPLResult:
        """Run a block of code.

        Raises:
            BudgetExceededError: If the run came to a limit meanwhile; the calls made are told by `interrupted`.
            SandboxRefusedError: If the system cannot contain programs.
        """
        started = time.perf_counter()
        alarm = threading.Timer(min(max(0.0, self._meter.seconds_left), threading.TIMEOUT_MAX), self._sandbox.close)
        alarm.daemon = True
        try:
            self._meter.check_seconds()
            alarm.start()
            result = self._run(code)
            if not self.is_final:
                self._meter.check_seconds()
        except (_RunStopped, ValueError) as stop:  # ValueError: the alarm closed the sandbox between two programs
            if not self.is_final:
                self._meter.check_seconds()
                if isinstance(stop, _RunStopped):
                    raise stop.error from None
                raise
            return self._result("", str(stop), time.perf_counter() - started)
        finally:
            alarm.cancel()
        return self._result(result.output, result.error or "", time.perf_counter() - started)

    def _run(self, code: str) -> SandboxResult:
        if not self._begun:
            begun = self._sandbox.run(PRELUDE)
            if begun.status == "refused":
                self._meter.check_seconds()  # the alarm may have closed the sandbox while its child was starting
                raise SandboxRefusedError(begun.error)
            self._begun = begun.status == "ok"
        result = self._sandbox.run(code)
        after = self._sandbox.run(AFTER) if result.status in ("ok", "error") else result
        if after.status in ("timeout", "killed"):  # the next block meets a new child
            self._begun, self._names = False, ()
            return result if after is result else result._replace(error=after.error)
        return result._replace(error=result.error or after.error)  # an answer that cannot be taken is told, too

    def interrupted(self, reason: str, seconds: float) -> REPLResult:
        """Return what there is to tell of a block that a limit ended: the calls of the sub-model."""
        return self._result("", reason, seconds)

    def cleanup(self) -> None:
        """End the sandbox."""
        self._sandbox.close()

    def _result(self, output: str, error: str, seconds: float) -> REPLResult:
        return REPLResult(
            stdout=output,
            stderr=error,
            locals=dict.fromkeys(self._names[:MOST_SHOWN_VARIABLES], ""),
            execution_time=seconds,
            rlm_calls=[completion_of(call, self._sub.name) for call in self._sub.take_calls()],
            final_answer=self.final if self.is_final else None,
        )

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **named: Any) -> Any:
            try:
                self._meter.check_seconds()
                return function(*arguments, **named)
            except BudgetExceededError as error:
                raise _RunStopped(error) from None

        return guarded

    def _take_final(self, value: Any) -> None:
        if (length := len(answer_text(value))) > MOST_ANSWER:
            raise ValueError(f"réponse trop longue : {length} caractères, au plus {MOST_ANSWER}")
        if not self.is_final:
            self.final, self.is_final = "" if value is None else value, True

    def _take_state(self, answer: dict[str, Any], names: Sequence[str]) -> None:
        self.partial, self._names = answer.get("content") or "", [str(name) for name in names]
        if answer.get("ready"):
            self._take_final(answer.get("content"))

    def _each(self, recurse: Callable[[str], str] | None, prompts: Sequence[str]) -> list[str]:
        return list(self._ask(prompts)) if recurse is None else [recurse(str(prompt)) for prompt in prompts]


def completion_of(call: SubCall, model: str) -> RLMChatCompletion:
    """Return a call of the sub-model as rlms writes it down."""
    return RLMChatCompletion(
        model, call.prompt, call.reply, usage_of(call.usage, model), call.seconds, None, call.error
    )


def usage_of(usage: Usage, model: str) -> UsageSummary:
    """Return a usage as rlms writes it down."""
    summary = ModelUsageSummary(usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost)
    return UsageSummary({model: summary})
