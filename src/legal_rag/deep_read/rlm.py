"""The Recursive Language Model: turns, programs, nested runs, over rlms."""

import ast
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rlm import RLM
from rlm.core.types import CodeBlock, REPLResult, RLMIteration, UsageSummary
from rlm.logger import RLMLogger
from rlm.utils.exceptions import CancellationError, ErrorThresholdExceededError

from legal_rag.agent.budget import BudgetExceededError, Usage
from legal_rag.agent.failures import reason_in_french
from legal_rag.agent.model_calls import UsageTracker
from legal_rag.deep_read.conclusion import answer_text
from legal_rag.deep_read.environment import SandboxEnvironment, usage_of
from legal_rag.deep_read.map_reduce.prompts import error_text
from legal_rag.deep_read.models import ChatModel, Message, ModelReply, RecordedModel
from legal_rag.deep_read.sandbox.sandbox import Limits

logger = logging.getLogger(__name__)


FENCE = re.compile(
    r"^[ \t]*+```[ \t]*+(?P<kind>[\w+-]*+)[^\n`]*+\n(?P<code>.*?)(?:^[ \t]*+```|\Z)", re.DOTALL | re.MULTILINE
)
OWN, USUAL = frozenset({"repl"}), frozenset({"python", "py", "python3", "tool_code", ""})
FINAL_LINE = re.compile(r"^[ \t]*(?P<name>FINAL(?:_VAR)?)\((?P<inner>.*)\)[ \t]*;?[ \t]*\Z", re.DOTALL | re.MULTILINE)


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
    """Return what a reply says beside its code, without a final FINAL(…)."""
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


MOST_ERRORS = 5  # turns in a row without a program that runs
NO_CODE = "Votre réponse ne contient aucun programme. Écrivez un bloc ```repl … ``` ; finissez par FINAL(réponse)."
LAST_TURN = (
    "Vous n'avez plus de tour. Écrivez maintenant, en français et sans programme, la réponse finale d'après ce que vous"
    " avez trouvé, avec ses citations [Source: identifiant, chars début-fin]."
)


class RootModelError(Exception):
    """The root model failed, in whatever way its provider's client has for that."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """What a run works with."""

    root: ChatModel
    sub: RecordedModel
    tracker: UsageTracker
    functions: Mapping[str, Callable[..., Any]]
    values: Mapping[str, Any]
    descriptions: Mapping[str, str]  # of the functions, by name, for the model
    prompt: str  # the system prompt, with rlms' place for the functions
    logger: RLMLogger | None = None
    limits: Limits = field(default_factory=Limits)
    accept_no_walls: bool = False
    max_depth: int = 1  # of deep reads within deep reads; 1 allows none
    on_turn: Callable[["Turn"], None] = lambda turn: None


@dataclass(frozen=True)
class Turn:
    """What a root model wrote in one turn, told before its programs run."""

    number: int  # from 1
    thought: str  # what it wrote beside the code
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
    replies: list[str] = field(default_factory=list)  # of the sub-model, and of runs within the run
    error: Exception | None = None  # that ended it: BudgetExceededError, ErrorThresholdExceededError, the model's own
    gave_up: bool = False  # the model wrote no program that runs, several times in a row
    cut_off: bool = False  # the last reply ended where the model ran out of tokens


def run_rlm(question: str, context: str, setup: RunSetup) -> RlmOutcome:
    """Answer a question by programs over a context; whatever the models do, it is told by the outcome.

    Args:
        question: In French.
        context: The variable of that name.
        setup: What the run works with.

    Raises:
        SandboxRefusedError: If the system cannot contain programs.
    """
    outcome = RlmOutcome()
    rlm = SandboxedRLM(setup, outcome)
    try:
        outcome.value = rlm.completion(context, root_prompt=question).response
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
            max_errors=MOST_ERRORS,
            custom_system_prompt=setup.prompt,
            custom_tools=tools,
            logger=setup.logger if depth == 0 else None,
        )
        self._setup, self._outcome, self._level = setup, outcome, depth
        self._place: Any = None  # the environment of the run under way
        self._prose = ""  # what the model last wrote that is no code

    @property
    def partial(self) -> tuple[Any, bool]:
        """What `answer` holds where the run was cut short, else the model's last words, and whether it is these."""
        held = getattr(self._place, "partial", "")
        return held or self._prose, not held

    @contextmanager
    def _spawn_completion_context(self, prompt: Any) -> Iterator[tuple[Any, Any]]:
        setup = self._setup
        self._place = SandboxEnvironment(
            setup.functions,
            {**setup.values, "context": prompt},
            setup.sub,
            setup.tracker,
            recurse=self._recurse if self._level + 1 < setup.max_depth else None,
            limits=setup.limits,
            accept_no_walls=setup.accept_no_walls,
        )
        try:
            yield self, self._place  # rlms asks its handler for the usage alone, as `_chat` asks the model
        finally:
            self._place.cleanup()

    def _completion_turn(self, prompt: Any, lm_handler: Any, environment: Any) -> RLMIteration:
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
            return self._setup.root.chat(messages)
        except BudgetExceededError:
            raise
        except Exception as error:  # a model fails in as many ways as there are providers
            logger.debug("the root model failed", exc_info=True)
            raise RootModelError(error) from error

    def _run_all(self, codes: Sequence[str], environment: Any, iteration: RLMIteration) -> None:
        if not codes:
            iteration.code_blocks.append(CodeBlock("", REPLResult("", NO_CODE, {}, 0.0)))
        for code in codes:
            result = environment.execute_code(code)
            iteration.code_blocks.append(CodeBlock(code, result))
            self._outcome.codes.append(code)
            self._outcome.replies += [call.response for call in result.rlm_calls]
            if result.final_answer is not None:
                break

    def _log_interrupted(
        self, iteration: RLMIteration, codes: Sequence[str], error: Exception, environment: Any, started: float
    ) -> None:
        """Write down a turn that a limit ended, so that its calls can be read there."""
        iteration.iteration_time = time.perf_counter() - started
        if isinstance(environment, SandboxEnvironment):
            code = codes[len(iteration.code_blocks)]
            result = environment.interrupted(str(error), iteration.iteration_time)
            iteration.code_blocks.append(CodeBlock(code, result))
        if self.logger:
            self.logger.log(iteration)

    def _default_answer(self, message_history: list[dict[str, Any]], lm_handler: Any) -> str:
        """Ask for the answer when the turns are used up."""
        self._outcome.out_of_turns = True
        if kept := getattr(self._place, "partial", ""):
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
        outcome = RlmOutcome()
        child = SandboxedRLM(self._setup, outcome, self._level + 1)
        try:
            answer = answer_text(child.completion(prompt, root_prompt=None).response)
        except ErrorThresholdExceededError:
            held, outcome.is_prose = child.partial
            answer = answer_text(held)
        except RootModelError as error:
            return error_text(reason_in_french(error.error))
        except CancellationError:
            raise KeyboardInterrupt from None
        finally:
            child.close()
        self._outcome.codes += outcome.codes
        self._outcome.replies += [*outcome.replies, *([answer] if outcome.is_prose else [])]
        return answer
