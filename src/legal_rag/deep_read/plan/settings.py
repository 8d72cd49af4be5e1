"""How the plan without code reads: how much of a text one question shows, how much of the findings one answer."""

from dataclasses import dataclass, fields

LEAST_FINDINGS_CHARS = 8000  # room for a finding with its notice, and in a summary of a quarter for its quotation


@dataclass(frozen=True, kw_only=True)
class PlanSettings:
    """Sizes in characters; 16,000 are some 4,600 tokens, and nine decisions in ten are shorter."""

    window_chars: int = 16_000  # of a document, shown at once
    overlap_chars: int = 400  # at the least shown twice where a document is cut: two or three sentences
    findings_chars: int = 24_000  # of what was found, shown at once when the answer is written

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) < 1:
                raise ValueError(f"{one.name} must be at least 1, got {getattr(self, one.name)}")
        if self.overlap_chars * 4 > self.window_chars:
            raise ValueError(
                f"overlap_chars must be at most a quarter of window_chars ({self.window_chars}), "
                f"got {self.overlap_chars}"
            )
        if self.findings_chars < LEAST_FINDINGS_CHARS:
            raise ValueError(f"findings_chars must be at least {LEAST_FINDINGS_CHARS}, got {self.findings_chars}")
