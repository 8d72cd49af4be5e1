"""Judilibre: the Cour de cassation's open-data records, given the column names of the rest of the toolkit.

In: one decision as the Judilibre API returns it. Out: a row with the dataset's own columns; all else is kept.
Format and codes: the API's published taxonomy (https://github.com/Cour-de-cassation/judilibre-search).
"""

from collections.abc import Mapping
from typing import Any

JURISDICTIONS = {
    "cc": "Cour de cassation",
    "ca": "Cour d'appel",
    "tj": "Tribunal judiciaire",
    "tcom": "Tribunal de commerce",
}
CHAMBERS = {
    "pl": "Assemblée plénière",
    "mi": "Chambre mixte",
    "civ1": "Première chambre civile",
    "civ2": "Deuxième chambre civile",
    "civ3": "Troisième chambre civile",
    "comm": "Chambre commerciale",
    "soc": "Chambre sociale",
    "cr": "Chambre criminelle",
    "creun": "Chambres réunies",
    "ordo": "Première présidence (ordonnance)",
}


def is_judilibre(row: Mapping[str, Any]) -> bool:
    """Tell a Judilibre record from a row of the dataset: text under `text`, and a court under `jurisdiction`."""
    return "text" in row and "jurisdiction" in row and "content" not in row


def judilibre_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Rename a Judilibre record's fields; `zones` stay offsets into the published text."""
    row = {
        key: value
        for key, value in record.items()
        if key not in ("text", "jurisdiction", "chamber", "formation", "visa")
    }
    court, chamber = str(record.get("jurisdiction") or ""), str(record.get("chamber") or "")
    court, chamber = JURISDICTIONS.get(court, court), CHAMBERS.get(chamber, chamber)
    visas = record.get("visa") or []
    if location := record.get("location"):
        court = f"{court} ({location})"
    row |= {
        "content": record["text"],
        "juridiction": court,
        "formation": chamber,
        "applied_laws": [_visa_title(visa) for visa in (visas if isinstance(visas, list) else [visas])],
    }
    if record.get("formation"):
        row["judges"] = record["formation"]  # Judilibre's "formation" is the size of the bench, e.g. FS
    parts = (court, chamber.lower(), record.get("decision_date"), record.get("number"))
    row.setdefault("title", ", ".join(str(part) for part in parts if part))
    return row


def _visa_title(visa: Any) -> str:
    return str(visa.get("title", "")) if isinstance(visa, Mapping) else str(visa)
