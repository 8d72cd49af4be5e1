"""What decides an extraction, and its defaults: apart from the engine, so that the command line starts at once."""

import os
from dataclasses import dataclass

RULES = "rules"  # the model that needs no model: `legal_rag.extraction.rules`
RULES_VERSION = 1  # higher whenever the rules find something else: results of another one are made anew
RULES_SCHEMA = "jurisprudence"  # whose classes the rules find, whatever a document is
AUTO = "auto"  # a schema chosen for each document by what it holds
DEFAULT_MODEL = "gemini-2.5-flash"  # where there is a key for it
KEY_VARIABLE = "LANGEXTRACT_API_KEY"


def default_model(api_key: str | None = None) -> str:
    """Return the model taken where none is named: Gemini where a key, given or in the environment, is for it."""
    return DEFAULT_MODEL if api_key or os.environ.get(KEY_VARIABLE) else RULES


@dataclass(frozen=True, kw_only=True)
class ExtractionSettings:
    """How documents are extracted; the key is for the model's server only and is written down nowhere."""

    schema_name: str = AUTO  # or a name that `get_schema` knows
    model_id: str = RULES
    api_key: str | None = None
    api_base: str | None = None  # of an OpenAI-compatible server, or Ollama's
    max_char_buffer: int = 2000  # characters in a piece that the model is shown; the rules read whole documents
    extraction_passes: int = 2  # 1 to 5; the rules need one
    max_workers: int = 5  # requests under way at once

    def __post_init__(self) -> None:
        if not 1 <= self.extraction_passes <= 5:
            raise ValueError(f"extraction_passes must be 1 to 5, got {self.extraction_passes}")
        if self.max_char_buffer < 200:
            raise ValueError(f"max_char_buffer must be at least 200 characters, got {self.max_char_buffer}")
        if self.max_workers < 1:
            raise ValueError(f"max_workers must be at least 1, got {self.max_workers}")

    @property
    def schema(self) -> str:
        """The schema that is looked for: the one named; where none is, the rules take theirs, a model `AUTO`."""
        return RULES_SCHEMA if (self.model_id, self.schema_name) == (RULES, AUTO) else self.schema_name

    @property
    def passes(self) -> int:
        """How many times each piece is read."""
        return 1 if self.model_id == RULES else self.extraction_passes

    def __repr__(self) -> str:
        return f"ExtractionSettings(schema_name={self.schema_name!r}, model_id={self.model_id!r}, …)"
