"""Look up everything that a text refers to in a Library, and say what became of it."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import chain, islice
from typing import Any

from cachetools import LRUCache

from legal_rag.base.text import INVISIBLE, Span, normalized, storable
from legal_rag.citations.references import (
    QUOTED_WORDS,
    Source,
    StatedArticle,
    StatedDecision,
    StatedQuotation,
    find_references,
)
from legal_rag.citations.sources import NearPassage, QuotedCorpus
from legal_rag.citations.verdicts import CitedSource, Correction, Kind, Nearest, Reference, Status, Verification
from legal_rag.corpus.documents import Document
from legal_rag.corpus.papers import Paper
from legal_rag.law import SERIES, Identifier, find_dates, find_identifiers
from legal_rag.law.citation import legal_citation, legal_date
from legal_rag.law.courts import CourtName, parse_court
from legal_rag.law.keys import canonical_key, relaxed_key
from legal_rag.law.outcomes import (
    ANNULATION,
    CASSATION,
    INELIGIBLE,
    REJET,
    STATED_KINDS,
    kinds_named,
    kinds_of,
)
from legal_rag.library.filters import Filters
from legal_rag.library.library import Library

KINDS: Mapping[type, Kind] = {StatedDecision: "decision", StatedArticle: "article", StatedQuotation: "quotation"}
MAX_CHARS = 2_000_000  # of a text; about a thousand pages
MAX_REFERENCES = 5000  # decisions, and articles, that are looked up
MAX_QUOTATIONS = 1000
MAX_NEAREST = 400  # references not found, whose nearest is looked for
MAX_SAME_DAY = 300  # decisions of one day that are compared
LONGEST_QUOTATION = 20_000  # characters
NEAR = 0.88  # share of equal words from which a quotation without a source counts as altered
NEAR_IN_SOURCE = 0.7  # from which one counts as altered, whatever its other possible sources
SHOWN = 0.4  # from which the nearest passage of its source is shown
NEAR_WORDS = 8  # that a quotation without a source needs to count as altered
WHOLE_CODE = 100  # articles held of a code, from which a missing one does not exist
MAX_SOURCES = 20  # documents that one quotation's source may be
MAX_DIFFERENCES = 10  # reported for one quotation
MAX_CITING = 10  # decisions citing a number, checked for whether it is their own
LIST_GAP = 60  # characters between two sources given together
HEAD, TAIL = 4000, 3000  # characters of a decision in which it states its numbers and dates
# Where a decision states its date; those of its hearing and deliberation differ.
_DAY_OF_DECISION = re.compile(
    r"(?<!débats en l['’])(?:audience publique|rendue? publi|prononcée?|mise à disposition|lecture)[^.;\n]{0,80}$",
    re.IGNORECASE,
)
_REJECTED = re.compile(r"rejett\w+\s+(?:\w+\s+){1,3}pourvoi", re.IGNORECASE)
_LISTED = re.compile(
    r"(?i:\b(?:pourvois?|jonction|affaires?)|\bR\.?\s?G\.?)\s*+:?(?:\s++|n[°os.]{0,3}|N°|[A-Z](?!\w)|[\d./-]++|et\b|à|[,;:])*+$"
)


def verify_text(text: str, library: Library) -> Verification:
    """Check every decision, article and quotation that a text names against an open Library; no encoder is loaded.

    What is beyond `MAX_CHARS` is not checked, and a notice says so. ValueError if the text is blank, or the Library
    holds no document.
    """
    if not text.strip():
        raise ValueError("no text to verify")
    if not library.n_documents:
        raise ValueError(f"no documents in {library.path}")
    return _Verifier(readable(text), library).verify()


_UNSEEN = str.maketrans(dict.fromkeys(INVISIBLE))
_OTHER_DIGIT = re.compile(r"[^\W\D0-9]")


def readable(text: str) -> str:
    """Normalise a text as displayed: composed, without invisible characters, its digits from 0 to 9."""
    text = normalized(storable(text)).translate(_UNSEEN).replace("\r\n", "\n").replace("\r", "\n")
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.digit(digit.group(), digit.group())), text)


class _Verifier:
    def __init__(self, text: str, library: Library) -> None:
        self.text, self.library = text, library
        self.unread: list[str] = []
        self._paper = Paper(text)
        self._decisions = _Decisions(library)
        self._articles = _Articles(library)
        self._quoted_corpus = QuotedCorpus(library)
        self._nearest_left = MAX_NEAREST
        self._checked: dict[Span, Reference] = {}  # decisions and articles, by their place in the text

    def verify(self) -> Verification:
        stated = find_references(self._limit_items(self.text, MAX_CHARS))
        decisions = self._limit_items(stated.decisions, MAX_REFERENCES, "décisions citées")
        articles = self._limit_items(stated.articles, MAX_REFERENCES, "articles cités")
        quotations = self._limit_items(stated.quotations, MAX_QUOTATIONS, "citations entre guillemets")
        if quotations and not self._quoted_corpus.has_words:
            self._leave_unread("L'index n'a pas d'index des mots : les citations sans source n'ont pas été cherchées.")
        self._decisions.look_up(decisions)
        references = [*map(self._verify_decision, decisions), *map(self._verify_article, articles)]
        self._checked = {(reference.start, reference.end): reference for reference in references}
        references += filter(None, map(self._verify_quotation, quotations))
        references.sort(key=lambda reference: (reference.start, -reference.end))
        return Verification(self.text, tuple(references), (), tuple(self.unread))

    def _limit_items(self, items: Any, most: int, what: str = "") -> Any:
        if len(items) <= most:
            return items
        left = len(items) - most
        self._leave_unread(
            f"{left} {what} de trop n'ont pas été vérifiées (au plus {most})."
            if what
            else f"Les {left} derniers caractères n'ont pas été vérifiés (au plus {most})."
        )
        return items[:most]

    def _leave_unread(self, sentence: str) -> None:
        self.unread.append(sentence)

    def _report(
        self,
        stated: StatedDecision | StatedArticle | StatedQuotation,
        status: Status,
        reason: str,
        doc_id: str = "",
        span: tuple[int | None, int | None] = (None, None),
        *,
        corrections: Sequence[Correction] = (),
        nearest: Sequence[Nearest] = (),
    ) -> Reference:
        start, end = stated.start, stated.end
        text = " ".join(self.text[start:end].split())
        return Reference(
            kind=KINDS[type(stated)],
            start=start,
            end=end,
            place=self._paper.place_of(start),
            text=text,
            status=status,
            explanation=reason,
            corrections=tuple(corrections),
            source=self._decisions.source(doc_id) if doc_id else None,
            char_start=span[0],
            char_end=span[1],
            nearest=tuple(nearest),
        )

    # Decisions

    def _verify_decision(self, stated: StatedDecision) -> Reference:
        return self._verify_numbered(stated) if stated.names else self._verify_dated(stated)

    def _verify_numbered(self, stated: StatedDecision) -> Reference:
        documents = self._decisions.named(stated)
        if not documents:
            return self._report_missing(stated)
        checked = [(document, tuple(_find_corrections(stated, document))) for document in documents]
        document, corrections = min(checked, key=lambda pair: len(pair[1]))
        if not corrections:
            others = f" ({len(documents)} décisions de l'index ont ce numéro)" if len(documents) > 1 else ""
            return self._report(stated, "confirmed", f"Décision de l'index{others}.", document.id)
        if _is_of_another_court(stated, corrections):
            reason = "Aucune décision de l'index de cette juridiction n'a ce numéro."
            near = Nearest(document.id, self._decisions.title(document.id), "même numéro")
            return self._report(stated, "absent", reason, nearest=[near])
        return self._report(stated, "wrong", _explain(corrections), document.id, corrections=corrections)

    def _verify_dated(self, stated: StatedDecision) -> Reference:
        documents = self._decisions.of_court_and_day(stated)
        if not documents:
            return self._report_missing(stated)
        one = "Une décision de l'index est" if len(documents) == 1 else f"{len(documents)} décisions de l'index sont"
        return self._report(stated, "confirmed", f"{one} de cette juridiction et de ce jour.", documents[0].id)

    def _report_missing(self, stated: StatedDecision) -> Reference:
        joined = self._decisions.joined(stated)
        if joined and not any(_find_corrections(stated, joined)):
            return self._report(stated, "confirmed", "Affaire jointe à celle de la décision de l'index.", joined.id)
        nearest: list[Nearest] = []
        if self._nearest_left > 0:
            self._nearest_left -= 1
            nearest = list(islice(self._decisions.near(stated), 3))
        lacking = "n'a ce numéro" if stated.names else "n'est de cette juridiction et de ce jour"
        return self._report(stated, "absent", f"Aucune décision de l'index {lacking}.", nearest=nearest)

    # Articles

    def _verify_article(self, stated: StatedArticle) -> Reference:
        code = stated.code
        if not self._articles.holds_code(code):
            return self._report(stated, "out_of_scope", f"L'index n'a pas les articles du {code}.")
        if doc_id := self._articles.doc_id(code, stated.value):
            return self._report(stated, "confirmed", f"Article du {code} dans l'index.", doc_id)
        near = self._articles.near(code, stated.value)
        nearest = [
            Nearest(self._articles.doc_id(code, value), f"article {value} du {code}", "numéro voisin") for value in near
        ]
        if stated.former or not self._articles.is_whole(code, stated.value):
            reason = f"L'index n'a pas cet article du {code}, qui peut être d'une autre version."
            return self._report(stated, "absent", reason, nearest=nearest)
        listed = f"articles voisins : {', '.join(near) or 'aucun'}"
        correction = Correction("article", f"{stated.value} du {code}", listed)
        reason = f"Le {code} n'a pas d'article {stated.value} ({listed})."
        return self._report(stated, "wrong", reason, corrections=[correction], nearest=nearest)

    # Quotations

    def _verify_quotation(self, stated: StatedQuotation) -> Reference | None:
        if len(stated.words) > LONGEST_QUOTATION:
            self._leave_unread(f"Une citation de plus de {LONGEST_QUOTATION} caractères n'a pas été vérifiée.")
            return None
        texts = [self._source_doc_ids(source) for source in stated.sources]
        held = list(dict.fromkeys(doc_id for doc_ids in texts for doc_id in doc_ids))[:MAX_SOURCES]
        for doc_id in held:
            if span := self._quoted_corpus.text(doc_id).find(stated.words):
                return self._report(stated, "confirmed", "Le texte cité y est, mot pour mot.", doc_id, span)
        unheld = [source for source, doc_ids in zip(stated.sources, texts, strict=True) if not doc_ids]
        if held:
            surely = stated.introduced and texts[0] and not stated.of_a_text
            others = [source for source in unheld if not surely or self._are_listed(stated, source)]
            return self._judge_absent(stated, held, others)
        return self._judge_unsourced(stated, unheld) if _count_long_words(stated.words) >= QUOTED_WORDS else None

    def _are_listed(self, stated: StatedQuotation, other: Source) -> bool:
        """Is another source given with the first: in its parentheses, or a word or two from it?"""
        named = stated.sources[0]
        first, second = sorted((named, other), key=lambda source: source.start)
        between = self.text[first.end : second.start]
        alike = type(named) is type(other) or first.start >= stated.end
        return alike and len(between) <= LIST_GAP and ")" not in between

    def _source_doc_ids(self, source: Source) -> list[str]:
        reference = self._checked.get((source.start, source.end))
        if reference is None or reference.status in ("absent", "out_of_scope"):
            return []
        if isinstance(source, StatedDecision):
            same = self._decisions.named(source) if source.names else self._decisions.of_court_and_day(source)
            return [document.id for document in same] or [reference.doc_id]
        return [reference.doc_id] if reference.doc_id else []

    def _judge_absent(self, stated: StatedQuotation, held: Sequence[str], unheld: Sequence[Source]) -> Reference | None:
        long_enough = _count_long_words(stated.words) >= QUOTED_WORDS
        passages = filter(None, (self._quoted_corpus.text(doc_id).nearest(stated.words) for doc_id in held))
        near = max(passages, key=lambda passage: passage.likeness, default=None)
        if near and near.likeness >= NEAR_IN_SOURCE:
            return self._report_differences(stated, near)
        elsewhere = self._quoted_corpus.find(stated.words) if long_enough else None
        document = self._decisions.document(held[0])
        if unheld or stated.of_a_text or parse_court(stated.speaker).contradicts(_document_court(document)):
            return self._judge_unsourced(stated, unheld or stated.sources) if long_enough else None
        title = self._decisions.title(document.id)
        if elsewhere:
            right = self._decisions.title(elsewhere[0])
            reason = f"Ces mots ne sont pas dans {title} ; ils sont dans {right}."
            return self._report(stated, "wrong", reason, *elsewhere, corrections=[Correction("source", title, right)])
        if not long_enough and not stated.introduced:
            return None  # a term, not a quotation
        if near and near.likeness >= SHOWN:
            return self._report_differences(stated, near)
        wrong, reason = Correction("words", stated.words, ""), f"Ces mots ne sont pas dans {title}."
        return self._report(stated, "wrong", reason, document.id, corrections=[wrong])

    def _report_differences(self, stated: StatedQuotation, near: NearPassage) -> Reference:
        place = near.doc_id, (near.char_start, near.char_end)
        if not near.differences:
            return self._report(stated, "confirmed", "Le texte cité y est, mot pour mot, aux coupures près.", *place)
        changes = near.differences[:MAX_DIFFERENCES]
        corrections = [Correction("words", change.quoted, change.document) for change in changes]
        reason = f"{self._decisions.title(near.doc_id)} dit : « {' '.join(near.text.split())} »."
        return self._report(stated, "wrong", reason, *place, corrections=corrections)

    def _judge_unsourced(self, stated: StatedQuotation, unheld: Sequence[Source]) -> Reference:
        """Judge a quotation whose source is not named, or not in the Library."""
        match = self._quoted_corpus.find(stated.words)
        if match and not unheld:
            return self._report(stated, "confirmed", "Le texte cité est dans l'index, mot pour mot.", *match)
        near = None if match else self._find_near_passage(stated.words)
        altered = not stated.of_a_text and len(stated.words.split()) >= NEAR_WORDS
        if near and not unheld and (altered or not near.differences):
            return self._report_differences(stated, near)
        doc_id = match[0] if match else near.doc_id if near else ""
        why = "mêmes mots" if match else "mots semblables"
        nearest = [Nearest(doc_id, self._decisions.title(doc_id), why)] if doc_id else []
        source = self._checked.get((unheld[0].start, unheld[0].end)) if unheld else None
        status: Status = "out_of_scope" if source and source.status == "out_of_scope" else "absent"
        reason = "La source indiquée n'est pas dans l'index : ces mots n'ont pas pu y être vérifiés."
        reason = reason if unheld else "Ces mots ne sont pas dans l'index."
        return self._report(stated, status, reason, nearest=nearest)

    def _find_near_passage(self, words: str) -> NearPassage | None:
        if self._nearest_left <= 0:
            return None
        self._nearest_left -= 1
        near = self._quoted_corpus.nearest(words)
        return near if near and near.likeness >= NEAR else None


class _Decisions:
    def __init__(self, library: Library) -> None:
        self._library = library
        self._ids: dict[str, list[str]] = {}  # by key
        self._days: dict[str, list[Document]] = {}
        self._documents: LRUCache[str, Document] = LRUCache(2000)

    def document(self, doc_id: str) -> Document:
        if (document := self._documents.get(doc_id)) is None:
            document = self._documents[doc_id] = self._library.document(doc_id)
        return document

    def source(self, doc_id: str) -> CitedSource:
        document = self.document(doc_id)
        cited = legal_citation(document)
        return CitedSource(
            self._library.path.name,
            doc_id,
            cited.text,
            document.juridiction,
            document.decision_date,
            document.solution,
            cited.publication,
            cited.links,
        )

    def title(self, doc_id: str) -> str:
        return legal_citation(self.document(doc_id)).text

    def look_up(self, stated: Sequence[StatedDecision]) -> None:
        keys = {
            key
            for decision in stated
            for name in decision.names
            for key in (canonical_key(name), relaxed_key(canonical_key(name)))
        }
        self._ids = self._library.ids_named(sorted(keys))

    def named(self, stated: StatedDecision) -> list[Document]:
        """Return the decisions that have one of the numbers; of another series only where none is stated."""
        if len(stated.names) < 2:
            return [self.document(doc_id) for name in stated.names for doc_id in self._ids_numbered(name)]
        _, *parts = (self._ids_numbered(name) for name in stated.names)  # of joined cases: the first is all of them
        return [self.document(doc_id) for doc_id in parts[0] if all(doc_id in doc_ids for doc_ids in parts)]

    def _ids_numbered(self, name: Identifier) -> list[str]:
        key = canonical_key(name)
        return self._ids.get(key) or (self._ids.get(relaxed_key(key), []) if name.kind == "number" else [])

    def of_court_and_day(self, stated: StatedDecision) -> list[Document]:
        if stated.date is None:
            return []
        court = parse_court(stated.court)
        same_day = self._documents_of_day(stated.date.value.isoformat())
        return [document for document in same_day if court.agrees_with(_document_court(document))]

    def joined(self, stated: StatedDecision) -> Document | None:
        """Return the decision whose head lists the number next to its own: a joined case."""
        name = stated.names[0] if stated.names else None
        if name is None or name.kind not in ("pourvoi", "rg"):
            return None
        for doc_id in islice(self._library.ids_citing(_format_identifier(name)), MAX_CITING):
            if _head_lists_number(self.document(doc_id).content[:HEAD], name):
                return self.document(doc_id)
        return None

    def near(self, stated: StatedDecision) -> Iterator[Nearest]:
        """Yield decisions close to a missing one: of its court and day, or one digit apart."""
        seen: set[str] = set()
        for document, why in chain(
            self._near_by_joined_number(stated),
            self._near_by_day(stated),
            self._near_by_figure(stated),
            self._near_by_citing(stated),
        ):
            if document.id not in seen:
                seen.add(document.id)
                yield Nearest(document.id, legal_citation(document).text, why)

    def _near_by_joined_number(self, stated: StatedDecision) -> Iterator[tuple[Document, str]]:
        for name in stated.names[1:]:
            for doc_id in self._ids_numbered(name)[:1]:
                yield self.document(doc_id), f"n° {name.value} seulement"

    def _near_by_day(self, stated: StatedDecision) -> Iterator[tuple[Document, str]]:
        if stated.date and stated.court:
            for document in self.of_court_and_day(stated)[:3]:
                yield document, "même juridiction, même jour"

    def _near_by_figure(self, stated: StatedDecision) -> Iterator[tuple[Document, str]]:
        if stated.names:
            name = stated.names[0]
            keys = [canonical_key(name._replace(value=value)) for value in _number_variants(name.value)]
            ids = self._library.ids_named(keys)
            for key in keys:
                for doc_id in ids.get(key, ())[:1]:
                    yield self.document(doc_id), "un chiffre d'écart"

    def _near_by_citing(self, stated: StatedDecision) -> Iterator[tuple[Document, str]]:
        if stated.names and stated.names[0].kind in ("pourvoi", "rg", *SERIES):
            name = stated.names[0]
            try:
                ids = self._library.ids_citing(_format_identifier(name))
            except ValueError:
                return
            for doc_id in ids[:1]:
                yield self.document(doc_id), "cite cette décision"

    def _documents_of_day(self, day: str) -> list[Document]:
        if day not in self._days:
            ids = self._library.ids(Filters(date_from=day, date_to=day))[:MAX_SAME_DAY]
            self._days[day] = [self.document(doc_id) for doc_id in ids]
        return self._days[day]


class _Articles:
    def __init__(self, library: Library) -> None:
        self._library = library

    @cached_property
    def _keys_by_code(self) -> dict[str, dict[str, str]]:
        codes: dict[str, dict[str, str]] = {}
        for key in self._library.own_keys("article"):
            value, _, code = key.removeprefix("article:").partition(" ")
            codes.setdefault(code, {})[value] = key
        return codes

    def holds_code(self, code: str) -> bool:
        return code in self._keys_by_code

    def doc_id(self, code: str, value: str) -> str:
        """Return the document of an article of an indexed code; "" if there is none."""
        key = self._keys_by_code[code].get(value)
        return self._library.ids_named([key])[key][0] if key else ""

    def near(self, code: str, value: str) -> list[str]:
        """Return up to three article numbers nearest to a missing one, of its series where there are any."""
        letter, numbers = _split_article_number(value)
        known = sorted((_split_article_number(value), value) for value in self._keys_by_code[code])
        same = [article for article in known if article[0][0] == letter] or known
        at = bisect_left(same, ((letter, numbers), ""))
        return [value for _, value in same[max(at - 2, 0) : at + 1]]

    def is_whole(self, code: str, value: str) -> bool:
        """Is enough of a code held that a missing article does not exist?"""
        held = self._keys_by_code[code]
        chapter = value.rpartition("-")[0]
        return len(held) >= WHOLE_CODE or bool(chapter and any(number.startswith(f"{chapter}-") for number in held))


def _document_court(document: Document) -> CourtName:
    name = f"{document.juridiction} {document.formation}".strip()
    return parse_court(name or document.title)


def _find_corrections(stated: StatedDecision, document: Document) -> Iterator[Correction]:
    court = parse_court(stated.court)
    if stated.court and court.contradicts(_document_court(document)):
        right = ", ".join(filter(None, [document.juridiction, document.formation])) or document.title
        yield Correction("court", stated.court, right)
    if stated.date and not _is_of_day(document, stated.date.value.isoformat()):
        stated_day = legal_date(stated.date.value.isoformat())
        yield Correction("date", stated_day, legal_date(document.decision_date) or document.decision_date)
    for outcome in stated.outcomes:
        if outcome.court and parse_court(outcome.court).contradicts(_document_court(document)):
            continue  # what another court did
        known = _document_outcomes(document)
        if known & STATED_KINDS and outcome.kind not in known:
            yield Correction("outcome", outcome.kind, document.solution or " et ".join(sorted(known & STATED_KINDS)))
            break


def _is_of_day(document: Document, day: str) -> bool:
    """Was a decision given, read or made public on a day?"""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", document.decision_date):
        return day.startswith(document.decision_date[:4]) if document.decision_date[:4].isdecimal() else True
    if document.decision_date == day:
        return True
    text = f"{document.content[:HEAD]}\n\n{document.content[HEAD:][-TAIL:]}"
    return any(
        stated.value.isoformat() == day
        and _DAY_OF_DECISION.search(text[max(stated.start - 100, 0) : stated.start]) is not None
        and abs((stated.value - date.fromisoformat(document.decision_date)).days) <= 120
        for stated in find_dates(text)
    )


def _document_outcomes(document: Document) -> frozenset[str]:
    part = document.reading.operative
    ruling = document.content[part.start : part.end].casefold() if part else ""
    kinds = kinds_of(document.solution) | kinds_named(ruling)
    if "inéligible" in ruling:
        kinds |= {INELIGIBLE}
    if "cassation" in _document_court(document).types:
        if REJET not in kinds_of(document.solution) and not _REJECTED.search(ruling):
            kinds -= {REJET}  # of other claims
        if kinds & {CASSATION, ANNULATION}:
            kinds |= {CASSATION, ANNULATION}
    return kinds


def _is_of_another_court(stated: StatedDecision, corrections: Sequence[Correction]) -> bool:
    """Is the number another court's? Each court of appeal numbers its own cases."""
    wrong = {correction.what for correction in corrections}
    kinds = {name.kind for name in stated.names}
    return kinds <= {"rg", "number"} and "court" in wrong and (stated.date is None or "date" in wrong)


def _explain(corrections: Sequence[Correction]) -> str:
    words = {"date": "date", "court": "juridiction", "outcome": "solution", "number": "numéro"}
    parts = (f"{words[fix.what]} « {fix.stated} », la décision : « {fix.right} »" for fix in corrections)
    return f"Le texte dit {' ; '.join(parts)}."


def _number_variants(value: str) -> Iterator[str]:
    """Yield numbers that differ in one digit, or have two neighbouring digits exchanged."""
    for place, figure in enumerate(value):
        if figure.isdecimal():
            yield from (value[:place] + other + value[place + 1 :] for other in "0123456789" if other != figure)
    for place in range(len(value) - 1):
        pair = value[place : place + 2]
        if pair.isdecimal() and pair[0] != pair[1]:
            yield value[:place] + pair[::-1] + value[place + 2 :]


def _format_identifier(name: Identifier) -> str:
    if name.kind == "rg":
        return f"RG {name.value}"
    return f"{name.value} {name.kind.upper()}" if name.kind in SERIES else name.value


def _head_lists_number(head: str, name: Identifier) -> bool:
    places = (identifier.start for identifier in find_identifiers(head) if identifier.value == name.value)
    return any(_LISTED.search(head[max(place - 200, 0) : place]) is not None for place in places)


def _split_article_number(value: str) -> tuple[str, tuple[int, ...]]:
    letter = re.match(r"[A-Z]*", value)
    return (letter.group() if letter else ""), tuple(int(figures) for figures in re.findall(r"\d{1,9}", value))


def _count_long_words(text: str) -> int:
    return len(re.findall(r"[^\W\d_]{4,}", text))
