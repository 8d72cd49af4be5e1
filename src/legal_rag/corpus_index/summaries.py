"""Extractive summaries: the two or three sentences of a text that say most of it, as they stand in it.

In: a text and its corpus' document frequencies. Out: `Summary`, with the spans it is made of.

Sentences are scored by the weights of the key terms they hold (centroid-based summarisation: Radev et al., 2004), less
for what only opens, cites or signs; a decision's summary ends with what it decides; no sentence repeats another
(Carbonell and Goldstein, 1998).
"""

from typing import NamedTuple

from legal_rag.corpus_index.frequencies import TermStatistics
from legal_rag.corpus_index.keywords import index_terms, keywords_of
from legal_rag.corpus_index.terms import TextTerms, read_terms
from legal_rag.corpus_index.words import WORDS, raw_words
from legal_rag.sentences import split_sentences, without_blanks

MOST_CHARS = 600  # of a summary
SENTENCES = 3  # at most
OMITTED = " […] "  # between sentences that do not follow each other
CUT = "…"  # where a sentence is cut: the summary has no room for the whole


class Summary(NamedTuple):
    """A text's summary, and where it comes from."""

    text: str  # the spans' texts, with blanks evened out, in order; empty of a blank text
    spans: tuple[tuple[int, int], ...]  # characters of the text summed up, rising


def extractive_summary(
    text: str,
    statistics: TermStatistics | None = None,
    *,
    terms: TextTerms | None = None,
    most_chars: int = MOST_CHARS,
) -> Summary:
    """Sum up a text in its own words; equal texts and statistics give equal summaries.

    Args:
        text: Of any kind: a decision, a contract, a letter, one line.
        statistics: Of the corpus; without any, all terms are as telling.
        terms: The text's, if they are read already.
        most_chars: Of the summary; a sentence that leaves no room for others is cut behind a word.
    """
    weights = index_terms(keywords_of(terms or read_terms(text), statistics, 40))
    sentences = without_blanks(text, split_sentences(text))
    scored = []
    for start, end in sentences:
        raws = raw_words(text[start:end])
        found = {WORDS[raw].stem for raw in raws}
        scored.append((-sum(weights.get(one, 0.0) for one in found) / (len(raws) + 10) ** 0.7, start, end))
    chosen = sorted((start, end) for _, start, end in sorted(scored)[:SENTENCES])
    share = most_chars // max(1, len(chosen)) - len(OMITTED) - len(CUT)
    spans, texts = [], []
    for start, end in chosen:
        cut = end
        if end - start > share:
            cut = text.rfind(" ", start, start + share)
            cut = cut if cut > start else start + share
        spans.append((start, cut))
        texts.append(" ".join(text[start:cut].split()) + (CUT if cut < end else ""))
    return Summary(OMITTED.join(texts), tuple(spans))
