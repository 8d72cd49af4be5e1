"""Events and citations as lines of text for a terminal."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping

from legal_rag.agent.prediction import CitedDocument, Event, Mode, Status
from legal_rag.citations.checks import STATUS_WORDS, Citation
from legal_rag.citations.markers import format_marker
from legal_rag.graph.types import AnswerFacts
from legal_rag.law.citation import LegalCitation
from legal_rag.law.scanning import NO_BREAK

MAX_CHARS = 160  # of a thought or a question in a line
PLURALS: Mapping[str, str] = {
    "verified": "textes conformes",
    "relocated": "textes conformes, places rectifiées",
    "unverified": "non confirmées",
}
STATES_IN_FRENCH: Mapping[Status, str] = {
    "answered": "Réponse",
    "unverified": "Sorti d’un programme, non vérifié",
    "abstained": "Abstention",
    "exhausted": "Budget épuisé",
    "model_failed": "Modèle en échec",
    "internal_error": "Erreur interne",
}
MODES_IN_FRENCH: Mapping[Mode, str] = {
    "evidence": "passages",
    "agent": "modèle de langage",
    "fallback": "passages à la place du modèle",
    "deep_read": "lecture approfondie",
}
VERBATIM_MODES = frozenset({"evidence", "fallback"})  # answers made of verbatim passages


def event_line(event: Event) -> str:
    """Describe an event: « cherche : délai de recours → 5 passages (0,3 s) »."""
    return f"{LINES[event.type](event)} ({french_seconds(event.seconds)})"


def citations_in_french(counts: Mapping[str, int], *, verbatim: bool = False) -> str:
    """Count citations by status, or nothing; other keys are ignored.

    « 3 citations : 2 textes conformes ; 1 non confirmée »; `verbatim`, for passages quoted verbatim:
    « 3 passages cités tels quels ».
    """
    shown = {status: n for status in STATUS_WORDS if (n := counts.get(status, 0))}
    total = sum(shown.values())
    if not shown or verbatim:
        return f"{_pluralize(total, 'passage')} {'cités tels quels' if total > 1 else 'cité tel quel'}" if shown else ""
    parts = [counted_status(status, n) if total > 1 else STATUS_WORDS[status] for status, n in shown.items()]
    return f"{_pluralize(total, 'citation')} : {' ; '.join(parts)}"


def counted_status(status: str, n: int) -> str:
    """Count citations of one status: « 2 textes conformes »."""
    return f"{n} {PLURALS.get(status, STATUS_WORDS[status]) if n > 1 else STATUS_WORDS[status]}"


def graph_line(taken: AnswerFacts) -> str:
    """List what the graph took from an answer: « graphe : 3 faits, 2 liens proposés par le modèle »; empty for nothing.

    A fact is stated by a text itself; mentions that no text supports are counted separately.
    """
    words = {
        "entities": ("nom situé dans les textes", "noms situés dans les textes"),
        "facts": ("fait", "faits"),
        "stated": ("lien proposé par le modèle", "liens proposés par le modèle"),
        "unsupported": ("mention sans appui", "mentions sans appui"),
        "episodes": ("épisode", "épisodes"),
    }
    counts = taken._asdict()
    parts = [f"{n} {words[name][n > 1]}" for name, n in counts.items() if n]
    return f"graphe : {', '.join(parts)}" if parts else ""


def warning_lines(citations: Iterable[Citation]) -> list[str]:
    """Return a line for each citation that is not confirmed, or carries a warning: « ⚠ [Source: A, chars 3-9] : … »."""
    return [
        f"⚠ {marker_of(cited)} : {in_one_line(' '.join(filter(None, (cited.reason, *cited.warnings))), 1000)}"
        for cited in dict.fromkeys(citations)
        if cited.reason or cited.warnings
    ]


def marker_of(cited: Citation) -> str:
    """Write a citation's marker as it stands in the answer."""
    return format_marker(cited.doc_id, cited.char_start, cited.char_end, verified=cited.status != "unverified")


def document_line(document: CitedDocument) -> str:
    """Name a document with its version, outcome and address: « A : Cass. soc., 3 mai 2018 · rejet · https://… »."""
    named = f"{document.doc_id} : {document.citation or document.title}"
    return in_one_line(" · ".join(filter(None, (named, document.version, document.ending, document.link))), 1000)


def quotation_with_reference(citation: Citation, cited: LegalCitation) -> str:
    """Write a passage as a brief quotes it: « … » (Cass. soc., 3 mai 2018, n° 16-26.437).

    Words of a party, or of the decision under review, are said to be theirs.
    """
    others = citation.censured or citation.speaker in ("party", "lower_court")
    reference = f"{cited.reference}, {citation.said_by}" if others else cited.reference
    inner = " ".join(citation.quote.split()).replace("«", "“").replace("»", "”").replace("“ ", "“").replace(" ”", "”")
    return f"«{NO_BREAK}{inner}{NO_BREAK}» ({reference})"


def french_seconds(seconds: float) -> str:
    """Write a duration: « 0,3 s »."""
    return f"{seconds:.1f} s".replace(".", ",")


def printable_lines(text: str) -> str:
    """Strip control characters other than line breaks, and marks of writing direction, which steer a terminal."""
    return "".join(char for char in text if char.isprintable() or char == "\n" or unicodedata.category(char) == "Zs")


def in_one_line(text: str, most_chars: int = MAX_CHARS) -> str:
    """Return text in one line of at most `most_chars` characters."""
    line = " ".join(printable_lines(" ".join(text.split())).split())
    return line if len(line) <= most_chars else line[: most_chars - 1].rstrip() + "…"


def _search_line(event: Event) -> str:
    if event.tool == "graph_neighbours":
        asked = in_one_line(", ".join(str(value) for value in event.input.values() if value))
        return f"suit les liens de : {asked} → {_pluralize(len(event.output_ids), 'décision')}"
    query = in_one_line(str(event.input.get("query", "")))
    filters = {name: value for name, value in event.input.items() if name not in ("query", "k") and value}
    rest = [in_one_line(f"{name} : {value}") for name, value in filters.items()]
    asked = f"{query} [{', '.join(rest)}]" if query and rest else query or ", ".join(rest)
    return f"cherche : {asked} → {_pluralize(len(event.output_ids), 'passage')}"


def _read_line(event: Event) -> str:
    asked = in_one_line(str(next(iter(event.input.values()), "")))
    return f"lit : {asked}" if event.output_ids else f"lit : {asked} → introuvable"


def _think_line(event: Event) -> str:
    if error := event.input.get("error"):
        return f"échoue : {in_one_line(str(error))}"
    thought = in_one_line(str(event.input.get("thought") or ""))
    return f"réfléchit : {thought} → {in_one_line(event.tool)}" if thought else f"réfléchit → {in_one_line(event.tool)}"


def _cite_line(event: Event) -> str:
    counted = citations_in_french(event.input)
    removed = event.input.get("removed") or 0
    line = f"contrôle {counted}" if counted else "contrôle : aucune citation"
    return line + (f" ; {removed} retirée{'s' if removed > 1 else ''}" if removed else "")


def _answer_line(event: Event) -> str:
    return f"répond, {_pluralize(event.usage.tokens, 'jeton')}" if event.usage else "répond"


def _pluralize(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' if n > 1 else ''}"


LINES: dict[str, Callable[[Event], str]] = {
    "search": _search_line,
    "read": _read_line,
    "think": _think_line,
    "cite": _cite_line,
    "answer": _answer_line,
}
