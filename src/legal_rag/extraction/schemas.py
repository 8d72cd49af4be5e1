"""Extraction schemas: classes, attributes, prompt and examples, built-in or from a TOML file."""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from legal_rag.base.extras import require
from legal_rag.base.html import displayed
from legal_rag.base.text import normalized
from legal_rag.extraction.entities import CLASSES

_HEAD, _TAIL = 2000, 700  # characters: titles, parties and salutations, then operative part and signatures
_WEIGHTS = {"title": 6, "strong": 3, "weak": 1}  # titles count once, other cues each once
_ENOUGH = 3
_CUED = ("jurisprudence", "correspondence", "corporate", "regulation", "contract")  # ties go to the first
SCHEMA_NAMES = tuple(sorted(CLASSES))
_KINDS = {"str": "text", "dict": "a table", "list": "a list of tables"}  # TOML types in error messages
RULES = "rules"  # model id of `legal_rag.extraction.rules`
RULES_VERSION = 4  # raise it when the rules change: results of other versions, or other tables of law, are not used
TESTS_VERSION = 1  # raise it when the tests of a model's entities change: what they let through is not used then
RULES_SCHEMA = "jurisprudence"
AUTO = "auto"  # `choose_schema` for each document
DEFAULT_MODEL = "gemini-2.5-flash"  # if there is a key for it
KEY_VARIABLE = "LANGEXTRACT_API_KEY"


@displayed
@dataclass(frozen=True)
class ExampleExtraction:
    """An extraction of an example; `extraction_text` is verbatim from its text."""

    extraction_class: str
    extraction_text: str
    attributes: dict[str, str] = field(default_factory=dict)


@displayed
@dataclass(frozen=True)
class Example:
    """A made-up text and the extractions expected from it, in text order."""

    text: str
    extractions: tuple[ExampleExtraction, ...]


@displayed
@dataclass(frozen=True)
class Schema:
    """What to extract: classes, a prompt that explains them, examples."""

    name: str
    version: str  # hash of prompt, classes and examples: 12 hexadecimal digits
    prompt: str  # with one line per class
    classes: tuple[str, ...]
    examples: tuple[Example, ...]  # one or more

    def lx_examples(self) -> list[Any]:
        """Return the examples as LangExtract's `ExampleData`."""
        from langextract.data import ExampleData, Extraction

        return [
            ExampleData(
                text=example.text,
                extractions=[
                    Extraction(item.extraction_class, item.extraction_text, attributes=dict(item.attributes) or None)
                    for item in example.extractions
                ],
            )
            for example in self.examples
        ]


@displayed
@dataclass(frozen=True, kw_only=True)
class ExtractionSettings:
    """Settings of an extraction; the key is sent only to the model's server, and never saved."""

    schema_name: str = AUTO  # or a name that `get_schema` knows
    model_id: str = RULES
    api_key: str | None = field(default=None, repr=False)
    api_base: str | None = None  # of an OpenAI-compatible server, or Ollama's
    max_char_buffer: int = 2000  # characters per prompt; the rules read whole documents
    extraction_passes: int = 2  # 1 to 5; the rules make one
    max_workers: int = 5  # concurrent requests
    timeout: float = 120.0  # seconds that a whole reply may take
    model_options: Mapping[str, Any] = field(default_factory=dict)  # further members of each request

    def __post_init__(self) -> None:
        if not 1 <= self.extraction_passes <= 5:
            raise ValueError(f"extraction_passes must be 1 to 5, got {self.extraction_passes}")
        if self.max_char_buffer < 200:
            raise ValueError(f"max_char_buffer must be at least 200 characters, got {self.max_char_buffer}")
        if self.max_workers < 1:
            raise ValueError(f"max_workers must be at least 1, got {self.max_workers}")
        if self.model_id != RULES:
            require("langextract")

    @property
    def schema(self) -> str:
        """Name of the schema; for the rules, `AUTO` means their own."""
        return RULES_SCHEMA if (self.model_id, self.schema_name) == (RULES, AUTO) else self.schema_name

    @property
    def passes(self) -> int:
        """Passes over each piece."""
        return 1 if self.model_id == RULES else self.extraction_passes


def get_schema(name: str) -> Schema:
    """Return one of `SCHEMA_NAMES`, or the schema of a TOML file (`./mine.toml`) in the same format.

    Raises:
        ValueError: If there is no such schema, or the file is invalid.
        FileNotFoundError: If there is no such file.
    """
    if name in SCHEMA_NAMES:
        return _parse_schema(name, f"{name}.toml", _bundled_file(name))
    if not name.endswith(".toml"):
        raise ValueError(
            f"no schema named {name!r} (expected one of {', '.join(SCHEMA_NAMES)}, or the path of a .toml file)"
        )
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"no schema file {name} (expected a TOML file with prompt, classes and examples)")
    return _parse_schema(path.stem, str(path), path.read_bytes())


def default_model(api_key: str | None = None) -> str:
    """Return the default model: Gemini with a key, given or in the environment, else the rules."""
    return DEFAULT_MODEL if api_key or os.environ.get(KEY_VARIABLE) else RULES


def choose_schema(text: str) -> str:
    """Choose a document's schema by cues in its beginning and end, as `auto` does; 'general' without cues."""
    read = _plain_excerpt(text)
    scores = {name: _score_cues(pattern, read) for name, pattern in _patterns()}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] >= _ENOUGH else "general"


def _plain_excerpt(text: str) -> str:
    text = text.strip()
    read = text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    letters = normalized(read.lower().replace("’", "'"), "NFKD").encode("ascii", "ignore").decode()
    return "\n" + "\n".join(" ".join(words) for line in letters.splitlines() if (words := line.split()))


def _score_cues(pattern: re.Pattern[str], read: str) -> int:
    matched = ((match.lastgroup or "", match.group()[1:]) for match in pattern.finditer(read))
    cues = {(kind, "" if kind == "title" else words) for kind, words in matched}
    return sum(_WEIGHTS[kind] for kind, _ in cues)


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    patterns = []
    for name in _CUED:
        cues = tomllib.loads(_bundled_file(name).decode())["cues"]
        groups = "|".join(f"(?P<{kind}>{'|'.join(cues[kind])})" for kind in _WEIGHTS)
        # A blank may be a line end. The leading character set speeds up the search.
        groups = groups.replace(" ", r"\s").replace("^", r"(?<=\n)")
        patterns.append((name, re.compile(rf"[ \n'\"(>*#-](?:{groups})")))
    return patterns


def _bundled_file(name: str) -> bytes:
    return (files("legal_rag.extraction") / "schemas" / f"{name}.toml").read_bytes()


@lru_cache(maxsize=16)  # by content: a user's file may change between calls
def _parse_schema(name: str, file: str, content: bytes) -> Schema:
    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except ValueError as error:  # neither UTF-8 nor TOML
        raise ValueError(f"{file} is no TOML: {str(error).splitlines()[0]}") from error
    task, explained = _require_value(table, "prompt", str, file), _require_value(table, "classes", dict, file)
    if not all(isinstance(line, str) for line in explained.values()):
        raise ValueError(f"{file}: every class needs its explanation, a string, got {explained!r}")
    rows = enumerate(_require_value(table, "examples", list, file), start=1)
    examples = tuple(_example(row, set(explained), f"{file}, example {number}") for number, row in rows)
    prompt = "\n".join([task.strip(), "", *(f"- {class_name} : {line}" for class_name, line in explained.items())])
    canonical = json.dumps([prompt, table["examples"]], ensure_ascii=False)
    version = hashlib.sha256(canonical.encode()).hexdigest()[:12]
    return Schema(name, version, prompt, tuple(explained), examples)


def _example(row: Any, classes: set[str], where: str) -> Example:
    text = _require_value(row, "text", str, where).strip()
    rows = _require_value(row, "extractions", list, where)
    extractions = tuple(_extraction(item, classes, where) for item in rows)
    start, previous = 0, ""
    for extraction in extractions:
        # Passages may nest, but repeated words are another mention.
        passage = extraction.extraction_text
        at = text.find(passage, start + (passage == previous))
        if at < 0:
            where_not = "from the extraction ahead of it on" if passage in text else "in the example's text"
            raise ValueError(f"{where}: {passage!r} stands nowhere {where_not} (expected word for word, in its order)")
        start, previous = at, passage
    return Example(text, extractions)


def _extraction(row: Any, classes: set[str], where: str) -> ExampleExtraction:
    of_class, text = _require_value(row, "class", str, where), _require_value(row, "text", str, where)
    if of_class not in classes:
        raise ValueError(f"{where}: unknown class {of_class!r} (expected one of {', '.join(sorted(classes))})")
    attributes = row.get("attributes", {})
    if not isinstance(attributes, dict) or not all(isinstance(value, str) for value in attributes.values()):
        raise ValueError(f"{where}: attributes of {text!r} must be a table of strings, got {attributes!r}")
    return ExampleExtraction(of_class, text, attributes)


def _require_value(table: Any, key: str, kind: type, where: str) -> Any:
    value = table.get(key) if isinstance(table, dict) else None
    if not isinstance(value, kind) or not value or (isinstance(value, str) and value.isspace()):
        raise ValueError(f"{where}: {key!r} must be {_KINDS[kind.__name__]}, not empty, got {value!r}")
    return value
