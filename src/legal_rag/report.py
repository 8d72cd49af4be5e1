"""The report: an answer, what it rests on and how it came about, as one HTML page that asks the network for nothing.

In: a prediction, whether it was just made or read from a saved run, which may hold anything. Out: the page, or what a
notebook displays.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final, NamedTuple

from legal_rag.budget import Usage
from legal_rag.cleaning import storable
from legal_rag.html_pages import (
    frame_of_page,
    french_decimal,
    french_number,
    notebook_frame,
    own_script,
    own_style,
    page_template,
    plain_json,
)
from legal_rag.legal_patterns.dates import MONTHS
from legal_rag.prediction import CitedDocument, Event, Passage, Prediction, require_valid
from legal_rag.report_answer import answer_html
from legal_rag.report_markers import SIGNS, marker_button, notes_of
from legal_rag.report_passages import cited_passages, evidence_rows
from legal_rag.run_lines import STATUS_WORDS

PACKAGE = "legal_rag"
TITLE = "Réponse et sources"
# A report is for reading: what no run of ours comes near is cut, and said to be.
MOST: Mapping[str, int] = {
    "citations": 500,
    "evidence": 100,
    "events": 1000,
    "documents": 500,
    "ungrounded_claims": 500,
}
MOST_SAID = 400  # characters of one value in the table of steps
MEANINGS: Final = {
    "verified": "chaque citation, nombre, date et montant de la phrase figure à cet endroit de la décision",
    "supported": "la phrase ne reprend rien mot pour mot ; au moins la moitié de ses mots figurent à cet endroit",
    "relocated": "le texte cité figure dans la décision, mais pas à l’endroit indiqué ; sa place a été rectifiée",
    "unverified": "cet endroit de la décision n’établit pas ce que dit la phrase",
}
MODES: Final = {
    "evidence": "Passages cités mot pour mot, sans modèle de langage",
    "agent": "Rédigée par un modèle de langage ; citations contrôlées dans le texte des décisions",
    "fallback": "Passages cités mot pour mot, à la place du modèle de langage",
    "deep_read": "Lecture approfondie par un modèle de langage ; citations contrôlées dans le texte des décisions",
}
STATES: Final = {
    "answered": ("✓", "Réponse"),
    "abstained": ("∅", "Abstention"),
    "exhausted": ("⏳", "Budget épuisé"),
    "model_failed": ("!", "Modèle en échec"),
    "internal_error": ("!", "Erreur interne"),
}
STEPS: Final = {
    "search": "Recherche",
    "read": "Lecture",
    "think": "Réflexion",
    "cite": "Contrôle des citations",
    "answer": "Réponse",
}


NAMES: Final = {
    "query": "recherche",
    "question": "question",
    "k": "nombre",
    "chunk_id": "passage",
    "doc_id": "décision",
    "removed": "retirées",
    "error": "échec",
    **{status: f"{words}s" for status, words in STATUS_WORDS.items()},
}  # of what tools are given; other names stay as they are


class Step(NamedTuple):
    """An event as the report tells of it."""

    label: str
    tool: str
    thought: str  # in the model's own words
    said: str  # names and values of what it was given
    found: list[str]  # ids
    seconds: str
    tokens: str
    cost: str


class Count(NamedTuple):
    """How many citations have a status."""

    status: str
    sign: str
    words: str
    meaning: str
    number: int


def render_answer(prediction: Prediction) -> str:
    """Write the report of an answer.

    Args:
        prediction: The answer; nothing else is read.

    Returns:
        The whole page, in French. It runs and loads nothing but its own script and style.

    Raises:
        ValueError: If a value of the prediction is not of its type, as may be in a saved run.
    """
    require_valid(prediction)
    script, style = own_script(PACKAGE, "report.js"), own_style(PACKAGE, "report.css")
    heading = f"{prediction.question[:100]} — {TITLE}"
    return storable(
        page_template(PACKAGE, "report.html.j2").render(
            **frame_of_page(heading, script, style), **_answer_values(prediction), **_run_values(prediction)
        )
    )


def show_answer(prediction: Prediction, height: int = 720) -> Any:
    """Return what a notebook displays of an answer: its report in a frame that reaches nothing around it.

    Args:
        prediction: The answer.
        height: Of the frame, in pixels.

    Raises:
        ValueError: See `render_answer`.
    """
    return notebook_frame(render_answer(prediction), TITLE, height)


def _answer_values(prediction: Prediction) -> dict[str, Any]:
    """Return what the page says of the answer and its sources."""
    known: list[Passage | CitedDocument] = [*prediction.evidence, *prediction.documents]
    titles = {one.doc_id: one.title for one in known}
    dates = {one.doc_id: french_date(one.decision_date) for one in known}
    citations = prediction.citations[: MOST["citations"]]
    evidence = prediction.evidence[: MOST["evidence"]]
    notes = notes_of(citations, titles)
    answer = answer_html(prediction.answer, citations, notes, markdown=prediction.mode == "agent")
    cited = {one.doc_id for one in citations}
    others = [one for one in prediction.documents[: MOST["documents"]] if one.doc_id not in cited]
    counts = prediction.citation_counts
    return {
        "prediction": prediction,
        "state": STATES[prediction.status],
        "mode": MODES[prediction.mode],
        "answer": answer,
        "cited": cited_passages(notes, evidence, dates),
        "counts": [Count(one, SIGNS[one], STATUS_WORDS[one], MEANINGS[one], counts.get(one, 0)) for one in SIGNS],
        "rate": None if prediction.grounding_rate is None else round(100 * prediction.grounding_rate),
        "claims": prediction.ungrounded_claims[: MOST["ungrounded_claims"]],
        "rows": evidence_rows(prediction.question, evidence, notes),
        "others": others,
        "left_out": {name: max(0, len(getattr(prediction, name)) - most) for name, most in MOST.items()},
        "button": marker_button,
        "sign": SIGNS.__getitem__,
        "words": STATUS_WORDS.__getitem__,
        "meaning": MEANINGS.__getitem__,
        "date": french_date,
        "number": french_number,
        "decimal": french_decimal,
    }


def _run_values(prediction: Prediction) -> dict[str, Any]:
    """Return what the page says of the run."""
    return {
        "steps": [_step(event) for event in prediction.events[: MOST["events"]]],
        "total": _step(Event("answer", "", {}, [], prediction.seconds, prediction.usage)),
        "calls": _calls(prediction.usage),
    }


def french_date(iso: str) -> str:
    """Write a date as the French do: '2018-08-02' as '2 août 2018'; what is no such date stays as it is."""
    try:
        day = date.fromisoformat(iso)
    except ValueError:
        return iso
    return f"{'1er' if day.day == 1 else day.day} {MONTHS[day.month - 1]} {day.year}"


def _step(event: Event) -> Step:
    usage = event.usage
    asked = usage is not None and bool(usage.calls or usage.cached)
    return Step(
        STEPS[event.type],
        _cut(event.tool),
        _cut(_plain(event.input.get("thought", ""))),
        _said(event.input),
        event.output_ids,
        f"{french_decimal(event.seconds)}\u00a0s",
        french_number(usage.tokens) if usage and asked else "",
        _cost(usage) if usage and asked else "",
    )


def _cost(usage: Usage) -> str:
    if usage.cost is None:
        return "prix inconnu"
    return f"{french_decimal(usage.cost, 4)}\u00a0$"


def _calls(usage: Usage) -> str:
    if not usage.calls and not usage.cached:
        return "Aucun appel à un modèle de langage."
    cached = f" et {usage.cached} réponse(s) reprise(s) de la mémoire, sans frais" if usage.cached else ""
    read, written = french_number(usage.prompt_tokens), french_number(usage.completion_tokens)
    return f"{usage.calls} appel(s) au modèle{cached} ; {read} jetons lus, {written} écrits."


def _said(values: Mapping[str, Any]) -> str:
    """Tell names and values in one line; arguments that a model chose stand among the others."""
    chosen = values.get("arguments")
    flat = {**values, **chosen} if isinstance(chosen, Mapping) else values
    told = [
        f"{_cut(NAMES.get(name, str(name)))} : {_cut(_plain(value))}"
        for name, value in list(flat.items())[:20]
        if name != "thought" and value is not chosen
    ]
    return " · ".join(told)


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return plain_json(value)
    except (TypeError, ValueError, RecursionError):  # a live run may hold any value, a saved one any depth
        return f"({type(value).__name__})"


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}…"
