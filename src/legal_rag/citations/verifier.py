"""Say what became of all that a text refers to, looked up in one or several Libraries."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Any

from legal_rag.base.text import Span
from legal_rag.citations.checks import SurroundingsCheck
from legal_rag.citations.claims import Claim, Quotation
from legal_rag.citations.lookup import (
    HEAD,
    Articles,
    Decisions,
    Held,
    Shelf,
    days_from,
    is_dated,
    is_in_force,
)
from legal_rag.citations.references import QUOTED_WORDS, find_references
from legal_rag.citations.relevance import nearest_sentences
from legal_rag.citations.sources import NearPassage
from legal_rag.citations.stated import (
    Source,
    StatedArticle,
    StatedDecision,
    StatedLaw,
    StatedOutcome,
    StatedQuotation,
    UnreadReference,
)
from legal_rag.citations.verdicts import (
    WHAT_IN_FRENCH,
    Correction,
    Kind,
    Nearest,
    Reference,
    Status,
    ToRead,
    Verification,
    What,
)
from legal_rag.corpus.papers import Paper
from legal_rag.corpus.plain import paper_of_text
from legal_rag.law import SERIES, Force, find_dates, long_date
from legal_rag.law.citation import legal_date
from legal_rag.law.courts import SUPREME, level_of, parse_court
from legal_rag.law.european import european_link
from legal_rag.law.outcomes import (
    ANNULATION,
    CASSATION,
    CONFIRMATION,
    INFIRMATION,
    REJET,
    STATED_KINDS,
    UNDOING,
    UPHOLDING,
    SaidFate,
    kinds_of,
)
from legal_rag.law.wordings import StatedWording
from legal_rag.library.library import Library, today

KINDS: Mapping[type, Kind] = {
    StatedDecision: "decision",
    UnreadReference: "decision",
    StatedArticle: "article",
    StatedLaw: "law",
    StatedQuotation: "quotation",
}
MAX_CHARS = 2_000_000  # of a text; about a thousand pages
MAX_REFERENCES = 5000  # decisions, and articles, that are looked up
MAX_QUOTATIONS = 1000
MAX_NEAREST = 400  # references not found, whose nearest is looked for
MAX_CANDIDATES = 12  # of an ambiguous reference, that are shown
LONGEST_QUOTATION = 20_000  # characters
NEAR = 0.88  # share of equal words from which a quotation without a source counts as altered
NEAR_IN_SOURCE = 0.7  # from which one counts as altered, whatever its other possible sources
SHOWN = 0.4  # from which the nearest passage of its source is shown
NEAR_WORDS = 8  # that a quotation without a source needs to count as altered
MAX_SOURCES = 20  # documents that one quotation's source may be
MAX_PLACES = 10  # of the words quoted in their source, that are compared with what is said of them
MAX_DIFFERENCES = 10  # reported for one quotation
HEADING = 600  # characters of a text in which it gives its own case's number
LEAST_RULE = 40  # characters of a quotation that states a rule, and not a term
LIST_GAP = 60  # characters between two sources given together
NOT_SAID = "ne le dit pas"  # what a text states of words that the decision has
AROUND = 200  # characters of the document shown before and after a quotation
_EXCEPTED = re.compile(
    r",? ?(?:sauf|hormis|excepté|à moins|si ce n['’]est|sous réserve|à l['’]exception|à condition)\b"
)
_RULING = re.compile(r"\barr[êe]t\s+n\W{0,3}(\d{1,4})(?!\d)", re.IGNORECASE)
# The court is named last before a quotation: "À la différence de la cour d'appel, la Cour de cassation juge que".
_COURT_LAST = re.compile(
    r"(?:Cour de cassation|Conseil d['’][ÉE]tat|Conseil constitutionnel|chambre (?:sociale|commerciale|criminelle|civile)"
    r"|[Hh]aute (?:juridiction|[Cc]our)|la Cour)[^.;«“]{0,60}$"
)
_CUT_AT_END = re.compile(r"(?:\.{3}|…)\W*$")
_CLOSES_SENTENCE = re.compile(r"\s*(?:[.;)(\[]|$)")
# The court whose numbers are of a kind.
_COURT_OF_KIND = {
    "pourvoi": "Cour de cassation",
    "cjue": "CJUE",
    "cedh": "CEDH",
    **dict.fromkeys(SERIES, "Conseil constitutionnel"),
}


def verify_text(text: str | Paper, libraries: Library | Sequence[Library], *, at: date | None = None) -> Verification:
    """Check every decision, article and quotation of a text against open Libraries; no encoder is loaded.

    An article is compared with its version of the day that the text gives for it, else of the day `at`, today by
    default. Words that only another version has are ambiguous, unless the text itself gives the day.

    What is beyond `MAX_CHARS` is not checked, and the result says so. ValueError if the text is blank, or no Library
    holds a document.
    """
    paper = paper_of_text(text) if isinstance(text, str) else text
    opened = [libraries] if isinstance(libraries, Library) else list(libraries)
    if not paper.text.strip():
        raise ValueError("no text to verify")
    if not any(library.n_documents for library in opened):
        raise ValueError(f"no documents in {', '.join(str(library.path) for library in opened) or 'no Library'}")
    return _Verifier(paper, opened, at or today()).verify()


class _Verifier:
    def __init__(self, paper: Paper, libraries: Sequence[Library], at: date) -> None:
        self.text, self._paper, self._at = paper.text, paper, at
        self.unread = list(paper.unread)
        self._shelf = Shelf(libraries)
        self._decisions, self._articles = Decisions(self._shelf), Articles(self._shelf)
        self._nearest_left = MAX_NEAREST
        self._held_citations: set[Span] = set()
        self._cited: dict[str, dict[tuple[str, str], Held]] = {}  # decisions by day
        self._checked: dict[Span, tuple[Reference, list[Held]]] = {}  # by place: what it may be the reference to

    def verify(self) -> Verification:
        stated = find_references(self._limit_items(self.text, MAX_CHARS), self._paper.quoted)
        decisions = self._limit_items(stated.decisions, MAX_REFERENCES, "décisions citées")
        articles = self._limit_items(stated.articles, MAX_REFERENCES, "articles cités")
        quotations = self._limit_items(stated.quotations, MAX_QUOTATIONS, "citations entre guillemets")
        if quotations and not any(corpus.has_words for corpus in self._shelf.corpora.values()):
            self.unread.append("L'index n'a pas d'index des mots : les citations sans source n'ont pas été cherchées.")
        self._decisions.look_up(decisions)
        laws = self._limit_items(stated.laws, MAX_REFERENCES, "lois et décrets cités")
        decisions = sorted(decisions, key=lambda decision: any(name.kind == "ecli" for name in decision.names))
        references = [*filter(None, map(self._verify_decision, decisions)), *map(self._verify_article, articles)]
        references += [self._verify_law(law) for law in laws if not any(map(self._articles.holds_code, law.keys))]
        reason = "Cela ressemble à une référence, et n'a pu être lu."
        references += [self._report(stated, "unread", reason) for stated in stated.unread[:MAX_REFERENCES]]
        quoted = [*filter(None, map(self._verify_quotation, quotations))]
        inside = [(one.start, one.end) for one in quoted if one.status == "confirmed"]  # the source cites them
        references = [
            *quoted,
            *(one for one in references if self._is_in_brackets(one) or not _lies_inside(one, inside)),
        ]
        references.sort(key=lambda reference: (reference.start, -reference.end))
        return Verification(self.text, tuple(references), self._paper.notices, tuple(self.unread))

    def _is_in_brackets(self, reference: Reference) -> bool:
        """Does a reference stand in an editor's brackets, and not in the words quoted?"""
        before = self.text[max(reference.start - 80, 0) : reference.start]
        return before.rfind("[") > before.rfind("]")

    def _limit_items(self, items: Any, most: int, what: str = "") -> Any:
        if len(items) <= most:
            return items
        left = len(items) - most
        self.unread.append(
            f"{left} {what} de trop n'ont pas été vérifiées (au plus {most})."
            if what
            else f"Les {left} derniers caractères n'ont pas été vérifiés (au plus {most})."
        )
        return items[:most]

    def _report(
        self,
        stated: StatedDecision | StatedArticle | StatedLaw | StatedQuotation | UnreadReference,
        status: Status,
        reason: str,
        held: Held | None = None,
        span: tuple[int | None, int | None] = (None, None),
        **details: Any,
    ) -> Reference:
        start, end = stated.start, stated.end
        if held and span[0] is not None and span[1] is not None:
            content = held.document.content
            details["around"] = content[max(span[0] - AROUND, 0) : span[0]], content[span[1] : span[1] + AROUND]
        of_article = isinstance(stated, StatedDecision) and any(
            name.value.startswith("LEGIARTI") for name in stated.names
        )
        written = " ".join(self.text[start:end].split())
        of_text = f"{written}, {stated.code}" if isinstance(stated, StatedArticle) else written
        return Reference(
            kind="article" if of_article else KINDS[type(stated)],
            start=start,
            end=end,
            place=self._paper.place_of(start),
            text=written,
            link=None if isinstance(stated, StatedQuotation) else european_link(of_text),
            status=status,
            explanation=reason,
            source=self._shelf.source(held) if held else None,
            char_start=span[0],
            char_end=span[1],
            **details,
        )

    def _keep(self, stated: Source, candidates: Sequence[Held], reference: Reference) -> Reference:
        self._checked[stated.start, stated.end] = reference, list(candidates)
        if candidates and isinstance(stated, StatedDecision):
            self._held_citations.add(stated.citation)
        for held in candidates:
            self._cited.setdefault(held.document.decision_date, {})[held.key] = held
        return reference

    # Decisions

    def _verify_decision(self, stated: StatedDecision) -> Reference | None:
        if stated.names or stated.party:
            candidates = self._decisions.named(stated)
        elif stated.court or stated.ruling:
            same_day = self._decisions.of_court_and_day(stated)
            before = {held.key for held in self._cited_before(stated)}
            candidates = [held for held in same_day if held.key in before] or same_day
        elif not (candidates := self._cited_before(stated)):
            return None  # of the case at hand
        joined = None if candidates else self._decisions.joined(stated)
        corrected = [(held, self._corrections(stated, held)) for held in candidates or filter(None, [joined])]
        fewest = min((len(corrections) for _, corrections in corrected), default=0)
        best = [held for held, corrections in corrected if len(corrections) == fewest]
        best = [held for held in best if not held.rectifies] or best
        corrections = next((corrections for held, corrections in corrected if best and held == best[0]), [])
        if stated.party and not best and not self._shelf.has_graph:
            return self._keep(stated, [], self._report(stated, "unread", "Sans graphe, les parties sont inconnues."))
        if stated.party and not best:
            return self._keep(
                stated, [], self._report(stated, "unread", "Aucune décision de l'index n'a cette partie.")
            )
        in_head = stated.start < HEADING or self._paper.is_in_margin(stated.start)
        if not best and in_head and not (stated.court or stated.date) and _is_roll_number(stated):
            return None  # of the case at hand
        if not best or (joined and corrections):
            missing = self._report_missing(stated)
            return self._keep(stated, [], missing) if missing else None
        if corrections and _is_of_another_court(stated, corrections):
            reason = "Aucune décision de l'index de cette juridiction n'a ce numéro."
            same = (self._shelf.nearest(best[0], "même numéro"),)
            return self._keep(stated, [], self._report(stated, "absent", reason, nearest=same))
        if corrections:
            reason = _explain(corrections)
            return self._keep(
                stated, best, self._report(stated, "wrong", reason, best[0], corrections=tuple(corrections))
            )
        if len(set(map(_identity, best))) > 1:
            reason = f"{len(best)} décisions de l'index conviennent."
            why = "même numéro" if stated.names else "même partie" if stated.party else "même juridiction, même jour"
            nearest = tuple(self._shelf.nearest(held, why) for held in best[:MAX_CANDIDATES])
            return self._keep(stated, best, self._report(stated, "ambiguous", reason, nearest=nearest))
        reason = "Affaire jointe à celle de la décision de l'index." if joined else "Décision de l'index."
        if force := best[0].document.in_force:  # named by its id
            reason = f"Article de l'index, {force}."
        compared, left = self._compared(stated, best[0])
        checked = tuple(compared)
        reason += f" Non comparé : {', '.join(WHAT_IN_FRENCH[what] for what in left)}." if left else ""
        details = {"checked": checked, "fate": self._shelf.fate(best[0]), **self._what_to_read(stated, best[0])}
        return self._keep(stated, best, self._report(stated, "confirmed", reason, best[0], **details))

    def _what_to_read(self, stated: StatedDecision, held: Held) -> dict[str, Any]:
        """Return the sentence that a decision is cited for, and the passages of the decision nearest to it."""
        start, end = stated.supports
        said = " ".join(self.text[start:end].split())
        text = self._shelf.text(held)
        spans = nearest_sentences(said, text) if said else []
        passages = [(span, text.passage_at(span)) for span in spans]
        content = held.document.content
        to_read = (
            ToRead(*span, " ".join(content[slice(*span)].split()), passage.in_french if passage else "")
            for span, passage in passages
        )
        return {"supports": said, "to_read": tuple(to_read)}

    def _cited_before(self, stated: StatedDecision) -> list[Held]:
        """Return the decisions that the text cites before and that were given on the day stated."""
        return list(self._cited.get(stated.date.value.isoformat(), {}).values()) if stated.date else []

    def _compared(self, stated: StatedDecision, held: Held) -> tuple[list[What], list[What]]:
        """Return what the text says of a decision that was compared, and what could not be."""
        court, document = parse_court(stated.court), held.document
        outcomes, fates = _outcomes_and_fates(stated, held)
        known = self._shelf.fate(held) if fates else ()
        stated_things: list[tuple[What, bool, bool]] = [
            ("number", bool(stated.names or stated.ruling), True),
            ("court", bool(stated.court), bool((court.types or court.chambers) and held.court.types)),
            ("date", stated.date is not None, bool(document.decision_date)),
            ("outcome", bool(outcomes), bool(held.outcomes() & STATED_KINDS) if outcomes else True),
            ("fate", bool(fates), None not in (_against(said, known) for said in fates)),
            ("point", bool(stated.point), bool(self._shelf.text(held).points) if stated.point else True),
        ]
        given = [(what, was_compared) for what, is_stated, was_compared in stated_things if is_stated]
        return [what for what, was_compared in given if was_compared], [what for what, done in given if not done]

    def _corrections(self, stated: StatedDecision, held: Held) -> list[Correction]:
        document, court = held.document, parse_court(stated.court)
        corrections = []
        if stated.court and court.contradicts(held.court):
            right = ", ".join(filter(None, [document.juridiction, document.formation])) or document.title
            corrections.append(Correction("court", stated.court, right))
        if stated.date and not held.is_of_day(stated.date.value.isoformat()):
            right = legal_date(document.decision_date) or document.decision_date
            corrections.append(Correction("date", legal_date(stated.date.value.isoformat()), right))
        given = _RULING.search(document.content[:HEAD]) if stated.ruling else None
        if given and given[1] != stated.ruling:
            corrections.append(Correction("number", f"arrêt n° {stated.ruling}", f"arrêt n° {given[1]}"))
        outcomes, fates = _outcomes_and_fates(stated, held)
        known = held.outcomes() & STATED_KINDS if outcomes else frozenset()
        right = document.solution or " et ".join(sorted(known))
        false = (one for one in outcomes if known and one.kind not in known)
        corrections += [Correction("outcome", one.kind, right) for one in islice(false, 1)]
        corrections += self._fate_corrections(fates, self._shelf.fate(held) if fates else ())
        points = self._shelf.text(held).points if stated.point else {}
        if points and stated.point not in points:
            right = f"la décision a les paragraphes {min(points)} à {max(points)}"
            corrections.append(Correction("point", str(stated.point), right))
        return corrections

    def _fate_corrections(self, fates: Sequence[SaidFate], known: Sequence[Nearest]) -> list[Correction]:
        against = ((said, _against(said, known)) for said in fates)
        words = ((self.text[said.start : said.end].strip("([|:,–— \t\n"), right) for said, right in against if right)
        return [Correction("fate", " ".join(said.split()), right) for said, right in words]

    def _report_missing(self, stated: StatedDecision) -> Reference | None:
        if stated.names and stated.names[0].kind == "id":
            return self._report_missing_id(stated, stated.names[0].value)
        if any(name.kind == "ecli" for name in stated.names):
            if stated.citation in self._held_citations:
                return None  # of the same decision as its number: documents lack their ECLI more often than not
            letters = stated.names[0].value.split(":")[2:3]
            if letters and letters[0] not in ("CCASS", "CC"):
                return self._report(stated, "out_of_scope", "L'index n'a aucune décision de cette juridiction.")
        if fate := self._shelf.fate_of_missing(stated):
            if wrong := self._fate_corrections(_outcomes_and_fates(stated)[1], fate):
                return self._report(stated, "wrong", _explain(wrong), corrections=tuple(wrong), fate=fate)
            did = " ; ".join(f"{one.why} {one.title}" for one in fate)
            reason = f"L'index n'a pas le texte de cette décision, mais sait ce qu'elle est devenue : {did}."
            return self._report(stated, "out_of_scope", reason, fate=fate)
        court = parse_court(next((_COURT_OF_KIND.get(name.kind, "") for name in stated.names), "") or stated.court)
        if not self._decisions.holds_court(court):
            return self._report(stated, "out_of_scope", "L'index n'a aucune décision de cette juridiction.")
        nearest: tuple[Nearest, ...] = ()
        if self._nearest_left > 0:
            self._nearest_left -= 1
            nearest = tuple(islice(self._decisions.near(stated), 3))
        if stated.is_reviewed and not stated.names:
            return self._report(stated, "out_of_scope", "Décision attaquée, citée sans numéro ; l'index ne l'a pas.")
        lacking = "n'a ce numéro" if stated.names else "n'est de cette juridiction et de ce jour"
        return self._report(stated, "absent", f"Aucune décision de l'index {lacking}.", nearest=nearest)

    def _report_missing_id(self, stated: StatedDecision, doc_id: str) -> Reference:
        """Report an id that no document has; it tells nothing where the documents have ids of another kind."""
        near = [
            self._shelf.nearest(self._shelf.get(library, other), "identifiant voisin")
            for library in self._shelf.libraries
            if (other := library.nearest_id(doc_id)) and _family(other) == _family(doc_id)
        ]
        if not near:
            return self._report(stated, "unread", "L'index n'a pas d'identifiants de cette base.")
        return self._report(stated, "absent", "Aucun document de l'index n'a cet identifiant.", nearest=tuple(near))

    # Articles

    def _verify_article(self, stated: StatedArticle) -> Reference:
        code = stated.code
        if not code:
            return self._keep(stated, [], self._report(stated, "unread", "Le texte ne dit pas de quel code."))
        if stated.is_guess and not (self._articles.holds_code(code) and self._articles.of(stated, self._at)):
            reason = f"Le texte ne dit pas de quel code est cet article (peut-être {_of(code)})."
            return self._keep(stated, [], self._report(stated, "unread", reason))
        if not self._articles.holds_code(code):
            return self._keep(
                stated, [], self._report(stated, "out_of_scope", f"L'index n'a aucun article {_of(code)}.")
            )
        versions = self._articles.of(stated, self._at)
        if len({str(held.document.extra.get("text_id") or code) for held in versions}) > 1:
            nearest = tuple(self._shelf.nearest(held, held.document.in_force) for held in versions[:3])
            reason = "Plusieurs textes de ce jour ont cet article."
            return self._keep(stated, [], self._report(stated, "ambiguous", reason, nearest=nearest))
        every = self._articles.versions(code, stated.value)
        forces = [held.document.force for held in every if held.document.force]
        against = stated.ending.against(forces, self._at) if stated.ending else None
        if stated.ending and against:
            said = self.text[stated.ending.start : stated.ending.end]
            return self._report_wrong(stated, versions or every, "fate", " ".join(said.split()), against)
        wording = stated.dated
        if wording and (mistaken := wording.mistaken(forces)):
            given, right, meant = mistaken
            written = [held for held in every if held.document.force in meant.versions(forces)] or every
            return self._report_wrong(stated, written, "version", given.in_french, right.in_french)
        if wording and len({held.document.force for held in versions}) > 1:
            reason = f"Plusieurs versions de cet article {_of(code)} conviennent ({wording.in_french}) : {_in_force(versions)}."
            nearest = tuple(self._shelf.nearest(held, held.document.in_force) for held in versions[:MAX_CANDIDATES])
            return self._keep(stated, versions, self._report(stated, "ambiguous", reason, nearest=nearest))
        if versions:
            force = versions[0].document.in_force if len(versions) == 1 else f"{len(versions)} versions"
            reason = f"Article {_of(code)} dans l'index{f' ({force})' if force else ''}."
            is_of_act = wording and (wording.meaning != "act" or any(map(_names_acts, versions)))
            is_compared = wording and is_of_act and not wording.is_misnumbered(forces)
            checked: tuple[What, ...] = ("article", "version") if is_compared else ("article",)
            if stated.day and (stated.is_since or not any(is_in_force(held, stated.day) for held in versions)):
                reason += f" Non comparé : version (le {long_date(stated.day)} n'a pas été lu comme son jour)."
            if stated.ending:
                checked, reason = (
                    ((*checked, "fate"), reason) if against == "" else (checked, f"{reason} Non comparé : sort.")
                )
            return self._keep(stated, versions, self._report(stated, "confirmed", reason, versions[0], checked=checked))
        if every:
            return self._keep(stated, [], self._report_version_missing(stated, every))
        nearest = tuple(self._shelf.nearest(held, "numéro voisin") for held in self._articles.near(code, stated.value))
        reason = f"Absent de l'index, qui a d'autres articles {_of(code)}."
        return self._keep(stated, [], self._report(stated, "absent", reason, nearest=nearest))

    def _report_wrong(
        self, stated: StatedArticle, versions: Sequence[Held], what: What, said: str, right: str
    ) -> Reference:
        reason, corrections = f"Le texte dit « {said} », l'index : « {right} ».", (Correction(what, said, right),)
        wrong = self._report(stated, "wrong", reason, versions[0], corrections=corrections)
        return self._keep(stated, versions, wrong)

    def _report_version_missing(self, stated: StatedArticle, versions: Sequence[Held]) -> Reference:
        """Report an article of which the Libraries hold versions, and none that the text may mean."""
        of, wording = _of(stated.code), stated.dated
        near = self._by_days(versions, stated)[:MAX_CANDIDATES]
        nearest = tuple(self._shelf.nearest(held, held.document.in_force or "d'une autre version") for held in near[:3])
        status: Status = "ambiguous"
        if not any(map(is_dated, versions)):
            reason = (
                f"L'index a cet article {of}, sans dire de quand à quand : la version citée n'a pas pu être comparée."
            )
        elif wording:
            status = "ambiguous" if wording.meaning == "act" else "absent"
            reason = (
                f"L'index n'a pas la version citée de cet article {of} ({wording.in_french}), mais : {_in_force(near)}."
            )
        else:
            reason = f"Aucune version de cet article {of} n'est en vigueur le {long_date(self._at)}."
        return self._report(stated, status, reason, nearest=nearest)

    # Laws

    def _verify_law(self, stated: StatedLaw) -> Reference:
        """Compare a law with how the decisions of the index cite it: no Library holds laws themselves."""
        written = " ".join(self.text[stated.start : stated.end].split())
        node = next(filter(None, map(self._shelf.law, (*stated.keys, written))), None)
        if node is None and not self._shelf.has_graph:
            return self._report(stated, "unread", "Sans graphe, les lois ne sont pas vérifiées.")
        if node is None:
            return self._report(stated, "out_of_scope", "Aucune décision de l'index ne cite ce texte ainsi.")
        cited = f"{node.cited} décision{'s' * (node.cited > 1)} de l'index"
        days = {day.value for day in find_dates(node.name)}
        if stated.date and days and stated.date.value not in days:
            corrections = (Correction("date", legal_date(stated.date.value.isoformat()), node.name),)
            status: Status = "wrong" if node.cited > 1 else "ambiguous"  # one decision may be mistaken
            return self._report(stated, status, f"Cité dans {cited} : {node.name}.", corrections=corrections)
        checked: tuple[What, ...] = ("date",) if stated.date and days else ("number",)
        return self._report(stated, "confirmed", f"Cité ainsi dans {cited} : {node.name}.", checked=checked)

    # Quotations

    def _verify_quotation(self, stated: StatedQuotation) -> Reference | None:
        if len(stated.words) > LONGEST_QUOTATION:
            self.unread.append(f"Une citation de plus de {LONGEST_QUOTATION} caractères n'a pas été vérifiée.")
            return None
        sources = [source for source in stated.sources if (source.start, source.end) in self._checked]
        stated = stated._replace(sources=tuple(sources))
        candidates = [self._checked[source.start, source.end][1] for source in sources]
        held = list({one.key: one for some in candidates for one in some}.values())[:MAX_SOURCES]
        source_of = {
            one.key: source
            for source, some in reversed(list(zip(stated.sources, candidates, strict=True)))
            for one in some
        }
        present: tuple[Held, Span] | None = None  # the version in force, where the text means one before it
        for one in held:
            source = source_of[one.key]
            beyond = bool(candidates[0]) and self._is_beyond(stated, source)
            if not beyond and (spans := self._find_words(one, stated.words)):
                if one.document.force and _means_former(source) and is_in_force(one, self._at):
                    present = present or (one, spans[0])
                elif lacking := self._version_lacking(stated, source):
                    reason = self._explain_version(one, [lacking], source)
                    return self._report(stated, "ambiguous", reason, one, spans[0])
                else:
                    return self._confirm_quotation(stated, one, spans, source)
        if present:
            has = f"Ces mots sont dans la version {present[0].document.in_force}"
            reason = f"{has}, et le texte en vise une antérieure : à comparer."
            return self._report(stated, "ambiguous", reason, *present)
        held = [one for one in held if not self._is_beyond(stated, source_of[one.key])] or held
        versions: list[Held] = []
        if sources and isinstance(article := sources[0], StatedArticle):
            keys = {one.key for one in held}
            every = self._articles.others(self._articles.versions(article.code, article.value))
            versions = self._by_days([one for one in every if one.key not in keys], article)
            if version := self._other_version(stated, article, candidates[0], versions):
                return version
            if not candidates[0] and article.wording is None:  # none is in force: the words are compared with all
                held = candidates[0] = versions
        long_enough = _count_long_words(stated.words) >= QUOTED_WORDS
        unheld = [source for source, some in zip(stated.sources, candidates, strict=True) if not some]
        if not held:
            return self._judge_unsourced(stated, unheld) if long_enough else None
        surely = stated.introduced and candidates[0] and not stated.of_a_text
        others = [source for source in unheld if not surely or self._are_listed(stated, source)]
        return self._judge_absent(stated, held, others, versions)

    def _version_lacking(self, stated: StatedQuotation, source: Source) -> Held | None:
        """Return a version that lacks the words quoted, of those that fit the days or the act that the text states."""
        if not (isinstance(source, StatedArticle) and source.dated):
            return None
        versions = self._checked[source.start, source.end][1]
        return next((one for one in versions if not self._find_words(one, stated.words)), None)

    def _find_words(self, held: Held, words: str) -> list[Span]:
        text = self._shelf.text(held)
        return text.quotation_spans(words) or text.edited_spans(words)

    def _is_beyond(self, stated: StatedQuotation, source: Source) -> bool:
        """Does a source only come up after the quotation, though another is given for it: "« … », proche de X"?"""
        first = stated.sources[0]
        return (
            stated.introduced
            and first.end <= stated.start
            and source.start >= stated.end
            and not self._are_listed(stated, source)
        )

    def _are_listed(self, stated: StatedQuotation, other: Source) -> bool:
        """Is another source given with the first: in its parentheses, or a word or two from it?"""
        named = stated.sources[0]
        first, second = sorted((named, other), key=lambda source: source.start)
        between = self.text[first.end : second.start]
        alike = type(named) is type(other) or first.start >= stated.end
        return alike and len(between) <= LIST_GAP and ")" not in between

    def _confirm_quotation(
        self, stated: StatedQuotation, held: Held, spans: Sequence[Span], source: Source | None, where: str = ""
    ) -> Reference:
        """Report words that a document has: who speaks there, at what point, in force when; and what is wrong of it."""
        text = self._shelf.text(held)
        point = source.point if isinstance(source, StatedDecision) else 0
        inside = text.points.get(point) if point else None
        ranked = sorted(spans, key=lambda span: (not _is_within(span, inside), not text.court_speaks_at(span)))
        judged = ((span, list(self._objections(stated, held, span, inside, point))) for span in ranked[:MAX_PLACES])
        span, corrections = min(judged, key=lambda pair: bool(pair[1]))
        paragraph = None if isinstance(source, StatedArticle) else text.passage_at(span)
        said_by = paragraph.in_french if paragraph else ""
        details: dict[str, Any] = {"said_by": said_by, "corrections": tuple(corrections)}
        if corrections:
            return self._report(stated, "wrong", _explain(corrections), held, span, **details)
        remarks = [
            where or "Le texte cité y est, mot pour mot",
            held.document.in_force,
            f"auteur : {said_by}" if said_by else "",
        ]
        reason = f"{' ; '.join(filter(None, remarks))}."
        checked: tuple[What, ...] = ("words", "point") if inside else ("words",)
        return self._report(stated, "confirmed", reason, held, span, checked=checked, **details)

    def _objections(
        self, stated: StatedQuotation, held: Held, span: Span, inside: Span | None, point: int
    ) -> Iterator[Correction]:
        text = self._shelf.text(held)
        if point and text.points and not (inside and _is_within(span, inside)):
            right = next((number for number, place in text.points.items() if _is_within(span, place)), None)
            yield Correction("point", str(point), str(right) if right else "hors des paragraphes numérotés")
        if (said := self._check_around(stated, held, span)) is not None:
            yield said
        rest = held.document.content[span[1] : span[1] + 120]
        ends = _CLOSES_SENTENCE.match(self.text, stated.end) and not _CUT_AT_END.search(stated.words)
        if ends and _EXCEPTED.match(rest) and len(stated.words) >= LEAST_RULE:
            yield Correction("words", "citation coupée avant une exception", " ".join(rest.split()[:12]))

    def _check_around(self, stated: StatedQuotation, held: Held, span: Span) -> Correction | None:
        """Compare who is said to speak, and whether it is denied, with the passage quoted."""
        start, end = stated.sentence
        quotation = Quotation(stated.start, stated.end, stated.words)
        claim = Claim(start, end, self.text[start:end], [quotation], [])
        text = self._shelf.text(held)
        paragraph = text.passage_at(span)
        right = paragraph.in_french if paragraph else ""
        check = SurroundingsCheck(claim, text, [span], span)
        if check.is_denied_report():
            return Correction("words", NOT_SAID, "") if text.court_speaks_at(span) else None
        if check.wrong_speaker() and not _COURT_LAST.search(self.text[start : stated.start]):
            return Correction("speaker", "une partie ou la décision attaquée", right)
        claimed = check.is_claimed()
        if (claimed or (text.surely_reports(span) and not text.court_speaks_at(span))) and check.other_speaker():
            return Correction("speaker", "la juridiction", "une partie, au début de la citation" if claimed else right)
        return None

    def _judge_absent(
        self, stated: StatedQuotation, held: Sequence[Held], unheld: Sequence[Source], versions: Sequence[Held]
    ) -> Reference | None:
        """Judge words that no source named in the text has, though a Library has such a source, nor its `versions`."""
        long_enough = _count_long_words(stated.words) >= QUOTED_WORDS
        first = self._checked[stated.sources[0].start, stated.sources[0].end][1] or held
        of_article = isinstance(stated.sources[0], StatedArticle) and bool(first)
        nearest = [(one, self._shelf.text(one).nearest(stated.words)) for one in (*held, *versions)]
        near = max((pair for pair in nearest if pair[1]), key=lambda pair: pair[1].likeness, default=None)  # type: ignore[union-attr]
        if near and near[1] and near[1].likeness >= NEAR_IN_SOURCE:
            return self._report_differences(stated, near[0], near[1])
        elsewhere = self._find_anywhere(stated.words) if long_enough else None
        document = held[0]
        contradicted = parse_court(stated.speaker).contradicts(document.court) and not of_article
        if unheld or (stated.of_a_text and not of_article) or contradicted:
            return self._judge_unsourced(stated, unheld or stated.sources) if long_enough else None
        title = self._shelf.title(document)
        if elsewhere:
            other, span = elsewhere
            right = self._shelf.title(other)
            reason = f"Ces mots ne sont pas dans {title} ; ils sont dans {right}."
            return self._report(stated, "wrong", reason, other, span, corrections=(Correction("source", title, right),))
        if not long_enough and not stated.introduced:
            return None  # a term, not a quotation
        if near and near[1] and near[1].likeness >= SHOWN:
            return self._report_differences(stated, near[0], near[1])
        corrections = (Correction("words", stated.words, ""),)
        return self._report(stated, "wrong", f"Ces mots ne sont pas dans {title}.", document, corrections=corrections)

    def _other_version(
        self, stated: StatedQuotation, article: StatedArticle, meant: Sequence[Held], versions: Sequence[Held]
    ) -> Reference | None:
        """Report words that only another version of the article named has than those that the text may mean.

        Of several that have them, the first of `versions`.
        """
        if not meant and _is_day(article) and any(map(is_dated, versions)):
            return None  # no Library has the version of that day: it may have the same words
        for other in versions:
            if (span := self._words_in_version(other, stated.words)) is None:
                continue
            force, wording = other.document.force, article.wording
            if meant and force and wording and wording.excludes(force) and not _is_older(force, wording):
                right = other.document.in_force
                corrections = (Correction("version", wording.in_french, right),)
                reason = (
                    f"Ces mots sont d'une autre version de l'article, {right}, et non de celle que le texte vise "
                    f"({wording.in_french} : {meant[0].document.in_force})."
                )
                return self._report(stated, "wrong", reason, other, span, corrections=corrections)
            return self._report(stated, "ambiguous", self._explain_version(other, meant, article), other, span)
        return None

    def _by_days(self, versions: Sequence[Held], article: StatedArticle) -> list[Held]:
        """Sort versions by how far they are from the day that a text states for an article, else from today."""
        day = (article.dated and article.dated.first) or self._at
        return sorted(versions, key=lambda held: days_from(held, day))

    def _words_in_version(self, held: Held, words: str) -> Span | None:
        if spans := self._find_words(held, words):
            return spans[0]
        near = self._shelf.text(held).nearest(words)
        alike = near is not None and near.likeness >= NEAR_IN_SOURCE and not near.differences
        return (near.char_start, near.char_end) if near and alike else None

    def _explain_version(self, other: Held, meant: Sequence[Held], source: Source | None = None) -> str:
        """Say which version has words that the one meant has not, and when both are in force."""
        has = f"Ces mots sont dans {self._title_in_force(other)}"
        wording = source.dated if isinstance(source, StatedArticle) else None
        stated = f" ({wording.in_french})" if wording else ""
        if meant:
            return f"{has} ; la version {meant[0].document.in_force}{stated} ne les a pas : à comparer."
        if stated or not other.document.force:
            return f"{has} ; l'index n'a pas la version que le texte vise{stated} : à comparer."
        return f"{has}, et non le {long_date(self._at)} : à comparer."

    def _title_in_force(self, held: Held) -> str:
        return ", ".join(filter(None, (self._shelf.title(held), held.document.in_force)))

    def _report_differences(self, stated: StatedQuotation, held: Held, near: NearPassage) -> Reference:
        span = near.char_start, near.char_end
        if not near.differences:
            return self._confirm_quotation(
                stated, held, [span], None, "Le texte cité y est, mot pour mot, aux coupures près"
            )
        changes = near.differences[:MAX_DIFFERENCES]
        corrections = tuple(Correction("words", change.quoted, change.document) for change in changes)
        reason = (
            f"{self._title_in_force(held)}{',' * bool(held.document.force)} dit : « {' '.join(near.text.split())} »."
        )
        return self._report(stated, "wrong", reason, held, span, corrections=corrections)

    def _judge_unsourced(self, stated: StatedQuotation, unheld: Sequence[Source]) -> Reference:
        """Judge a quotation whose source is not named, or not in a Library."""
        match = self._find_anywhere(stated.words)
        if match and not unheld and not is_in_force(match[0], self._at):
            reason = self._explain_version(match[0], ())
            return self._report(stated, "ambiguous", reason, match[0], match[1])
        if match and not unheld:
            where = f"Le texte cité est dans {self._shelf.title(match[0])}, mot pour mot"
            spans = self._find_words(match[0], stated.words) or [match[1]]
            return self._confirm_quotation(stated, match[0], spans, None, where)
        near = None if match else self._find_near_passage(stated.words)
        altered = not stated.of_a_text and len(stated.words.split()) >= NEAR_WORDS
        if near and not unheld and (altered or not near[1].differences):
            return self._report_differences(stated, *near)
        alike = match[0] if match else near[0] if near else None
        nearest = (self._shelf.nearest(alike, "mêmes mots" if match else "mots semblables"),) if alike else ()
        if not unheld:
            status: Status = "out_of_scope" if stated.of_a_text else "absent"
            return self._report(stated, status, "Ces mots ne sont pas dans l'index.", nearest=nearest)
        source, _ = self._checked[unheld[0].start, unheld[0].end]
        if isinstance(unheld[0], StatedArticle) and source.status == "ambiguous":
            reason = "L'index n'a pas la version que le texte vise : ces mots n'ont pas pu y être vérifiés."
            return self._report(stated, "ambiguous", reason, nearest=nearest)
        reason = "La source indiquée n'est pas dans l'index : ces mots n'ont pas pu y être vérifiés."
        status = "absent" if source.status in ("confirmed", "wrong", "ambiguous") else source.status
        return self._report(stated, status, reason, nearest=nearest)

    def _find_anywhere(self, words: str) -> tuple[Held, Span] | None:
        for library in self._shelf.libraries:
            if match := self._shelf.corpora[library.path].find(words):
                held = self._shelf.get(library, match[0])
                versions = () if is_in_force(held, self._at) else self._articles.others([held])
                for version in sorted(versions, key=lambda one: days_from(one, self._at)):
                    if spans := self._find_words(version, words):
                        return version, spans[0]
                return held, match[1]
        return None

    def _find_near_passage(self, words: str) -> tuple[Held, NearPassage] | None:
        if self._nearest_left <= 0:
            return None
        self._nearest_left -= 1
        found = ((library, self._shelf.corpora[library.path].nearest(words)) for library in self._shelf.libraries)
        near = max(
            ((library, passage) for library, passage in found if passage),
            key=lambda pair: pair[1].likeness,
            default=None,
        )
        if near is None or near[1].likeness < NEAR:
            return None
        return self._shelf.get(near[0], near[1].doc_id), near[1]


def _outcomes_and_fates(stated: StatedDecision, held: Held | None = None) -> tuple[list[StatedOutcome], list[SaidFate]]:
    """Return what is said of how a decision ended, without what other courts did, and of what became of it.

    Only a higher court quashes it; of an arrêt, "infirmé" is said of the judgment below, and "confirmé" alone may be.
    """
    document, court = (held.document, held.court) if held else (None, parse_court(stated.court))
    names = (document.juridiction, document.formation, document.title) if document else (stated.court, "", "")
    level, outcomes, fates = level_of(*names), list(stated.outcomes), list(stated.fates)
    if level == SUPREME:
        rejected = (said for said in fates if said.kind == REJET and said.voice == "bare")
        outcomes += (StatedOutcome(REJET, *said[1:3], "", False) for said in rejected)
        of_others, fates = frozenset[str](), []
    else:
        of_others = frozenset((CASSATION, INFIRMATION, CONFIRMATION) if level == "first" else (CASSATION,))
        named = [said for said in fates if said.kind == CONFIRMATION and (said.day or said.voice == "passive")]
        fates = [said for said in fates if said.kind in {"", *of_others, ANNULATION, REJET} or said in named]
        spans = [(said.start, said.end) for said in fates]
        outcomes = [one for one in outcomes if not any(one.start < end and start < one.end for start, end in spans)]
        # Of one that stands further off it is not sure of which decision it is said.
        undone = ((one, "" if one.court else one.kind) for one in outcomes if one.kind in of_others)
        fates += [SaidFate(kind, *one[1:3], "bare", False, False, False) for one, kind in undone]
    others = (one for one in outcomes if one.kind not in of_others)
    return [one for one in others if not (one.court and parse_court(one.court).contradicts(court))], fates


def _against(said: SaidFate, known: Sequence[Nearest]) -> str | None:
    """Return the known fates of a decision that contradict what is said of it; '' if they bear it out, None if neither."""
    if not said.kind:
        return None
    kinds = {one: kinds_of(one.why, reported=True) for one in known}
    undone = [one for one in known if kinds[one] & UNDOING]
    upheld = [one for one in known if one not in undone and kinds[one] & UPHOLDING]
    whole = [one for one in undone if "en partie" not in one.why]
    against, borne_out = upheld, undone
    if said.upholds:
        against, borne_out = undone if said.is_denied and not said.is_limited else whole, upheld
    elif said.is_denied:  # "n'a pas été confirmé"
        against, borne_out = [], whole
    elif undone:
        same = (one for one in undone if said.kind in kinds[one] or {said.kind, *kinds[one]} == {CASSATION, ANNULATION})
        against = undone if said.is_whole and not whole else []
        borne_out = [] if said.is_limited and whole else list(same)
    days = [{day.value for day in find_dates(one.title)} for one in borne_out]
    if said.day and borne_out and all(days) and not any(said.day in some for some in days):
        against = borne_out
    if against:
        return " ; ".join(f"{one.why} {one.title}" for one in against)
    return "" if borne_out else None


def _means_former(source: Source) -> bool:
    """Does the text mean a version before the one in force, of which it gives no day: "l'ancien article 1382"?"""
    return isinstance(source, StatedArticle) and source.wording is not None and source.wording.meaning == "former"


def _names_acts(held: Held) -> bool:
    """Does the source say which acts wrote this version of an article?"""
    return held.document.force is not None and bool(held.document.force.acts)


def _is_day(article: StatedArticle) -> bool:
    """Does the text state a day, not an act, for the version that it means?"""
    return article.dated is not None and article.dated.meaning != "act"


def _is_older(force: Force, wording: StatedWording) -> bool:
    """Was a version over before the last one that stood before a day or an act? It too was "antérieure"."""
    return wording.meaning == "before" and wording.first is not None and force.until <= wording.first


def _in_force(versions: Sequence[Held]) -> str:
    forces = sorted({held.document.force for held in versions if held.document.force})
    return ", ".join(force.in_french for force in forces)


def _identity(held: Held) -> tuple[str, str, str]:
    """Return what tells decisions apart: two Libraries may hold the same one."""
    document = held.document
    number = re.sub(r"\W", "", str(document.extra.get("number") or document.id))
    return number, document.decision_date, document.juridiction


def _is_of_another_court(stated: StatedDecision, corrections: Sequence[Correction]) -> bool:
    """Is the number another court's? Each court of appeal numbers its own cases."""
    wrong = {correction.what for correction in corrections}
    kinds = {name.kind for name in stated.names}
    of_other_court = "court" in wrong or (not stated.court and wrong != {"fate"})
    return bool(kinds) and kinds <= {"rg", "number"} and of_other_court and (stated.date is None or "date" in wrong)


def _family(doc_id: str) -> str:
    """Return what ids of one database share: 'JURITEXT', or their length."""
    letters = re.match(r"[A-Z]+(?=\d+$)", doc_id)
    return letters.group() if letters else str(len(doc_id))


def _of(text: str) -> str:
    """Write "du code du travail", "de la loi n° 85-677", "de l'arrêté du 3 mars 2016"."""
    text = re.sub(r"(?<= du )\d{4}-\d\d-\d\d$", lambda day: long_date(date.fromisoformat(day.group())), text)
    noun = text.lower()
    if noun.startswith(("ordonnance", "arrêté", "accord", "avenant", "ani")):
        return f"de l'{text}"
    feminine = noun.startswith(("loi", "conv", "ccn", "charte", "constitution", "déclaration", "directive", "police"))
    return f"{'des' if noun == 'statuts' else 'de la' if feminine else 'du'} {text}"


def _is_roll_number(stated: StatedDecision) -> bool:
    return {name.kind for name in stated.names} == {"rg"}


def _lies_inside(reference: Reference, spans: Sequence[Span]) -> bool:
    return any(start < reference.start and reference.end < end for start, end in spans)


def _is_within(span: Span, place: Span | None) -> bool:
    return place is None or (place[0] <= span[0] and span[1] <= place[1])


def _explain(corrections: Sequence[Correction]) -> str:
    """Say in French what the text states, and what is right."""
    return f"{' ; '.join(map(_explain_one, corrections))}."


def _explain_one(fix: Correction) -> str:
    if fix.what == "speaker":
        return f"Le texte prête ces mots à {fix.stated} ; dans la décision : {fix.right or 'un autre'}"
    if fix.what == "words" and fix.stated == NOT_SAID:
        return "Le texte dit que la décision ne le dit pas ; elle le dit"
    if fix.what == "fate":
        return f"Le texte dit « {fix.stated} », l'index : « {fix.right} »"
    if fix.what == "words":
        return f"Le texte a une {fix.stated} : « {fix.right} »"
    return f"Le texte dit {WHAT_IN_FRENCH[fix.what]} « {fix.stated} », la décision : « {fix.right} »"


def _count_long_words(text: str) -> int:
    return len(re.findall(r"[^\W\d_]{4,}", text))
