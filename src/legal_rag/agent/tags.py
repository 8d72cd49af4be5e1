"""Tags in the answer: what a model is told of them, and how they are taken out of what it writes."""

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

SHIELD = "\ufdd0"  # stands for "<" while tags are read: no text has this character
_FENCED = re.compile(
    r"^[ \t]*(?P<mark>`{3,}+|~{3,}+)[^\n]*\n(?P<code>(?:(?![ \t]*(?:```|~~~))[^\n]*\n)*+"
    r"(?:(?![ \t]*(?:```|~~~))[^\n]++\Z)?)(?:[ \t]*(?P=mark)[ \t]*$|\Z)",
    re.MULTILINE,
)
_QUOTATION = re.compile(r"«\s*([^«»]*+)»")


@dataclass(frozen=True, kw_only=True)
class TagSettings:
    """Whether an answer's tags are asked for, and which count."""

    single_pass_extraction_enabled: bool = True  # else the model is told nothing of them, and its answer is left as is
    extraction_confidence_threshold: float = 0.7  # 0 to 1; entities and relationships below it are dropped

    def __post_init__(self) -> None:
        if not 0 <= self.extraction_confidence_threshold <= 1:
            found = self.extraction_confidence_threshold
            raise ValueError(f"extraction_confidence_threshold must be from 0 to 1, got {found}")


def tag_instructions() -> str:
    """Return what a model is told of the tags, in French; part of its instructions."""
    names = {"node_types": NODE_TYPES, "edge_types": EDGE_TYPES, "statuses": EPISODE_STATUSES}
    text = (files("legal_rag.agent") / "tags_prompt.md").read_text("utf-8").strip()
    return text.format(**{name: ", ".join(values) for name, values in names.items()})


def take_tags(text: str, read: Iterable[Document]) -> tuple[ExtractionResult, str]:
    """Take the tags out of a model's text; return what they say, and the text without them.

    A tag that stands in a document is the document's text, not the model's word: it says nothing, and is left where the
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
        (one.content, said)
        for one in read
        for said, rest in [parse_extraction_tags(one.content)]
        if rest != one.content
    ]
    if not tagged:
        return result, clean
    result, clean = parse_extraction_tags(_shielded(text, [content for content, _ in tagged]))
    return _less(result, [said for _, said in tagged]), clean.replace(SHIELD, "<")


def without_tags(value: Any) -> Any:
    """Return a text without tags; of lists and dictionaries, those in their texts."""
    if isinstance(value, dict):
        return {name: without_tags(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_tags(one) for one in value]
    return parse_extraction_tags(value)[1] if isinstance(value, str) else value


def _unfenced_tags(block: re.Match[str]) -> str:
    """Return the code of a block if tags are in it, as many models put them, closed or cut off; else the block."""
    return block[0] if parse_extraction_tags(block["code"])[1] == block["code"] else block["code"]


def _shielded(text: str, contents: Sequence[str]) -> str:
    """Return a text in which nothing that it quotes word for word from some others begins a tag."""
    known = [" ".join(content.split()) for content in contents]

    def shield(match: re.Match[str]) -> str:
        is_quoted = any(" ".join(match[1].split()) in one for one in known)
        return match[0].replace("<", SHIELD) if is_quoted else match[0]

    return _QUOTATION.sub(shield, text.replace(SHIELD, ""))


def _less(result: ExtractionResult, planted: Iterable[ExtractionResult]) -> ExtractionResult:
    """Return what tags say without what others say too, whatever the confidence."""
    known = {
        key
        for said in planted
        for some in (said.entities, said.relationships, said.episodes)
        for key in (_key(one) for one in some)
    }
    return ExtractionResult(
        [one for one in result.entities if _key(one) not in known],
        [one for one in result.relationships if _key(one) not in known],
        [one for one in result.episodes if _key(one) not in known],
    )


def _key(one: ExtractedEntity | ExtractedRelationship | ExtractedEpisode) -> tuple[str, ...]:
    if isinstance(one, ExtractedEntity):
        return one.type, one.name.casefold()
    if isinstance(one, ExtractedRelationship):
        return one.type, one.source.casefold(), one.target.casefold()
    return one.decision.casefold(), one.context.casefold()
