"""Programs that call the functions of a deep read with arguments made to hang, fill or break them."""

import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from attacks.cases import Case, Outcome, Place

# What programs hand over, as they write it.
HOSTILE = (
    "'x' * 10**6", "'1 ' * 600_000", "'é' * 400_000", "'\\u0301' * 100_000", "'e' + '\\u0301\\u0323' * 50_000",
    "'\\u0301\\u0323' * 9000", "'\\u0301\\u0323' * 200", "'\\0' * 20_000", "'\\x1b]52;c;aGk=\\x07' * 40",
    "'\\ud800' * 500", "'\\ud800' * 20_000", "'\\u202e' * 400", "'\\u00a0' * 500", "' ' * 20_000", "'\\n' * 19_999",
    "''", "None", "True", "-1", "0", "2**63", "2**200", "10**5000", "-10**300", "1e308", "float('nan')",
    "float('inf')", "'9' * 5000", "'9' * 2500 + '-01-01'", "'9999-99-99'", "'0000-00-00'", "'-' * 500",
    "['x'] * 100_000", "[f'y{i}' for i in range(100_000)]", "[f'INCONNU{i}' for i in range(400)]",
    "{str(i): i for i in range(50_000)}", "[[[['x']]]]", "[[[[[[[[[['x']]]]]]]]]]", "[[['x'] * 10] * 10] * 2000",
    "{'doc_id': {'doc_id': {'doc_id': 'x'}}}", "{'id': ['x'] * 5000}", "[('x', 1.0, 'y' * 5000)] * 20",
    "[None] * 900", "[float('nan')] * 900", "[10**60] * 900", "('a', True)", "{'a'}", "b'abc'", "range(10**6)",
    "'[' * 20_000", "'[' * 5000 + ']' * 5000", "'[\"a\", ' + '1' * 5000 + ']'", "'{' * 500", "'a,' * 10_000",
    "'a=b;' * 5000", "'partie=' + 'x' * 493", "'date=' + '9' * 400", "'montant=' + '1 ' * 240", "'(' * 2000",
    "'[Source: a, chars 1-2]' * 22", "'article L. 1-1-1-1, ' * 25", "'art. ' * 100", "'1-' * 250", "'1 ' * 250",
    "'n° 90-41.231, ' * 35", "'« ' * 250", "'.' * 500", "'<br>' * 125", "'\\u200b' * 500", "'%' * 500",
    "\"' OR 1=1 --\"", "'*' * 500", "'ECLI:FR:' * 60", "'cour d\\'appel de ' * 25", "'code du travail ' * 30",
    "'../' * 100 + 'etc/passwd'", "'12 mai 1993 ' * 40", "'vingt-' * 80", "'\\u0130' * 500", "'\\ufdfa' * 500",
)  # fmt: skip
# Patterns whose matching, compiling or parsing other engines, or RE2 itself, may take long for.
PATTERNS = (
    "(a+)+$", "(a|aa)+$", "e(?s:.*)ZZZ|e", r"\be(?s:.*)ZZZ|\be", "(?s:.*)(?s:.*)(?s:.*)ZZZ", "(?s).+ZZZ|.",
    r"(?s)\w.{0,900}\w.{0,900}\w.{0,900}ZZ", r"(?:\w+\W+){0,200}ZZ", r"(?:\w{0,3}\W{0,3}){60}ZZ", r"(?:\w?\W?){200}ZZ",
    "(?s)(?:.{0,50}[ab].{0,50}[cd]){9}ZZ", "(?:[^ZQ]{0,990}[^ZA]{0,990}[^ZB]{0,990})ZZ", "(?:(?:a{30}){30}){30}",
    "a{1000}{1000}", r"\pL{1000}", r"(?:\pL\pM*){300}", "(" * 999, "(" * 900 + "a" + ")" * 900, "[" * 500, "a|" * 900,
    "|".join("abcdefghij" * 90), ".", r"\b", "x*", r"(?i)" + "[àéèùâêîôûëïüç]" * 120, "(?i)ﬁ" * 200, r"\Q" * 500,
    r"\x{10FFFF}" * 180, "(?:(?:(?:(?:a?){30}){30}){30}){30}", "^" * 1000, "$" * 1000, r"\b" * 900, "(?m:^.*$\n?)" * 90,
    r"[\w\W\d\D\s\S]{0,1000}Z", "(?:a?b?c?d?e?){180}ZZ", "\u0301\u0323" * 900, "(?U)" * 400, "\\" * 1999,
    "(?P<a>" * 300, "(?=a)" * 300, "(?<!a)" * 300, r"\1" * 900, "é" * 2001, "x" * 10**6, r"(?s)e.*?ZZZ|e",
    r"(?:e|(?s:e.*Z))",
)  # fmt: skip
# Programs that call functions thousands of times, or ask for as much as there is.
LOOPS = {
    "unknown documents": "read_document(f'INCONNU{i:07d}')",
    "unknown numbers": "get_doc_summary(f'{i % 40 + 60}-{i % 100:02d}.{i % 1000:03d}')",
    "titles": "get_doc_meta('Cour de cassation, chambre sociale, ' + str(i))",
    "different searches": "rank_documents('préavis ' + str(i), 1000)",
    "searches of twenty thousand characters": "rank_documents(('préavis ' * 2500)[:19_990] + str(i))",
    "searches of many words": "search_passages(' '.join(f'mot{i}{j}' for j in range(2000))[:19_990], 1000)",
    "different filters": "find_documents(date_from=str(1900 + i % 120), juridiction='Cass. soc.', solution='rejet')",
    "filters among all documents": "find_documents(doc_ids=doc_ids * 4000, number=str(i))",
    "different words": "search_by_keyword('contrat ' + str(i))",
    "a thousand words": "search_by_keywords([f'mot{i}{j}' for j in range(999)], 'any')",
    "different entities": "search_by_entity('Société ' + str(i))",
    "different citations": "documents_citing(f'L. {i}-1 du code du travail')",
    "different patterns": "grep_corpus(f'contrat {i}|(?:a|b){{{i % 99}}}')",
    "all that there is": r"grep_corpus('(?s).', max_docs=None, max_matches_per_doc=None, context=1000)",
    "all that there is of a document": "grep_document(doc_ids[i % 20], r'\\w', context=1000)",
    "all metadata": "get_doc_metas()",
    "all summaries": "get_all_summaries()",
    "all texts": "kept.append(read_document(doc_ids[i % 20]))",
    "all entities": "kept.append(get_entities(doc_ids[i % 20]))",
    "all sections": "kept.append(get_section_details(doc_ids[i % 20]))",
    "all outlines": "kept.append(get_doc_toc(doc_ids[i % 20]))",
    "pages far away": "list_documents(10**9, 2**53 + i)",
    "parts far away": "read_document_chunk(doc_ids[0], 2**53, 2**53 + i)",
    "sections that are not there": "read_doc_section(doc_ids[i % 20], 'x' * (i % 500))",
    "prompts": "llm_query('dis oui ' * 10_000 + str(i))",
    "prompts in batches": "llm_query_batched([f'dis {i} {j}' for j in range(2000)])",
    "prompts of a million characters": "llm_query_batched(['x' * 10**6 + str(i + j) for j in range(3)])",
    "questions to all documents": "ask_across_documents(f'Quel préavis ? {i}', doc_ids)",
    "questions to unknown documents": "ask_across_documents('Quel préavis ?', [f'INCONNU{i}{j}' for j in range(400)])",
    "extractions": "on_demand_extract('Le salarié a droit à 1000 euros. ' * 3000, f'plafond {i}', ['plafond'])",
    "deep reads within": "rlm_query('dis oui ' + str(i))",
    "receipts": "(table(doc_ids, 'date', 'solution'), share(doc_ids[: i % 20 + 1], doc_ids), receipt(i))",
    "answers": "FINAL_VAR('kept')",
    "links": "get_links(doc_ids[i % 20])",
}
CONTAINED = ("ValueError", "LookupError", "KeyError", "TypeError")  # what functions and Python answer with
TRYING = f"""
contained, worst, first = 0, "", ""
def attempt(call):
    global contained, worst, first
    try:
        call()
        name = said = ""
    except Exception as error:
        name, said = type(error).__name__, str(error)
    if len(said) > 1000 or len(said.splitlines()) > 1 or name and name not in {CONTAINED!r}:
        worst = worst or f"{{name}}: {{said[:200]}}"
    else:
        contained, first = contained + 1, first or said
"""
TOLD = "\nprint(f'{contained}|{worst or first or \"répondu\"}')"
VALID = {
    "doc_id": "doc_ids[0]", "doc_ids": "doc_ids[:2]", "query": "'préavis'", "question": "'Quel préavis ?'",
    "keyword": "'contrat'", "keywords": "['contrat']", "entity": "'Société Lever'", "pattern": "'contrat'",
    "topic": "'contrat'", "text": "'L. 1152-1 du code du travail'", "section_name": "'Motifs'", "prompt": "'dis oui'",
    "prompts": "['dis oui']", "prompt_description": "'des plafonds'", "extraction_classes": "['plafond']",
    "documents": "doc_ids[:3]", "part": "doc_ids[:1]", "whole": "doc_ids[:3]", "field": "'solution'",
}  # fmt: skip
DEEP = ("text", "prompt", "prompts")  # may be long by right: the model's budget bounds what they cost
GREP_SECONDS = 5.0  # of each search for a pattern, a tenth of which take so long
SECONDS = 3.0  # of the budget of programs that go on until it ends
MOST_LOGGED = 500_000  # characters of all events of a run
MOST_CACHED = 1000  # characters of a cache's key


class Model:
    """Answers at once; it has a name and calls, as the sub-model of a run does."""

    name = "model"

    def query(self, prompt: str) -> str:
        """Find nothing."""
        return '{"pertinent": false}'


def prepare(place: Place) -> None:
    """Load what is loaded once: the encoder, all workers of the pools, dspy, LangExtract with tqdm's thread."""
    for _ in range(20):
        _tools(place)["search_legal_docs"]("Quel préavis est dû ?")
    run_program(place, "on_demand_extract('Le plafond est de 1000 euros. ' * 2000, 'x', ['plafond'])")


@cache
def _tools(place: Place) -> dict[str, Callable[..., str]]:
    from legal_rag.agent.tools import build_tools
    from legal_rag.library import Library
    from legal_rag.retriever import Retriever

    library = Library(place.library)
    return {one.__name__: one for one in build_tools(library, Retriever(library))}


def run_program(place: Place, code: str, attempts: int = 1, *, ends_late: bool = False) -> Outcome:
    """Run a program with all functions under a budget of `SECONDS`, or a long one; what it says comes back."""
    from legal_rag.corpus_index import CorpusIndex
    from legal_rag.deep_read import functions
    from legal_rag.deep_read.rlm import ProgramEnvironment, RunSetup
    from legal_rag.llm import Budget, BudgetExceededError, UsageTracker

    functions.SECONDS = GREP_SECONDS
    env = functions.create_multi_doc_env(CorpusIndex.open(place.library), Model(), workers=2)
    setup = RunSetup(
        root=Model(),
        sub=Model(),
        tracker=UsageTracker(Budget(seconds=SECONDS if ends_late else 60.0)),
        functions=env.functions,
        values=env.values,
        prompt="",
        receipts=env.receipts,
    )
    environment = ProgramEnvironment(setup, "le contexte")
    try:
        result = environment.execute_code(code)
        said, error = result.stdout.partition("\nReçus :")[0].strip(), result.stderr.strip()
    except BudgetExceededError as stop:
        said, error = f"{attempts}|{stop}", ""
    finally:
        environment.cleanup()
    line = (error or said).splitlines()[-1] if error or said else ""
    if ends_late:
        is_end = "|" in said or line.endswith("ses variables sont perdues") or line.startswith(CONTAINED)
        counted, line = attempts if is_end else 0, line.partition("|")[2] or line
    else:
        number, _, line = line.rpartition("\n")[2].partition("|")
        counted = int(number) if number.isdecimal() else 0
        line = line or f"{said} {error}"
    if kept := _kept(env.repl):
        return Outcome(0, kept)
    return Outcome(counted, line)


def _kept(repl: Any) -> str:
    """Say what of the arguments is still there that should not be; nothing of the kind should."""
    logged = sum(len(repr(one)) for one in repl.log.events)
    if logged > MOST_LOGGED:
        return f"{logged} characters in the log"
    for cache_ in (repl.doc_content_cache, repl.search_result_cache, repl.llm_response_cache):
        if (longest := max((len(repr(key)) for key in cache_.cache), default=0)) > MOST_CACHED:
            return f"a key of {longest} characters in a cache"
    return ""


def _called(name: str, **arguments: str) -> str:
    return f"{name}({', '.join(f'{one}={written}' for one, written in arguments.items())})"


def _tried(calls: Sequence[str]) -> str:
    return TRYING + "".join(f"\nattempt(lambda: {call})" for call in calls) + TOLD


def cases(seed: int) -> Iterator[Case]:
    """Yield every parameter of every function with all hostile values, patterns, loops, and mixtures of these."""
    drawn = random.Random(seed)
    functions = _parameters()
    for name, parameters in functions.items():
        for parameter in parameters:
            needed = {one: VALID[one] for one, is_needed in parameters.items() if is_needed}
            calls = [_called(name, **needed | {parameter: value}) for value in HOSTILE if parameter not in DEEP]
            calls += [_called(name, **needed | {parameter: value}) for value in HOSTILE[5:] if parameter in DEEP]
            yield _matrix(f"{name} {parameter}", calls)
    for n in range(0, len(PATTERNS), 2):
        some = PATTERNS[n : n + 2]
        for function in ("grep_corpus", "grep_document"):
            given = {} if function == "grep_corpus" else {"doc_id": "doc_ids[0]"}
            options = drawn.choice(({}, {"fold": "True"}, {"ignore_case": "False"}, {"context": "1000"}))
            calls = [_called(function, **given, pattern=_shown(one), **options) for one in some]
            yield _matrix(f"{function} patterns {n}", calls)
    for name, call in LOOPS.items():
        code = f"kept = []\nfor i in range(10_000):\n    attempt(lambda: {call})"
        yield Case(f"loop {name}", _late(TRYING + code + TOLD), SECONDS + 1.0)
    for n in range(40):
        name = drawn.choice(list(functions))
        some = drawn.choices(HOSTILE, k=4)
        calls = []
        for _ in range(25):
            parameters = functions[name]
            chosen = {one: VALID[one] for one, is_needed in parameters.items() if is_needed}
            for one in drawn.sample(list(parameters), min(len(parameters), drawn.randint(1, 3))):
                chosen[one] = f"[{', '.join(drawn.choices(some, k=2))}]" if drawn.random() < 0.3 else drawn.choice(some)
            calls.append(_called(name, **chosen))
            name = drawn.choice(list(functions))
        yield _matrix(f"mixture {n}", calls)
    for n in range(20):
        code = "".join(drawn.choice(PIECES) for _ in range(drawn.randint(2, 30)))
        yield _matrix(
            f"made-up patterns {n}",
            [_called("grep_corpus", pattern=_shown(code + drawn.choice(PIECES))) for _ in range(10)],
        )
    for name in _TOOLS:
        yield Case(f"tool {name}", _tool_tried(name), 60.0, len(TOOL_VALUES))


PIECES = (
    "a", "e", ".", r"\w", r"\W", r"\b", r"\s", "[^e]", "(?s:.*)", "(?:", ")", "|", "*", "+", "?", "{0,50}", "{9}",
    "{1,}", "ZZ", "^", "$", "(?i)", "(?s)", r"\pL", "é", "[a-z]", "*?", "(?:e|ee)", " ",
)  # fmt: skip
_TOOLS = (
    "search_legal_docs", "lookup_legal_doc", "lookup_entities", "get_outline", "read_section", "graph_neighbours",
)  # fmt: skip
TOOL_VALUES = tuple(one for one in HOSTILE if "range(10**6)" not in one)


def _matrix(name: str, calls: Sequence[str]) -> Case:
    return Case(name, lambda place: run_program(place, _tried(calls), len(calls)), 30.0, len(calls))


def _late(code: str) -> Callable[[Place], Outcome]:
    return lambda place: run_program(place, code, ends_late=True)


def _tool_tried(name: str) -> Callable[[Place], Outcome]:
    """Call a tool of the agent with every value in every parameter: it answers with text, of few lines."""

    def run(place: Place) -> Outcome:
        tool = _tools(place)[name]
        parameters = inspect.signature(tool).parameters
        needed = {one.name: "x" for one in parameters.values() if one.default is inspect.Parameter.empty}
        contained, line = 0, ""
        for written in TOOL_VALUES:
            value = eval(written, {})  # noqa: S307 - written above
            said = [str(tool(**needed | {parameter: value})) for parameter in parameters]
            contained += all(len(one) < 200_000 for one in said)
            line = line or said[0]
        return Outcome(contained, line)

    return run


def _shown(pattern: str) -> str:
    return repr(pattern) if len(pattern) < 5000 else f"{pattern[:1]!r} * {len(pattern)}"


def _parameters() -> dict[str, dict[str, bool]]:
    """Return the parameters of each function, and whether it needs them."""
    from legal_rag.deep_read.functions import FUNCTION_NAMES, MultiDocREPL
    from legal_rag.deep_read.receipts import COMPUTING, Receipts

    functions = {name: getattr(MultiDocREPL, name) for name in FUNCTION_NAMES}
    functions |= {name: getattr(Receipts, name) for name in COMPUTING}
    found = {name: inspect.signature(function).parameters for name, function in functions.items()}
    return {
        name: {one.name: one.default is inspect.Parameter.empty for one in parameters.values() if one.name != "self"}
        for name, parameters in found.items()
        if len(parameters) > 1
    }
