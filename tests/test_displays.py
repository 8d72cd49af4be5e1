"""Every public value is short in a console and a table in a notebook; every package lists what it exports."""

import dataclasses
import inspect
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from importlib import import_module

import pytest

import legal_rag as lr
from legal_rag.base.html import LINE_CHARS, Rows, row_of, short_repr, table_of
from legal_rag.base.text import fields_of
from legal_rag.evaluation import compare_runs, hardest
from legal_rag.extraction import ExtractionSettings
from legal_rag.law import find_mentions, read
from legal_rag.library import Library
from legal_rag.llm import endpoint_of
from legal_rag.report import SavedAnswers
from legal_rag.retriever import search_typed

MODULES = [module for module in pkgutil.walk_packages(lr.__path__, "legal_rag.") if module.name != "legal_rag.__main__"]
ROOMS = ["legal_rag", *(module.name for module in MODULES if module.ispkg)]
EXPORTING = [room for room in ROOMS if hasattr(import_module(room), "__all__")]
LONG = "Attendu que " * 1000


def is_record(cls):
    """Whether it is a value with fields, and no error or protocol."""
    fields = any(hasattr(cls, name) for name in ("_fields", "__dataclass_fields__", "model_fields"))
    return fields and not issubclass(cls, Exception) and not getattr(cls, "_is_protocol", False)


def exported_classes():
    exported = (getattr(import_module(room), name) for room in EXPORTING for name in import_module(room).__all__)
    return sorted({value for value in exported if inspect.isclass(value)}, key=repr)


def returned_classes():
    """Return the records that exported functions, and public methods of exported classes, return."""
    known = {}
    for module in MODULES:
        values = vars(import_module(module.name)).values()
        known |= {cls.__name__: cls for cls in values if inspect.isclass(cls) and cls.__module__ == module.name}
    functions = [getattr(import_module(room), name) for room in EXPORTING for name in import_module(room).__all__]
    for cls in exported_classes():
        public = [value for name, value in vars(cls).items() if not name.startswith("_") or name == "__call__"]
        functions += [getattr(value, "fget", None) or getattr(value, "func", value) for value in public]
    annotations = [str(getattr(each, "__annotations__", {}).get("return", "")) for each in functions]
    names = set(re.findall(r"\w+", " ".join(annotations)))
    names -= {cls.__name__ for cls in exported_classes()}
    return [cls for name, cls in known.items() if name in names and is_record(cls)]


RECORDS = sorted({*filter(is_record, exported_classes()), *returned_classes()}, key=repr)


def of_long_texts(cls):
    """Return an instance whose every field is a long text."""
    if hasattr(cls, "_fields"):
        return cls._make([LONG] * len(cls._fields))
    if not dataclasses.is_dataclass(cls):
        return cls.model_construct(**dict.fromkeys(cls.model_fields, LONG))
    value = object.__new__(cls)
    for field in dataclasses.fields(cls):
        object.__setattr__(value, field.name, LONG)
    return value


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_a_value_of_any_length_is_short_and_shows_as_a_table(cls):
    value = of_long_texts(cls)
    assert cls.__repr__ is not short_repr or len(repr(value)) <= LINE_CHARS
    assert cls._repr_html_ is not table_of or "<table>" in value._repr_html_()


def records_in(value, seen):
    """Yield the public values within one, itself included; at most a hundred of a class."""
    seen[type(value)] += 1
    if type(value) in RECORDS and seen[type(value)] <= 100:
        yield value
    inner = row_of(value).values() if fields_of(value) is not None else value if isinstance(value, list | tuple) else ()
    for each in inner:
        yield from records_in(each, seen)


@pytest.fixture(scope="module")
def sample_values(tiny_library, tmp_path_factory):
    library = lr.open(tiny_library.path)
    doc_id = next(iter(library))
    question = "Un candidat peut-il être déclaré inéligible ?"
    answer = lr.ask(library, question)
    text = library.document(doc_id).content
    queries, qrels = {"q1": question, "q2": "trouble anormal de voisinage"}, {"q1": {doc_id: 1}, "q2": {doc_id: 1}}
    saved = SavedAnswers(tmp_path_factory.mktemp("answers"))
    saved.save(answer)
    evaluated = lr.evaluate(library, queries, qrels, k=5)
    return [
        library,
        lr.search(library, question),
        search_typed(library.retriever, f'"{question}"', 3),
        answer,
        lr.verify(f"Voir Cass. soc., 10 juillet 2002, n° 00-45.135. {text}", library),
        lr.extract(text),
        evaluated,
        compare_runs(evaluated, evaluated),
        hardest(qrels, {"q1": [(doc_id, 1.0)], "q2": []}),
        library.document(doc_id),
        library.document(doc_id).citation,
        library.outline(doc_id),
        library.chunks_of(doc_id),
        library.graph.find(doc_id),
        find_mentions(text),
        (reading := read(text)).articles,
        reading.paragraphs,
        saved.list(),
        library.retriever.encoder.identity,
        lr.Filters(juridiction="Cour de cassation", doc_ids=tuple(f"JURITEXT{n:012}" for n in range(1000))),
    ]


def test_values_made_of_the_sample_are_short_and_show_as_tables(sample_values):
    seen = Counter()
    values = [record for value in sample_values for record in records_in(value, seen)]
    assert len({type(value) for value in values}) > 20
    for value in [*values, *(value for value in sample_values if isinstance(value, Rows | Library))]:
        assert len(repr(value)) <= LINE_CHARS, type(value)
        assert "<table>" in value._repr_html_(), type(value)


def test_a_key_is_shown_by_no_value():
    keyed = [
        endpoint_of("gpt-5", api_base="http://127.0.0.1:1/v1", api_key="sk-secret"),
        ExtractionSettings(api_key="sk-secret"),
    ]
    for value in keyed:
        assert "sk-secret" not in repr(value) + value._repr_html_()


def test_no_record_that_holds_a_key_shows_it():
    fields = [field for cls in RECORDS if dataclasses.is_dataclass(cls) for field in dataclasses.fields(cls)]
    assert [field.name for field in fields if field.name == "api_key" and field.repr] == []


@pytest.mark.parametrize("room", EXPORTING)
def test_a_package_lists_what_it_exports(room):
    package = import_module(room)
    assert set(package.__all__) <= set(dir(package))
    for name in dir(package):
        getattr(package, name)


def test_the_rooms_are_listed_and_reached_without_importing_them_first():
    listing = "import legal_rag; print(*dir(legal_rag)); print(*dir(legal_rag.agent), *dir(legal_rag.evaluation))"
    listed, agent = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True).stdout.splitlines()
    inner = {"legal_rag.base", "legal_rag.cli"}
    rooms = {room.split(".")[1] for room in ROOMS if room.count(".") == 1 and room not in inner}
    assert rooms <= set(listed.split())
    assert {"build_agent", "Prediction", "questions"} <= set(agent.split())
