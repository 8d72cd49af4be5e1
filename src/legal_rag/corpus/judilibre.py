"""Records of Judilibre, the API of the Cour de cassation, as rows; an export's may lack any field but the text."""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from legal_rag.base.text import plain_text, read_toml
from legal_rag.corpus.files import clean_text
from legal_rag.law import find_dates

_tables = cache(partial(read_toml, "legal_rag.corpus", "judilibre.toml"))
SIGNS = {"jurisdiction", "update_date", "zones"}  # fields of which a record of Judilibre has one


def is_judilibre(row: Mapping[str, Any]) -> bool:
    """Is a row a record of Judilibre, judging by its columns?"""
    return "text" in row and "content" not in row and not SIGNS.isdisjoint(row)


def judilibre_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Rename a record's fields, as `judilibre.toml` lists them; `zones` are offsets into the content."""
    tables = _tables()
    row = {key: value for key, value in record.items() if key not in tables["columns"]}
    given = {key: plain_text(record.get(key)).strip() for key in tables["columns"]}
    chamber = tables["chambers"].get(given["chamber"], given["chamber"])
    numbers = list(dict.fromkeys([given["number"], *_texts(record.get("numbers"))])) if given["number"] else []
    notes = [note for note in _items(record.get("titlesAndSummaries")) if isinstance(note, Mapping)]
    row |= {
        "content": record["text"],
        "juridiction": _court(given["jurisdiction"], given["location"]),
        "formation": chamber,
        "judges": given["formation"],
        "number": given["number"],
        "numbers": numbers if len(numbers) > 1 else [],
        "nature": tables["natures"].get(given["type"], given["type"]),
        "solution": given["solution_alt"] or given["solution"],
        "summary": given["summary"] or "\n\n".join(filter(None, (plain_text(note.get("summary")) for note in notes))),
        "headnotes": [title for note in notes if (title := clean_text(plain_text(note.get("title"))).strip())],
        "applied_laws": _texts(record.get("visa")),
        "related_decisions": [clean_text(text) for text in _texts(record.get("rapprochements"))],
        "links": [link for key, name in tables["links"].items() for link in _links(record.get(key), name)],
    }
    row |= _lower_decision(record.get("contested"))
    if isinstance(record["text"], str) and isinstance(zones := record.get("zones"), Mapping):
        row["zones"] = _zones_of_clean(zones, record["text"])
    parts = (row["juridiction"], chamber.lower(), record.get("decision_date"), given["number"])
    row.setdefault("title", ", ".join(str(part) for part in parts if part))
    return row


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _texts(value: Any) -> list[str]:
    """Return texts, or the titles of what has one."""
    texts = (plain_text(item.get("title") if isinstance(item, Mapping) else item) for item in _items(value))
    return [text for text in texts if text.strip()]


def _court(jurisdiction: str, location: str) -> str:
    court, place = _tables()["jurisdictions"].get(jurisdiction, jurisdiction), _tables()["locations"].get(location)
    place = place or (location if court and location.startswith(court) else "")
    return place or (f"{court} ({location})" if location else court)


def _day(value: Any) -> str:
    """Return the date that a text gives, with a time or in words, in ISO 8601; '' without one."""
    text = plain_text(value)
    dates = find_dates(text[:10]) or find_dates(text[:200])
    return dates[0].value.isoformat() if dates else ""


def _links(value: Any, name: str) -> Iterator[dict[str, str]]:
    for item in _items(value):
        fields = item if isinstance(item, Mapping) else {"title": item}
        link = {key: plain_text(fields.get(key)).strip() for key in ("id", "title", "number", "solution", "url")}
        link |= {"type": name, "date": _day(fields.get("date"))}
        if any(link[key] for key in ("id", "title", "number")):
            yield {key: text for key, text in link.items() if text}


def _lower_decision(contested: Any) -> dict[str, str]:
    if not isinstance(contested, Mapping):
        return {}
    title = plain_text(contested.get("title")).strip()
    court = title[: dates[0].start].rstrip(" ,-–") if (dates := find_dates(title)) else title
    court = court or _court(plain_text(contested.get("jurisdiction")), "")
    day = _day(contested.get("date")) or _day(title)
    return {"lower_court": court, "lower_date": day, "lower_number": plain_text(contested.get("number")).strip()}


def _zones_of_clean(zones: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Move zones, offsets into a record's text, to where cleaning leaves their ends; one without an end reaches it."""

    def moved(at: Any) -> Any:
        return len(clean_text(text[:at])) if isinstance(at, int) and 0 <= at <= len(text) else at

    is_same = clean_text(text) == text
    return {
        name: [
            {key: at if is_same else moved(at) for key, at in {**zone, "end": zone.get("end") or len(text)}.items()}
            for zone in _items(spans)
            if isinstance(zone, Mapping)
        ]
        for name, spans in zones.items()
    }
