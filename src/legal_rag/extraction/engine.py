"""Extract the entities of documents, by rules or by a language model."""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from legal_rag.extraction.entities import Entity, ExtractedDocument, ExtractionResult
from legal_rag.extraction.rules import classes_found, entities_of_schema
from legal_rag.extraction.schemas import (
    AUTO,
    RULES,
    RULES_VERSION,
    TESTS_VERSION,
    Example,
    ExampleExtraction,
    ExtractionSettings,
    Schema,
    choose_schema,
    default_model,
    get_schema,
)
from legal_rag.extraction.store import ExtractionStore, Recipe
from legal_rag.law import Reading
from legal_rag.law.scanning import tables_version

if TYPE_CHECKING:
    from legal_rag.extraction.langextract import ModelPieces

logger = logging.getLogger(__name__)


def run_extraction(
    text: str,
    doc_name: str,
    schema_name: str | None = None,
    model_id: str | None = None,
    api_key: str | None = None,
    max_char_buffer: int = 2000,
    extraction_passes: int = 2,
    max_workers: int = 5,
    *,
    api_base: str | None = None,
    store: ExtractionStore | None = None,
    output: str | Path | None = None,
) -> ExtractionResult:
    """Extract the entities of one document; offsets count the characters of `text`.

    The schema is one that `get_schema` knows (default 'general'), or 'auto', by the text. The model is 'rules', one of
    Gemini or OpenAI, 'ollama/<model>', or any that `api_base` serves; by default Gemini with a key, the rules without.
    A key comes from the argument or LANGEXTRACT_API_KEY, and is never saved. A model reads pieces of `max_char_buffer`
    characters, each in `extraction_passes` passes, 1 to 5. `store` saves results and the model's replies; `output` is a
    folder for the files of `legal-rag extract`, which replace those of an earlier call.

    Raises:
        ValueError: If there is no such schema, a setting is out of range, or the model refuses requests.
        ConnectionError: If the model's server does not answer.
    """
    settings = _make_settings(schema_name, model_id, api_key, max_char_buffer, extraction_passes, max_workers, api_base)
    result = replace(Extractor(settings, store).extract(text, doc_name), text=text)
    return result if output is None else _save_results([result], [text], output)[0]


def run_batch_extraction(
    docs: Iterable[Mapping[str, str]],
    schema_name: str | None = None,
    model_id: str | None = None,
    api_key: str | None = None,
    max_char_buffer: int = 2000,
    extraction_passes: int = 2,
    max_workers: int = 5,
    *,
    api_base: str | None = None,
    store: ExtractionStore | None = None,
    output: str | Path | None = None,
    on_error: Callable[[str, Exception], None] | None = None,
) -> list[ExtractionResult]:
    """Extract the entities of documents, given as `{"name": …, "text": …}`, in order; see `run_extraction`.

    A failure is logged, or passed to `on_error`, and recorded in that document's result; the others continue. With
    `output`, names must differ.
    """
    settings = _make_settings(schema_name, model_id, api_key, max_char_buffer, extraction_passes, max_workers, api_base)
    extractor, results, texts = Extractor(settings, store), [], []
    for doc in docs:
        name = str(doc.get("name", ""))
        texts.append(doc.get("text", ""))
        try:
            results.append(replace(extractor.extract(doc["text"], name), text=doc["text"]))
        # Providers fail in many ways; none should lose the other documents' results.
        except Exception as error:
            if on_error is not None:
                on_error(name, error)
            else:
                logger.warning("%s was not extracted: %s", name, error)
            results.append(ExtractionResult(doc_name=name, error=f"{type(error).__name__}: {error}"))
    return results if output is None else _save_results(results, texts, output)


def _save_results(results: list[ExtractionResult], texts: list[str], output: str | Path) -> list[ExtractionResult]:
    """Write the files of `legal-rag extract`, and add the JSONL's path to each result without an error."""
    from legal_rag.extraction.outputs import JSONL, write_outputs

    folder = Path(output).expanduser()
    pairs = zip(results, texts, strict=True)
    items = (ExtractedDocument(item.doc_name, "", text, item.extractions) for item, text in pairs if item.error is None)
    write_outputs(folder, items)
    return [replace(item, raw_jsonl_path=str(folder / JSONL)) if item.error is None else item for item in results]


def on_demand_extract(
    text: str,
    prompt_description: str,
    extraction_classes: Sequence[str],
    model_id: str | None = None,
    api_key: str | None = None,
    *,
    api_base: str | None = None,
    store: ExtractionStore | None = None,
) -> list[Entity]:
    """Extract entities of the caller's own classes, described in `prompt_description`; the rules find only their own.

    Raises:
        ValueError: If no class is given, or the model refuses requests.
    """
    if not extraction_classes or isinstance(extraction_classes, str):
        raise ValueError(f"no extraction_classes: {extraction_classes!r} (expected one or more, e.g. ['montant'])")
    settings = _make_settings(None, model_id, api_key, 2000, 1, 5, api_base)
    schema = schema_of_classes(prompt_description, extraction_classes)
    result = Extractor(settings, store).extract(text, "document", schema)
    return [entity for entity in result.extractions if entity["extraction_class"] in extraction_classes]


def schema_of_classes(prompt_description: str, extraction_classes: Sequence[str]) -> Schema:
    """Build a schema from class names, with one example of the reply format."""
    text = " ; ".join(f"exemple de {name}" for name in extraction_classes)
    shown = tuple(ExampleExtraction(name, f"exemple de {name}") for name in extraction_classes)
    prompt = f"{prompt_description}\n\nClasses : {', '.join(extraction_classes)}. Copiez chaque passage mot pour mot."
    version = hashlib.sha256(prompt.encode()).hexdigest()[:12]
    return Schema("on demand", version, prompt, tuple(extraction_classes), (Example(text, shown),))


class Extractor:
    """Thread-safe extractor for any number of documents with one model; without a store, nothing is saved.

    ValueError if there is no such schema, or the rules find nothing of it.
    """

    def __init__(self, settings: ExtractionSettings, store: ExtractionStore | None = None) -> None:
        if settings.schema_name != AUTO:
            schema = get_schema(settings.schema_name)
            if settings.model_id == RULES and not classes_found(schema):
                known = "expected 'jurisprudence', 'regulation' or 'general', or a model"
                raise ValueError(f"the rules find nothing of schema {settings.schema_name!r} ({known})")
        self.settings, self._store = settings, store
        self._pieces: ModelPieces | None = None
        self._lock = threading.Lock()

    def recipe_for(self, text: str) -> Recipe:
        """Return the recipe for a text."""
        return self._recipe(self._schema_for(text))

    def extract(
        self, text: str, doc_name: str, schema: Schema | None = None, *, reading: Reading | None = None
    ) -> ExtractionResult:
        """Extract one document, by `schema` instead of that of the settings; raises as `run_extraction` does.

        `reading` is what rules have read of the text.
        """
        schema = schema or self._schema_for(text)
        recipe = self._recipe(schema)
        if self._store is not None and (saved := self._store.get(text, recipe)) is not None:
            return replace(saved, doc_name=doc_name)
        if self.settings.model_id == RULES:
            entities = entities_of_schema(reading or text, schema)
            result = ExtractionResult(
                doc_name=doc_name, extractions=entities, schema_name=schema.name, model_id=RULES, chunks=1
            )
        else:
            result = self._by_model(text, doc_name, schema)
        if self._store is not None and result.complete:
            self._store.put(text, recipe, result)
        return result

    def _by_model(self, text: str, doc_name: str, schema: Schema) -> ExtractionResult:
        from legal_rag.extraction.langextract import ModelPieces, extract_with_langextract

        with self._lock:
            self._pieces = self._pieces or ModelPieces(self.settings, cache=self._store is not None)
        return extract_with_langextract(text, doc_name, schema, self._pieces.asking, self.settings)

    def _schema_for(self, text: str) -> Schema:
        name = self.settings.schema
        return get_schema(choose_schema(text) if name == AUTO else name)

    def _recipe(self, schema: Schema) -> Recipe:
        by_rules = self.settings.model_id == RULES
        return Recipe(
            schema_name=schema.name,
            schema_version=schema.version,
            model_id=f"{RULES}-{RULES_VERSION}.{tables_version():08x}" if by_rules else self.settings.model_id,
            passes=self.settings.passes,
            prompt_hash="" if by_rules else hashlib.sha256(f"{TESTS_VERSION}\n{schema.prompt}".encode()).hexdigest(),
            max_char_buffer=0 if by_rules else self.settings.max_char_buffer,
        )


def _make_settings(
    schema_name: str | None,
    model_id: str | None,
    api_key: str | None,
    max_char_buffer: int,
    extraction_passes: int,
    max_workers: int,
    api_base: str | None,
) -> ExtractionSettings:
    return ExtractionSettings(
        schema_name=schema_name or "general",
        model_id=model_id or default_model(),
        api_key=api_key,
        api_base=api_base,
        max_char_buffer=max_char_buffer,
        extraction_passes=extraction_passes,
        max_workers=max_workers,
    )
