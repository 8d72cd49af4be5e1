"""Tags in the answer: the model's instructions for them, and their removal from its text."""

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from legal_rag.graph.tags import parse_extraction_tags
from legal_rag.graph.types import EDGE_TYPES, EPISODE_STATUSES, NODE_TYPES, ExtractionResult

_FENCED = re.compile(
    r"^[ \t]*(?P<mark>`{3,}+|~{3,}+)[^\n]*\n(?P<code>(?:(?![ \t]*(?:```|~~~))[^\n]*\n)*+"
    r"(?:(?![ \t]*(?:```|~~~))[^\n]++\Z)?)(?:[ \t]*(?P=mark)[ \t]*$|\Z)",
    re.MULTILINE,
)


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


def take_tags(text: str) -> tuple[ExtractionResult, str]:
    """Take the tags out of a model's text; return their extraction, and the text without them."""
    unfenced = _FENCED.sub(_unfenced_tags, text)
    result, clean = parse_extraction_tags(unfenced)
    return result, text if clean == unfenced else clean


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
