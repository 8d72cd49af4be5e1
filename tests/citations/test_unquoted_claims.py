"""Claims that quote nothing: the words of a passage, put together otherwise than it does."""

import pytest

from legal_rag.citations import CitationEnricher

QPC = """Le Conseil constitutionnel a été saisi d'une question relative à la conformité aux droits et libertés que la \
Constitution garantit de l'article 12 du code de la voirie.

La société requérante soutient que l'article 12 du code de la voirie est contraire à la Constitution.

L'article 12 du code de la voirie est conforme à la Constitution.

Sous cette réserve, l'article 15 du code de la voirie est conforme à la Constitution.
"""
PARTIAL = """L'article 12 du code de la voirie est contraire à la Constitution.

L'article 15 du code de la voirie n'est pas contraire à la Constitution.
"""


def state(text, sentence):
    """Return how the claim is cited: its status, or "reworded", or "refused"."""
    (citation,) = CitationEnricher({"A": text}).enrich(f"{sentence} [Source: A].").citations
    return "reworded" if citation.reworded else "refused" if citation.status == "unverified" else citation.status


@pytest.mark.parametrize(
    ("text", "sentence", "expected"),
    [
        (QPC, "L'article 12 du code de la voirie est conforme à la Constitution", "supported"),
        (QPC, "La décision juge l'article 12 du code de la voirie conforme à la Constitution", "supported"),
        (QPC, "L'article 12 du code de la voirie est contraire à la Constitution", "refused"),
        (QPC, "L'article 12 du code de la voirie a été déclaré contraire à la Constitution", "refused"),
        (QPC, "L'article 12 du code de la voirie n'est pas conforme à la Constitution", "refused"),
        (QPC, "L'article 12 du code de la voirie est non conforme à la Constitution", "refused"),
        (QPC, "L'article 12 du code de la voirie est inconstitutionnel", "refused"),
        (
            QPC,
            "Le Conseil a jugé contraire à la Constitution ceci : « L'article 12 du code de la voirie est»",
            "refused",
        ),
        (QPC, "La société soutient que l'article 12 du code de la voirie est contraire à la Constitution", "supported"),
        (QPC, "Sous cette réserve, l'article 15 du code de la voirie est conforme à la Constitution", "supported"),
        (QPC, "L'article 15 du code de la voirie est conforme à la Constitution", "reworded"),
        (PARTIAL, "L'article 12 du code de la voirie est contraire à la Constitution", "supported"),
        (PARTIAL, "L'article 15 du code de la voirie n'est pas contraire à la Constitution", "supported"),
        (PARTIAL, "L'article 12 du code de la voirie est conforme à la Constitution", "reworded"),
    ],
)
def test_a_statute_is_said_to_conform_to_the_constitution_only_where_the_decision_says_so(text, sentence, expected):
    assert state(text, sentence) == expected
