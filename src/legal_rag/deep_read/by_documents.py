"""Map-reduce mode of a deep read, for models that cannot write programs."""

from legal_rag.citations import EnrichedResponse
from legal_rag.deep_read.conclusion import conclude
from legal_rag.deep_read.nearest import nearest_ids, search_nearest
from legal_rag.deep_read.plan import map_reduce
from legal_rag.deep_read.work import Work
from legal_rag.prediction import Prediction

NEAREST = "Ont été lues les {} décisions les plus proches de la question, non tout le corpus"
INSTEAD = "les décisions ont été lues une à une"


def read_by_documents(work: Work, why: str = "") -> Prediction:
    """Read each document, verify its quotations, and have one answer written from them.

    Args:
        work: The question and what it is read with; without documents, those that rank first are read.
        why: Why no programs are run although they were asked for, in French without a full stop.
    """
    result = map_reduce(
        work.question,
        work.doc_ids or nearest_ids(work),
        library=work.library,
        root=work.root,
        sub=work.sub,
        workers=work.settings.workers,
        on_event=work.write_down,
        meter=work.tracker,
    )
    for doc_id in dict.fromkeys(finding.doc_id for finding in result.verified):
        work.log.read(work.library.document(doc_id))
    quoted = EnrichedResponse(result.text, list(result.quoted), [], [], 1.0, abstained=False)
    chosen = "" if work.doc_ids or not result.read else NEAREST.format(len(result.read))
    is_cut = bool(result.exhausted or result.failure)
    return conclude(
        work.question,
        quoted if result.is_quoted else result.text,
        work.log,
        work.library,
        usage=work.tracker.usage,
        stopped=result.notice if is_cut else "",
        failed=result.exhausted is None,
        said=[f"{why} : {INSTEAD}" if why else "", chosen, "" if is_cut else result.notice],
        nearest=lambda: search_nearest(work),
        on_event=work.on_event,
    )
