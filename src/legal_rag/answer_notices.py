"""What a reader is told of an answer besides the answer: where its model stopped, which citations did not hold.

In: a checked answer, and what else there is to say. Out: one French notice.
"""

from legal_rag.enrichment import EnrichedResponse

UNCITED = "La réponse du modèle ne citait aucun passage vérifiable"
_UNVERIFIED = ("Une citation n'a pas pu être vérifiée", "{} citations n'ont pas pu être vérifiées")
_REMOVED = ("Une citation a été retirée", "{} citations ont été retirées")


def notice_of(answer: EnrichedResponse, *said: str) -> str | None:
    """Join what is to be said before, sentences without their full stops, and how the citations fared; None if nothing.

    Args:
        answer: After its citations were checked.
        said: In French; empty ones are passed over.
    """
    counted = ((answer.counts.get("unverified", 0), _UNVERIFIED), (len(answer.removed), _REMOVED))
    cited = [one if n == 1 else many.format(n) for n, (one, many) in counted if n]
    return ". ".join(filter(None, [*said, *cited])) or None
