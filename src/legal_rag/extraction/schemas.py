"""Schemas: what to look for in a document, told to a language model in a prompt and in examples.

In: a schema's name, or the path of a TOML file of one's own. Out: a `Schema` whose examples are sound.
"""

import hashlib
import json
import tomllib
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from legal_rag.extraction.classes import CLASSES
from legal_rag.extraction.schema_choice import choose_schema

__all__ = ["SCHEMA_NAMES", "Example", "ExampleExtraction", "Schema", "choose_schema", "get_schema"]

SCHEMA_NAMES = tuple(sorted(CLASSES))
_KINDS = {"str": "text", "dict": "a table", "list": "a list of tables"}  # of TOML, as errors name them


@dataclass(frozen=True)
class ExampleExtraction:
    """What a model should find in an example's text; `extraction_text` stands there word for word."""

    extraction_class: str
    extraction_text: str
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Example:
    """A text made up for this purpose, and what a model should find in it, in the order of the text."""

    text: str
    extractions: tuple[ExampleExtraction, ...]


@dataclass(frozen=True)
class Schema:
    """What to look for: the classes of entities, a prompt that explains them, examples that show them."""

    name: str
    version: str  # another one whenever prompt, classes or examples are others: 12 hexadecimal digits
    prompt: str  # with a line for every class
    classes: tuple[str, ...]
    examples: tuple[Example, ...]  # one or more

    def lx_examples(self) -> list[Any]:
        """Return the examples as LangExtract's `ExampleData`."""
        from langextract.data import ExampleData, Extraction

        return [
            ExampleData(
                text=example.text,
                extractions=[
                    Extraction(one.extraction_class, one.extraction_text, attributes=dict(one.attributes) or None)
                    for one in example.extractions
                ],
            )
            for example in self.examples
        ]


def get_schema(name: str) -> Schema:
    """Return a schema.

    Args:
        name: One of `SCHEMA_NAMES`, or the path of a TOML file (`./mine.toml`) laid out as theirs are.

    Raises:
        ValueError: If there is no schema of that name, or the file is unsound: it has no `prompt`, `classes` or
            `examples`, or an extraction that does not stand in its text, or of a class that is not among `classes`.
        FileNotFoundError: If there is no such file.
    """
    if name in SCHEMA_NAMES:
        return _bundled(name)
    if not name.endswith(".toml"):
        raise ValueError(
            f"no schema named {name!r} (expected one of {', '.join(SCHEMA_NAMES)}, or the path of a .toml file)"
        )
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"no schema file {name} (expected a TOML file with prompt, classes and examples)")
    return _read(path.stem, str(path), path.read_bytes())


@cache
def _bundled(name: str) -> Schema:
    file = f"{name}.toml"
    return _read(name, file, (files("legal_rag.extraction") / "schemas" / file).read_bytes())


@lru_cache(maxsize=16)  # by content: a file of one's own may change between two calls
def _read(name: str, file: str, content: bytes) -> Schema:
    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except ValueError as error:  # no UTF-8, or no TOML
        raise ValueError(f"{file} is no TOML: {str(error).splitlines()[0]}") from error
    task, explained = _taken(table, "prompt", str, file), _taken(table, "classes", dict, file)
    if not all(isinstance(line, str) for line in explained.values()):
        raise ValueError(f"{file}: every class needs its explanation, a string, got {explained!r}")
    rows = enumerate(_taken(table, "examples", list, file), start=1)
    examples = tuple(_example(row, set(explained), f"{file}, example {number}") for number, row in rows)
    prompt = "\n".join([task.strip(), "", *(f"- {one} : {line}" for one, line in explained.items())])
    canonical = json.dumps([prompt, table["examples"]], ensure_ascii=False)
    version = hashlib.sha256(canonical.encode()).hexdigest()[:12]
    return Schema(name, version, prompt, tuple(explained), examples)


def _example(row: Any, classes: set[str], where: str) -> Example:
    text = _taken(row, "text", str, where).strip()
    rows = _taken(row, "extractions", list, where)
    extractions = tuple(_extraction(one, classes, where) for one in rows)
    start, previous = 0, ""
    for one in extractions:
        # Passages may nest, but the same words again are another mention.
        passage = one.extraction_text
        found = text.find(passage, start + (passage == previous))
        if found < 0:
            where_not = "from the extraction ahead of it on" if passage in text else "in the example's text"
            raise ValueError(f"{where}: {passage!r} stands nowhere {where_not} (expected word for word, in its order)")
        start, previous = found, passage
    return Example(text, extractions)


def _extraction(row: Any, classes: set[str], where: str) -> ExampleExtraction:
    of_class, text = _taken(row, "class", str, where), _taken(row, "text", str, where)
    if of_class not in classes:
        raise ValueError(f"{where}: unknown class {of_class!r} (expected one of {', '.join(sorted(classes))})")
    attributes = row.get("attributes", {})
    if not isinstance(attributes, dict) or not all(isinstance(value, str) for value in attributes.values()):
        raise ValueError(f"{where}: attributes of {text!r} must be a table of strings, got {attributes!r}")
    return ExampleExtraction(of_class, text, attributes)


def _taken(table: Any, key: str, kind: type, where: str) -> Any:
    value = table.get(key) if isinstance(table, dict) else None
    if not isinstance(value, kind) or not value or (isinstance(value, str) and value.isspace()):
        raise ValueError(f"{where}: {key!r} must be {_KINDS[kind.__name__]}, not empty, got {value!r}")
    return value
