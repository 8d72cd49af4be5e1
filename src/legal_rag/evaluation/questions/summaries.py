"""Questions without a model, from official summaries."""

from dataclasses import replace

from legal_rag.corpus.language import is_french
from legal_rag.corpus.patterns import find_identifiers
from legal_rag.corpus.sentences import split_sentences, without_blanks
from legal_rag.evaluation.questions.checkpoint import CheckpointRecord
from legal_rag.evaluation.questions.checks import tidy
from legal_rag.evaluation.questions.dataset import MODEL_NAME, make_row
from legal_rag.evaluation.questions.documents import Documents
from legal_rag.library.bm25 import lexical_words

QUERY_CHARS = 300  # of a summary: its first sentences, as far as they fit
ANSWER_CHARS = 400
MIN_WORDS = 3  # content words, for a query to say anything


def record_of(documents: Documents, doc_id: str) -> CheckpointRecord:
    """Make a document's row of its official summary.

    What would make the question circular is left out: titles, sentences that name a case, and a summary that its
    document repeats word for word.
    """
    document = documents.document(doc_id)
    query = _query(document.summary, QUERY_CHARS)
    words = set(lexical_words(query))
    rejected = CheckpointRecord(doc_id=document.id, content_hash=document.content_hash, status="rejected")
    if not query:
        return replace(rejected, reason="no_summary")
    if query in tidy(document.content):
        return replace(rejected, reason="copied")
    if len(words) < MIN_WORDS:
        return replace(rejected, reason="names_no_matter")
    if not is_french(query):
        return replace(rejected, reason="not_french")
    start, end = max(_sentences(document.content), key=lambda span: _shared(document.content, span, words))
    score = _shared(document.content, (start, end), words) / len(words)
    if not score:
        return replace(rejected, reason="ungrounded")
    row = make_row(
        document,
        query,
        (start, end),
        main_topic=tidy(document.title),
        summary=document.summary,
        score=round(score, 4),
        model=MODEL_NAME,
        prompt_hash="",
    )
    return replace(rejected, status="accepted", row=row)


def _query(summary: str, most: int) -> str:
    """Return a summary's first sentences that name no case, as many as fit, or the beginning of the first."""
    whole = tidy(summary)
    sentences = (whole[start:end].strip() for start, end in split_sentences(whole))
    text = " ".join(one for one in sentences if all(found.kind == "article" for found in find_identifiers(one)))
    ends = [end for _, end in split_sentences(text) if end <= most]
    return text[: ends[-1]].strip() if ends else text[:most].rpartition(" ")[0] or text[:most]


def _sentences(content: str) -> list[tuple[int, int]]:
    return without_blanks(content, ((start, min(end, start + ANSWER_CHARS)) for start, end in split_sentences(content)))


def _shared(content: str, span: tuple[int, int], words: set[str]) -> int:
    return len(words & set(lexical_words(content[slice(*span)])))
