"""One run of a Recursive Language Model (Zhang, Kraska and Khattab, 2025): rlms' loop over this project's parts.

In: a question, models, functions, a place for programs to run. Out: what the loop came to, also where it was cut short.
rlms gives the turns, the prompts and the trace; the model calls are tracked, the programs run in the sandbox. It is
apart because importing rlms takes a quarter of a second.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rlm import RLM
from rlm.core.types import CodeBlock, REPLResult, RLMIteration, UsageSummary
from rlm.logger import RLMLogger
from rlm.utils.exceptions import CancellationError, ErrorThresholdExceededError

from legal_rag.budget import BudgetExceededError, Usage
from legal_rag.deep_read.answer_texts import answer_text
from legal_rag.deep_read.code_reading import code_blocks, prose_of
from legal_rag.deep_read.environment import SandboxEnvironment, usage_of
from legal_rag.deep_read.models import ChatModel, Message, ModelReply, RecordedModel
from legal_rag.deep_read.plan.prompts import error_text
from legal_rag.deep_read.sandbox import Limits
from legal_rag.failures import reason_in_french
from legal_rag.model_calls import UsageTracker

MOST_ERRORS = 5  # turns in a row without a program that runs
NO_CODE = "Votre réponse ne contient aucun programme. Écrivez un bloc ```repl … ``` ; finissez par FINAL(réponse)."
LAST_TURN = (
    "Vous n'avez plus de tour. Écrivez maintenant, en français et sans programme, la réponse finale d'après ce que vous"
    " avez trouvé, avec ses citations [Source: identifiant, chars début-fin]."
)


logger = logging.getLogger(__name__)


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
class Outcome:
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


def run_rlm(question: str, context: str, setup: RunSetup) -> Outcome:
    """Answer a question by programs over a context; whatever the models do, it is told by the outcome.

    Args:
        question: In French.
        context: The variable of that name.
        setup: What the run works with.

    Raises:
        SandboxRefusedError: If the system cannot contain programs.
    """
    outcome = Outcome()
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

    def __init__(self, setup: RunSetup, outcome: Outcome, depth: int = 0) -> None:
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
        outcome = Outcome()
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
