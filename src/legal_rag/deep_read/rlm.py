"""The Recursive Language Model: turns, programs, nested runs, over rlms."""

import ast
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm import RLM
from rlm.core.types import CodeBlock, ModelUsageSummary, REPLResult, RLMChatCompletion, RLMIteration, UsageSummary
from rlm.utils.exceptions import CancellationError, ErrorThresholdExceededError

from legal_rag.agent.failures import reason_in_french
from legal_rag.agent.tool_arguments import bounded
from legal_rag.deep_read.conclusion import answer_text
from legal_rag.deep_read.functions import listed
from legal_rag.deep_read.models import ChatModel, Message, ModelReply, SubCall
from legal_rag.deep_read.prompts import error_text
from legal_rag.deep_read.sandbox.sandbox import Limits, Sandbox, SandboxResult
from legal_rag.llm import BudgetExceededError, Usage, UsageTracker

if TYPE_CHECKING:
    from legal_rag.deep_read.trace import TraceLogger

logger = logging.getLogger(__name__)

FENCE = re.compile(
    r"^[ \t]*+```[ \t]*+(?P<kind>[\w+-]*+)[^\n`]*+\n(?P<code>.*?)(?:^[ \t]*+```|\Z)", re.DOTALL | re.MULTILINE
)
OWN, USUAL = frozenset({"repl"}), frozenset({"python", "py", "python3", "tool_code", ""})
FINAL_LINE = re.compile(r"^[ \t]*(?P<name>FINAL(?:_VAR)?)\((?P<inner>.*)\)[ \t]*;?[ \t]*\Z", re.DOTALL | re.MULTILINE)

MAX_ERRORS = 5  # turns in a row without a program that runs
NO_CODE = "Votre réponse ne contient aucun programme. Écrivez un bloc ```repl … ``` ; finissez par FINAL(réponse)."
LAST_TURN = (
    "Vous n'avez plus de tour. Écrivez maintenant, en français et sans programme, la réponse finale d'après ce que vous"
    " avez trouvé, avec ses citations [Source: identifiant, chars début-fin]."
)
MAX_SHOWN_VARIABLES = 40
MAX_ANSWER = 200_000  # characters
# Functions that programs give whole documents to, or all ids of a corpus, with the most bytes of one call.
LONG_ARGUMENTS = dict.fromkeys(
    """
    llm_query llm_query_batched rlm_query rlm_query_batched on_demand_extract
    get_doc_metas find_documents grep_corpus search_passages ask_across_documents parallel_document_search
    """.split(),
    16_000_000,
)
# Runs in the sandbox, before the model's own code: what rlms' protocol promises, FINAL for any value, and the entities
# of the documents named (of all, where None are), each document's read when it is looked up.
PRELUDE = """
from collections.abc import Mapping as _Mapping

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

class _ExtractionIndex(_Mapping):
    def __init__(self, doc_ids):
        self._doc_ids = doc_ids

    def __getitem__(self, doc_id):
        try:
            return get_entities(doc_id)
        except LookupError as error:
            raise KeyError(str(error)) from None

    def __iter__(self):
        return iter(list_documents() if self._doc_ids is None else self._doc_ids)

    def __len__(self):
        return total_docs if self._doc_ids is None else len(self._doc_ids)

    def __repr__(self):
        return f"<extraction_index : {len(self)} documents>"

if "get_entities" in globals():
    extraction_index = _ExtractionIndex(globals().get("extraction_index"))

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


def code_blocks(reply: str) -> list[str]:
    """Return the code of a reply: of its ```repl fences, else of its Python ones, else a final FINAL(…), else all.

    A reply without fences is code only if it is Python that calls something: prose is none.
    """
    fenced = [(match["kind"].lower(), match["code"].rstrip()) for match in FENCE.finditer(reply)]
    for kinds in (OWN, USUAL):
        blocks = [code for kind, code in fenced if kind in kinds and code.strip()]
        if blocks:
            return [*blocks, *_final_after(reply)]
    if final := _final_after(reply):
        return final
    return [reply.strip()] if not fenced and _is_program(reply.strip()) else []


def prose_of(reply: str) -> str:
    """Return the prose of a reply, without its code and a final FINAL(…)."""
    if not FENCE.search(reply) and _is_program(reply.strip()):
        return ""
    prose = FENCE.sub("\n", reply).rstrip()
    match = _final_of(prose)
    return prose[: match.start()].strip() if match else prose.strip()


def _final_after(reply: str) -> list[str]:
    """Return a FINAL(…) that ends a reply, outside of any fence, as code."""
    match = _final_of(FENCE.sub("\n", reply).rstrip())
    return [_as_code(match["name"], match["inner"])] if match else []


def _final_of(prose: str) -> re.Match[str] | None:
    """Find a FINAL(…) that ends a text; one that does not end in a bracket is not searched, which would take long."""
    ends = prose.removesuffix(";").rstrip(" \t").endswith(")")
    return FINAL_LINE.search(prose) if ends else None


def _as_code(name: str, inner: str) -> str:
    """Write the call as code: what is no expression stands for itself, as a text."""
    call = f"{name}({inner})"
    if _parsed(call) is not None and not (name == "FINAL" and re.fullmatch(r"\s*[^\W\d]\w*\s*", inner)):
        return call
    if name == "FINAL" and inner.strip().isidentifier():  # FINAL(result): a variable, if there is one of that name
        return f"FINAL(globals().get({inner.strip()!r}, {inner.strip()!r}))"
    return f"{name}({inner.strip()!r})"


def _is_program(text: str) -> bool:
    tree = _parsed(text)
    return tree is not None and any(isinstance(node, ast.Call) for node in ast.walk(tree))


def _parsed(code: str) -> ast.Module | None:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # also of null bytes and endless brackets
        return None


class SandboxRefusedError(Exception):
    """The system cannot contain programs; the message says what is missing, and how to do without."""


class RootModelError(Exception):
    """The root model failed."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """What a run works with."""

    root: ChatModel
    sub: ChatModel  # recorded
    tracker: UsageTracker
    functions: Mapping[str, Callable[..., Any]]
    values: Mapping[str, Any]
    descriptions: Mapping[str, str]  # of the functions, by name, for the model
    prompt: str  # the system prompt, with rlms' place for the functions
    logger: "TraceLogger | None" = None
    limits: Limits = field(default_factory=Limits)
    accept_no_walls: bool = False
    max_depth: int = 1  # of deep reads within deep reads; 1 allows none
    on_turn: Callable[["Turn"], None] = lambda turn: None


@dataclass(frozen=True)
class Turn:
    """What a root model wrote in one turn; passed to `on_turn` before its programs run."""

    number: int  # from 1
    thought: str  # the prose of the reply
    code: str
    usage: Usage
    seconds: float


@dataclass
class RlmOutcome:
    """What a run came to."""

    value: Any = None  # what FINAL or `answer` gave; of a run cut short, what it had so far
    is_final: bool = False
    is_prose: bool = False  # the value is what the root model wrote, not what a program gave
    out_of_turns: bool = False
    turns: int = 0
    codes: list[str] = field(default_factory=list)  # that were run
    error: Exception | None = None  # that ended it: BudgetExceededError, ErrorThresholdExceededError, the model's own
    gave_up: bool = False  # the model wrote no program that runs, several times in a row
    cut_off: bool = False  # the last reply ended where the model ran out of tokens


def run_rlm(question: str, context: str, setup: RunSetup) -> RlmOutcome:
    """Answer a question by programs that find `context`; failures of the models are part of the outcome.

    Raises:
        SandboxRefusedError: If the system cannot contain programs.
    """
    outcome = RlmOutcome()
    rlm = SandboxedRLM(setup, outcome)
    try:
        outcome.value = rlm.answer(context, question)
        outcome.is_final = not outcome.out_of_turns
    except ErrorThresholdExceededError as error:
        outcome.error, outcome.gave_up = error, True
    except BudgetExceededError as error:
        outcome.error = error
    except RootModelError as error:
        outcome.error = error.error
    except CancellationError:  # rlms' word for it
        raise KeyboardInterrupt from None
    finally:
        rlm.close()
    if not outcome.is_final and not outcome.value:
        outcome.value, outcome.is_prose = rlm.partial
    return outcome


class SandboxedRLM(RLM):
    """rlms' loop, whose model calls are tracked and whose programs run where the setup says."""

    def __init__(self, setup: RunSetup, outcome: RlmOutcome, depth: int = 0) -> None:
        tools = {
            name: {"tool": setup.functions[name], "description": said} for name, said in setup.descriptions.items()
        }
        super().__init__(
            backend="openai",
            backend_kwargs={"model_name": setup.root.name},
            environment="sandbox",  # named in the trace; `_spawn_completion_context` starts it
            depth=0,
            max_depth=1,
            max_iterations=setup.tracker.budget.steps,
            max_errors=MAX_ERRORS,
            custom_system_prompt=setup.prompt,
            custom_tools=tools,
            logger=setup.logger if depth == 0 else None,
        )
        self._setup, self._outcome, self._level = setup, outcome, depth
        self._environment: Any = None  # the environment of the current run
        self._prose = ""  # what the model last wrote that is no code

    def answer(self, context: str, question: str | None = None) -> Any:
        """Run turns until one answers, or the steps of all runs together are used up; the last words are one then."""
        try:
            return self.completion(context, root_prompt=question).response
        except _OutOfTurns as end:
            return end.answer

    @property
    def partial(self) -> tuple[Any, bool]:
        """What `answer` holds where the run was cut short, else the model's last words, and whether it is these."""
        held = getattr(self._environment, "partial", "")
        return held or self._prose, not held

    @contextmanager
    def _spawn_completion_context(self, prompt: Any) -> Iterator[tuple[Any, Any]]:
        setup = self._setup
        self._environment = SandboxEnvironment(
            setup.functions,
            {**setup.values, "context": prompt},
            setup.sub,
            setup.tracker,
            recurse=self._recurse if self._level + 1 < setup.max_depth else None,
            limits=setup.limits,
            accept_no_walls=setup.accept_no_walls,
        )
        try:
            yield self, self._environment  # rlms asks its handler for the usage alone, as `_chat` asks the model
        finally:
            self._environment.cleanup()

    def _completion_turn(self, prompt: Any, lm_handler: Any, environment: Any) -> RLMIteration:
        if not self._setup.tracker.take_step():
            raise _OutOfTurns(self._default_answer(prompt, lm_handler))
        started = time.perf_counter()
        reply = self._chat(prompt)
        codes = code_blocks(reply.text)
        self._outcome.cut_off = reply.cut_off
        self._prose = prose_of(reply.text) or self._prose
        self._outcome.turns += 1
        self._setup.on_turn(
            Turn(self._outcome.turns, prose_of(reply.text), "\n\n".join(codes), reply.usage, reply.seconds)
        )
        iteration = RLMIteration(prompt, reply.text, [])
        try:
            self._run_all(codes, environment, iteration)
        except BudgetExceededError as error:
            self._log_interrupted(iteration, codes, error, environment, started)
            raise
        iteration.iteration_time = time.perf_counter() - started
        return iteration

    def get_usage_summary(self) -> UsageSummary:
        """Return the usage of the run so far, in the form that rlms keeps it in."""
        return usage_of(self._setup.tracker.usage, self._setup.root.name)

    def _chat(self, messages: Sequence[Message]) -> ModelReply:
        try:
            reply = self._setup.root.chat(messages)
        except BudgetExceededError:
            raise
        except Exception as error:  # a model fails in as many ways as there are providers
            logger.debug("the root model failed", exc_info=True)
            raise RootModelError(error) from error
        if self._setup.logger:
            self._setup.logger.replied(reply)
        return reply

    def _run_all(self, codes: Sequence[str], environment: Any, iteration: RLMIteration) -> None:
        if not codes:
            iteration.code_blocks.append(CodeBlock("", REPLResult("", NO_CODE, {}, 0.0)))
        for code in codes:
            result = environment.execute_code(code)
            iteration.code_blocks.append(CodeBlock(code, result))
            self._outcome.codes.append(code)
            if result.final_answer is not None:
                break

    def _log_interrupted(
        self, iteration: RLMIteration, codes: Sequence[str], error: Exception, environment: Any, started: float
    ) -> None:
        """Write down a turn that a limit ended, so that its calls can be read there."""
        iteration.iteration_time = time.perf_counter() - started
        if isinstance(environment, SandboxEnvironment):
            code = codes[len(iteration.code_blocks)]
            result = environment.result("", str(error), iteration.iteration_time)
            iteration.code_blocks.append(CodeBlock(code, result))
        if self.logger:
            self.logger.log(iteration)

    def _default_answer(self, message_history: list[dict[str, Any]], lm_handler: Any) -> str:
        """Ask for the answer when the turns are used up."""
        self._outcome.out_of_turns = True
        if kept := getattr(self._environment, "partial", ""):
            return kept
        messages = [*message_history, {"role": "user", "content": LAST_TURN}]
        self._outcome.is_prose = True
        reply = self._chat(messages)
        if self.logger:
            self.logger.log(RLMIteration(messages, reply.text, [], reply.text))
        return prose_of(reply.text) or reply.text.strip()

    def _check_iteration_limits(self, iteration: RLMIteration, iteration_num: int, lm_handler: Any) -> None:
        """Count the turns that fail, but for one that gave the answer."""
        if all(block.result.final_answer is None for block in iteration.code_blocks):
            super()._check_iteration_limits(iteration, iteration_num, lm_handler)

    def _recurse(self, prompt: str) -> str:
        """Answer a prompt by a run of its own, within the same budget; "Erreur : …" where the model fails."""
        tracker = self._setup.tracker
        if tracker.steps >= tracker.budget.steps:
            return error_text(BudgetExceededError("steps", tracker.budget).notice)
        outcome = RlmOutcome()
        child = SandboxedRLM(self._setup, outcome, self._level + 1)
        try:
            answer = answer_text(child.answer(prompt))
        except ErrorThresholdExceededError:
            answer = answer_text(child.partial[0])
        except RootModelError as error:
            return error_text(reason_in_french(error.error))
        except CancellationError:
            raise KeyboardInterrupt from None
        finally:
            child.close()
        return answer


class _OutOfTurns(Exception):  # noqa: N818 - not an error: leaves rlms' loop, which counts the turns of one run alone
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer


class _RunStopped(BaseException):
    """Leaves a program, past any `except Exception`, because the run has come to a limit."""

    def __init__(self, error: BudgetExceededError) -> None:
        super().__init__(str(error))
        self.error = error


class SandboxEnvironment:
    """Runs code in a sandbox and keeps its state from block to block; close it with `cleanup`."""

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]],
        values: Mapping[str, Any],
        sub: ChatModel,
        tracker: UsageTracker,
        *,
        recurse: Callable[[str], str] | None = None,
        limits: Limits | None = None,
        accept_no_walls: bool = False,
    ) -> None:
        """Start a sandbox; see `RunSetup`.

        `recurse` answers a prompt by a deep read of its own; without it the sub-model is asked.
        """
        self._sub, self._tracker = sub, tracker
        self.final: Any = None  # what FINAL or `answer` gave
        self.partial: Any = ""  # what `answer` holds that is not ready
        self.is_final = False
        self._names: Sequence[str] = ()
        asking: dict[str, Callable[..., Any]] = {
            "rlm_query": bounded()(lambda prompt, model=None: self._each(recurse, [prompt])[0]),
            "rlm_query_batched": bounded()(lambda prompts, model=None: self._each(recurse, listed(prompts))),
        }
        self._ask = functions["llm_query_batched"]
        guarded = {name: self._guarded(function) for name, function in {**functions, **asking}.items()}
        # The budget does not guard these two: an answer is taken at any time.
        given: dict[str, Callable[..., Any]] = {
            "_take_final": self._take_final,
            "_take_state": self._take_state,
            **guarded,
        }
        self._sandbox = Sandbox(
            given, limits or Limits(), values=values, most_bytes=LONG_ARGUMENTS, accept_no_walls=accept_no_walls
        )
        self._begun = False

    def execute_code(self, code: str) -> REPLResult:
        """Run a block of code.

        Raises:
            BudgetExceededError: If the run came to a limit meanwhile; `result` returns the calls made.
            SandboxRefusedError: If the system cannot contain programs.
        """
        started = time.perf_counter()
        alarm = threading.Timer(min(max(0.0, self._tracker.seconds_left), threading.TIMEOUT_MAX), self._sandbox.close)
        alarm.daemon = True
        try:
            self._tracker.check_seconds()
            alarm.start()
            result = self._run(code)
            if not self.is_final:
                self._tracker.check_seconds()
        except (_RunStopped, ValueError) as stop:  # ValueError: the alarm closed the sandbox between two programs
            if not self.is_final:
                self._tracker.check_seconds()
                if isinstance(stop, _RunStopped):
                    raise stop.error from None
                raise
            return self.result("", str(stop), time.perf_counter() - started)
        finally:
            alarm.cancel()
        return self.result(result.output, result.error or "", time.perf_counter() - started)

    def _run(self, code: str) -> SandboxResult:
        if not self._begun:
            begun = self._sandbox.run(PRELUDE)
            if begun.status == "refused":
                self._tracker.check_seconds()  # the alarm may have closed the sandbox while its child was starting
                raise SandboxRefusedError(begun.error)
            self._begun = begun.status == "ok"
        result = self._sandbox.run(code)
        after = self._sandbox.run(AFTER) if result.status in ("ok", "error") else result
        if after.status in ("timeout", "killed"):  # the next block meets a new child
            self._begun, self._names = False, ()
            return result if after is result else result._replace(error=after.error)
        return result._replace(error=result.error or after.error)  # also why an answer was refused

    def cleanup(self) -> None:
        """End the sandbox."""
        self._sandbox.close()

    def result(self, output: str, error: str, seconds: float) -> REPLResult:
        """Return a block's result in rlms' form, with the sub-model's calls since the last one."""
        return REPLResult(
            stdout=without_places(output),
            stderr=without_places(error),
            locals=dict.fromkeys(self._names[:MAX_SHOWN_VARIABLES], ""),
            execution_time=seconds,
            rlm_calls=[completion_of(call, self._sub.name) for call in self._sub.take_calls()],
            final_answer=self.final if self.is_final else None,
        )

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **named: Any) -> Any:
            try:
                with self._tracker.timed():
                    return function(*arguments, **named)
            except BudgetExceededError as error:
                raise _RunStopped(error) from None

        return guarded

    def _take_final(self, value: Any) -> None:
        value = without_places(value)
        if (length := len(answer_text(value))) > MAX_ANSWER:
            raise ValueError(f"réponse trop longue : {length} caractères, au plus {MAX_ANSWER}")
        if not self.is_final:
            self.final, self.is_final = "" if value is None else value, True

    def _take_state(self, answer: dict[str, Any], names: Sequence[str]) -> None:
        self.partial, self._names = without_places(answer.get("content") or ""), [str(name) for name in names]
        if answer.get("ready"):
            self._take_final(answer.get("content"))

    def _each(self, recurse: Callable[[str], str] | None, prompts: Sequence[Any]) -> list[str]:
        return list(self._ask(prompts)) if recurse is None else [recurse(str(prompt)) for prompt in prompts]


def without_places(value: Any) -> Any:
    """Replace folders of this machine in what a program gave: its interpreter knows where it is installed."""
    if isinstance(value, str):
        return _PLACES.sub("…", value)
    if isinstance(value, Mapping):
        return {without_places(key): without_places(one) for key, one in value.items()}
    return [without_places(one) for one in value] if isinstance(value, list | tuple) else value


_EVERYWHERE = {"", "/", "/usr", "/usr/local", "/tmp"}  # noqa: S108 - which tell nothing of a machine
_NAMED = (os.environ.get(name, "/") for name in ("HOME", "USERPROFILE", "TMPDIR"))
_FOLDERS = {sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]), *_NAMED}
_PLACES = re.compile("|".join(map(re.escape, sorted(_FOLDERS - _EVERYWHERE, key=len, reverse=True))) or "(?!)")


def completion_of(call: SubCall, model: str) -> RLMChatCompletion:
    """Return a call of the sub-model as rlms writes it down."""
    return RLMChatCompletion(
        model, call.prompt, call.reply, usage_of(call.usage, model), call.seconds, None, call.error
    )


def usage_of(usage: Usage, model: str) -> UsageSummary:
    """Return a usage as rlms writes it down."""
    summary = ModelUsageSummary(usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost)
    return UsageSummary({model: summary})
