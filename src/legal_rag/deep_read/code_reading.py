"""A root model's reply, read for what is to be run: code in fences of several kinds, and FINAL(…) written outside.

In: a reply. Out: blocks of code, in order. What rlms' own protocol says (```repl) goes first; weaker models write
```python, leave the fence open, or write nothing but code.
"""

import ast
import re

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
