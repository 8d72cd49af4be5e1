"""One reading of a text: what the rules find in it, each found when first asked for and kept."""

from functools import cached_property
from typing import TYPE_CHECKING

from legal_rag.base.text import Span
from legal_rag.law.amounts import find_amounts
from legal_rag.law.articles import ArticleCitation, find_article_citations
from legal_rag.law.courts import find_courts, find_formations
from legal_rag.law.dates import find_dates, find_durations, find_time_limits
from legal_rag.law.decisions import find_cases, find_identifiers
from legal_rag.law.sentences import split_sentences
from legal_rag.law.statutes import find_texts
from legal_rag.law.tree import Paragraph, TreeNode

if TYPE_CHECKING:
    from legal_rag.law.outcomes import Operative


class Reading:
    """What a text says in the forms of French law; offsets count its characters.

    Args:
        text: Any text.
        zones: Of a Judilibre record: they give a decision's main parts if they fit the text.
    """

    def __init__(self, text: str, zones: object = None) -> None:
        self.text, self._zones = text, zones

    sentences = cached_property(lambda self: split_sentences(self.text))  # cover the text
    dates = cached_property(lambda self: find_dates(self.text))
    durations = cached_property(lambda self: find_durations(self.text))
    time_limits = cached_property(lambda self: find_time_limits(self.text))
    amounts = cached_property(lambda self: find_amounts(self.text))
    cases = cached_property(lambda self: find_cases(self.text))  # strings in the form of a case number
    identifiers = cached_property(lambda self: find_identifiers(self.text, self.cases))  # of decisions and articles
    texts = cached_property(lambda self: find_texts(self.text, self.dates))  # codes, statutes, treaties
    courts = cached_property(lambda self: find_courts(self.text))
    formations = cached_property(lambda self: find_formations(self.text))

    # `outcomes`, `parts` and `outline` compile patterns for hundredths of a second: not at every start.

    @cached_property
    def grounds(self) -> list[Span]:
        """The grounds of appeal, as designated."""
        from legal_rag.law.outcomes import grounds

        return grounds(self.text)

    @cached_property
    def operative(self) -> "Operative | None":
        """The operative part of a decision."""
        from legal_rag.law.outcomes import operative_part

        return operative_part(self.text)

    @cached_property
    def articles(self) -> list[ArticleCitation]:
        """The articles that it cites, with the texts that hold them; a sum of money is none ("1382 et 760 euros")."""
        sums = {amount.start for amount in self.amounts}
        return [cited for cited in find_article_citations(self.text, self.texts) if cited.start not in sums]

    @cached_property
    def paragraphs(self) -> list[Paragraph]:
        """Its paragraphs, with who speaks in each."""
        from legal_rag.law.parts import read_paragraphs

        return read_paragraphs(self.text, self._zones)

    @cached_property
    def tree(self) -> TreeNode:
        """Its outline."""
        from legal_rag.law.outline import build_tree

        return build_tree(self.text, self.paragraphs)

    @cached_property
    def statements(self) -> list[Span]:
        """The statements of the operative part."""
        from legal_rag.law.outcomes import statements

        return statements(self.text, self.operative) if self.operative else []

    @cached_property
    def outcomes(self) -> list[Span]:
        """The words that state a decision's outcome."""
        from legal_rag.law.outcomes import solutions

        return solutions(self.text, self.operative, self.statements)


def read(text: str | Reading, zones: object = None) -> Reading:
    """Return the reading of a text; a reading is returned as it is."""
    return text if isinstance(text, Reading) else Reading(text, zones)
