"""Tags in the answer: the model's instructions for them, and their removal from its text."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from legal_rag.corpus.documents import Document
from legal_rag.graph.tags import parse_extraction_tags
from legal_rag.graph.types import (
    EDGE_TYPES,
    EPISODE_STATUSES,
    NODE_TYPES,
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
)

SHIELD = "\ufdd0"  # replaces "<" while tags are parsed: no text has this character
_FENCED = re.compile(
    r"^[ \t]*(?P<mark>`{3,}+|~{3,}+)[^\n]*\n(?P<code>(?:(?![ \t]*(?:```|~~~))[^\n]*\n)*+"
    r"(?:(?![ \t]*(?:```|~~~))[^\n]++\Z)?)(?:[ \t]*(?P=mark)[ \t]*$|\Z)",
    re.MULTILINE,
)
_QUOTATION = re.compile(r"«\s*([^«»]*+)»")


@dataclass(frozen=True, kw_only=True)
class TagSettings:
    """Settings of an answer's tags: whether they are asked for, and which count."""

    single_pass_extraction_enabled: bool = True  # else the prompt does not mention them, and the answer is left as is
    extraction_confidence_threshold: float = 0.7  # 0 to 1; entities and relationships below it are dropped

    def __post_init__(self) -> None:
        if not 0 <= self.extraction_confidence_threshold <= 1:
            threshold = self.extraction_confidence_threshold
            raise ValueError(f"extraction_confidence_threshold must be from 0 to 1, got {threshold}")


def tag_instructions() -> str:
    """Return the part of a model's instructions about tags, in French."""
    names = {"node_types": NODE_TYPES, "edge_types": EDGE_TYPES, "statuses": EPISODE_STATUSES}
    text = (files("legal_rag.agent") / "tags_prompt.md").read_text("utf-8").strip()
    return text.format(**{name: ", ".join(values) for name, values in names.items()})


def take_tags(text: str, read: Iterable[Document]) -> tuple[ExtractionResult, str]:
    """Take the tags out of a model's text; return their extraction, and the text without them.

    A tag that occurs in a document is the document's text, not the model's: it is not extracted, and is left where the
    model quotes it.

    Args:
        text: Of a model.
        read: What it read; only looked at if there are tags.
    """
    text, given = _FENCED.sub(_unfenced_tags, text), text
    result, clean = parse_extraction_tags(text)
    if clean == text:
        return result, given
    tagged = [
        (document.content, planted)
        for document in read
        for planted, rest in [parse_extraction_tags(document.content)]
        if rest != document.content
    ]
    if not tagged:
        return result, clean
    result, clean = parse_extraction_tags(_shielded(text, [content for content, _ in tagged]))
    return _without_planted(result, [extraction for _, extraction in tagged]), clean.replace(SHIELD, "<")


def without_tags(value: Any) -> Any:
    """Return a text without tags; of lists and dictionaries, those in their texts."""
    if isinstance(value, dict):
        return {name: without_tags(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_tags(item) for item in value]
    return parse_extraction_tags(value)[1] if isinstance(value, str) else value


def _unfenced_tags(block: re.Match[str]) -> str:
    """Drop the fence around a block that contains tags, closed or cut off, as many models write them."""
    return block[0] if parse_extraction_tags(block["code"])[1] == block["code"] else block["code"]


def _shielded(text: str, contents: Sequence[str]) -> str:
    """Mask the "<" of quotations that occur word for word in `contents`."""
    known = [" ".join(content.split()) for content in contents]

    def shield(match: re.Match[str]) -> str:
        is_quoted = any(" ".join(match[1].split()) in content for content in known)
        return match[0].replace("<", SHIELD) if is_quoted else match[0]

    return _QUOTATION.sub(shield, text.replace(SHIELD, ""))


def _without_planted(result: ExtractionResult, planted: Iterable[ExtractionResult]) -> ExtractionResult:
    """Drop what is in the planted tags too, whatever its confidence."""
    known = {
        key
        for extraction in planted
        for items in (extraction.entities, extraction.relationships, extraction.episodes)
        for key in (_extraction_key(item) for item in items)
    }
    return ExtractionResult(
        [item for item in result.entities if _extraction_key(item) not in known],
        [item for item in result.relationships if _extraction_key(item) not in known],
        [item for item in result.episodes if _extraction_key(item) not in known],
    )


def _extraction_key(item: ExtractedEntity | ExtractedRelationship | ExtractedEpisode) -> tuple[str, ...]:
    if isinstance(item, ExtractedEntity):
        return item.type, item.name.casefold()
    if isinstance(item, ExtractedRelationship):
        return item.type, item.source.casefold(), item.target.casefold()
    return item.decision.casefold(), item.context.casefold()
