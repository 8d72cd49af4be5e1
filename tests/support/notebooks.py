"""Notebooks made of their scripts, run, and stored with outputs that are the same at every run.

Run: PYTHONPATH=tests python -m support.notebooks demo.py notebooks/*.py
"""

import os
import re
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from support import ROOT, model_variables

SECONDS = 300  # that a cell may take, on a busy machine; a notebook takes a minute
WIDGET = "application/vnd.jupyter.widget-view+json"  # a progress bar, which means nothing later
FRAME = re.compile(r"<div><iframe .*?</iframe></div>", re.DOTALL)
FRAME_NOTE = "Une page interactive : exécutez la cellule pour la voir."  # no site that shows notebooks shows frames
MASKS = (
    (re.compile(r"\d+(?:[,.]\d+)?(?=[ \xa0\u202f]s\b)"), "…"),  # seconds
    (re.compile(r" at 0x[0-9a-f]+"), ""),
)
BADGE = "[![Ouvrir dans Colab](https://colab.research.google.com/assets/colab-badge.svg)]({})\n\n"


def repository() -> str:
    """Return the address of the project's repository, '' while it has none: the one place that says it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project.get("urls", {}).get("Repository", ""))


def read_script(script: Path, address: str = "") -> NotebookNode:
    """Return a script as a notebook without outputs; with an address, it has a badge and installs from there."""
    notebook = jupytext.read(ROOT / script)
    notebook.metadata.pop("jupytext", None)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    if address:
        place = f"https://colab.research.google.com/github{urlsplit(address).path}/blob/main/"
        title = notebook.cells[0]
        title.source = BADGE.format(place + script.with_suffix(".ipynb").as_posix()) + title.source
        form = next(cell for cell in notebook.cells if cell.cell_type == "code")
        form.source = form.source.replace('PACKAGE = ""', f'PACKAGE = "git+{address}"')
    return notebook


def run(notebook: NotebookNode, folder: Path) -> None:
    """Run all cells in a folder; CellExecutionError if one fails."""
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=SECONDS, resources=resources, store_widget_state=False).execute()


def clean(notebook: NotebookNode, folder: Path) -> None:
    """Take from the outputs what differs from run to run, what was said on stderr, frames and bars."""
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _joined([output for output in (_clean(each, folder) for each in cell.outputs) if output])


def _clean(output: NotebookNode, folder: Path) -> NotebookNode | None:
    data: dict[str, Any] = output.get("data", {})
    if output.get("name") == "stderr" or WIDGET in data:
        return None
    if "text/html" in data and FRAME.search(data["text/html"]):
        data["text/html"] = FRAME.sub("", data["text/html"])
        data["text/plain"] = FRAME_NOTE
    for texts, name in ((output, "text"), *((data, kind) for kind in data if kind.startswith("text/"))):
        if name in texts:
            texts[name] = _masked(texts[name].replace(f"{folder}/", ""))
    if data.get("text/html") == "":
        del data["text/html"]
    return output


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return outputs with what was printed in a row in one piece; where it is cut is a matter of time."""
    joined: list[NotebookNode] = []
    for output in outputs:
        if joined and output.output_type == joined[-1].output_type == "stream":
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _masked(text: str) -> str:
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


def texts(notebook: NotebookNode) -> list[str]:
    """Return what each code cell printed and showed, as text."""
    return ["".join(_texts(cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"]


def _texts(outputs: list[NotebookNode]) -> Iterator[str]:
    for output in outputs:
        data = output.get("data", {})
        yield output.get("text", "") or data.get("text/html", data.get("text/plain", "")) + "\n"


def write(script: Path, address: str) -> None:
    """Run a script as a notebook in an empty folder, and store it with its outputs."""
    notebook = read_script(script, address)
    started = time.perf_counter()
    with TemporaryDirectory() as folder:
        run(notebook, Path(folder).resolve())
        clean(notebook, Path(folder).resolve())
    nbformat.write(notebook, (ROOT / script).with_suffix(".ipynb"))
    print(f"{script}: {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    for name in model_variables():
        del os.environ[name]
    for argument in sys.argv[1:]:
        write(Path(argument).resolve().relative_to(ROOT), repository())
