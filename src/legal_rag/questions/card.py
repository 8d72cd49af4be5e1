"""The dataset's card: a README that says how its rows came about, with the figures of the run."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from legal_rag.folders import write_whole
from legal_rag.questions.report import QuestionReport
from legal_rag.questions.summaries import MODEL_NAME

CARD: Final = "README.md"
REASONS: Final = {
    "unreadable": "réponse illisible",
    "ungrounded": "réponse absente du texte",
    "not_french": "pas en français",
    "wrong_form": "longueur, ou question sans « ? »",
    "given_away": "réponse contenue dans la question",
    "refers_to_text": "question qui parle « du texte »",
    "names_no_matter": "question qui ne nomme pas la matière",
    "not_retrieved": "question qui ne retrouve pas sa décision",
    "no_summary": "ni sommaire ni titre",
}
TEMPLATE: Final = """---
language: fr
task_categories: [question-answering, text-retrieval]
configs:
- config_name: default
  data_files:
{data_files}
---

# Questions et réponses fondées sur des décisions

Chaque réponse est le texte même de la décision : `answer` est `content[answer_span_start:answer_span_end]` du document
`doc_id`. {origin} Les questions presque identiques ont été retirées (MinHash), et les
parties `train`, `dev` et `test` n'ont aucun document en commun.

| | |
|---|---|
{figures}

## Documents sans question gardée

| raison | documents |
|---|---|
{reasons}

## Réglages

| | |
|---|---|
{settings}
"""

BY_MODEL: Final = (
    "La question est d'un modèle de langage ; elle a été vérifiée (français, longueur, renvoi au texte, matière "
    "nommée), et ce qui n'atteint pas le seuil n'est pas gardé."
)
BY_SUMMARY: Final = (
    "La question est le début du sommaire officiel de la décision, ou son titre, et la réponse la phrase qui en "
    "reprend le plus de mots : de quoi essayer une évaluation, pas de quoi juger un moteur de recherche."
)


def write_card(report: QuestionReport) -> None:
    """Write the card beside the data."""
    files = [f"  - split: {split}\n    path: data/{split}.parquet" for split in report.splits]
    reasons = [(REASONS.get(name, name), n) for name, n in report.rejected.items()]
    reasons += [(f"le modèle a échoué ({name})", n) for name, n in report.failed.items()]
    card = TEMPLATE.format(
        data_files="\n".join(files),
        origin=BY_SUMMARY if report.model == MODEL_NAME else BY_MODEL,
        figures=_lines(_figures(report)),
        reasons=_lines([*reasons, ("question presque identique à une autre", report.duplicates)]),
        settings=_lines((f"`{name}`", value) for name, value in vars(report.settings).items()),
    )
    write_whole(report.folder / CARD, card)


def _figures(report: QuestionReport) -> list[tuple[str, object]]:
    return [
        ("modèle", report.model),
        ("corpus", report.corpus),
        ("date", datetime.now(UTC).date().isoformat()),
        ("documents", report.documents),
        ("questions gardées", report.accepted),
        *((f"partie `{split}`", n) for split, n in report.splits.items()),
        ("score moyen de ce qui passe", "–" if report.mean_score is None else report.mean_score),
        ("réponses du modèle", report.replies),
        ("jetons lus", report.prompt_tokens),
        ("jetons écrits", report.completion_tokens),
        ("coût", "inconnu" if report.cost is None else f"{report.cost:.4f} $"),
        ("durée cumulée", f"{report.seconds} s"),
    ]


def _lines(rows: Iterable[tuple[str, object]]) -> str:
    return "\n".join(f"| {name} | {str(value).replace('|', '/')} |" for name, value in rows)
