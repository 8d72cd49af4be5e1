"""Several systems over one set of queries: figures side by side, with tests corrected for their number."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from legal_rag.base.files import progress
from legal_rag.base.html import Rows, displayed
from legal_rag.evaluation.metrics import (
    RESAMPLES,
    Evaluation,
    absent_documents,
    compare_runs,
    evaluate_run,
    measures,
)
from legal_rag.evaluation.systems import System, Systems, fingerprint, parse_system, reciprocal_rank_fusion
from legal_rag.evaluation.trec import Qrels, Query, Run, read_run, write_run
from legal_rag.library.library import Library
from legal_rag.library.plaid.search import SearchSettings

if TYPE_CHECKING:
    import pandas as pd
    from ir_measures import Measure

logger = logging.getLogger(__name__)

SIGNIFICANT = 0.05  # a corrected p-value below it is marked
MARK = "†"
UNTESTED = ("Judged",)  # measures of the judgements, not of a system
LATEX = r"""\begin{{table}}
\centering
\begin{{tabular}}{{{columns}}}
\toprule
{head} \\
\midrule
{rows}
\bottomrule
\end{{tabular}}
\caption{{{caption}}}
\end{{table}}
"""
ESCAPED = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {character: f"\\{character}" for character in "&%$#_{}"}
)


@displayed
class SystemTest(NamedTuple):
    """A system compared with the baseline by one measure."""

    system: str
    measure: str
    difference: float  # its mean less the baseline's
    p_value: float  # two-sided, of a paired randomisation test
    corrected: float  # the same for the number of all tests in the table; see `holm`


@displayed
@dataclass(frozen=True)
class SystemComparison:
    """Several systems over the same queries and judgements, each tested against a baseline.

    Attributes:
        milliseconds: Of a query, for those that searched; not for those that were read from a file.
        absent: Documents judged relevant that the Library lacks.
    """

    baseline: str
    evaluations: dict[str, Evaluation]  # by system, in the order asked for
    tests: Rows[SystemTest]
    runs: dict[str, Run] = field(repr=False)
    milliseconds: dict[str, float]
    absent: list[str]

    def describe_tests(self) -> str:
        """Say in a sentence what the mark stands for: the test, the number of queries, the correction."""
        return (
            f"differs from {self.baseline}: two-sided paired randomisation test over {self._n_queries} queries,"
            f" {RESAMPLES:,} permutations, p < {SIGNIFICANT} after Holm–Bonferroni over {len(self.tests)} comparisons"
        )

    def rows(self, form: str = "{:.3f}", best: str = "{}", mark: str = MARK) -> list[list[str]]:
        """Write the table, its head first: a system's name and means, the best as `best` has it, differences marked."""
        marked = {test[:2] for test in self.tests if test.corrected < SIGNIFICANT}
        means = {system: dict(one[:2] for one in measured.figures) for system, measured in self.evaluations.items()}
        names = list(means[self.baseline])
        highest = {name: form.format(max(each[name] for each in means.values())) for name in names}
        table = [["system", *names]]
        for system, each in means.items():
            shown = {name: form.format(mean) for name, mean in each.items()}
            cells = (best.format(text) if text == highest[name] else text for name, text in shown.items())
            marks = (mark * ((system, name) in marked) for name in names)
            table.append([system, *(cell + sign for cell, sign in zip(cells, marks, strict=True))])
        return table

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame with a row for each system; `tests.to_pandas()` has the p-values."""
        means = ({"system": name, **dict(one[:2] for one in each.figures)} for name, each in self.evaluations.items())
        return Rows(means).to_pandas()

    def to_latex(self) -> str:
        """Return a table for LaTeX with its package booktabs: the best of each measure in bold, differences marked."""
        head, *rows = self.rows(best=r"\textbf{{{}}}", mark=r"$^\dagger$")
        lines = [" & ".join([name.translate(ESCAPED), *cells]) + r" \\" for name, *cells in rows]
        caption = f"Means over {self._n_queries} queries; the best in bold."
        if self.tests:
            tests = self.describe_tests().translate(ESCAPED).replace("p <", "$p <$").replace("–", "--")
            caption += rf" $^\dagger$ {tests}."
        columns, names = "l" + "r" * (len(head) - 1), " & ".join(head).translate(ESCAPED | {ord("&"): "&"})
        return LATEX.format(columns=columns, head=names, rows="\n".join(lines), caption=caption)

    def _repr_html_(self) -> str:
        head, *rows = self.rows()
        table = Rows(dict(zip(head, row, strict=True)) for row in rows)
        remark = (
            f"{MARK} : diffère de {self.baseline} (test de permutation apparié et bilatéral, {self._n_queries}"
            f" questions, p < 0,05 après correction de Holm-Bonferroni pour {len(self.tests)} comparaisons)."
        )
        table.remarks = [remark] * bool(self.tests)
        return table._repr_html_()

    @property
    def _n_queries(self) -> int:
        return len(self.evaluations[self.baseline].by_query)


def compare_systems(
    library: Library,
    queries: Sequence[Query],
    qrels: Qrels,
    systems: Sequence[str],
    *,
    k: int = 100,
    baseline: str | None = None,
    wanted: "Sequence[Measure] | None" = None,
    settings: SearchSettings | None = None,
    output: str | Path | None = None,
    force: bool = False,
    trust_remote_code: bool = False,
) -> SystemComparison:
    """Index what needs an index, ask every system, measure the runs and test them against a baseline.

    Args:
        library: The documents, and the index of the search modes.
        queries: What is asked.
        qrels: The judgements: all of their queries count.
        systems: Names as `legal_rag.evaluation.systems.parse_system` reads them.
        k: Documents ranked for each query.
        baseline: One of the systems; None takes the first.
        wanted: Measures of ir_measures; None takes `measures(k)`.
        settings: How thorough the Library's own searches are.
        output: Write each run into this folder when it is made, `SYSTEM.txt`; one there by the same settings is read.
        force: Replace runs there that were made otherwise.
        trust_remote_code: Run code that comes with an encoder.

    Raises:
        ValueError: If a system is unknown, named twice or not ready for this Library, or there are no judgements.
        MissingExtraError: If a package is not installed; FileNotFoundError for another program or an encoder.
        FileExistsError: If a run in `output` was made by other settings, and not `force`.
    """
    asked = _parse_all(systems)
    first = parse_system(baseline).name if baseline is not None else asked[0].name
    if first not in (names := [system.name for system in asked]):
        raise ValueError(f"the baseline {first!r} is none of the systems compared: {', '.join(names)}")
    opened = Systems(library, settings, trust_remote_code=trust_remote_code)
    runs = _Runs(opened, queries, k, Path(output).expanduser() if output is not None else None)
    runs.check(asked, force=force)
    for system in progress("Comparing", iterable=asked, unit=" systems"):
        runs.get(system)
    wanted = measures(k) if wanted is None else wanted
    evaluations = {system.name: evaluate_run(qrels, runs.get(system), wanted) for system in asked}
    return SystemComparison(
        baseline=first,
        evaluations=evaluations,
        tests=_test_all(evaluations, first),
        runs={system.name: runs.get(system) for system in asked},
        milliseconds=runs.milliseconds,
        absent=absent_documents(qrels, library),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number, by Holm's step-down form of Bonferroni's correction.

    Rejecting where an adjusted value is below a level keeps the chance of any false rejection below it, however the
    tests depend on one another (Holm, A simple sequentially rejective multiple test procedure, 1979).
    """
    values = np.asarray(p_values, dtype=float)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return [min(1.0, float(value)) for value in adjusted]


def _test_all(evaluations: dict[str, Evaluation], baseline: str) -> Rows[SystemTest]:
    tests = [
        (system, *test)
        for system, evaluation in evaluations.items()
        if system != baseline
        for test in compare_runs(evaluation, evaluations[baseline])
        if not test.measure.startswith(UNTESTED)
    ]
    corrected = holm([p_value for *_, p_value in tests])
    return Rows(SystemTest(*test, p_value) for test, p_value in zip(tests, corrected, strict=True))


def _parse_all(names: Sequence[str]) -> list[System]:
    systems: dict[str, System] = {}
    for system in map(parse_system, names):
        if system.slug in systems:
            raise ValueError(f"the system {system.name!r} is named twice (also as {systems[system.slug].name!r})")
        systems[system.slug] = system
    if not systems:
        raise ValueError("no system to compare (expected some, e.g. 'bm25s' and 'hybrid')")
    return list(systems.values())


class _Runs:
    """Runs of systems, each made once, or read from the folder where an earlier comparison wrote it."""

    def __init__(self, opened: Systems, queries: Sequence[Query], k: int, folder: Path | None) -> None:
        self._opened, self._queries, self._k, self._folder = opened, queries, k, folder
        self._runs: dict[str, Run] = {}
        self.milliseconds: dict[str, float] = {}

    def check(self, systems: Sequence[System], *, force: bool) -> None:
        """Refuse what cannot be run, and files that would be replaced, before any work."""
        for system in systems:
            if (file := self._file(system)) is not None and file.exists():
                if self._is_made(system, file):
                    continue
                if not force:
                    raise FileExistsError(
                        f"there already, and not made by these settings: {file} (expected --force, or another --output)"
                    )
            if system.kind != "rrf":
                self._opened.check(system, self._queries)
            self.check(system.parts, force=force)

    def get(self, system: System) -> Run:
        """Return a system's run."""
        if system.name not in self._runs:
            self._runs[system.name] = self._find_or_make(system)
        return self._runs[system.name]

    def _find_or_make(self, system: System) -> Run:
        file = self._file(system)
        if file is not None and file.exists() and self._is_made(system, file):
            logger.warning("%s: as it is in %s", system.name, file)
            return read_run(file)
        run = self._make(system)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_run(file, run, self._tag(system))
        return run

    def _make(self, system: System) -> Run:
        if system.kind == "rrf":
            return reciprocal_rank_fusion([self.get(part) for part in system.parts], self._k)
        search = self._opened.open(system)
        if system.kind == "run":
            return search(self._queries, self._k)
        search(self._queries[:1], self._k)  # loads what is loaded when first used
        started = time.perf_counter()
        run = search(self._queries, self._k)
        self.milliseconds[system.name] = (time.perf_counter() - started) * 1000 / len(self._queries)
        return run

    def _file(self, system: System) -> Path | None:
        return None if self._folder is None or system.kind == "run" else self._folder / f"{system.slug}.txt"

    def _is_made(self, system: System, file: Path) -> bool:
        with file.open(encoding="utf-8", errors="replace") as lines:
            return lines.readline().split()[-1:] == [self._tag(system)]

    def _tag(self, system: System) -> str:
        """Name a run, in TREC's last column, by its system and all that decides what is in it."""
        library, thorough = self._opened.library, vars(self._opened.settings)
        queries = [query[:2] for query in self._queries]
        files = [Path(part.name).read_text("utf-8") for part in system.parts if part.kind == "run"]
        key = [system.name, library.build_id, library.commit, queries, self._k, thorough, files]
        return f"{system.slug}-{fingerprint(key)}"
