"""One reading of a text: what the rules find in it, each found when first asked for and kept."""

from functools import cached_property

from legal_rag.base.text import Span
from legal_rag.law.amounts import LegalAmount, find_amounts
from legal_rag.law.articles import ArticleCitation, find_article_citations
from legal_rag.law.courts import find_courts, find_formations
from legal_rag.law.dates import LegalDate, LegalDuration, find_dates, find_durations, find_time_limits
from legal_rag.law.decisions import Identifier, find_cases, find_identifiers
from legal_rag.law.outcomes import Operative, grounds, operative_part, solutions, statements
from legal_rag.law.sentences import split_sentences
from legal_rag.law.statutes import LegalText, find_texts
from legal_rag.law.tree import Paragraph, TreeNode


class Reading:
    """What a text says in the forms of French law; offsets count its characters.

    Args:
        text: Any text.
        zones: Of a Judilibre record: they give a decision's main parts if they fit the text.
    """

    def __init__(self, text: str, zones: object = None) -> None:
        self.text, self._zones = text, zones

    @cached_property
    def sentences(self) -> list[Span]:
        """Its sentences, which cover it."""
        return split_sentences(self.text)

    @cached_property
    def dates(self) -> list[LegalDate]:
        """The full dates that it names."""
        return find_dates(self.text)

    @cached_property
    def durations(self) -> list[LegalDuration]:
        """Its durations, whether or not they are time limits."""
        return find_durations(self.text)

    @cached_property
    def time_limits(self) -> list[Span]:
        """The durations that are time limits."""
        return find_time_limits(self.text)

    @cached_property
    def amounts(self) -> list[LegalAmount]:
        """Its sums of money."""
        return find_amounts(self.text)

    @cached_property
    def cases(self) -> list[Identifier]:
        """Strings with the form of a case number; see `identifiers`."""
        return find_cases(self.text)

    @cached_property
    def identifiers(self) -> list[Identifier]:
        """The decisions and articles that it names, in every form of their numbers."""
        return find_identifiers(self.text, self.cases)

    @cached_property
    def texts(self) -> list[LegalText]:
        """The codes, statutes and treaties that it names."""
        return find_texts(self.text, self.dates)

    @cached_property
    def articles(self) -> list[ArticleCitation]:
        """The articles that it cites, with the texts that hold them; a sum of money is none ("1382 et 760 euros")."""
        sums = {amount.start for amount in self.amounts}
        return [cited for cited in find_article_citations(self.text, self.texts) if cited.start not in sums]

    @cached_property
    def courts(self) -> list[Span]:
        """The courts that it names."""
        return find_courts(self.text)

    @cached_property
    def formations(self) -> list[Span]:
        """The chambers and other formations that it names."""
        return find_formations(self.text)

    @cached_property
    def paragraphs(self) -> list[Paragraph]:
        """Its paragraphs, with who speaks in each."""
        from legal_rag.law.parts import read_paragraphs  # compiles patterns for a tenth of a second

        return read_paragraphs(self.text, self._zones)

    @cached_property
    def tree(self) -> TreeNode:
        """Its outline."""
        from legal_rag.law.outline import build_tree

        return build_tree(self.text, self.paragraphs)

    @cached_property
    def operative(self) -> Operative | None:
        """A decision's operative part."""
        return operative_part(self.text)

    @cached_property
    def statements(self) -> list[Span]:
        """The statements of the operative part."""
        return statements(self.text, self.operative) if self.operative else []

    @cached_property
    def outcomes(self) -> list[Span]:
        """The words that state a decision's outcome."""
        return solutions(self.text, self.operative, self.statements)

    @cached_property
    def grounds(self) -> list[Span]:
        """The designations of grounds of appeal."""
        return grounds(self.text)


def read(text: str | Reading, zones: object = None) -> Reading:
    """Return the reading of a text; a reading is returned as it is."""
    return text if isinstance(text, Reading) else Reading(text, zones)
