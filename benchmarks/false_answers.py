"""False and honest answers of one claim over real decisions, by kind, with the truth about each.

In: decisions. Out: `Case`s, the same for the same seed, `dev` or `held-out` by a hash of the decision's id. A false claim
is false in one thing, and what makes it false stands in none of the decisions read. Classes:

- false: never verified or relocated, never given a marker, seldom supported;
- blind: the same, but what is false in it is no fact, negation or direction: `supported` is only counted;
- spoken: the words are true, who speaks is not: verified only with a warning;
- quoting: honest, with a verbatim quotation: verified or relocated;
- stating: honest, without quotation: confirmed.
"""

# ruff: noqa: E501 - a wording a row is easier to read than one broken over lines

import datetime
import hashlib
import random
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from altered_quotations import ALTERATIONS
from answer_material import MONTHS, Passage
from answer_wording import SYNONYMS, TURNING
from stated_changes import FALSE, RESPELT, Change

from legal_rag.corpus import Document
from legal_rag.corpus.documents import nearest_among

HALVES = ("dev", "held-out")
CLAUSE = range(55, 340)  # characters
FAR = 1500  # characters between two places that one sentence may not merge
ADVERB = r"(?:en (?:premier|second|troisième|dernier) lieu|en outre|en effet|en l'espèce|toutefois|d'une part|d'autre part|cependant|enfin|dès lors|par suite|ainsi|par ailleurs)"
OPENING = re.compile(
    r"(?:Article (?:\d+(?:er)?|premier) ?[.:-]*[ -–]*)?(?:\d+(?:\.\d+)*[.°)/]+ *)?(?:(?:mais|et|or) (?=att|con|qu))?(?:considérant|attendu)?"
    rf"(?:,? ?{ADVERB},?)? ?(?:qu(?:e,? |'|’)(?:{ADVERB},? )?)?",
    re.IGNORECASE,
)
BREAK = re.compile(r"\n+|(?<=[;:])\s+(?=qu|et qu|alors)|;\s*|(?<=[a-zéè0-9)»\]])\.\s+(?=[A-ZÀÉÈ«0-9])")
SIGNS = re.compile(r"[«»“”„\"\[\]<>*_`|]|\.\.\.|…|http")
CROPPED = re.compile(
    r"^(?:\d|(?:ont|a|est|sont|dit|dont|ainsi|que|et|ou|où|qui) |[^(]*\)|[A-ZÉ]{3,} ET )|[\s'’](?:\w|art|al|concl|n°|cf|\d)$"
)
FINITE = re.compile(
    r"\b(?:est|sont|a|ont|n'est|n'a|était|avait|peut|doit|ne|résulte|constitue|prévoit|dispose|soutient|demande|porte|rejette)\b"
)
CLAIMED = re.compile(
    r"(?:soutient|soutiennent|fait valoir|font valoir|prétend|allègue|allèguent)(?: en outre| également| notamment| enfin|, en outre,)? qu(?:e |')([^;,\"«»\[\]\n]{50,260}?)(?= ?[;.\n])"
)
OPINIONS = [
    "Cette solution paraît constante.",
    "La question reste discutée en doctrine.",
    "Il convient de rester prudent.",
]
NEUTRAL = [
    "Selon la décision, ", "Il ressort de la décision que ", "La décision énonce que ", "On lit dans la décision : ", "D'après les motifs, ",
    "Il est précisé que ", "", "Par ailleurs, ", "- ", "1. ", "**Motif** : ",
]  # fmt: skip
INVENTIONS = {
    "date": ["Le {}, le gérant a cédé ses parts à un concurrent étranger", "L'incendie de l'usine s'est produit le {}", "Le mariage des époux a été célébré le {} à Venise"],
    "sum": ["Le navire a été vendu pour {} au cours d'une vente aux enchères", "La rançon exigée par les ravisseurs atteignait {}", "Le musée a acquis le tableau au prix de {}"],
    "rate": ["Le taux d'alcoolémie du pilote dépassait {} de la limite", "Les vendanges ont chuté de {} à cause du gel"],
    "article": ["L'extradition du chef mafieux repose sur l'{}", "L'{} impose la vaccination du bétail", "L'{} autorise la polygamie sous conditions"],
    "case number": ["Le sous-marin a été saisi dans l'affaire {}", "Le dossier {} concerne un trafic d'ivoire"],
    "person": ["{} a dérobé les bijoux de sa tante", "{} pilotait l'hélicoptère tombé dans le lac"],
    "count": ["L'avalanche a enseveli {}", "Le volcan a menacé {}"],
}  # fmt: skip
FACTS = {
    "date": re.compile(rf"\b(?:1er|\d\d?) (?:{'|'.join(MONTHS)}) (?:1[89]|20)\d\d\b"),
    "sum": re.compile(r"(?<![\d,.])(?<!\d )[1-9]\d{0,2}(?: \d{3})+ (?:euros|francs)\b"), "rate": re.compile(r"(?<![\d,.])\d{1,2}(?:,\d+)? ?%"),
    "article": re.compile(r"\barticle (?:L\.O\.|L\.|R\.) ?\d+(?:-\d+)*(?![\d-])"),
    "case number": re.compile(r"\bn° (?:[A-Z] )?\d\d-\d\d\.\d{3}\b|\bn° \d{4}-\d{4} AN\b"),
    "person": re.compile(r"\b(?:M\.|Mme) (?:[A-Z][a-zéèëï-]+ )?[A-ZÉ][\w-]{3,}"),
    "count": re.compile(r"(?<![\d,.])(?<!\d )\d{2,3} (?:voix|électeurs|salariés|bulletins|suffrages)\b"),
}  # fmt: skip
ODD_MARKERS = {
    "round": "(Source : {d}, chars {s}-{e})", "round, no colon": "(Source {d}, chars {s}-{e})", "braces": "{{Source: {d}, chars {s}-{e}}}",
    "cf.": "[cf. Source: {d}, chars {s}-{e}]", "voir": "[voir Source : {d}, chars {s}-{e}]", "full-width brackets": "［Source: {d}, chars {s}-{e}］",
    "lenticular": "【Source: {d}, chars {s}-{e}】", "Cyrillic letters": "[Sоurсe: {d}, chars {s}-{e}]",
    "full-width colon": "[Source： {d}, chars {s}-{e}]", "unclosed": "[Source: {d}, chars {s}-{e}", "unopened": "Source: {d}, chars {s}-{e}]",
    "escaped": "\\[Source: {d}, chars {s}-{e}\\]", "double": "[[Source: {d}, chars {s}-{e}]]", "link": "[Source: {d}, chars {s}-{e}](#ref)",
    "bold": "**[Source: {d}, chars {s}-{e}]**", "code": "`[Source: {d}, chars {s}-{e}]`", "angle": "<Source: {d}, chars {s}-{e}>",
    "capitals": "[SOURCE: {d}, CHARS {s}-{e}]", "zero width": "[Sou\u200brce: {d}, chars {s}-{e}]",
    "soft hyphen": "[Sour\u00adce: {d}, chars {s}-{e}]", "no-break": "[Source\u00a0:\u00a0{d}, chars\u00a0{s}-{e}]",
    "en dash": "[Source: {d}, chars {s}–{e}]", "line break": "[Source:\n{d}, chars {s}-{e}]", "full-width letters": "[Ｓｏｕｒｃｅ: {d}, chars {s}-{e}]",
    "entity": "&#91;Source: {d}, chars {s}-{e}&#93;", "Réf.": "[Réf. : {d}, chars {s}-{e}]", "no word": "[{d}, chars {s}-{e}]",
    "footnote": "[^1]\n\n[^1]: [Source: {d}, chars {s}-{e}]", "italic word": "[*Source* : {d}, chars {s}-{e}]",
    "positions": "[Source: {d}, positions {s}-{e}]", "dash": "[Source - {d}, chars {s}-{e}]",
}  # fmt: skip
MARKS = {
    "guillemets": "« {} »", "guillemets, no-break": "«\u00a0{}\u00a0»", "guillemets, tight": "«{}»", "curly": "“{}”", "single curly": "‘{}’",
    "low": "„{}“", "low, single": "‚{}‘", "less-than": "<< {} >>", "full width": "＂{}＂", "single guillemets": "‹ {} ›", "straight": '"{}"',
    "straight single": " '{}'", "entities": "&laquo; {} &raquo;", "quot entities": "&quot;{}&quot;", "TeX": "``{}''", "two apostrophes": "''{}''",
    "reversed": "»{}«", "corner": "「{}」", "primes": "〝{}〞", "mixed": "« {} ”", "escaped": '\\"{}\\"', "q tag": "<q>{}</q>", "nested": "« “{}” »",
    "italic": "*« {} »*", "bold": "**« {} »**", "math": "≪ {} ≫", "English in French": "« \"{}\" »", "block": "\n\n> {}\n\n",
    "block, marks": "\n\n> « {} »\n\n", "block, split": "\n\n> {1}\n> {2}\n\n", "block, two paragraphs": "\n\n> {1}\n>\n> {2}\n\n",
    "block tag": "\n\n<blockquote>{}</blockquote>\n\n", "code": "`{}`", "code block": "\n\n```\n{}\n```\n\n", "indented": "\n\n    {}\n\n",
    "two paragraphs": "« {1}\n\n{2} »", "paragraphs, each opened": "« {1}\n\n« {2} »", "line break": "« {1}\n{2} »", "list": "\n\n- « {} »\n",
    "cell": "\n\n| motif | texte |\n|---|---|\n| 1 | « {} » |\n\n",
}  # fmt: skip
UNMARKED = {
    "unclosed": "« {}", "italic alone": "*{}*", "bold alone": "**{}**", "colon alone": "{}", "dash": "— {}", "underscores": "_{}_",
}  # fmt: skip
NOT_ALTERED_WHERE_READ_AS_TEXT = ("negation", "number", "article", "name")  # what plain text shows to be false


class Case(NamedTuple):
    """An answer of one claim and the truth about it."""

    kind: str
    truth: str  # false, blind, spoken, quoting or stating
    text: str
    read: tuple[str, ...]
    marked: bool  # whether the claim has a marker, however it is spelt
    true: str = ""  # the claim of the decision it was made from
    words: tuple[str, ...] = ()  # of an honest quotation, the pieces that a citation must hold
    place: Passage | None = None
    before: str = ""  # honest sentences before the claim, and after it
    after: str = ""

    @property
    def half(self) -> str:
        """Return the half the case belongs to: that of the first decision read."""
        return half_of(self.read[0])


class Decisions:
    """Decisions by id, as a Library gives them."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._documents = documents
        self._ids = sorted(documents)

    def document(self, doc_id: str) -> Document:
        """Return a decision; LookupError names the nearest id."""
        if doc_id not in self._documents:
            raise LookupError(f"no document {doc_id!r} (the nearest id is {self.nearest_id(doc_id)!r})")
        return self._documents[doc_id]

    def nearest_id(self, doc_id: str) -> str | None:
        """Return the id most like another."""
        return nearest_among(self._ids, doc_id)

    def __contains__(self, doc_id: str) -> bool:
        return doc_id in self._documents


def half_of(doc_id: str) -> str:
    """Return the half a decision belongs to."""
    return HALVES[hashlib.blake2b(doc_id.encode()).digest()[0] % 2]


@lru_cache(maxsize=20_000)
def squash(text: str) -> str:
    """Return the letters and figures of a text alone, without accents, case or typography."""
    plain = unicodedata.normalize("NFKD", text.replace("œ", "oe").replace("Œ", "oe").replace("&nbsp;", " "))
    return "".join(letter for letter in plain.casefold() if letter.isalnum())


@cache
def plain(text: str) -> str:
    """Return a text in lower case with plain spaces."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text)).lower()


class Clause(NamedTuple):
    """A clause of a decision that an answer may repeat."""

    place: Passage
    text: str


def clauses_of(document: Document) -> list[Clause]:
    """Split a decision into clauses fit to be repeated: running text, brackets and quotations closed."""
    found, at = [], 0
    text = document.content
    for stop in [*(match.span() for match in BREAK.finditer(text)), (len(text), len(text))]:
        start = at + len(re.match(r"\s*", text[at : stop[0]]).group())  # type: ignore[union-attr]
        start += len(OPENING.match(text[start : stop[0]]).group())  # type: ignore[union-attr]
        said = text[start : stop[0]].rstrip(" ;,.:\n")
        at = stop[1]
        fit = (
            len(said) in CLAUSE
            and said.count("(") == said.count(")")
            and not (SIGNS.search(said) or CROPPED.search(said))
        )
        if (
            fit
            and sum(map(str.islower, said)) > 0.55 * len(said)
            and re.match(r"[\wÀ-ÿ]", said)
            and FINITE.search(said)
        ):
            found.append(Clause(Passage(document.id, start, start + len(said)), said))
    return found


class Scene:
    """The decisions of one half, and the draws that cases are made from."""

    def __init__(self, documents: Sequence[Document], half: str, seed: int) -> None:
        self.documents = {one.id: one for one in documents if half_of(one.id) == half}
        self.rng = random.Random(f"{seed} {half}")
        self.clauses = self._interleaved()

    def _interleaved(self) -> list[Clause]:
        """Return the clauses of all decisions in a random order, those of courts with few decisions as often as others."""
        by_court: dict[str, list[Clause]] = {}
        for one in self.documents.values():
            if len(one.content) < 120_000:
                by_court.setdefault(one.juridiction[:8], []).extend(clauses_of(one))
        ranked = []
        for clauses in by_court.values():
            self.rng.shuffle(clauses)
            ranked += [(number / min(len(clauses), 9000), clause) for number, clause in enumerate(clauses)]
        return [clause for _, clause in sorted(ranked, key=lambda pair: pair[0])]

    @cached_property
    def ids(self) -> list[str]:
        """Return the ids of the decisions short enough to be read as one of several."""
        return [doc_id for doc_id, one in self.documents.items() if len(one.content) < 40_000]


class Draft:
    """One attempt at a case: a clause, the decisions read, and ways to write markers and sentences."""

    def __init__(self, scene: Scene, clause: Clause, rng: random.Random) -> None:
        self.scene, self.rng, self.clause = scene, rng, clause
        self.document = scene.documents[clause.place.doc_id]
        others = rng.sample(scene.ids, rng.choice([0, 0, 1, 2, 3]))
        self.read = (clause.place.doc_id, *(one for one in others if one != clause.place.doc_id))

    def texts(self) -> list[str]:
        """Return the texts read."""
        return [self.scene.documents[one].content for one in self.read]

    def absent(self, words: str) -> bool:
        """Tell whether words stand in no decision read, typography left aside."""
        sought = squash(words)
        return bool(sought) and not any(sought in squash(text) for text in self.texts())

    def holds(self, change: Change) -> bool:
        """Tell whether a change makes the clause false."""
        signs_only = squash(change.text) == squash(self.clause.text)
        if not all(self._typed_nowhere(one) if signs_only else self.absent(one) for one in change.absent):
            return False
        dates = [self.scene.documents[one].decision_date for one in self.read]
        return not change.pattern or not any(re.search(change.pattern, plain(text)) for text in [*self.texts(), *dates])

    def _typed_nowhere(self, words: str) -> bool:
        return not any(plain(words) in plain(text) for text in self.texts())

    def window(self) -> Passage:
        """Return the clause's place, or a wider one around it."""
        more = self.rng.choice([0, 0, 200, 800])
        place = self.clause.place
        start = max(0, place.char_start - self.rng.randint(0, more))
        return place._replace(char_start=start, char_end=min(len(self.document.content), place.char_end + more))

    def marker(self, place: Passage | None = None, pattern: str = "[Source: {d}, chars {s}-{e}]") -> str:
        """Write the marker of a place, by default the clause's."""
        place = place or self.window()
        return pattern.format(d=place.doc_id, s=place.char_start, e=place.char_end)

    def any_marker(self) -> str:
        """Write a right marker six times of ten; else one with wrong or no offsets, or none."""
        draw = self.rng.random()
        if draw < 0.6:
            return self.marker()
        if draw < 0.7:
            start = self.rng.randrange(max(1, len(self.document.content) - 300))
            return self.marker(Passage(self.document.id, start, start + 200))
        return f"[Source: {self.document.id}]" if draw < 0.8 else ""

    def neutral(self) -> str:
        """Return an introduction that states nothing."""
        return self.rng.choice(NEUTRAL)

    def said(self, words: str, marker: str, introduction: str | None = None) -> str:
        """Write a sentence."""
        introduction = self.neutral() if introduction is None else introduction
        if not introduction or introduction.endswith(("- ", "1. ")):
            words = words[0].upper() + words[1:]
        elif introduction.endswith("que "):
            words = re.sub(
                r"^(?:[LDÀAECI]|Il|Un|Par|Pour|Selon|Cette?|Les?|La|En|Sur|Si|Dès)(?=[ '’a-z])",
                lambda one: one.group().lower(),
                words,
            )
        text = f"{introduction}{words}".rstrip(" ;,.")
        return re.sub(
            r"\bque (?=[aeiouyéèêàhœ])(?=il|elle|on|en|un|au)", "qu'", f"{text} {marker}." if marker else f"{text}."
        )

    def quoted(self, words: str, marks: str, marker: str, introduction: str | None = None, tail: str = "") -> str:
        """Write a sentence around a quotation in some marks."""
        introduction = self.neutral() if introduction is None else introduction
        quotation = filled(marks, words)
        if "\n\n" in quotation and not introduction.rstrip().endswith(":"):
            introduction = "On lit dans la décision :"
        ends = quotation.endswith("\n")
        return f"{introduction}{quotation}{tail}{marker if ends else f' {marker}' if marker else ''}" + (
            "" if ends else "."
        )

    def case(self, kind: str, truth: str, text: str, **more: object) -> Case:
        """Make the case."""
        marked = bool(more.pop("marked", "[Source" in text))
        return Case(kind, truth, text, self.read, marked, self.clause.text, place=self.clause.place, **more)  # type: ignore[arg-type]


def filled(marks: str, words: str) -> str:
    """Put words between marks; {1} and {2} are their halves."""
    middle = words.find(" ", len(words) // 2) + 1 or len(words) // 2
    return marks.format(words, words[:middle].rstrip(), words[middle:])


Maker = Callable[[Draft], Case | None]


class Kind(NamedTuple):
    """A kind of case."""

    name: str
    make: Maker
    share: float = 1.0  # of the cases that each kind gets


def false_kinds() -> Iterator[Kind]:
    """Yield the kinds of answers that are false in one thing."""
    for name, change in FALSE.items():
        yield Kind(f"stated: {name}", _changed(f"stated: {name}", change))
        yield Kind(f"quoted: {name}", _changed(f"quoted: {name}", change, quoted=True), 0.4)
    for name in ALTERATIONS:
        yield Kind(f"altered: {name}", _altered(f"altered: {name}", name, None))
    for name, marks in (MARKS | UNMARKED).items():
        yield Kind(f"altered in {name}", _altered(f"altered in {name}", "", marks, as_text=name in UNMARKED))
    for name, pattern in ODD_MARKERS.items():
        yield Kind(f"marker: {name}", _odd_marker(f"marker: {name}", pattern))
    for name, sought in SWALLOWED.items():
        yield Kind(f"cut swallows {name}", _swallowed(f"cut swallows {name}", sought))
    for name in INVENTIONS:
        yield Kind(f"invention beside a {name}", _invention(f"invention beside a {name}", name))
    for name, around in FALSE_AROUND.items():
        yield Kind(f"around: {name}", _around(f"around: {name}", "false", around))
    for make in (
        joined_sentences, cut_over_sentences, two_quotations_one_altered, altered_then_true, merged_claim, merged_unquoted, other_decision_quoted,
        other_decision_stated, unknown_id, invention_and_half_a_clause, false_before_true, true_before_false, invented_quotation,
        quotation_without_its_subject, invented_own_date, word_replaced_unquoted, parties_swapped, two_facts_swapped,
    ):  # fmt: skip
        yield Kind(make.__name__.replace("_", " "), make, 2.0)
    for name, make_spoken in SPOKEN.items():
        yield Kind(f"speaker: {name}", make_spoken, 2.0)


def honest_kinds() -> Iterator[Kind]:
    """Yield the kinds of honest answers."""
    for name, marks in MARKS.items():
        yield Kind(f"in {name}", _verbatim(f"in {name}", marks))
    for name, typed in TYPOGRAPHY.items():
        yield Kind(f"typed: {name}", _typed(f"typed: {name}", typed))
    for name, around in TRUE_AROUND.items():
        yield Kind(f"introduced: {name}", _around(f"introduced: {name}", "quoting", around))
    for name, respelt in RESPELT.items():
        yield Kind(f"restated: {name}", _respelt(f"restated: {name}", respelt))
    for name, pattern in ODD_MARKERS.items():
        if name not in ("unopened", "no word", "Réf.", "round, no colon", "code", "footnote"):
            yield Kind(f"true, marker: {name}", _true_odd_marker(f"true, marker: {name}", pattern), 0.5)
    for make in (
        no_marker, wrong_offsets, missing_offsets, of_the_other_decision, harmless_cut, two_quotations, two_decisions, editors_word, numbered_steps,
        list_of_sources, footnote, restated, restated_with_synonyms, restated_in_full, restated_in_another_order, own_year, short_quotation, answer_of_three,
    ):  # fmt: skip
        yield Kind(make.__name__.replace("_", " "), make, 2.0)


def make_cases(documents: Sequence[Document], half: str, n: int = 12, seed: int = 0) -> list[Case]:
    """Make the false and honest cases of a half.

    Args:
        documents: Real decisions, of several courts.
        half: `dev` or `held-out`.
        n: How many cases of a kind of the usual share.
        seed: The same documents and seed give the same cases.
    """
    scene = Scene(documents, half, seed)
    return [case for kind in (*false_kinds(), *honest_kinds()) for case in _cases_of(scene, kind, n, seed)]


def _cases_of(scene: Scene, kind: Kind, n: int, seed: int) -> Iterator[Case]:
    """Make the cases of a kind, of different decisions."""
    rng = random.Random(f"{seed} {kind.name}")
    start, made, used = rng.randrange(len(scene.clauses)), 0, set()
    for number in range(len(scene.clauses)):
        clause = scene.clauses[(start + number) % len(scene.clauses)]
        if made >= max(2, round(n * kind.share)):
            return
        if clause.place.doc_id not in used and (case := kind.make(Draft(scene, clause, rng))):
            made += 1
            used.add(clause.place.doc_id)
            yield case


def _changed(kind: str, rule: Callable[[random.Random, str], Change | None], quoted: bool = False) -> Maker:
    def make(draft: Draft) -> Case | None:
        change = rule(draft.rng, draft.clause.text)
        if not change or not draft.holds(change):
            return None
        if quoted:
            marks = draft.rng.choice(["« {} »", "“{}”", '"{}"', "\n\n> {}\n\n"])
            return draft.case(kind, "false", draft.quoted(change.text, marks, draft.any_marker()))
        return draft.case(kind, "false", draft.said(change.text, draft.any_marker()))

    return make


def _altered(kind: str, alteration: str, marks: str | None, as_text: bool = False) -> Maker:
    def make(draft: Draft) -> Case | None:
        possible = NOT_ALTERED_WHERE_READ_AS_TEXT if as_text else tuple(ALTERATIONS)
        words = ALTERATIONS[alteration or draft.rng.choice(possible)](draft.clause.text, draft.rng)
        if not words or not draft.absent(words):
            return None
        chosen = marks or draft.rng.choice(list(MARKS.values()))
        introduction = draft.rng.choice(["La décision énonce : ", "On lit dans la décision : "]) if as_text else None
        return draft.case(kind, "false", draft.quoted(words, chosen, draft.any_marker(), introduction))

    return make


def _odd_marker(kind: str, pattern: str) -> Maker:
    def make(draft: Draft) -> Case | None:
        marker = draft.marker(pattern=pattern)
        if draft.rng.random() < 0.5:
            change = draft.rng.choice(list(FALSE.values()))(draft.rng, draft.clause.text)
            if not change or not draft.holds(change):
                return None
            return draft.case(kind, "false", draft.said(change.text, marker), marked=True)
        words = draft.rng.choice(list(ALTERATIONS.values()))(draft.clause.text, draft.rng)
        if not words or not draft.absent(words):
            return None
        return draft.case(kind, "false", draft.quoted(words, "« {} »", marker), marked=True)

    return make


SWALLOWED = {
    "ne pas": r"\b(?:ne |n['’])\w+ (?:pas|plus) (?:\w+ ){0,2}", "ne": r"\b(?:ne |n['’])\w+ ", "pas": r"\bpas \w+ ",
    "a refusé de": r"\b(?:a|avait|ayant) refusé (?:de |d')", "sauf": r",? ?\b(?:sauf|hormis|excepté|à l'exception) [^,;.]{5,90}",
    "à tort": r"\bà tort (?:\w+ ){0,2}", "prétend que": r"\b(?:soutient|soutiennent|prétend|allègue|fait valoir|font valoir)(?: \w+)? qu(?:e |')",
    "que": r"\bqu(?:e |')(?:\w+ ){1,3}", "sans": r"\bsans (?:\w+ ){1,3}", "aucun": r"\baucune? (?:\w+ ){1,2}", "ni": r"\bni (?:\w+ ){1,4}",
    "infirme": r"\b(?:infirm|annul|rejet)\w+ (?:\w+ ){0,2}", "conditional": r"\b(?:aurait|auraient|serait|seraient|devrait|pourrait) (?:\w+ ){0,2}",
    "demande": r"\b(?:demande(?:nt)?|sollicite(?:nt)?) (?:à |que |l')(?:\w+ ){0,3}",
    "condition": r"\b(?:si|à condition|sous réserve|à moins) [^,;.]{5,90}",
    "only": r"\b(?:seul|seule|seulement|uniquement|exclusivement) (?:\w+ ){0,2}",
    "doubt": r"\b(?:il n'est pas (?:établi|démontré|contesté|allégué) que|à supposer que?|à le supposer) ",
}  # fmt: skip


def _swallowed(kind: str, pattern: str) -> Maker:
    """Quote a clause with a cut over the very words that turn its meaning."""
    compiled = re.compile(pattern)

    def make(draft: Draft) -> Case | None:
        text = draft.clause.text
        inner = [one for one in compiled.finditer(text) if one.start() > 12 and len(text) - one.end() > 15]
        if not inner:
            return None
        cut = draft.rng.choice(inner)
        words = f"{text[: cut.start()].rstrip()} {draft.rng.choice(['[...]', '[…]', '(...)', '(…)', '…', '...'])} {text[cut.end() :].lstrip()}"
        marker = draft.marker() if draft.rng.random() < 0.8 else ""
        return draft.case(kind, "false", draft.quoted(words, draft.rng.choice(["« {} »", '"{}"', "“{}”"]), marker))

    return make


def _invention(kind: str, fact: str) -> Maker:
    def make(draft: Draft) -> Case | None:
        found = list(FACTS[fact].finditer(draft.clause.text))
        if not found:
            return None
        text = draft.rng.choice(INVENTIONS[fact]).format(draft.rng.choice(found).group())
        return draft.case(kind, "false", draft.said(text, draft.any_marker()))

    return make


def french_date(iso: str) -> str:
    """Write an ISO date in French."""
    day = datetime.date.fromisoformat(iso)
    return f"{'1er' if day.day == 1 else day.day} {MONTHS[day.month - 1]} {day.year}"


def court_of(document: Document) -> str:
    """Return the court's name as it stands in a French sentence."""
    name = document.juridiction
    return ("le " if name.startswith("Conseil") else "la ") + (name[0].lower() + name[1:] if "appel" in name else name)


class Around(NamedTuple):
    """What stands before and after a true quotation."""

    before: str
    after: str = ""


Arounder = Callable[[Draft], Around | None]
COURTS = ["la Cour de cassation", "le Conseil constitutionnel", "le Conseil d'État", "la cour d'appel de Bordeaux", "le tribunal judiciaire de Brest",
          "la Cour de justice de l'Union européenne", "le Tribunal des conflits", "la chambre régionale des comptes"]  # fmt: skip


def _other_court(draft: Draft) -> str | None:
    """Return a court that is not the decision's, and that the decision does not name."""
    others = [
        one for one in COURTS if draft.absent(one.split(" ", 1)[1]) and squash(one) != squash(court_of(draft.document))
    ]
    return draft.rng.choice(others) if others else None


def _other_date(draft: Draft) -> str | None:
    """Return a date that is neither the decision's nor in what was read."""
    try:
        own = datetime.date.fromisoformat(draft.document.decision_date)
    except ValueError:
        return None
    other = own + datetime.timedelta(days=draft.rng.choice([-400, -33, -1, 1, 2, 10, 31, 365, 3653]))
    month = MONTHS[other.month - 1]
    pattern = rf"\b{other.day}(?:er)?\b[^;\n]{{0,50}}{month}[^;\n]{{0,50}}{other.year}|{other.isoformat()}"
    dates = [draft.scene.documents[one].decision_date for one in draft.read]
    stands = any(re.search(pattern, plain(text)) for text in [*draft.texts(), *dates])
    return None if stands else french_date(other.isoformat())


def _other_number(draft: Draft) -> str | None:
    number = str(draft.document.extra.get("number") or "")
    digits = [at for at, letter in enumerate(number) if letter.isdigit()]
    if len(digits) < 5:
        return None
    at = draft.rng.choice(digits[-3:])
    other = number[:at] + str((int(number[at]) + draft.rng.randint(1, 9)) % 10) + number[at + 1 :]
    return other if draft.absent(other) else None


def _fact_around(pattern: str, *wordings: str) -> Arounder:
    """Make words around a quotation that state a changed fact of the clause's decision."""

    def around(draft: Draft) -> Around | None:
        changed = pattern.format(
            a=draft.rng.randint(3, 9), b=draft.rng.randint(1000, 9989), c=draft.rng.randint(13, 89)
        )
        before, after = draft.rng.choice(wordings).format(changed).split("|")
        return Around(before, after) if draft.absent(re.sub(r"^article |^n° ", "", changed)) else None

    return around


def _if(value: str | None, *wordings: str, rng: random.Random) -> Around | None:
    if value is None:
        return None
    before, _, after = rng.choice(wordings).format(value).partition("|")
    return Around(before[0].upper() + before[1:] if before else "", after)


def clear_outcome(document: Document) -> str:
    """Return a decision's outcome, or nothing where its operative part has two."""
    operative = re.split(r"par ces motifs|d ?é ?c ?i ?d ?e ?:", plain(document.content))[-1]
    rejects = re.search(r"\brejette (?:le|les|l') ?pourvois?|\brejetées?\b|\ble rejette\b", operative)
    grants = re.search(r"\bcasse et annule|\bannulée?s?\b|\bannule\b|inéligible", operative)
    return "" if rejects and grants else document.solution


def _outcome(true: bool) -> Arounder:
    """Make a verb of outcome: the decision's own, or its contrary."""
    rejects = [
        "La Cour de cassation rejette le pourvoi au motif que |",
        "Rejetant le pourvoi, la Cour de cassation retient que |",
        "La Cour rejette le pourvoi : |",
    ]
    quashes = [
        "La Cour de cassation casse l'arrêt au motif que |",
        "Cassant l'arrêt attaqué, la Cour de cassation retient que |",
        "La Cour casse et annule l'arrêt : |",
    ]
    bars = [
        "Le Conseil constitutionnel déclare le candidat inéligible au motif que |",
        "Prononçant l'inéligibilité, le Conseil constitutionnel relève que |",
    ]
    refuses = [
        "Le Conseil constitutionnel rejette la requête au motif que |",
        "Rejetant la requête, le Conseil constitutionnel relève que |",
    ]
    annuls = [
        "Le Conseil constitutionnel annule l'élection au motif que |",
        "Annulant l'élection, le Conseil constitutionnel retient que |",
    ]

    def around(draft: Draft) -> Around | None:
        solution, court = clear_outcome(draft.document), draft.document.juridiction
        if court == "Cour de cassation" and solution in ("Rejet", "Cassation", "Cassation sans renvoi"):
            right, wrong = (rejects, quashes) if solution == "Rejet" else (quashes, rejects)
        elif court == "Conseil constitutionnel" and solution in ("Rejet", "Inéligibilité", "Annulation"):
            table = {
                "Rejet": (refuses, bars + annuls),
                "Inéligibilité": (bars, annuls),
                "Annulation": (annuls, refuses),
            }
            right, wrong = table[solution]
        else:
            return None
        before, _, after = draft.rng.choice(right if true else wrong).partition("|")
        return Around(before, after)

    return around


def _appeal_outcome(true: bool) -> Arounder:
    def around(draft: Draft) -> Around | None:
        text = plain(draft.document.content)
        if "appel" not in draft.document.juridiction:
            return None
        confirms = (
            bool(re.search(r"\bconfirme (?:le|en toutes)", text)) and "infirm" not in text and "réform" not in text
        )
        overturns = "infirme le jugement" in text and "confirm" not in text
        if confirms == overturns:
            return None
        verb = ("confirme" if confirms else "infirme") if true else ("infirme" if confirms else "confirme")
        return Around(f"La cour d'appel {verb} le jugement au motif que ")

    return around


def _fixed(*wordings: str, court: str = "") -> Arounder:
    """Make fixed words around a quotation, where the decision is of a court."""

    def around(draft: Draft) -> Around | None:
        if court and not draft.document.juridiction.startswith(court):
            return None
        before, _, after = draft.rng.choice(wordings).partition("|")
        return Around(before, after)

    return around


NEGATIONS = {
    "n'a pas jugé": ("La Cour n'a pas jugé que |", "La juridiction n'a nullement jugé que |", "Les juges ne retiennent pas que |", "La décision ne dit pas que |", "Le juge n'a jamais affirmé que |", "La Cour n'énonce pas que |"),
    "refuse de juger": ("La Cour refuse de juger que |", "La juridiction refuse d'admettre que |", "Les juges se refusent à considérer que |"),
    "écarte": ("La Cour écarte l'idée que |", "La juridiction dément que |", "Les juges réfutent l'affirmation selon laquelle |", "La Cour nie que |"),
    "à tort": ("C'est à tort qu'il est écrit que |", "Il est faux que |", "Il est inexact que la décision énonce que |", "On prétend à tort que la Cour a jugé que |"),
    "after": ("La proposition |, n'est pas admise par la Cour", "L'affirmation |, est rejetée par la Cour", "|, ce que la Cour a refusé d'admettre", "|, ce que la décision ne dit pas", "|, ce qui est faux selon la Cour"),
    "contrairement": ("Contrairement à ce que dit la décision, il est faux que |", "La Cour juge le contraire de ceci : |", "La Cour juge l'inverse : ce n'est pas vrai que |"),
    "interrupted": ("La Cour n'a, dans cette affaire, **pas** jugé que |", "La Cour n’a en aucun cas, et pour cause, jugé que |", "La Cour n&#39;a pas jugé que |", "La Cour n'a p\u00adas jugé que |"),
    "sans juger": ("La Cour statue sans juger que |", "La Cour s'est gardée de juger que |", "La Cour s'abstient de retenir que |", "Aucun juge n'a retenu que |", "Nulle part la décision n'énonce que |"),
    "casse les motifs": ("La Cour censure les juges qui avaient retenu que |", "La Cour condamne le raisonnement selon lequel |"),
    "only": ("La Cour ne juge que ceci, et uniquement pour les mineurs étrangers : |", ),
}  # fmt: skip
FALSE_AROUND: dict[str, Arounder] = {
    "court": lambda d: _if(_other_court(d), "{} juge que ", "Selon {}, ", "Comme l'a dit {}, ", "Devant {}, il est jugé que ", "|, énonce {}", "|, selon {}", rng=d.rng),
    "decision date": lambda d: _if(_other_date(d), "Par une décision du {}, il est jugé que ", "Dans l'arrêt du {}, on lit : ", "La décision rendue le {} énonce que ", "|, selon la décision du {}", "Le {}, il a été jugé que ", rng=d.rng),
    "number": lambda d: _if(_other_number(d), "Dans la décision n° {}, il est jugé que ", "L'affaire n° {} énonce que ", "|, selon la décision n° {}", "Pourvoi n° {} : ", rng=d.rng),
    "reference": lambda d: _if((lambda a, b: a and b and f"{a}, n° {b}")(_other_date(d), d.document.extra.get("number")), "(décision du {}) : ", "Décision du {} : ", "|, décision du {}", rng=d.rng),
    "year": lambda d: _if((lambda y: str(y) if y and not any(str(y) in t for t in [*d.texts(), *(d.scene.documents[i].decision_date for i in d.read)]) else None)(int(d.document.decision_date[:4] or 0) and int(d.document.decision_date[:4]) + d.rng.choice([-7, -3, -2, 2, 3])), "En {}, il a été jugé que ", "Une décision de {} énonce que ", rng=d.rng),
    "chamber": lambda d: _if(d.rng.choice([c for c in ("chambre sociale", "chambre criminelle", "chambre commerciale", "troisième chambre civile", "première chambre civile") if squash(c) not in squash(d.document.formation) and d.absent(c)] or [None]) if d.document.juridiction == "Cour de cassation" and d.document.formation else None, "La {} de la Cour de cassation juge que ", "Selon la {}, ", rng=d.rng),
    "outcome": _outcome(False), "appeal outcome": _appeal_outcome(False),
    **{f"negation, {name}": _fixed(*wordings) for name, wordings in NEGATIONS.items()},
    "article": _fact_around("article L. {b}-{a} du code du travail", "En application de l'{}, |", "Au visa de l'{}, il est jugé que |", "|, au visa de l'{}", "Sur le fondement de l'{}, |"),
    "bare article": _fact_around("article {b}", "Selon l'{}, |", "|, en vertu de l'{} du code civil"),
    "sum": _fact_around("{c} {b:.3} euros".replace("{b:.3}", "{a}00"), "Pour allouer {}, les juges retiennent que |", "|, d'où une condamnation à {}"),
    "rate": _fact_around("{c},{a} %", "Retenant un taux de {}, les juges relèvent que |", "|, soit un taux de {}"),
    "count": _fact_around("{c} salariés", "S'agissant de {}, il est jugé que |", "|, ce qui concerne {}"),
    "count in words": lambda d: _if(next((w for w in ("dix-sept navires", "trente-trois passagers", "quatorze chevaux") if d.absent(w)), None), "S'agissant de {}, il est jugé que ", "|, pour {}", rng=d.rng),
    "person": lambda d: _if(d.rng.choice([n for n in ("Archambault", "Quillerou", "Pontignac") if d.absent(n)] or [None]), "À la demande de M. {}, il est jugé que ", "Pour débouter Mme {}, les juges retiennent que ", "|, ce qui fait droit à M. {}", "Selon M. {}, ", rng=d.rng),
    "company": lambda d: _if(d.rng.choice([n for n in ("Archambault", "Quillerou", "Pontignac") if d.absent(n)] or [None]), "Condamnant la société {}, les juges retiennent que ", "|, au profit de la société {}", rng=d.rng),
    "another decision's reference": lambda d: _if((lambda o: None if o.id in d.read or not o.extra.get("number") or not d.absent(str(o.extra["number"])) else str(o.extra["number"]))(d.scene.documents[d.rng.choice(d.scene.ids)]), "Dans sa décision n° {}, le juge énonce que ", "|, (n° {})", rng=d.rng),
    "date in figures": lambda d: _if((lambda x: None if x is None else f"{x.split()[0].replace('er', '').zfill(2)}/{MONTHS.index(x.split()[1]) + 1:02}/{x.split()[2]}")(_other_date(d)), "Par une décision du {}, il est jugé que ", "|, décision du {}", rng=d.rng),
}  # fmt: skip
TRUE_AROUND: dict[str, Arounder] = {
    "court": lambda d: _if(court_of(d.document), "{} juge que ", "Selon {}, ", "|, énonce {}", rng=d.rng) if d.document.juridiction else None,
    "decision date": lambda d: _if(french_date(d.document.decision_date), "Par une décision du {}, il est jugé que ", "|, selon la décision du {}", "La décision rendue le {} énonce que ", rng=d.rng) if d.document.decision_date else None,
    "date in figures": lambda d: _if("/".join(reversed(d.document.decision_date.split("-"))), "Par une décision du {}, il est jugé que ", rng=d.rng) if d.document.decision_date else None,
    "year": lambda d: _if(d.document.decision_date[:4] or None, "En {}, il a été jugé que ", "Une décision de {} énonce que ", rng=d.rng),
    "number": lambda d: _if(str(d.document.extra.get("number") or "") or None, "Dans la décision n° {}, il est jugé que ", "|, selon la décision n° {}", rng=d.rng),
    "outcome": _outcome(True), "appeal outcome": _appeal_outcome(True),
    "formation": lambda d: _if(d.document.formation.lower() or None, "La {} de la Cour de cassation juge que ", "Selon la {}, ", rng=d.rng) if d.document.formation.startswith(("Chambre", "Deux", "Prem", "Trois")) else None,
    "page": _fixed("Il est jugé que | (p. 4)", "La décision énonce (p. 12) que |", "La décision énonce que | (page 3)"),
    "paragraph": _fixed("Il est jugé que | (§ 14)", "La décision énonce (cons. 3) que |", "La décision énonce que | (pt 7)", "Il est écrit que | (point 12)"),
    "plain": _fixed("La décision énonce que |", "Il est jugé que |", "En effet, |", "Ainsi |", "**Règle applicable.** |"),
    "negation of another thing": _fixed("Le débat n'est pas clos, mais la décision énonce que |", "Il n'y a pas de doute : la décision énonce que |", "La décision ne tranche pas tout. Elle énonce que |"),
    "emphasis": _fixed("**La décision énonce** : |", "*Motif décisif* — |", "### Motif\n\n|"),
    "question": _fixed("Que dit la décision ? Elle énonce : |", "Pourquoi ? Parce que |"),
}  # fmt: skip


def _around(kind: str, truth: str, around: Arounder) -> Maker:
    def make(draft: Draft) -> Case | None:
        words = around(draft)
        if words is None or CLAIMED.search(draft.clause.text):
            return None
        marks = draft.rng.choice(["« {} »", "« {} »", "“{}”", '"{}"', "«\u00a0{}\u00a0»"])
        text = draft.quoted(draft.clause.text, marks, draft.marker(), words.before, words.after)
        return draft.case(kind, truth, text, words=(draft.clause.text,) if truth == "quoting" else ())

    return make


def joined_sentences(draft: Draft) -> Case | None:
    """Join the head of a clause to the tail of the next with no sign of a cut."""
    other = _second(draft, near=True)
    if other is None:
        return None
    first, second = draft.clause.text.split(), other.text.split()
    words = " ".join(first[: max(4, len(first) // 2)] + second[-max(4, len(second) // 2) :])
    return (
        draft.case("joined sentences", "false", draft.quoted(words, "« {} »", draft.any_marker()))
        if draft.absent(words)
        else None
    )


def cut_over_sentences(draft: Draft) -> Case | None:
    """Quote the heads of two clauses with a cut over a whole sentence that denies something."""
    other = _second(draft, near=True)
    if other is None or other.place.char_start < draft.clause.place.char_end:
        return None
    text = draft.document.content[draft.clause.place.char_start : other.place.char_end]
    first, second = " ".join(draft.clause.text.split()[:7]), " ".join(other.text.split()[-7:])
    gap = text[len(first) : -len(second)]
    if len(re.findall(r"\b(?:pas|aucune?|rejetée?|ni|à tort|refusé|infirme)\b", gap)) < 1:
        return None
    marker = draft.marker(draft.clause.place._replace(char_end=other.place.char_end))
    return draft.case("cut over sentences", "false", draft.quoted(f"{first} [...] {second}", "« {} »", marker))


def _second(draft: Draft, near: bool = False) -> Clause | None:
    """Return another clause of the same decision, near the first or far from it."""
    others = [
        one for one in clauses_of(draft.document)
        if one.place != draft.clause.place and (abs(one.place.char_start - draft.clause.place.char_end) < FAR) == near
    ]  # fmt: skip
    return draft.rng.choice(others) if others else None


def two_quotations_one_altered(draft: Draft) -> Case | None:
    """Quote two clauses under one marker, the second one altered."""
    other = _second(draft, draft.rng.random() < 0.5)
    words = other and draft.rng.choice(list(ALTERATIONS.values()))(other.text, draft.rng)
    if not words or not draft.absent(words):
        return None
    body = f"{draft.neutral()}« {draft.clause.text} » et « {words} »"
    return draft.case("two quotations one altered", "false", f"{body} {draft.marker()}.")


def altered_then_true(draft: Draft) -> Case | None:
    """Quote an altered clause and a true one, in marks of two sorts, under one marker."""
    other = _second(draft, draft.rng.random() < 0.5)
    words = draft.rng.choice(list(ALTERATIONS.values()))(draft.clause.text, draft.rng)
    if not other or not words or not draft.absent(words):
        return None
    first, second = draft.rng.sample(["« {} »", "“{}”", '"{}"', "‘{}’", "„{}“", "‹ {} ›"], 2)
    body = f"La décision énonce {filled(first, words)} puis {filled(second, other.text)}"
    return draft.case("altered then true", "false", f"{body} {draft.marker(other.place)}.")


def merged_claim(draft: Draft) -> Case | None:
    """Quote a clause word for word and state a fact of a far place as if it were of this one, changed."""
    rule = draft.rng.choice([FALSE["date, plain"], FALSE["sum, other sum"], FALSE["article"], FALSE["person"]])
    other = _second(draft)
    change = other and rule(draft.rng, other.text)
    if not change or not draft.holds(change):
        return None
    body = f"La décision énonce que « {draft.clause.text} » et que {change.text}"
    return draft.case("merged claim", "false", f"{body} {draft.marker()}.")


def merged_unquoted(draft: Draft) -> Case | None:
    """State half of a clause and half of a far one as one sentence."""
    other = _second(draft)
    if other is None:
        return None
    first, second = draft.clause.text.split(), other.text.split()
    words = " ".join(first[: len(first) // 2] + second[len(second) // 2 :])
    if (
        not draft.absent(words)
        or _share_of_words(words, draft.clause.text) > 0.6
        or _share_of_words(words, other.text) > 0.6
    ):
        return None
    return draft.case(
        "merged unquoted", "false", draft.said(words, draft.marker(draft.rng.choice([draft.clause, other]).place))
    )


def _share_of_words(words: str, text: str) -> float:
    long = [squash(one) for one in re.findall(r"\w{4,}", words)]
    return sum(one in squash(text) for one in long) / max(1, len(long))


def _of_another(draft: Draft) -> bool:
    """Have the author read other decisions, not the clause's own; tell whether its words stand in none of them."""
    draft.read = tuple(one for one in draft.rng.sample(draft.scene.ids, 3) if one != draft.document.id)
    return draft.absent(draft.clause.text)


def other_decision_quoted(draft: Draft) -> Case | None:
    """Quote a decision that was not read under the id of one that was."""
    if not _of_another(draft):
        return None
    length = len(draft.scene.documents[draft.read[0]].content)
    marker = draft.rng.choice(
        [f"[Source: {draft.read[0]}, chars {length // 3}-{length // 3 + 300}]", f"[Source: {draft.read[0]}]", ""]
    )
    return draft.case(
        "other decision quoted",
        "false",
        draft.quoted(draft.clause.text, draft.rng.choice(list(MARKS.values())), marker),
    )


def other_decision_stated(draft: Draft) -> Case | None:
    """State a clause of a decision that was not read under the id of one that was; the two have few words in common."""
    if not _of_another(draft) or any(_share_of_words(draft.clause.text, text) > 0.5 for text in draft.texts()):
        return None
    length = len(draft.scene.documents[draft.read[0]].content)
    marker = draft.rng.choice([f"[Source: {draft.read[0]}, chars 0-{min(length, 900)}]", f"[Source: {draft.read[0]}]"])
    return draft.case("other decision stated", "false", draft.said(draft.clause.text, marker))


def unknown_id(draft: Draft) -> Case | None:
    """Quote an altered clause under an id that is no decision's."""
    words = draft.rng.choice(list(ALTERATIONS.values()))(draft.clause.text, draft.rng)
    if not words or not draft.absent(words):
        return None
    doc_id = draft.rng.choice(
        [draft.document.id[:-1] + "X", "JURITEXT000099999999", "Cass. soc., 12 mars 2003", "arrêt Dupont"]
    )
    return draft.case("unknown id", "false", draft.quoted(words, "« {} »", f"[Source: {doc_id}, chars 10-300]"))


def invention_and_half_a_clause(draft: Draft) -> Case | None:
    """Begin a sentence as the decision does and end it with what stands nowhere."""
    words = draft.clause.text.split()
    invented = draft.rng.choice(
        [
            "a dérobé les bijoux de sa tante pendant les vendanges",
            "pilotait un hélicoptère au-dessus du volcan",
            "finançait un élevage clandestin d'autruches australiennes",
        ]
    )
    return draft.case(
        "invention and half a clause",
        "false",
        draft.said(" ".join(words[: max(3, len(words) // 3)]) + f" {invented}", draft.any_marker()),
    )


def false_before_true(draft: Draft) -> Case | None:
    """State something false without marker, then quote the decision with one."""
    return _beside_true(draft, "false before true", first=True)


def true_before_false(draft: Draft) -> Case | None:
    """Quote the decision with a marker, then state something false without one."""
    return _beside_true(draft, "true before false", first=False)


def _beside_true(draft: Draft, kind: str, first: bool) -> Case | None:
    other = _second(draft, draft.rng.random() < 0.5)
    name = draft.rng.choice(["date, plain", "sum, other sum", "article", "count", "negation added", "person"])
    change = FALSE[name](draft.rng, draft.clause.text)
    if not other or not change or not draft.holds(change):
        return None
    honest = f"La décision énonce que « {other.text} » {draft.marker(other.place)}."
    false = draft.said(change.text, "", "")
    text = f"{false} {honest}" if first else f"{honest} {false}"
    return draft.case(kind, "false", text, marked=False, before="" if first else honest, after=honest if first else "")


def invented_quotation(draft: Draft) -> Case | None:
    """Quote what stands nowhere beside a date of the decision."""
    found = FACTS["date"].search(draft.clause.text)
    if not found:
        return None
    words = draft.rng.choice(
        [
            "le gérant a cédé ses parts à un concurrent étranger",
            "la mauvaise foi ne se présume jamais en cette matière",
            "l'employeur reste tenu d'une obligation de surveillance renforcée",
        ]
    )
    if not draft.absent(words):
        return None
    marks = draft.rng.choice(list(MARKS.values()))
    return draft.case(
        "invented quotation",
        "false",
        draft.quoted(words, marks, draft.any_marker(), f"Le {found.group()}, il est jugé que "),
    )


def quotation_without_its_subject(draft: Draft) -> Case | None:
    """State something false of a clause around a short true quotation of it."""
    change = FALSE[draft.rng.choice(["date, plain", "sum, other sum", "article", "person", "count", "ordinal"])](
        draft.rng, draft.clause.text
    )
    if not change or not draft.holds(change):
        return None
    words = change.text.split()
    for size in (5, 4):
        for at in range(len(words) - size):
            piece = " ".join(words[at : at + size])
            if len(piece) > 20 and piece in draft.clause.text and not re.search(r"\d", piece):
                text = change.text.replace(piece, f"« {piece} »", 1)
                return draft.case("quotation without its subject", "false", draft.said(text, draft.any_marker()))
    return None


def invented_own_date(draft: Draft) -> Case | None:
    """State an invention on the decision's own date, or with its number."""
    if not draft.document.decision_date:
        return None
    date, number = french_date(draft.document.decision_date), str(draft.document.extra.get("number") or "")
    text = draft.rng.choice(
        [
            f"Le {date}, le pilote a heurté un troupeau d'autruches",
            f"La décision du {date} autorise la vente du vignoble",
            f"La décision n° {number} concerne un trafic d'ivoire",
        ]
    )
    return draft.case("invented own date", "false", draft.said(text, draft.any_marker()))


def word_replaced_unquoted(draft: Draft) -> Case | None:
    """State a clause with one word replaced by another."""
    words = ALTERATIONS["word replaced"](draft.clause.text, draft.rng)
    return (
        draft.case("word replaced unquoted", "blind", draft.said(words, draft.any_marker()))
        if words and draft.absent(words)
        else None
    )


def parties_swapped(draft: Draft) -> Case | None:
    """State a clause with two persons in each other's place."""
    people = list(dict.fromkeys(match.group() for match in FACTS["person"].finditer(draft.clause.text)))
    if len(people) < 2 or any(a != b and a in b for a in people for b in people):
        return None
    words = draft.clause.text.replace(people[0], "\0").replace(people[1], people[0]).replace("\0", people[1])
    return (
        draft.case("parties swapped", "blind", draft.said(words, draft.any_marker())) if draft.absent(words) else None
    )


def two_facts_swapped(draft: Draft) -> Case | None:
    """State a clause with two dates, sums or articles in each other's place."""
    for name in ("date", "sum", "article", "rate"):
        found = list(dict.fromkeys(match.group() for match in FACTS[name].finditer(draft.clause.text)))
        if len(found) >= 2 and not any(a != b and a in b for a in found for b in found):
            words = draft.clause.text.replace(found[0], "\0").replace(found[1], found[0]).replace("\0", found[1])
            return (
                draft.case("two facts swapped", "blind", draft.said(words, draft.any_marker()))
                if draft.absent(words)
                else None
            )
    return None


def _claimed(draft: Draft) -> str | None:
    """Return what a party claims in the text around the clause, if it stands there only once."""
    match = CLAIMED.search(draft.document.content, max(0, draft.clause.place.char_start - 300))
    if not match or SIGNS.search(match[1]) or squash(draft.document.content).count(squash(match[1])) != 1:
        return None
    draft.clause = Clause(Passage(draft.document.id, *match.span(1)), match[1])
    return match[1]


def claim_as_holding(draft: Draft) -> Case | None:
    """Give what a party claims as what the court holds."""
    words = _claimed(draft)
    if words is None or not draft.document.juridiction:
        return None
    court = court_of(draft.document)
    introduction = draft.rng.choice(
        [
            f"{court[0].upper()}{court[1:]} juge que ",
            f"Selon {court}, ",
            "La Cour retient que " if "Cour" in court else "Le Conseil retient que ",
            f"{court[0].upper()}{court[1:]} a décidé que ",
        ]
    )
    return draft.case(
        "speaker: claim as holding",
        "spoken",
        draft.quoted(words, "« {} »", draft.marker(draft.clause.place), introduction),
    )


def claim_stated_as_holding(draft: Draft) -> Case | None:
    """Give what a party claims as what the court holds, with a date of it changed: false twice."""
    words = _claimed(draft)
    change = words and FALSE["negation added"](draft.rng, words)
    if not change or not draft.holds(change):
        return None
    return draft.case(
        "speaker: claim stated as holding",
        "false",
        draft.said(change.text, draft.marker(draft.clause.place), f"Selon {court_of(draft.document)}, "),
    )


PLEA = re.compile(
    r"[Aa]lors(?:, selon le moyen,?[ :]*|,? «\s*)(?:1°/ )?qu(?:e |'|’)([^;\"«»\[\]\n]{60,600}?)(?= ?[;»])",
)
QUASHED = re.compile(
    r"l'arrêt (?:retient|énonce|relève)(?: notamment)? qu(?:e |')([^;.\"«»\[\]\n]{60,300}?)(?=[;.,])(?=[^§]{0,900}?[Ee]n statuant ainsi)",
)


def plea_as_holding(draft: Draft) -> Case | None:
    """Give a plea of a Cour de cassation's decision as its holding."""
    return _as_holding(draft, "speaker: plea as holding", PLEA, "décide")


def quashed_as_holding(draft: Draft) -> Case | None:
    """Give reasoning that the Cour de cassation quashed as its own."""
    if not draft.document.solution.startswith("Cassation"):
        return None
    return _as_holding(draft, "speaker: quashed as holding", QUASHED, "retient")


def _as_holding(draft: Draft, kind: str, pattern: re.Pattern[str], verb: str) -> Case | None:
    """Give what a pattern finds in a decision of the Cour de cassation as its holding, if it stands there once."""
    text = draft.document.content
    said = pattern.search(text) if draft.document.juridiction == "Cour de cassation" else None
    if not said or squash(text).count(squash(said[1])) != 1 or SIGNS.search(said[1]):
        return None
    draft.clause = Clause(Passage(draft.document.id, *said.span(1)), said[1])
    court = "la Cour de cassation"
    introduction = draft.rng.choice([f"La{court[2:]} juge que ", f"La{court[2:]} {verb} que ", f"Selon {court}, "])
    return draft.case(kind, "spoken", draft.quoted(said[1], "« {} »", draft.marker(draft.clause.place), introduction))


def holding_as_claim(draft: Draft) -> Case | None:
    """Give what the court holds as what a party claims."""
    text = draft.document.content
    if draft.document.juridiction not in ("Conseil constitutionnel", "Cour de cassation"):
        return None
    opening = (
        r"Mais attendu qu(?:e |')"
        if draft.document.juridiction.startswith("Cour")
        else r"; (?:que |qu')?(?:dès lors|par suite),? "
    )
    holding = re.search(opening + r"([^;.\"«»\[\]\n]{60,300}?)(?= ?[;.])", text)
    if (
        not holding
        or squash(text).count(squash(holding[1])) != 1
        or SIGNS.search(holding[1])
        or CROPPED.search(holding[1])
    ):
        return None
    draft.clause = Clause(Passage(draft.document.id, *holding.span(1)), holding[1])
    introduction = draft.rng.choice(["Selon le moyen, ", "Le demandeur soutient que ", "Le requérant prétend que "])
    return draft.case(
        "speaker: holding as claim",
        "spoken",
        draft.quoted(holding[1], "« {} »", draft.marker(draft.clause.place), introduction),
    )


SPOKEN: dict[str, Maker] = {
    "claim as holding": claim_as_holding, "claim stated as holding": claim_stated_as_holding, "plea as holding": plea_as_holding,
    "quashed as holding": quashed_as_holding, "holding as claim": holding_as_claim,
}  # fmt: skip


def _honest_marker(draft: Draft) -> str:
    return draft.marker() if draft.rng.random() < 0.7 else draft.rng.choice([f"[Source: {draft.document.id}]", ""])


def _verbatim(kind: str, marks: str) -> Maker:
    def make(draft: Draft) -> Case | None:
        words = draft.clause.text
        if ("'" in words and marks in (MARKS["straight single"], MARKS["TeX"], MARKS["two apostrophes"])) or (
            "’" in words and "‘" in marks
        ):
            return None
        marker = (
            draft.marker()
            if marks.startswith(("<", "`", "\n\n    ", "\n\n```", "'", " '", "»"))
            else _honest_marker(draft)
        )
        return draft.case(kind, "quoting", draft.quoted(words, marks, marker), words=(words,))

    return make


Typed = Callable[[random.Random, str], str | None]


def _sub(pattern: str, new: str) -> Typed:
    return lambda rng, text: re.sub(pattern, new, text)


def _emphasised(sign: str) -> Typed:
    def typed(rng: random.Random, text: str) -> str:
        word = rng.choice(list(re.finditer(r"[^\W\d_]{4,}(?: [^\W\d_]+)?", text)))
        return f"{text[: word.start()]}{sign}{word.group()}{sign}{text[word.end() :]}"

    return typed


def _hyphenated(rng: random.Random, text: str) -> str | None:
    word = next(iter(re.finditer(r"[^\W\d_]{9,}", text)), None)
    return word and f"{text[: word.start() + 4]}-\n{text[word.start() + 4 :]}"


TYPOGRAPHY: dict[str, Typed] = {
    "apostrophes": _sub("'", "’"), "straight apostrophes": _sub("’", "'"), "French spacing": _sub(r" ?([;:!?])", "\u00a0\\1"),
    "thin French spacing": _sub(r" ?([;:!?])", "\u202f\\1"), "no French spacing": _sub(r" ([;:!?])", r"\1"),
    "n° for no": _sub(r"\bn[o°] ?(?=\d)", "n° "), "no for n°": _sub(r"\bn° ?(?=\d)", "no "), "nº for n°": _sub(r"\bn[o°] ?(?=\d)", "nº "),
    "tight rate": _sub(r"(?<=\d) %", "%"), "spaced rate": _sub(r"(?<=\d)%", " %"), "joined thousands": _sub(r"(?<=\d) (?=\d{3}\b)", ""),
    "no-break thousands": _sub(r"(?<=\d) (?=\d{3}\b)", "\u00a0"), "dotted thousands": _sub(r"(?<=\d) (?=\d{3}\b)", "."),
    "tight article": _sub(r"\b([LRD])\. (?=\d)", r"\1."), "article without dot": _sub(r"\b([LRD])\. ?(?=\d)", r"\1 "),
    "spaced article": _sub(r"\b([LRD])\.(?=\d)", r"\1. "), "euro sign": _sub(r"(?<=\d) euros\b", " €"), "1er superscript": _sub(r"\b1er\b", "1ᵉʳ"),
    "ordinal, e": _sub(r"(?<=\d)(?:ème|è)\b", "e"), "ligature": _sub("oeu", "œu"), "no ligature": _sub("œu", "oeu"), "bold": _emphasised("**"),
    "italic": _emphasised("*"), "underscored": _emphasised("_"), "first letter": lambda rng, text: text[0].swapcase() + text[1:],
    "capitals unaccented": lambda rng, text: re.sub(r"[ÉÈÊÀÔÇÎ]", lambda one: unicodedata.normalize("NFD", one.group())[0], text),
    "dashes": _sub(r"(?<=\w)-(?=\w)", "\u2011"),
    "entities": lambda rng, text: text.replace("é", "&eacute;").replace("à", "&agrave;") if "é" in text else None,
    "no-break entities": _sub(r" (?=[;:%?!]|\d)", "&nbsp;"), "amp entity": _sub("'", "&#39;"),
    "soft hyphens": lambda rng, text: re.sub(r"\b(\w{4})(\w{4,})", "\\1\u00ad\\2", text, count=3),
    "zero-width spaces": lambda rng, text: text.replace(" ", " \u200b", 3),
    "line break": lambda rng, text: text.replace(" ", "\n", 1) if len(text) > 60 else None, "double space": _sub(" ", "  "),
    "hyphenated at line end": _hyphenated, "closing dots": lambda rng, text: text + rng.choice(["...", " [...]", "…", " (...)"]),
    "opening dots": lambda rng, text: rng.choice(["...", "[...] ", "… "]) + text,
    "decomposed accents": lambda rng, text: unicodedata.normalize("NFD", text) if "é" in text else None, "final dot": lambda rng, text: text + ".",
    "comma dropped at end": lambda rng, text: text + ",",
}  # fmt: skip


def _typed(kind: str, typed: Typed) -> Maker:
    def make(draft: Draft) -> Case | None:
        words = typed(draft.rng, draft.clause.text)
        if words is None or words == draft.clause.text:
            return None
        marks = draft.rng.choice(
            ["« {} »", "“{}”", "«\u00a0{}\u00a0»", "\n\n> {}\n\n", "\n\n> « {} »\n\n"]
            if "\n" not in words
            else ["« {} »"]
        )
        return draft.case(
            kind, "quoting", draft.quoted(words, marks, _honest_marker(draft)), words=(draft.clause.text,)
        )

    return make


def _respelt(kind: str, rule: Callable[[random.Random, str], Change | None]) -> Maker:
    def make(draft: Draft) -> Case | None:
        change = rule(draft.rng, draft.clause.text)
        if not change or change.text == draft.clause.text:
            return None
        return draft.case(kind, "stating", draft.said(change.text, draft.marker(draft.clause.place)))

    return make


def _true_odd_marker(kind: str, pattern: str) -> Maker:
    def make(draft: Draft) -> Case | None:
        text = draft.quoted(draft.clause.text, "« {} »", draft.marker(pattern=pattern))
        return draft.case(kind, "quoting", text, words=(draft.clause.text,), marked=True)

    return make


def _quoting(draft: Draft, kind: str, marker: str, words: str | None = None) -> Case:
    marks = draft.rng.choice(["« {} »", "“{}”", '"{}"'])
    text = draft.quoted(words or draft.clause.text, marks, marker)
    return draft.case(
        kind, "quoting", text, words=(draft.clause.text,) if words is None else tuple(re.split(r" \[[^\]]*\] ", words))
    )


def no_marker(draft: Draft) -> Case | None:
    """Quote without marker what stands in one of the decisions read."""
    return _quoting(draft, "no marker", "")


def wrong_offsets(draft: Draft) -> Case | None:
    """Quote with offsets of another place."""
    start = draft.rng.randrange(max(1, len(draft.document.content) - 100))
    return _quoting(
        draft, "wrong offsets", draft.marker(Passage(draft.document.id, start, start + draft.rng.randint(20, 400)))
    )


def missing_offsets(draft: Draft) -> Case | None:
    """Quote with a marker without offsets."""
    return _quoting(draft, "missing offsets", f"[Source: {draft.document.id}]")


def of_the_other_decision(draft: Draft) -> Case | None:
    """Quote one decision read under the id of another one read; no third holds the words."""
    if len(draft.read) < 2 or any(squash(draft.clause.text) in squash(text) for text in draft.texts()[1:]):
        return None
    return _quoting(draft, "of the other decision", draft.marker(Passage(draft.read[1], 10, 300)))


def harmless_cut(draft: Draft) -> Case | None:
    """Quote a clause without an apposition that turns nothing."""
    cuts = [
        m
        for m in re.finditer(r", [^,;]{8,70},(?= )", draft.clause.text)
        if m.start() > 15 and not TURNING.search(m.group())
    ]
    if not cuts or len(draft.clause.text) - cuts[0].end() < 15:
        return None
    words = f"{draft.clause.text[: cuts[0].start()]} {draft.rng.choice(['[...]', '[…]'])} {draft.clause.text[cuts[0].end() + 1 :]}"
    return _quoting(draft, "harmless cut", draft.marker(draft.clause.place), words)


def two_quotations(draft: Draft) -> Case | None:
    """Quote two clauses of one decision, each with its marker."""
    other = _second(draft, draft.rng.random() < 0.5)
    if other is None:
        return None
    text = f"La décision énonce que « {draft.clause.text} » {draft.marker()} et que « {other.text} » {draft.marker(other.place)}."
    return draft.case("two quotations", "quoting", text, words=())


def two_decisions(draft: Draft) -> Case | None:
    """Quote two decisions in two sentences."""
    others = [one for one in draft.read[1:] if clauses_of(draft.scene.documents[one])]
    if not others:
        return None
    other = draft.rng.choice(clauses_of(draft.scene.documents[others[0]]))
    text = f"La première décision énonce que « {draft.clause.text} » {draft.marker()}. La seconde énonce que « {other.text} » {draft.marker(other.place)}."
    return draft.case("two decisions", "quoting", text)


def editors_word(draft: Draft) -> Case | None:
    """Quote with a word of the editor's in brackets: [sic], or who is meant."""
    person = FACTS["person"].search(draft.clause.text)
    if person and draft.rng.random() < 0.6:
        words = draft.clause.text.replace(
            person.group(), draft.rng.choice(["[l'intéressé]", "[le requérant]", "[le salarié]"]), 1
        )
        pieces = draft.clause.text.split(person.group(), 1)
    else:
        words = draft.clause.text.split(" ")
        at = len(words) // 2
        words = " ".join([*words[:at], "[sic]", *words[at:]])
        pieces = [draft.clause.text]
    text = draft.quoted(words, "« {} »", draft.marker(draft.clause.place))
    return draft.case("editors word", "quoting", text, words=tuple(piece for piece in pieces if len(squash(piece)) > 4))


def numbered_steps(draft: Draft) -> Case | None:
    """Quote in an answer of numbered steps, or in a table with numbered rows."""
    layout = draft.rng.choice([
        "1. La question posée.\n2. La décision énonce que « {0} » {1}.\n3. La conséquence pratique.",
        "**Étape 1.** Lecture.\n\n**Étape 2.** La décision énonce que « {0} » {1}.",
        "| n° | motif |\n|---|---|\n| 1 | « {0} » {1} |",
        "1) « {0} » {1}\n2) Rien de plus.",
        "## 2. Motifs\n\na) La décision énonce que « {0} » {1}.",
        "(i) « {0} » {1} ; (ii) rien de plus.",
        "Premièrement, la décision énonce que « {0} » {1}.",
    ])  # fmt: skip
    return draft.case(
        "numbered steps", "quoting", layout.format(draft.clause.text, draft.marker()), words=(draft.clause.text,)
    )


def list_of_sources(draft: Draft) -> Case | None:
    """Quote, and list the decision at the end."""
    date = french_date(draft.document.decision_date) if draft.document.decision_date else "s. d."
    name = f"{draft.document.juridiction}, {date}, n° {draft.document.extra.get('number') or 's. n.'}"
    head = draft.rng.choice(["Sources :", "## Sources", "**Sources**", "Décisions citées :"])
    text = f"La décision énonce que « {draft.clause.text} » {draft.marker()}.\n\n{head}\n\n- {name}"
    return draft.case("list of sources", "quoting", text, words=(draft.clause.text,))


def footnote(draft: Draft) -> Case | None:
    """Quote, with a call for a footnote that names the decision."""
    text = f"La décision énonce que « {draft.clause.text} »[^1] {draft.marker()}.\n\n[^1]: Décision lue en entier."
    return draft.case("footnote", "quoting", text, words=(draft.clause.text,))


def own_year(draft: Draft) -> Case | None:
    """Quote, and give the decision's year in brackets."""
    if not draft.document.decision_date:
        return None
    year = draft.document.decision_date[:4]
    layout = draft.rng.choice(
        ["Dans cette décision ({2}), « {0} » {1}.", "La décision de {2} énonce que « {0} » {1}.", "« {0} » ({2}) {1}."]
    )
    return draft.case(
        "own year", "quoting", layout.format(draft.clause.text, draft.marker(), year), words=(draft.clause.text,)
    )


def short_quotation(draft: Draft) -> Case | None:
    """Quote a few words in a sentence of the decision's own."""
    words = draft.clause.text.split()
    at = draft.rng.randint(1, max(1, len(words) - 6))
    piece = " ".join(words[at : at + 5])
    if len(piece) < 20 or re.search(r"[,;:().]", piece):
        return None
    text = f"{' '.join(words[:at])} « {piece} » {' '.join(words[at + 5 :])}"
    return draft.case("short quotation", "quoting", draft.said(text, draft.marker(draft.clause.place)), words=(piece,))


def restated(draft: Draft) -> Case | None:
    """State a clause in its own words without quotation marks."""
    return draft.case("restated", "stating", draft.said(draft.clause.text, draft.marker()))


def restated_with_synonyms(draft: Draft) -> Case | None:
    """State a clause with a light synonym or two."""
    text = draft.clause.text
    for pattern, other in [*SYNONYMS[2:], *LIGHT]:
        text = re.sub(pattern, other, text)
    return (
        draft.case("restated with synonyms", "stating", draft.said(text, draft.marker()))
        if text != draft.clause.text
        else None
    )


LIGHT = [
    (r"\blitige\b", "différend"), (r"\bdemeurant\b", "domicilié"), (r"\bprésentée\b", "déposée"), (r"\bdispositions\b", "règles"), (r"\bfait valoir\b", "soutient"),
    (r"\bà compter du\b", "à partir du"), (r"\bafin d'", "pour "), (r"\bpar suite\b", "dès lors"), (r"\bconformément aux?\b", "selon les"), (r"\ben vertu d", "en application d"),
    (r"\bl'intéressée?\b", "cette personne"), (r"\bdéposé\b", "remis"), (r"\bdélai imparti\b", "délai fixé"), (r"\beffectuée?\b", "réalisé"), (r"\bcirconstances\b", "conditions"),
]  # fmt: skip


def restated_in_full(draft: Draft) -> Case | None:
    """State a clause after an introduction with the court and the date of the decision."""
    if not draft.document.decision_date or not draft.document.juridiction:
        return None
    introduction = (
        f"Par sa décision du {french_date(draft.document.decision_date)}, {court_of(draft.document)} relève que "
    )
    return draft.case("restated in full", "stating", draft.said(draft.clause.text, draft.marker(), introduction))


def restated_in_another_order(draft: Draft) -> Case | None:
    """State a clause with its first complement moved to its end."""
    head, _, tail = draft.clause.text.partition(", ")
    moved = re.match(r"(?:À|Au|Dans|Par|Pour|Après|Selon|Sur|Lors|Depuis|Le \d)\b", head, re.IGNORECASE)
    if not moved or not 15 < len(head) < 90 or len(tail) < 40 or FINITE.search(head) or tail.startswith(("qui", "où")):
        return None
    return draft.case(
        "restated in another order", "stating", draft.said(f"{tail}, {head[0].lower()}{head[1:]}", draft.marker())
    )


def answer_of_three(draft: Draft) -> Case | None:
    """Quote between two sentences that state nothing."""
    opinion, other = draft.rng.sample(OPINIONS, 2)
    text = f"{opinion} La décision énonce que « {draft.clause.text} » {draft.marker()}. {other}"
    return draft.case("answer of three", "quoting", text, words=(draft.clause.text,))
