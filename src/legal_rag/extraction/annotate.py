"""One document through LangExtract: its chunking, its prompts, its resolver and alignment; then grounded.

In: a text, a schema, a model. Out: what was extracted, and what was lost on the way.
"""

from collections.abc import Callable
from typing import Any

from langextract.core.base_model import BaseLanguageModel

from legal_rag.extraction.entities import Entity, ExtractionResult, in_order
from legal_rag.extraction.grounding import Grounded, ground
from legal_rag.extraction.model_calls import (
    LATER_TEMPERATURE,
    Memory,
    PersistentModel,
    Slots,
    takes_temperature,
)
from legal_rag.extraction.reading import without_answer
from legal_rag.extraction.schemas import Schema
from legal_rag.extraction.settings import RULES, ExtractionSettings

# What LangExtract itself would guess: left to grounding, which does not.
RESOLVER = {"enable_fuzzy_alignment": False, "accept_match_lesser": False, "suppress_parse_errors": True}


def extract_with_langextract(
    text: str,
    doc_name: str,
    schema: Schema,
    model: BaseLanguageModel,
    settings: ExtractionSettings,
    *,
    slots: Slots | None = None,
    memory: Callable[[int], Memory | None] = lambda _: None,
    max_char_buffer: int | None = None,
) -> ExtractionResult:
    """Extract one document.

    Args:
        text: The document; its offsets are those of the entities.
        doc_name: Its name.
        schema: What to look for.
        model: LangExtract's; see `legal_rag.extraction.model_calls.build_model`.
        settings: Passes, workers, length of a piece.
        slots: Shared with other documents under way.
        memory: Gives, for the number of a pass, where replies are kept.
        max_char_buffer: In place of that of the settings.

    Raises:
        ValueError: If the model refuses to be asked.
        ConnectionError: If its server does not answer.
    """
    slots, before = slots or Slots(settings.max_workers), prompt_before_piece(schema)
    found: list[Entity] = []
    counts, dropped, chunks = Grounded(), set[int](), 0
    for number in range(settings.passes):
        is_warm = number > 0 and takes_temperature(settings.model_id)
        options = {"temperature": LATER_TEMPERATURE} if is_warm else {}
        reader = PersistentModel(model, before, slots, memory(number), settings.max_workers, options)
        asked = settings.model_id != RULES
        document = _annotated(text, doc_name, schema, reader, max_char_buffer or settings.max_char_buffer, asked=asked)
        grounded = ground(document.extractions or [], text, reader.places(text), schema)
        found += [one for one in grounded.entities if not _overlaps_any(one, found)] if number else grounded.entities
        counts.ungrounded += grounded.ungrounded
        counts.echoed += grounded.echoed
        counts.wrong_class += grounded.wrong_class
        dropped, chunks = dropped | reader.dropped, len(reader.pieces)
    return ExtractionResult(
        doc_name=doc_name,
        extractions=in_order(found),
        schema_name=schema.name,
        model_id=settings.model_id,
        chunks=chunks,
        dropped_chunks=len(dropped),
        ungrounded=counts.ungrounded,
        echoed=counts.echoed,
        wrong_class=counts.wrong_class,
    )


def _annotated(
    text: str, doc_name: str, schema: Schema, reader: PersistentModel, max_char_buffer: int, *, asked: bool
) -> Any:
    """Run LangExtract; its slower alignment is for a model that is asked, the rules say themselves where they found."""
    import langextract as lx
    from langextract.prompt_validation import PromptValidationLevel

    from legal_rag.extraction.tokenizer import QuickTokenizer

    (document,) = lx.extract(
        text_or_documents=[lx.data.Document(text=text, document_id=doc_name)],
        prompt_description=schema.prompt,
        examples=schema.lx_examples(),
        model=reader,
        max_char_buffer=max_char_buffer,
        batch_length=max(len(text) // max_char_buffer + 1, 64),  # all pieces of most documents at once
        max_workers=1,
        use_schema_constraints=False,  # the model has them already
        resolver_params=RESOLVER | ({} if asked else {"exact_alignment_algorithm": "difflib"}),
        prompt_validation_level=PromptValidationLevel.OFF,
        show_progress=False,
        fetch_urls=False,
        tokenizer=QuickTokenizer(),
    )
    return document


def prompt_before_piece(schema: Schema) -> str:
    """Return what LangExtract writes before the piece in each prompt: the task, the examples, and 'Q: '."""
    from langextract.core.data import FormatType
    from langextract.core.format_handler import FormatHandler
    from langextract.prompting import PromptTemplateStructured, QAPromptGenerator

    template = PromptTemplateStructured(description=schema.prompt, examples=schema.lx_examples())
    handler = FormatHandler(format_type=FormatType.JSON, use_wrapper=True, use_fences=False)
    return without_answer(QAPromptGenerator(template, handler).render(""))


def _overlaps_any(one: Entity, others: list[Entity]) -> bool:
    return any(
        one["extraction_class"] == other["extraction_class"]
        and one["char_start"] < other["char_end"]
        and other["char_start"] < one["char_end"]
        for other in others
    )
