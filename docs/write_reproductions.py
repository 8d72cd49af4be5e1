"""Write the rows of benchmarks/reproductions.toml into docs/reproductions.md: `make reproductions`."""

from pathlib import Path

from legal_rag.evaluation.reproductions import Row, Table, read_table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproductions.md"
MARK = "<!-- What follows is written by docs/write_reproductions.py. -->\n"


def page(table: Table, written: str) -> str:
    """Return the page of a table: what is written by hand above the mark stays."""
    total, building = (sum(one.seconds for one in some.values()) / 60 for some in (table.rows, table.libraries))
    summary = [
        f"| [{row.name}](#{row.name}) | {row.shows} | {', '.join(table.needed(row))} | {row.seconds} |"
        for row in table.rows.values()
    ]
    parts = [
        written.partition(MARK)[0] + MARK,
        f"{len(table.rows)} rows, {total:.0f} minutes; Libraries {building:.0f} more, once.\n",
        "\n".join(["| row | shows | needs | seconds |", "|---|---|---|---|", *summary]),
        "\n## Libraries\n",
        *(f"{library.name}: {_described(table, library)}" for library in table.libraries.values()),
        *(f"## {row.name}\n\n{_described(table, row)}\n{_figures(row)}" for row in table.rows.values()),
    ]
    return "\n".join(parts)


def _described(table: Table, row: Row) -> str:
    built = f" with the Libraries {', '.join(row.libraries)}" if row.libraries else ""
    needs = ", ".join(table.needed(row)) or "nothing but the clone"
    elsewhere = f"; elsewhere within {row.elsewhere}" if row.elsewhere else ""
    return f"{row.shows}. {row.seconds} s{built}; needs {needs}{elsewhere}.\n\n```console\n{row.command}\n```\n"


def _figures(row: Row) -> str:
    figures = {
        name: f"{one.expected}" + f" ± {one.tolerance}" * bool(one.tolerance) for name, one in row.figures.items()
    }
    times = {f"{name} (decides nothing)": str(one) for name, one in row.times.items()}
    lines = [f"| {name} | {expected} |" for name, expected in {**figures, **times}.items()]
    return "\n".join(["| figure | expected |", "|---|---|", *lines]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(read_table(ROOT), PAGE.read_text("utf-8")), "utf-8")
