"""Print the size and shape of the code base and the time its commands take: `make measure`.

Everything is measured afresh. The times of the tests are only asked for by option, since they take minutes:

    python benchmarks/measure.py                  # size, shape, layers, `legal-rag --help`
    python benchmarks/measure.py --tests          # and the clock of `make test`
    python benchmarks/measure.py --coverage       # and the lines and branches of src that both test runs reach
    python benchmarks/measure.py --ci             # and the clock of `.ci/run`
"""

import argparse
import ast
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "legal_rag"
BIN = Path(sys.executable).parent
HELP_RUNS = 7
Trees = dict[str, ast.Module]


def main() -> int:
    """Print one line a figure; return 1 if a command that was timed failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--ci", action="store_true")
    wanted = parser.parse_args()
    trees = {_module_name(path): ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    _print_structure(trees)
    failed = False
    print(f"legal-rag --help, median of {HELP_RUNS}: {statistics.median(_help_seconds()):.2f} s")
    if wanted.tests:
        failed |= _timed("make test", "make", "test")
    if wanted.coverage:
        failed |= _print_coverage()
    if wanted.ci:
        failed |= _timed(".ci/run", "bash", ".ci/run")
    print(f"load average: {os.getloadavg()[0]:.1f}")
    return int(failed)


def _print_structure(trees: Trees) -> None:
    sizes = [path.read_text("utf-8").count("\n") for path in PACKAGE.rglob("*.py")]
    print(f"modules in src: {len(sizes)}; lines: {sum(sizes):,}; median module: {statistics.median(sizes):.0f} lines")
    print(f"packages and modules at the top of src/legal_rag: {len(_top_level())}")
    repeated = _names_defined_twice(trees)
    print(f"public top-level names defined in two modules or more: {len(repeated)}")
    for name, modules in repeated.items():
        print(f"    {name}: {', '.join(modules)}")
    cycles = _two_module_cycles(trees)
    print(f"two-module import cycles: {len(cycles)}")
    for one, other in cycles:
        print(f"    {one} <-> {other}")
    print(f"layer contracts: {_contracts()}")


def _top_level() -> list[str]:
    modules = [path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__"]
    return modules + [path.parent.name for path in PACKAGE.glob("*/__init__.py")]


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _names_defined_twice(trees: Trees) -> dict[str, list[str]]:
    definitions: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees.items():
        for node in tree.body:
            is_definition = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if is_definition and not node.name.startswith("_") and module not in definitions[node.name]:
                definitions[node.name].append(module)
    return {name: modules for name, modules in sorted(definitions.items()) if len(modules) > 1}


def _two_module_cycles(trees: Trees) -> list[tuple[str, str]]:
    imports = {module: set(_imported(tree, trees)) for module, tree in trees.items()}
    return sorted(
        {(one, other) for one in imports for other in imports[one] if one < other and one in imports.get(other, ())}
    )


def _imported(tree: ast.Module, modules: Iterable[str]) -> Iterable[str]:
    """Yield the package's modules that a module imports anywhere, the lazy imports of its functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else node.module for name in submodules)


def _contracts() -> str:
    linter = BIN / "lint-imports"
    if not linter.exists() or "[tool.importlinter]" not in (ROOT / "pyproject.toml").read_text("utf-8"):
        return "not checked"
    result = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    lines = [line for line in result.stdout.splitlines() if line.startswith("Contracts:")]
    return lines[0].removeprefix("Contracts: ") if lines else f"failed: {result.stderr.strip()}"


def _help_seconds() -> list[float]:
    return [_seconds([str(BIN / "legal-rag"), "--help"])[0] for _ in range(HELP_RUNS)]


def _timed(name: str, *command: str) -> bool:
    seconds, failed = _seconds(list(command))
    print(f"{name}: {seconds / 60:.1f} min{' (failed)' if failed else ''}")
    return failed


def _seconds(command: list[str]) -> tuple[float, bool]:
    began = time.perf_counter()
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)  # noqa: S603
    return time.perf_counter() - began, result.returncode != 0


def _print_coverage() -> bool:
    run = [sys.executable, "-m", "pytest", "-q", "-m", "slow or not slow", "--cov=legal_rag", "--cov-branch"]
    result = subprocess.run([*run, "--cov-report=term"], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    totals = [line for line in result.stdout.splitlines() if line.startswith("TOTAL")]
    print(f"coverage of src, both test runs (statements, missed, branches, partial): {' '.join(totals) or 'none'}")
    return result.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
