"""Verification: how many inventions of made briefs `verify_text` finds, and how many right references it calls wrong.

Run: python benchmarks/briefs.py --data FOLDER --index-folder FOLDER [--decisions decisions] [--code travail] [--briefs 100]
     [--seed 0] [--show N --kind K] [--no-speed]

FOLDER holds `decisions.jsonl.gz` and `code-du-travail.jsonl.gz`; the index folder holds a Library of each. A brief has
twelve to twenty references, right or wrong in one thing, between paragraphs that refer to nothing; every fourth is written
and read as DOCX, every fourth as HTML. Decisions and quotations are looked up in the one Library, articles in the other.

An invention is found if a reference that touches its words is `wrong` or `missing`; a right reference is called wrong if one
that touches its words is `wrong`. Speed: a brief of 50 pages with 200 references, in seconds.
"""

# ruff: noqa: E501 - a wording a row is easier to read than one broken over lines

import argparse
import html
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from altered_quotations import ALTERATIONS
from answer_wording import TURNING
from false_answers import clauses_of, clear_outcome, french_date, squash
from stated_changes import ABBREVIATED

from legal_rag.corpus import Document, read_documents, read_file
from legal_rag.library import Library
from legal_rag.verification import Reference, Verification, verify_text

PAGE = 3000  # characters
CHAMBERS = {
    "Chambre sociale": ["soc."], "Deuxième chambre civile": ["2e civ.", "civ. 2e"], "Chambre commerciale": ["com."],
    "Première chambre civile": ["1re civ.", "civ. 1re"], "Troisième chambre civile": ["3e civ.", "civ. 3e"], "Chambre criminelle": ["crim."],
}  # fmt: skip
FILLERS = [
    "Il convient de rappeler le cadre général du litige avant d'en venir à la discussion.",
    "La demanderesse a exécuté de bonne foi l'ensemble de ses obligations et n'a reçu aucune réponse à ses demandes amiables.",
    "Les pièces versées aux débats établissent la réalité du préjudice et son lien avec les manquements invoqués.",
    "La partie adverse ne saurait sérieusement prétendre le contraire, sauf à dénaturer les échanges produits.",
    "Ces éléments, pris ensemble, suffisent à emporter la conviction du juge, et la demande sera accueillie en son entier.",
    "La défense oppose une lecture différente, qui ne résiste pas à l'examen des circonstances de l'espèce.",
]
INVENTED = [
    "la mauvaise foi du contractant ne se présume jamais lorsque la livraison intervient après la saison des vendanges",
    "l'employeur reste tenu d'une obligation perpétuelle de surveillance renforcée à l'égard des oiseaux migrateurs",
    "le juge ne peut écarter un contrat de mariage au seul motif que les époux habitaient des planètes différentes",
]


class Item(NamedTuple):
    """A sentence of a brief that refers to something."""

    kind: str
    right: bool
    text: str
    looked_up_in: str = "decisions"  # or "code"


class Scored(NamedTuple):
    """An item and the references that touch it."""

    item: Item
    references: tuple[Reference, ...]

    @property
    def failure(self) -> str:
        """Return what is to be objected to: "not found", "called wrong", "not confirmed", or nothing."""
        quoting = "quotation" in self.item.kind and not self.item.right  # the words are false, not the source
        verdicts = {one.status for one in self.references if not quoting or one.kind == "quotation"}
        if not self.item.right:
            return "" if verdicts & {"wrong", "absent"} else "not found"
        if "wrong" in verdicts:
            return "called wrong"
        return "" if verdicts and verdicts <= {"confirmed"} else "not confirmed"


class Source(NamedTuple):
    """What briefs are made from."""

    rng: random.Random
    decisions: Sequence[Document]
    numbers: frozenset[str]  # squashed, of all decisions
    articles: Sequence[str]
    known: frozenset[str]  # articles, squashed
    whole: str  # all decisions, squashed

    def decision(self, court: str = "") -> Document:
        """Draw a decision with a number, of one of three sorts of courts as often as the others."""
        court = court or self.rng.choice(["Cour de cassation", "Conseil constitutionnel", "Cour d'appel d"])
        return self.rng.choice([one for one in self.decisions if one.juridiction.startswith(court)])


def number_of(document: Document) -> str:
    """Return a decision's number as it is cited."""
    number = str(document.extra.get("number") or "")
    if document.juridiction == "Cour de cassation":
        return re.sub(r"^(\d\d)-(\d\d)\.?(\d{3})$", r"\1-\2.\3", number)
    return f"{number} AN" if document.juridiction == "Conseil constitutionnel" else number


def joined(number: str) -> list[str]:
    """Spell out the numbers of joined cases: 93-1213/1214."""
    found: list[str] = []
    for part in re.findall(r"[\d.-]+(?:/\d+)?" if re.match(r"\d\d/", number) else r"[\d.-]+", number):
        whole = "-" in part or "/" in part or not found
        found.append(part if whole else found[0].rsplit("-", 1)[0] + "-" + part)
    return found


def short_date(iso: str) -> str:
    """Write a date as citations do: 20 juill. 1993."""
    year, month, day = map(int, iso.split("-"))
    return f"{'1er' if day == 1 else day} {ABBREVIATED[month - 1]} {year}"


def named(source: Source, one: Document, *, number: str = "", date: str = "", court: str = "") -> str:
    """Cite a decision in one of the usual ways, with another number, date or court where given."""
    number, date = number or number_of(one), date or one.decision_date
    long, short, figures = french_date(date), short_date(date), "/".join(reversed(date.split("-")))
    if one.juridiction == "Cour de cassation":
        chamber = court or source.rng.choice(CHAMBERS[one.formation])
        name = next(full for full, shorts in CHAMBERS.items() if chamber in shorts).lower()
        forms = [
            f"Cass. {chamber}, {short}, n° {number}",
            f"Cass. {chamber}, {long}, pourvoi n° {number}",
            f"Cour de cassation, {name}, {long}, n° {number}",
            f"l'arrêt de la {name} de la Cour de cassation du {long} (pourvoi n° {number})",
            f"Cass. {chamber}, {short}, n° {source.rng.choice('BKQXZ')} {number}, publié au Bulletin",
            f"{name} de la Cour de cassation, {long}, n°{number}",
            f"Cass. {chamber} {figures}, n° {number}",
            f"**Cass. {chamber}, {long}**, n° {number}",
            f"Cass. {chamber},\n{long}, n° {number}",
        ]
    elif one.juridiction == "Conseil constitutionnel":
        name = court or "Cons. const."
        forms = [f"{name}, {short}, n° {number}", f"{name}, {long}, n° {number}", f"{name} {figures}, n° {number}"]
        forms += (
            []
            if court
            else [
                f"Conseil constitutionnel, décision n° {number} du {long}",
                f"la décision du Conseil constitutionnel n° {number} du {long}",
            ]
        )
    else:
        town = court or one.juridiction.removeprefix("Cour d'appel ")
        place = re.sub("^(?:de |d')", "", town)
        forms = [
            f"CA {place}, {short}, n° {number}",
            f"cour d'appel {town}, {long}, RG n° {number}",
            f"l'arrêt de la cour d'appel {town} du {long} (RG n° {number})",
        ]
    return source.rng.choice(forms)


def citing(source: Source, reference: str) -> str:
    """Write a sentence around a reference."""
    form = source.rng.choice(
        [
            "La jurisprudence est constante ({}).",
            "Voir en ce sens : {}.",
            "Il a ainsi été statué en ce sens ({}).",
            "En ce sens, {}.",
            "Sur ce point, on se reportera à la décision suivante : {}.",
        ]
    )
    return form.format(reference)


def right_reference(source: Source) -> Item:
    """Cite a decision as it is."""
    return Item("reference", True, citing(source, named(source, source.decision())))


def right_ecli(source: Source) -> Item:
    """Cite a decision by its ECLI."""
    one = source.rng.choice([one for one in source.decisions if one.extra.get("ecli")])
    return Item("ECLI", True, citing(source, str(one.extra["ecli"])))


def right_outcome(source: Source) -> Item | None:
    """Tell a decision's outcome."""
    told = _outcome(source, right=True)
    return told and Item("outcome", True, told)


def two_right_references(source: Source) -> Item:
    """Cite two decisions in a row."""
    joint = source.rng.choice([" ; ", " et ", ", puis ", " ; dans le même sens, "])
    return Item("two references", True, citing(source, joint.join(named(source, source.decision()) for _ in range(2))))


def wrong_beside_right(source: Source) -> Item | None:
    """Cite a decision as it is and one that does not exist."""
    wrong = invented_number(source)
    reference = wrong and re.search(r"\((.*)\)\.$|: (.*)\.$", wrong.text, re.DOTALL)
    if not reference:
        return None
    pair = [named(source, source.decision()), reference[1] or reference[2]]
    source.rng.shuffle(pair)
    return Item("wrong beside right", False, citing(source, source.rng.choice([" ; ", " et "]).join(pair)))


def right_outcome_in_brackets(source: Source) -> Item | None:
    """Cite a decision of the Cour de cassation with its outcome in brackets."""
    return _in_brackets(source, right=True)


def wrong_outcome_in_brackets(source: Source) -> Item | None:
    """Cite a decision of the Cour de cassation with the contrary of its outcome in brackets."""
    return _in_brackets(source, right=False)


def _in_brackets(source: Source, right: bool) -> Item | None:
    one = source.decision("Cour de cassation")
    if clear_outcome(one) not in ("Rejet", "Cassation"):
        return None
    said = "rejet" if (one.solution == "Rejet") == right else "cassation"
    reference = f"Cass. {CHAMBERS[one.formation][0]}, {short_date(one.decision_date)}, n° {number_of(one)} ({said})"
    return Item(f"{'' if right else 'wrong '}outcome in brackets", right, f"En ce sens, {reference}.")


def right_court_and_day(source: Source) -> Item:
    """Cite a decision of the Cour de cassation without its number."""
    one = source.decision("Cour de cassation")
    reference = named(source, one)
    return Item(
        "court and day", True, citing(source, re.sub(r",? (?:pourvoi )?n° [\d.-]+| \(pourvoi[^)]*\)", "", reference))
    )


def invented_number(source: Source) -> Item | None:
    """Cite a decision under a number that no decision has."""
    one = source.decision()
    number = re.sub(r"\d(?=\D*$)|\d(?=\d\D*$)", lambda digit: str(source.rng.randrange(10)), number_of(one))
    new = squash(number)
    if any(new in known or known in new for known in source.numbers) or new in source.whole:
        return None
    return Item("invented number", False, citing(source, named(source, one, number=number)))


def invented_ecli(source: Source) -> Item | None:
    """Cite an ECLI that no decision has."""
    one = source.rng.choice([one for one in source.decisions if one.extra.get("ecli")])
    ecli = re.sub(r"\d(?=\D{0,4}$)", lambda digit: str((int(digit.group()) + 3) % 10), str(one.extra["ecli"]))
    known = ecli in {str(other.extra.get("ecli")) for other in source.decisions}
    of_joined_cases = squash(ecli.split(":")[-1].removesuffix(".AN")) in source.numbers
    return None if known or of_joined_cases else Item("invented ECLI", False, citing(source, ecli))


def swapped_court(source: Source) -> Item:
    """Cite a decision as another court's, or another chamber's."""
    one = source.decision()
    if one.juridiction == "Cour de cassation":
        court = source.rng.choice([shorts[0] for full, shorts in CHAMBERS.items() if full != one.formation])
    elif one.juridiction == "Conseil constitutionnel":
        court = source.rng.choice(["CE", "Cass. soc.", "CA Paris", "Cass. 1re civ."])
    else:
        court = source.rng.choice(
            [town for town in ("de Rouen", "de Douai", "de Metz", "de Bastia") if town not in one.juridiction]
        )
    return Item("swapped court", False, citing(source, named(source, one, court=court)))


def wrong_date(source: Source) -> Item | None:
    """Cite a decision of another day."""
    one = source.decision()
    year, month, day = map(int, one.decision_date.split("-"))
    part = source.rng.randrange(3)
    other = f"{year + (part == 0) * source.rng.choice([-2, -1, 1])}-{(month + 4) % 12 + 1 if part == 1 else month:02}-{day % 27 + 1 if part == 2 else min(day, 28):02}"
    stands = squash(french_date(other)) in squash(one.content)
    return (
        None
        if stands or other == one.decision_date
        else Item("wrong date", False, citing(source, named(source, one, date=other)))
    )


def wrong_outcome(source: Source) -> Item | None:
    """Tell the contrary of a decision's outcome."""
    told = _outcome(source, right=False)
    return told and Item("wrong outcome", False, told)


def _outcome(source: Source, right: bool) -> str | None:
    one = source.decision(source.rng.choice(["Cour de cassation", "Conseil constitutionnel"]))
    solution = clear_outcome(one)
    rejects, number, date = solution == "Rejet", number_of(one), french_date(one.decision_date)
    if one.juridiction == "Cour de cassation":
        if solution not in ("Rejet", "Cassation", "Cassation sans renvoi"):
            return None
        verb = (
            "a rejeté le pourvoi"
            if rejects == right
            else source.rng.choice(["a cassé l'arrêt attaqué", "a cassé et annulé la décision attaquée"])
        )
        return f"Par un arrêt du {date} (n° {number}), la Cour de cassation {verb}."
    if solution not in ("Rejet", "Annulation", "Inéligibilité"):
        return None
    said = {
        "Rejet": "a rejeté la requête",
        "Annulation": "a annulé l'élection",
        "Inéligibilité": "a prononcé l'inéligibilité du candidat",
    }
    others = [other for other in said if other != solution and (solution, other) != ("Annulation", "Inéligibilité")]
    told = solution if right else source.rng.choice(others)
    return f"Par sa décision n° {number} du {date}, le Conseil constitutionnel {said[told]}."


def _clause(source: Source, least: int = 8) -> tuple[Document, str] | None:
    one = source.decision()
    clauses = [clause.text for clause in clauses_of(one) if len(re.findall(r"\w{4,}", clause.text)) >= least]
    return (one, source.rng.choice(clauses)) if clauses else None


def _quoted(source: Source, words: str, reference: str) -> str:
    quotation = source.rng.choice(["« {} »", "« {} »", "“{}”", '"{}"', "«\u00a0{}\u00a0»"]).format(words)
    if not reference:
        return source.rng.choice(
            ["Il a été jugé que {}.", "Les juges retiennent que {}.", "On rappellera que {}."]
        ).format(quotation)
    return source.rng.choice(
        ["Il a été jugé que {0} ({1}).", "Selon {1}, {0}.", "{0} ({1}).", "Aux termes de {1} : {0}."]
    ).format(quotation, reference)


def right_quotation(source: Source) -> Item | None:
    """Quote a decision and name it."""
    found = _clause(source)
    return found and Item("quotation with source", True, _quoted(source, found[1], named(source, found[0])))


def right_quotation_alone(source: Source) -> Item | None:
    """Quote a decision and name nothing."""
    found = _clause(source, 10)
    return found and Item("quotation alone", True, _quoted(source, found[1], ""))


def cut_quotation(source: Source) -> Item | None:
    """Quote a decision without three words; the words are right unless what is left out turns their sense."""
    found = _clause(source, 14)
    if not found:
        return None
    words = found[1].split()
    middle = len(words) // 2
    left_out = " ".join(words[middle : middle + 3])
    turned = bool(re.search(r"\b(?:ne|pas|aucune?|sans|jamais|ni)\b|\bn'", left_out))
    if not turned and TURNING.search(left_out):
        return None
    quotation = _quoted(source, " ".join([*words[:middle], "[...]", *words[middle + 3 :]]), named(source, found[0]))
    return Item("quotation cut over a negation" if turned else "quotation cut", not turned, quotation)


def altered_quotation(source: Source) -> Item | None:
    """Quote a decision in words that stand in no decision, and name it."""
    return _altered(source, "altered quotation", lambda one: named(source, one))


def altered_quotation_alone(source: Source) -> Item | None:
    """Quote a decision in words that stand in no decision, and name nothing."""
    return _altered(source, "altered quotation alone", lambda one: "")


def _altered(source: Source, kind: str, reference: Callable[[Document], str]) -> Item | None:
    found = _clause(source, 12)
    how = source.rng.choice(list(ALTERATIONS))
    words = found and ALTERATIONS[how](found[1], source.rng)
    if not found or not words or squash(words) in source.whole:
        return None
    return Item(f"{kind}: {how}", False, _quoted(source, words, reference(found[0])))


def invented_quotation(source: Source) -> Item:
    """Quote what stands nowhere, and name a decision."""
    return Item(
        "invented quotation", False, _quoted(source, source.rng.choice(INVENTED), named(source, source.decision()))
    )


def quotation_of_another(source: Source) -> Item | None:
    """Quote one decision and name another, which does not hold the words."""
    found, other = _clause(source), source.decision()
    if not found or squash(found[1]) in squash(other.content):
        return None
    return Item("quotation of another decision", False, _quoted(source, found[1], named(source, other)))


def _article(source: Source, number: str) -> str:
    letter, digits = number[0], number[1:]
    forms = [
        "l'article {0}. {1} du code du travail",
        "l'article {0}{1} du Code du travail",
        "l'article {0}. {1} C. trav.",
        "C. trav., art. {0}. {1}",
        "les dispositions de l'article {0}.{1} du code du travail",
        "l'article {0}. {1}, alinéa 1er, du code du travail",
    ]
    return source.rng.choice(
        ["Cette solution repose sur {}.", "Au visa de {}, la demande sera accueillie.", "Le texte applicable est {}."]
    ).format(source.rng.choice(forms).format(letter, digits))


def right_article(source: Source) -> Item:
    """Name an article of the code."""
    return Item("article", True, _article(source, source.rng.choice(source.articles)), "code")


def wrong_article(source: Source) -> Item | None:
    """Name an article that the code does not have: another number, another letter, or one far off."""
    number = source.rng.choice(source.articles)
    how, new = source.rng.choice([
        ("number", re.sub(r"\d+$", lambda last: str(int(last.group()) + 40), number)),
        ("letter", ("R" if number[0] == "L" else "L") + number[1:]),
        ("far off", f"L{source.rng.randint(9001, 9999)}-{source.rng.randint(1, 30)}"),
    ])  # fmt: skip
    return None if squash(new) in source.known else Item(f"wrong article: {how}", False, _article(source, new), "code")


MAKERS: dict[Callable[[Source], Item | None], int] = {  # how often each is drawn
    right_reference: 12, right_ecli: 2, right_outcome: 5, right_court_and_day: 3, right_quotation: 8, right_quotation_alone: 4, cut_quotation: 2,
    two_right_references: 4, wrong_beside_right: 2, right_outcome_in_brackets: 2, wrong_outcome_in_brackets: 2, right_article: 8, invented_number: 5, invented_ecli: 1, swapped_court: 4, wrong_date: 4, wrong_outcome: 4, altered_quotation: 7,
    altered_quotation_alone: 3, invented_quotation: 2, quotation_of_another: 2, wrong_article: 5,
}  # fmt: skip


def make_brief(source: Source, n_items: int, n_fillers: tuple[int, int]) -> tuple[list[str], list[Item]]:
    """Make a brief: its paragraphs, and what they refer to."""
    items: list[Item] = []
    paragraphs = ["Plaise au tribunal"]
    while len(items) < n_items:
        item = source.rng.choices(list(MAKERS), list(MAKERS.values()))[0](source)
        if item:
            items.append(item._replace(text=item.text[0].upper() + item.text[1:]))
            paragraphs += [" ".join(source.rng.sample(FILLERS, source.rng.randint(*n_fillers))), items[-1].text]
    return paragraphs, items


def read_as(paragraphs: Sequence[str], form: str, folder: Path) -> str:
    """Write a brief in a form and read it back."""
    path = folder / f"brief.{form}"
    if form == "docx":
        from docx import Document as Word

        word = Word()
        for one in paragraphs:
            word.add_paragraph(one)
        word.save(str(path))
    elif form == "html":
        body = "".join(f"<p>{html.escape(one)}</p>" for one in paragraphs)
        path.write_text(f"<!doctype html><html><head><meta charset='utf-8'></head><body>{body}</body></html>")
    else:
        path.write_text("\n\n".join(paragraphs))
    return read_file(path)


def scored(items: Sequence[Item], checked: dict[str, Verification]) -> list[Scored]:
    """Return what became of each item, by the references that touch its words."""
    results = []
    for name, verification in checked.items():
        at = 0
        for item in items:
            words = re.compile(r"\s+".join(map(re.escape, item.text.split())))
            start, end = words.search(verification.text, at).span()  # type: ignore[union-attr]
            at = end
            touching = [one for one in verification.references if one.start < end and one.end > start]
            wanted = [one for one in touching if (one.kind == "article") == (name == "code")]
            results += [Scored(item, tuple(wanted))] if item.looked_up_in == name else []
    return results


def source_of(arguments: argparse.Namespace) -> Source:
    """Read what briefs are made from."""
    decisions = list(read_documents(arguments.data / "decisions.jsonl.gz"))
    usable = [
        one
        for one in decisions
        if one.decision_date
        and re.fullmatch(r"[\d./-]+", str(one.extra.get("number") or ""))
        and re.fullmatch(r"[\d.-]+|\d\d/\d{5}", str(one.extra["number"]))
        and (one.juridiction != "Cour de cassation" or one.formation in CHAMBERS)
    ]
    numbers = frozenset(squash(number) for one in decisions for number in joined(str(one.extra.get("number") or "")))
    articles = [str(one.extra["number"]) for one in read_documents(arguments.data / "code-du-travail.jsonl.gz")]
    plain = [one for one in articles if re.fullmatch(r"[LRD]\d{4}-\d+(?:-\d+)?", one)]
    whole = "".join(squash(one.content) for one in decisions)
    return Source(random.Random(arguments.seed), usable, numbers, plain, frozenset(map(squash, articles)), whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--index-folder", type=Path, required=True)
    parser.add_argument("--decisions", default="decisions", help="Name of the Library of decisions.")
    parser.add_argument("--code", default="travail", help="Name of the Library of the Code du travail.")
    parser.add_argument("--briefs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--kind", default="", help="Show failures of the kinds whose name contains this.")
    parser.add_argument("--no-speed", action="store_true")
    arguments = parser.parse_args()
    source = source_of(arguments)
    libraries = {
        "decisions": Library.open(arguments.index_folder, arguments.decisions),
        "code": Library.open(arguments.index_folder, arguments.code),
    }
    results: list[Scored] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.briefs):
            paragraphs, items = make_brief(source, source.rng.randint(12, 20), (1, 3))
            text = read_as(paragraphs, ["md", "docx", "md", "html"][number % 4], Path(folder))
            results += scored(items, {name: verify_text(text, library) for name, library in libraries.items()})
    print_scores(results, arguments.briefs)
    for one in islice((one for one in results if one.failure and arguments.kind in one.item.kind), arguments.show):
        print(f"\n{one.item.kind} ({'right' if one.item.right else 'wrong'}): {one.failure}\n  {one.item.text}")
        for found in one.references:
            print(
                f"  {found.kind} {found.status}: {found.text[:100]!r} {found.explanation} {[tuple(c) for c in found.corrections][:3]}"
            )
    if not arguments.no_speed:
        speed(source, libraries["decisions"])


def print_scores(results: Sequence[Scored], n_briefs: int) -> None:
    """Print the bars, and the failures of each kind."""
    inventions = [one for one in results if not one.item.right]
    right = [one for one in results if one.item.right]
    missed = sum(bool(one.failure) for one in inventions)
    called = sum(one.failure == "called wrong" for one in right)
    unconfirmed = sum(one.failure == "not confirmed" for one in right)
    print(f"{n_briefs} briefs, {len(results)} references")
    print(f"inventions not found         {missed} of {len(inventions)}  (0 wanted)")
    print(f"right ones called wrong      {called / len(right):.4f} of {len(right)}  (at most 0.02)")
    print(f"right ones not confirmed     {unconfirmed / len(right):.4f}")
    kinds = Counter(one.item.kind for one in results)
    failures = Counter((one.item.kind, one.failure) for one in results)
    for kind, count in sorted(kinds.items()):
        told = ", ".join(
            f"{failures[kind, failure]} {failure}"
            for failure in ("not found", "called wrong", "not confirmed")
            if failures[kind, failure]
        )
        print(f"  {kind:40} {count:5}  {told}")


def speed(source: Source, library: Any) -> None:
    """Print what a brief of 50 pages with 200 references takes."""
    paragraphs, items = make_brief(source, 200, (4, 6))
    text = "\n\n".join(paragraphs)
    started = time.perf_counter()
    found = verify_text(text, library)
    took = time.perf_counter() - started
    print(
        f"\n{len(text) / PAGE:.0f} pages, {len(items)} references made, {len(found.references)} found: {took:.1f} s  (at most 10)"
    )


if __name__ == "__main__":
    main()
