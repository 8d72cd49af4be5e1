"""What is nearest to the question itself, without any model: which documents to read, which passages to show instead.

In: the work. Out: ids; or passages in its log.
"""

import logging

from legal_rag.deep_read.conclusion import MOST_PASSAGES
from legal_rag.deep_read.functions import MultiDocREPL
from legal_rag.deep_read.work import Work

logger = logging.getLogger(__name__)


def nearest_ids(work: Work) -> list[str]:
    """Return the ids of the documents that rank first for the question."""
    repl = MultiDocREPL(work.index, None)
    return [doc_id for doc_id, *_ in repl.rank_documents(work.question, work.settings.map_documents)]


def search_nearest(work: Work) -> None:
    """Search for the question, among the documents that it is about; whatever goes wrong leaves nothing found."""
    repl = MultiDocREPL(work.index, None, work.retriever, log=work.log)
    try:
        repl.search_passages(work.question, MOST_PASSAGES, doc_ids=work.doc_ids or None)
    except Exception:  # the run has failed already, and says so: this is only what stands in
        logger.debug("nothing stands in", exc_info=True)
