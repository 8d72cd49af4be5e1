"""The Recursive Language Model: turns, programs, nested runs, over rlms."""

import ast
import builtins
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rlm import RLM
from rlm.core.types import CodeBlock, ModelUsageSummary, REPLResult, RLMChatCompletion, RLMIteration, UsageSummary
from rlm.logger import RLMLogger
from rlm.utils.exceptions import CancellationError, ErrorThresholdExceededError

from legal_rag.agent.tool_outputs import LEAST_CHARS, relevant_part
from legal_rag.deep_read.prompts import NEXT_TURN, QUESTION, TURN, answer_text
from legal_rag.deep_read.receipts import Receipts
from legal_rag.deep_read.sandbox import Sandbox, SandboxResult, names_stored, parsed
from legal_rag.deep_read.settings import Limits
from legal_rag.llm import BudgetExceededError, ChatModel, Completion, Message, ModelError, Usage, UsageTracker

logger = logging.getLogger(__name__)

FENCE = re.compile(
    r"^[ \t]*+```[ \t]*+(?P<kind>[\w+-]*+)[^\n`]*+\n(?P<code>.*?)(?:^[ \t]*+```|\Z)", re.DOTALL | re.MULTILINE
)
OWN, USUAL = frozenset({"repl"}), frozenset({"python", "py", "python3", "tool_code", ""})
FINAL_LINE = re.compile(r"^[ \t]*(?P<name>FINAL(?:_VAR)?)\((?P<inner>.*)\)[ \t]*;?[ \t]*\Z", re.DOTALL | re.MULTILINE)

TURN_NUMBER = re.compile(r"^(Tour \d+)/\d+ :", re.MULTILINE)  # a resumed run may have more of them
MAX_ERRORS = 5  # turns in a row without a program that runs
MAX_SHOWN_VARIABLES = 40
MAX_RECEIPTS_SHOWN = 8  # after one block
MAX_ANSWER = 200_000  # characters
NO_CODE = "Votre réponse ne contient aucun programme. Écrivez un bloc ```repl … ``` ; finissez par FINAL(réponse)."
LAST_TURN = (
    "Vous n'avez plus de tour. Écrivez maintenant, en français et sans programme, la réponse finale d'après ce que vous"
    " avez trouvé, avec ses citations [Source: identifiant, chars début-fin]."
)
UNFOUNDED = (
    "cette valeur est écrite de tête, rien du corpus n'y entre : appelez d'abord les fonctions qui lisent, affichez ce "
    "qu'elles donnent, puis rendez-le, ou citez la décision [Source: identifiant, chars début-fin]"
)
# Names that bring nothing of the corpus into a program: those of the session, and models that see only their prompt.
BY_MODEL = frozenset(
    "FINAL FINAL_VAR SHOW_VARS receipt answer history question".split()
    + "llm_query llm_query_batched rlm_query rlm_query_batched".split()
)
# Runs after each block: reports what rlms' `answer` holds, and the variables' names.
AFTER = "_take_state(answer, list(locals()))"


def code_blocks(reply: str) -> list[str]:
    """Return the code of a reply: of its ```repl fences, else of its Python ones, else a final FINAL(…), else all.

    A reply without fences is code only if it is Python that calls something: prose is not.
    """
    fenced = [(match["kind"].lower(), match["code"].rstrip()) for match in FENCE.finditer(reply)]
    for kinds in (OWN, USUAL):
        blocks = [code for kind, code in fenced if kind in kinds and code.strip()]
        if blocks:
            return [*blocks, *_final_code(reply)]
    if final := _final_code(reply):
        return final
    return [reply.strip()] if not fenced and _is_program(reply.strip()) else []


def prose_of(reply: str) -> str:
    """Return the prose of a reply, without its code and a final FINAL(…)."""
    if not FENCE.search(reply) and _is_program(reply.strip()):
        return ""
    prose = FENCE.sub("\n", reply).rstrip()
    match = _find_final(prose)
    return prose[: match.start()].strip() if match else prose.strip()


def _final_code(reply: str) -> list[str]:
    """Return a FINAL(…) at the end of a reply, outside any fence, as code."""
    match = _find_final(FENCE.sub("\n", reply).rstrip())
    return [_write_call(match["name"], match["inner"])] if match else []


def _find_final(prose: str) -> re.Match[str] | None:
    """Find a FINAL(…) at the end of a text; without a closing bracket there, skip the slow search."""
    ends = prose.removesuffix(";").rstrip(" \t").endswith(")")
    return FINAL_LINE.search(prose) if ends else None


def _write_call(name: str, inner: str) -> str:
    """Write the call as code; text that is not an expression becomes a string literal."""
    if inner.strip().isidentifier():  # FINAL(result): a variable, if there is one of that name
        return f"FINAL_VAR({inner.strip()!r})"
    call = f"{name}({inner})"
    return call if parsed(call) is not None else f"{name}({inner.strip()!r})"


def _is_program(text: str) -> bool:
    tree = parsed(text)
    return tree is not None and any(isinstance(node, ast.Call) for node in ast.walk(tree))


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """Inputs of a run."""

    root: ChatModel
    sub: ChatModel
    tracker: UsageTracker
    functions: Mapping[str, Callable[..., Any]]
    values: Mapping[str, Any]
    prompt: str  # the system prompt
    receipts: Receipts
    calls: list[RLMChatCompletion] = field(default_factory=list)  # of the sub-model, not yet in the trace
    logger: RLMLogger | None = None
    limits: Limits = field(default_factory=Limits)
    shown_chars: int = 20_000  # of what a turn's programs printed
    # Whether an answer rests on the corpus, and not on the model's word alone; the second: something of it was read.
    is_founded: Callable[[Any, bool], bool] = lambda value, has_read: has_read
    on_turn: Callable[[str, str, Completion], None] = lambda thought, code, reply: None  # before its programs run


@dataclass
class RlmOutcome:
    """Outcome of a run."""

    value: Any = None  # what FINAL or `answer` gave; of a run cut short, what it had so far
    is_final: bool = False
    is_prose: bool = False  # the value is what the root model wrote, not what a program gave
    out_of_turns: bool = False
    codes: list[str] = field(default_factory=list)  # that were run
    error: Exception | None = None  # that ended it: BudgetExceededError, ErrorThresholdExceededError, the model's own
    gave_up: bool = False  # the model wrote no program that runs, several times in a row
    is_unfounded: bool = False  # the value is a constant that the model wrote, twice
    asked: list[Sequence[Message]] = field(default_factory=list)  # of the root model, as their replies are stored


def run_rlm(question: str, context: str, setup: RunSetup) -> RlmOutcome:
    """Answer a question by programs that find `context`; failures of the models are part of the outcome."""
    outcome = RlmOutcome()
    rlm = SandboxedRLM(question, setup, outcome)
    try:
        outcome.value = rlm.completion(context, root_prompt=question).response
        outcome.is_final = not outcome.out_of_turns
        outcome.is_unfounded = rlm.is_unfounded
    except CancellationError:  # rlms' word for it
        raise KeyboardInterrupt from None
    except ErrorThresholdExceededError as error:
        outcome.value, outcome.is_final = rlm.final
        outcome.is_unfounded = rlm.is_unfounded
        if not outcome.is_final:
            outcome.error, outcome.gave_up = error, True
    except (BudgetExceededError, ModelError) as error:
        outcome.error = error
    finally:
        rlm.close()
    if not outcome.is_final and not outcome.value:
        outcome.value, outcome.is_prose = rlm.partial
    return outcome


class SandboxedRLM(RLM):
    """rlms' loop with the models and sandbox of a run in place of its built-in ones."""

    def __init__(self, question: str, setup: RunSetup, outcome: RlmOutcome) -> None:
        super().__init__(
            backend="openai",
            backend_kwargs={"model_name": setup.root.name},
            environment="monty",  # named in the trace; `_spawn_completion_context` starts it
            max_iterations=setup.tracker.budget.steps,
            max_errors=MAX_ERRORS,
            logger=setup.logger,
        )
        self._question, self._setup, self._outcome = question, setup, outcome
        self._environment: ProgramEnvironment | None = None  # of the current run
        self._prose = ""  # what the model last wrote outside code
        self._printed = ""  # by the programs of the last turn

    @property
    def final(self) -> tuple[Any, bool]:
        """What a program gave as the answer, and whether one did."""
        return (self._environment.final, self._environment.is_final) if self._environment else (None, False)

    @property
    def is_unfounded(self) -> bool:
        """Whether that answer is a constant, also after the model was told that it must not be."""
        return self._environment is not None and self._environment.is_unfounded

    @property
    def partial(self) -> tuple[Any, bool]:
        """What `answer` holds if the run was cut short, else the model's last prose, and whether it is prose."""
        held = self._environment.partial if self._environment else ""
        return held or self._prose, not held

    @contextmanager
    def _spawn_completion_context(self, prompt: Any) -> Iterator[tuple[Any, Any]]:
        """Give rlms our models and sandbox: it has no hook for a custom client or environment."""
        self._environment = ProgramEnvironment(self._setup, prompt)
        try:
            yield _Handler(self._last_answer, self._setup), self._environment
        finally:
            self._environment.cleanup()

    def _setup_prompt(self, prompt: Any, root_prompt: str | None = None) -> list[dict[str, Any]]:
        """Begin the conversation in French, in place of rlms' own prompts."""
        asked = QUESTION.format(question=root_prompt)
        return [{"role": "system", "content": self._setup.prompt}, {"role": "user", "content": asked}]

    def _put_turn(self, messages: list[dict[str, Any]]) -> None:
        """Replace rlms' English lines at the end of a conversation: what was printed, and the turn's number."""
        del messages[-1]
        number = sum(message["role"] == "assistant" for message in messages) + 1
        before = self._printed if number > 1 else messages[-1]["content"]
        turn = (NEXT_TURN if number > 1 else TURN).format(number=number, most=self.max_iterations)
        messages[-1] = {"role": "user", "content": f"{before}\n\n{turn}"}

    def _completion_turn(self, prompt: Any, lm_handler: Any, environment: Any) -> RLMIteration:
        """Ask for a program and run it: rlms only accepts ```repl fences as code, and ignores their absence."""
        started = time.perf_counter()
        self._put_turn(prompt)
        reply = self._chat(prompt)
        codes, thought = code_blocks(reply.text), prose_of(reply.text)
        self._prose = thought or self._prose
        self._setup.on_turn(thought, "\n\n".join(codes), reply)
        iteration = RLMIteration(prompt, reply.text, [] if codes else [CodeBlock("", REPLResult("", NO_CODE, {}, 0.0))])
        try:
            for code in codes:
                self._outcome.codes.append(code)
                iteration.code_blocks.append(CodeBlock(code, environment.execute_code(code)))
                if environment.is_final:
                    break
        except BudgetExceededError as error:
            iteration.code_blocks.append(CodeBlock(self._outcome.codes[-1], environment.result("", str(error), 0.0)))
            if self.logger:
                self.logger.log(iteration)
            raise
        iteration.iteration_time = time.perf_counter() - started
        results = (block.result for block in iteration.code_blocks)
        self._printed = "\n\n".join(_observation(result, self._question, self._setup.shown_chars) for result in results)
        return iteration

    def _chat(self, messages: Sequence[Message]) -> Completion:
        """Ask the root model; while the prompt is too long, cut printed output to its most relevant parts."""
        most = max([len(message["content"]) for message in messages[2:]], default=0)
        while True:
            known_as = [{**message, "content": TURN_NUMBER.sub(r"\1:", message["content"])} for message in messages]
            self._outcome.asked.append(known_as)
            try:
                return self._setup.root.chat(messages, known_as)
            except ModelError as error:
                if error.kind != "context" or most < LEAST_CHARS:
                    raise
            most //= 2
            messages = [*messages[:2], *(self._shortened(message, most) for message in messages[2:])]

    def _shortened(self, message: Message, most: int) -> Message:
        if message["role"] == "assistant":
            return message
        return {**message, "content": relevant_part(message["content"], self._question, most)}

    def _last_answer(self, messages: Sequence[Message]) -> Any:
        """Return the answer when the turns are used up: what `answer` holds, else a last reply of the model."""
        self._outcome.out_of_turns = True
        if self._environment and (held := self._environment.partial):
            return held
        self._outcome.is_prose = True
        reply = self._chat([*messages[:-1], {"role": "user", "content": f"{self._printed}\n\n{LAST_TURN}"}])
        return prose_of(reply.text) or reply.text.strip()


def _observation(result: REPLResult, question: str, most: int) -> str:
    """Write for the model what a program printed, and its variables."""
    printed = "\n".join(part.strip() for part in (result.stdout, result.stderr) if part.strip())
    lines = [f"Sortie :\n{relevant_part(printed, question, most)}" if printed else "Rien n'a été affiché."]
    return "\n".join([*lines, *([f"Variables : {', '.join(result.locals)}"] if result.locals else [])])


class _Handler:
    """Client that rlms asks for the last answer of a run, and for its usage."""

    def __init__(self, last_answer: Callable[[Sequence[Message]], Any], setup: RunSetup) -> None:
        self._last_answer, self._setup = last_answer, setup

    def completion(self, prompt: Sequence[Message]) -> Any:
        return self._last_answer(prompt[:-1])  # in place of rlms' own request, which is English

    def get_usage_summary(self) -> UsageSummary:
        return usage_of(self._setup.tracker.usage, self._setup.root.name)


class _Constants:
    """Tells programs whose values are all written by the model from those that use what the corpus gave."""

    def __init__(self, functions: Iterable[str], values: Iterable[str]) -> None:
        self._functions = frozenset(functions) - BY_MODEL
        self._from_corpus = {*self._functions, *values} - BY_MODEL  # names that hold, or give, something of it
        self.has_read = False  # a program used one

    def is_of_corpus(self, name: str) -> bool:
        """Tell whether a variable holds something of the corpus."""
        return name in self._from_corpus

    def add(self, tree: ast.Module) -> bool:
        """Take the next program of the session; return whether it uses nothing of the corpus."""
        nodes = list(ast.walk(tree))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        # Texts may name variables, as in FINAL_VAR("n"), but no function is a value.
        used |= {str(node.value) for node in nodes if isinstance(node, ast.Constant)} - self._functions
        is_constant = used.isdisjoint(self._from_corpus)
        if is_constant:
            self._from_corpus -= names_stored(tree)
        else:
            self.has_read = True
            self._from_corpus |= names - vars(builtins).keys() - (BY_MODEL - {"answer"})
        return is_constant


class ProgramEnvironment:
    """One session of programs: their answer and variables; what rlms calls an environment. Close it by `cleanup`."""

    def __init__(self, setup: RunSetup, context: Any) -> None:
        self._setup = setup
        self.final: Any = None  # what FINAL or `answer` gave
        self.partial: Any = ""  # what `answer` holds that is not ready
        self.is_final = self.is_unfounded = False
        self._names: list[str] = []
        self._constants = _Constants(setup.functions, (*setup.values, "context"))
        self._is_constant = self._was_told = False  # of the running block; an answer was refused
        self._variable = ""  # that FINAL_VAR named
        session_functions: dict[str, Callable[..., Any]] = {
            "FINAL": self._take_final,
            "FINAL_VAR": self._take_variable,
            "SHOW_VARS": lambda: f"Variables : {', '.join(self._names) or 'aucune'}",
            "_take_state": self._take_state,
            "rlm_query": setup.functions["llm_query"],  # no deep reads within deep reads
            "rlm_query_batched": setup.functions["llm_query_batched"],
        }
        self._values = {**setup.values, "context": context, "history": [], "answer": {"content": "", "ready": False}}
        self._sandbox = Sandbox({**setup.functions, **session_functions}, setup.limits, values=self._values)

    def execute_code(self, code: str) -> REPLResult:
        """Run a block of code; BudgetExceededError if the run reached a limit before the block gave an answer."""
        started, result = time.perf_counter(), SandboxResult("ok", "")
        tree = parsed(self._sandbox.without_taken(code)) or ast.Module([], [])
        self._is_constant = self._constants.add(tree)
        try:
            with self._setup.tracker.timed():
                result = self._run(code)
                if "context" in names_stored(tree):
                    self._sandbox.restore("context")
        except BudgetExceededError:
            if not self.is_final:
                raise
        return self.result(result.output, result.error or "", time.perf_counter() - started)

    def cleanup(self) -> None:
        """End the session."""
        self._sandbox.close()

    def result(self, output: str, error: str, seconds: float) -> REPLResult:
        """Return a block's result in rlms' form, with the receipts and the sub-model's calls since the last one."""
        calls = self._setup.calls
        kept = [receipt.statement() for receipt in self._setup.receipts.news()][-MAX_RECEIPTS_SHOWN:]
        return REPLResult(
            stdout="\n".join([output, *(["Reçus :", *kept] if kept else [])]),
            stderr=error,
            locals=dict.fromkeys(self._names[:MAX_SHOWN_VARIABLES], ""),
            execution_time=seconds,
            rlm_calls=[calls.pop(0) for _ in range(len(calls))],
            final_answer=self.final if self.is_final else None,
        )

    def _run(self, code: str) -> SandboxResult:
        self._variable = ""
        result = self._sandbox.run(code)
        if result.status == "stopped":
            self._names = []
            return result
        if self._variable:
            final = self._sandbox.run(f"FINAL({self._variable})")
            if "NameError" in (final.error or ""):  # no variable, then
                final = self._sandbox.run(f"FINAL({self._variable!r})")
            result = result._replace(error=result.error or (None if self.is_final else final.error))
        after = self._sandbox.run(AFTER)
        if after.error:  # a refused answer would be given again after the next program
            self._sandbox.restore("answer")
        return result._replace(error=result.error or after.error)  # also why an answer was refused

    def _take_final(self, value: Any = "") -> None:
        if (length := len(answer_text(value))) > MAX_ANSWER:
            raise ValueError(f"réponse trop longue : {length} caractères, au plus {MAX_ANSWER}")
        if self.is_final:
            return
        is_written = self._is_constant and value not in (None, "")
        is_unfounded = is_written and not self._setup.is_founded(value, self._constants.has_read)
        if is_unfounded and not self._was_told:
            self._was_told = True
            raise ValueError(UNFOUNDED)
        self.final, self.is_final, self.is_unfounded = "" if value is None else value, True, is_unfounded

    def _take_variable(self, name: Any) -> None:
        if isinstance(name, str) and name.isidentifier():
            self._variable = name
        else:
            self._take_final(name)

    def _take_state(self, answer: Any, names: Sequence[str]) -> None:
        held = answer if isinstance(answer, Mapping) else {"content": answer}
        content = held.get("content") or ""
        is_given = len(answer_text(content)) <= MAX_ANSWER and self._constants.is_of_corpus("answer")
        self.partial = content if is_given else ""
        self._names = [name for name in map(str, names) if not name.startswith("_") and name not in self._values]
        if held.get("ready"):
            self._take_final(held.get("content"))


def completion_of(model: str, prompt: str, reply: Completion, error: str) -> RLMChatCompletion:
    """Return a call of the sub-model in rlms' form; `error` is in French, set if there is no reply."""
    usage = usage_of(reply.usage, model)
    return RLMChatCompletion(model, prompt, reply.text, usage, reply.seconds, None, error or None)


def usage_of(usage: Usage, model: str) -> UsageSummary:
    """Return a usage in rlms' form."""
    summary = ModelUsageSummary(usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost)
    return UsageSummary({model: summary})
