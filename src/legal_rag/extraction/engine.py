"""Extract the entities of one document or many, by rules or by a model."""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from legal_rag.extraction.entities import Entity, ExtractionResult
from legal_rag.extraction.rules.rules import find_entities, finds_any_of, in_classes_of
from legal_rag.extraction.schemas import (
    AUTO,
    RULES,
    RULES_VERSION,
    Example,
    ExampleExtraction,
    ExtractionSettings,
    Schema,
    choose_schema,
    default_model,
    get_schema,
)
from legal_rag.extraction.store import ExtractionStore, Recipe, text_hash

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
) -> ExtractionResult:
    """Extract the entities of one document.

    Args:
        text: The document; entities' offsets count its characters.
        doc_name: Its name, for the result.
        schema_name: See `get_schema`; None is 'general'; 'auto' chooses by the text, and is 'jurisprudence' for the
            rules.
        model_id: 'rules', a model of Gemini's or OpenAI's, 'ollama/<model>', or any that `api_base` serves; None is
            Gemini where LANGEXTRACT_API_KEY is set, else the rules.
        api_key: For the model's server; None reads LANGEXTRACT_API_KEY. It is kept nowhere.
        max_char_buffer: Characters in a piece that the model is shown.
        extraction_passes: How often each piece is read, 1 to 5; more find more.
        max_workers: Requests under way at once.
        api_base: Address of an OpenAI-compatible server, or Ollama's.
        store: Where results and replies are kept; None keeps none.

    Raises:
        ValueError: If there is no such schema, a setting is out of range, or the model refuses to be asked.
        ConnectionError: If the model's server does not answer.
    """
    settings = _settings(schema_name, model_id, api_key, max_char_buffer, extraction_passes, max_workers, api_base)
    return Extractor(settings, store).extract(text, doc_name)


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
    on_error: Callable[[str, Exception], None] | None = None,
) -> list[ExtractionResult]:
    """Extract the entities of documents, given as `{"name": …, "text": …}`, in their order; see `run_extraction`.

    One that cannot be extracted is logged, or handed to `on_error`; its result says why, and the others go on.
    """
    settings = _settings(schema_name, model_id, api_key, max_char_buffer, extraction_passes, max_workers, api_base)
    extractor, results = Extractor(settings, store), []
    for doc in docs:
        name = str(doc.get("name", ""))
        try:
            results.append(extractor.extract(doc["text"], name))
        # A model fails in as many ways as there are providers; none of them is a reason to lose the others' results.
        except Exception as error:
            if on_error is not None:
                on_error(name, error)
            else:
                logger.warning("%s was not extracted: %s", name, error)
            results.append(ExtractionResult(doc_name=name, error=f"{type(error).__name__}: {error}"))
    return results


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
    """Extract entities of the caller's own classes; the rules find those of theirs that are among them.

    Args:
        text: The document.
        prompt_description: What to look for, in words.
        extraction_classes: One or more.
        model_id: See `run_extraction`.
        api_key: See `run_extraction`.
        api_base: See `run_extraction`.
        store: See `run_extraction`.

    Raises:
        ValueError: If no class is given, or the model refuses to be asked.
    """
    if not extraction_classes or isinstance(extraction_classes, str):
        raise ValueError(f"no extraction_classes: {extraction_classes!r} (expected one or more, e.g. ['montant'])")
    settings = _settings(None, model_id, api_key, 2000, 1, 5, api_base)
    schema = schema_of_classes(prompt_description, extraction_classes)
    result = Extractor(settings, store).extract(text, "document", schema)
    return [one for one in result.extractions if one["extraction_class"] in extraction_classes]


def schema_of_classes(prompt_description: str, extraction_classes: Sequence[str]) -> Schema:
    """Make a schema of classes alone, with one example that shows the form of a reply."""
    text = " ; ".join(f"exemple de {name}" for name in extraction_classes)
    shown = tuple(ExampleExtraction(name, f"exemple de {name}") for name in extraction_classes)
    prompt = f"{prompt_description}\n\nClasses : {', '.join(extraction_classes)}. Copiez chaque passage mot pour mot."
    version = hashlib.sha256(prompt.encode()).hexdigest()[:12]
    return Schema("on demand", version, prompt, tuple(extraction_classes), (Example(text, shown),))


class Extractor:
    """Extracts documents by one set of settings, from any number of threads; the model is made once.

    Args:
        settings: How.
        store: Where results, and replies until a result is whole, are kept; None keeps none.

    Raises:
        ValueError: If there is no such schema.
    """

    def __init__(self, settings: ExtractionSettings, store: ExtractionStore | None = None) -> None:
        if settings.schema_name != AUTO:
            get_schema(settings.schema_name)  # a wrong name is known before anything is read
            if settings.model_id == RULES and not finds_any_of(get_schema(settings.schema_name)):
                known = "expected 'jurisprudence' or 'general', or a model"
                raise ValueError(f"the rules find nothing of schema {settings.schema_name!r} ({known})")
        self.settings, self._store = settings, store
        self._models: dict[str, Any] = {}
        self._slots: Any = None
        self._lock = threading.Lock()

    def recipe_for(self, text: str) -> Recipe:
        """Return by what recipe a text would be extracted."""
        return self._recipe(self._schema(text))

    def extract(self, text: str, doc_name: str, schema: Schema | None = None) -> ExtractionResult:
        """Extract one document.

        Args:
            text: The document.
            doc_name: Its name.
            schema: What to look for, in place of the settings' schema.

        Raises:
            ValueError: If the model refuses to be asked.
            ConnectionError: If its server does not answer.
        """
        schema = schema or self._schema(text)
        recipe = self._recipe(schema)
        if self._store is not None and (kept := self._store.get(text, recipe)) is not None:
            return replace(kept, doc_name=doc_name)
        if self.settings.model_id == RULES:
            result = self._by_rules(text, doc_name, schema)
        else:
            result = self._by_model(text, doc_name, schema, recipe)
        if self._store is not None and result.complete:
            self._store.put(text, recipe, result)
        return result

    def _by_rules(self, text: str, doc_name: str, schema: Schema) -> ExtractionResult:
        found = in_classes_of(find_entities(text), schema)
        return ExtractionResult(doc_name=doc_name, extractions=found, schema_name=schema.name, model_id=RULES, chunks=1)

    def _by_model(self, text: str, doc_name: str, schema: Schema, recipe: Recipe) -> ExtractionResult:
        from legal_rag.extraction.langextract import Memory, extract_with_langextract

        store, keys = self._store, (text_hash(text), recipe.key)

        def memory(number: int) -> Memory | None:
            if store is None:
                return None
            return (
                lambda prompt: store.reply(*keys, text_hash(prompt), number),
                lambda prompt, reply: store.put_reply(*keys, text_hash(prompt), number, reply),
            )

        model, slots = self._model(schema)
        return extract_with_langextract(text, doc_name, schema, model, self.settings, slots=slots, memory=memory)

    def _model(self, schema: Schema) -> tuple[Any, Any]:
        """Return the model held to a schema's form, and the slots for its requests; made when first needed."""
        from legal_rag.extraction.langextract import Slots, build_model

        with self._lock:
            if self._slots is None:
                self._slots = Slots(self.settings.max_workers)
            if schema.version not in self._models:
                self._models[schema.version] = build_model(self.settings, schema.lx_examples())
            return self._models[schema.version], self._slots

    def _schema(self, text: str) -> Schema:
        name = self.settings.schema
        return get_schema(choose_schema(text) if name == AUTO else name)

    def _recipe(self, schema: Schema) -> Recipe:
        by_rules = self.settings.model_id == RULES
        return Recipe(
            schema_name=schema.name,
            schema_version=schema.version,
            model_id=f"{RULES}-{RULES_VERSION}" if by_rules else self.settings.model_id,
            passes=self.settings.passes,
            prompt_hash="" if by_rules else hashlib.sha256(schema.prompt.encode()).hexdigest(),
            max_char_buffer=0 if by_rules else self.settings.max_char_buffer,
        )


def _settings(
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
