"""References as lawyers write them, right or wrong in one thing, each with the verdict it calls for."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from altered_quotations import ALTERATIONS
from answer_wording import TURNING
from false_answers import french_date, squash
from material import CHAMBERS, Decision, Material, Point, Speaker, Words, squashed_content
from stated_changes import ABBREVIATED

CALL = "\x01"  # where a footnote is called


class Mention(NamedTuple):
    """What a text refers to in some of its words, and what a verifier should say of it."""

    kind: str
    text: str
    status: str  # a `Status` of `verdicts`, or "none": it refers to nothing
    what: tuple[str, ...] = ()  # any of these names the wrong thing
    right: str = ""
    doc_id: str = ""  # the decision or article meant
    sorts: tuple[str, ...] = ("decision",)  # kinds of `Reference` that may stand for it


def confirmed(kind: str, text: str, decision: Decision) -> Mention:
    """Name a decision as it is."""
    return Mention(kind, text, "confirmed", doc_id=decision.id)


def mutated(kind: str, text: str, what: str, right: str, decision: Decision) -> Mention:
    """Name a decision with a thing that is not its own; `what` may be several, by blanks."""
    return Mention(kind, text, "wrong", tuple(what.split()), right, decision.id)


def on_article(kind: str, text: str, number: str, status: str = "confirmed") -> Mention:
    """Name an article of the code, or one that it does not have."""
    what = () if status == "confirmed" else ("article", "number")
    return Mention(kind, text, status, what, doc_id=number, sorts=("article",))


def quoted(kind: str, words: str, doc_id: str, what: str = "", right: str = "") -> Mention:
    """Quote words; `what` is wrong with them: the words themselves, their source, or who speaks."""
    return Mention(kind, words, "wrong" if what else "confirmed", tuple(what.split()), right, doc_id, ("quotation",))


def absent(kind: str, text: str, right: str = "", like: Decision | None = None) -> Mention:
    """Name a decision that the corpus does not hold, made like one that it has."""
    return Mention(kind, text, "absent", ("number",), right, like.id if like else "")


class Passage(NamedTuple):
    """A paragraph of a brief, and what stands with it."""

    text: str  # holds CALL where its footnote is called
    mentions: tuple[Mention, ...]
    note: str = ""  # a footnote; in brackets where a layout has none
    block: str = ""  # a quotation set off below
    cells: tuple[str, ...] = ()  # a row of a table: court, date, number, outcome


FORMS = tomllib.loads(Path(__file__).with_name("forms.toml").read_text("utf-8"))
SENTENCES, OTHERS = FORMS["sentences"], FORMS["others"]


# Decisions named


def cite(
    material: Material, decision: Decision, *, number: str = "", date: str = "", court: str = "", named: str = ""
) -> str:
    """Cite a decision in one of the forms, with another number, date, chamber or town where given."""
    forms = FORMS["decisions"][decision.family]
    template = forms[named or material.pick([name for name in forms if _fits(material, name, decision, court)])]
    return filled(
        material, template, decision, number or material.pick(decision.numbers[:1]), date or decision.date, court
    )


def _fits(material: Material, form: str, decision: Decision, court: str) -> bool:
    single = len(material.dates[decision.family, decision.numbers[0]]) == 1
    needs = {"name after": decision.party, "chamber": decision.chamber and not court, "number alone": single}
    return bool(needs.get(form, True))


def filled(material: Material, template: str, decision: Decision, number: str, date: str, court: str = "") -> str:
    """Fill in a form's names."""
    chamber, town, ch = decision.chamber, decision.town, ""
    if decision.family == "Cass":
        chamber = court or decision.formation
        ch = material.pick(CHAMBERS[chamber])
        chamber = "assemblée plénière" if chamber == "Assemblée plénière" else chamber.lower()
    elif decision.family == "CA":
        town = court or decision.town
    text = template.format(
        ch=ch,
        Ch=ch[:1].upper() + ch[1:],
        chamber=chamber,
        town=town,
        place=re.sub("^(?:de |d['’])", "", town),
        n=number,
        party=decision.party,
        short=short_date(date),
        long=french_date(date),
        figures="/".join(reversed(date.split("-"))),
        iso=date,
        dashes="-".join(part.lstrip("0") for part in reversed(date.split("-"))),
        plain=ch.replace(".", ""),
        CH=ch.upper(),
        TOWN=town.upper(),
        LONG=french_date(date).upper(),
        letter=material.pick("BKQXZ"),
    )
    return re.sub(r"\bla (?=assemblée)", "l'", text)


def short_date(iso: str) -> str:
    """Write a date as citations do: 20 juill. 1993."""
    year, month, day = map(int, iso.split("-"))
    return f"{'1er' if day == 1 else day} {ABBREVIATED[month - 1]} {year}"


def capitalized(text: str) -> str:
    """Begin a sentence, unless it begins with an address."""
    text = re.sub(r"(?<!\.)\.\.(?!\.)", ".", text)  # "c. civ." at the end of a sentence
    return text if text.startswith(("http", "www")) else text[:1].upper() + text[1:]


def citing(material: Material, reference: str, *mentions: Mention) -> Passage:
    """Put a reference in a sentence, or in a note to one."""
    if material.rng.random() < 0.3:
        return Passage(material.pick(SENTENCES["noted"]).format(CALL), mentions, note=f"{capitalized(reference)}.")
    sentence = material.pick(SENTENCES["citing"]).format(reference)
    if material.rng.random() < 0.15:  # a call glued to what precedes
        return Passage(sentence + CALL, mentions, note="Pièce adverse, non datée.")
    return Passage(sentence, mentions)


def right_reference(material: Material) -> Passage:
    decision = material.decision()
    text = cite(material, decision)
    return citing(material, text, confirmed("reference", text, decision))


def number_spelled(material: Material) -> Passage:
    decision = material.decision()
    number, prefix = decision.numbers[0], FORMS["without_number"][decision.family][0]
    spelled = material.pick(FORMS["spellings"][decision.family]).format(
        n=number,
        bare=number.removesuffix(" AN") if decision.family == "CC" else re.sub(r"\D", "", number),
        undotted=number.replace(".", ""),
        blank=re.sub(r"\.|(?<=\d{3})(?=\d{3}$)", " ", number),
        dots=number.replace("-", "."),
        dash=number.replace("/", "-"),
        spaced=number.replace("/", " / "),
    )
    text = f"{filled(material, prefix, decision, '', decision.date)}, {spelled}"
    return citing(material, text, confirmed("number spelled otherwise", text, decision))


def joined_case(material: Material) -> Passage | None:
    decision = _drawn(material, lambda decision: len(decision.numbers) > 1)
    if not decision:
        return None
    text = cite(material, decision, number=material.pick(decision.numbers[1:]))
    return citing(material, text, confirmed("joined case", text, decision))


def judgment_number(material: Material) -> Passage | None:
    decision = _drawn(material, lambda decision: bool(decision.short_number), "Cass")
    if not decision:
        return None
    text = f"l'arrêt n° {decision.short_number} du {french_date(decision.date)}"
    return citing(material, text, confirmed("number of the judgment", text, decision))


def court_and_day(material: Material) -> Passage:
    decision = material.decision()
    single = material.how_many(decision) == 1
    text = filled(material, material.pick(FORMS["without_number"][decision.family]), decision, "", decision.date)
    several = Mention("court and day of several", text, "ambiguous", doc_id=decision.id)
    return citing(material, text, confirmed("court and day", text, decision) if single else several)


def day_without_decision(material: Material) -> Passage | None:
    decision = material.decision()
    date = other_date(material, decision)
    if not date or material.how_many(decision, date):
        return None
    text = filled(material, material.pick(FORMS["without_number"][decision.family]), decision, "", date)
    return citing(material, text, absent("court and day without a decision", text, decision.date, decision))


def cells(material: Material, wrong: str = "") -> Passage | None:
    """Name a decision in a table's cells: court, date, number, outcome."""
    decision = material.decision("Cass", "CC", "CE")
    if decision.outcome not in FORMS["outcomes"]["verbs"][decision.family]:
        return None
    outcome = _other_outcome(material, decision) if wrong == "outcome" else decision.outcome
    date = other_date(material, decision) if wrong == "date" else decision.date
    if not date:
        return None
    court = _other_chamber(material, decision) if wrong == "court" and decision.family == "Cass" else ""
    if wrong == "court" and not court:
        return None
    name = filled(
        material,
        {"Cass": "Cass. {ch}", "CC": "Conseil constitutionnel", "CE": "Conseil d'État"}[decision.family],
        decision,
        "",
        decision.date,
        court,
    )
    row = (name, french_date(date), f"n° {decision.numbers[0]}", outcome)
    right = {"outcome": decision.outcome, "date": decision.date, "court": decision.formation}.get(wrong, "")
    text = " ".join(row)
    mention = (
        mutated(f"wrong {wrong} in cells", text, wrong, right, decision)
        if wrong
        else confirmed("cells", text, decision)
    )
    return Passage("", (mention,), cells=row)


def wrong_cells(material: Material) -> Passage | None:
    return cells(material, material.pick(["outcome", "date", "court"]))


def ecli(material: Material) -> Passage | None:
    decision = _drawn(material, lambda decision: bool(decision.ecli))
    return decision and citing(material, decision.ecli, confirmed("ECLI", decision.ecli, decision))


def invented_ecli(material: Material) -> Passage | None:
    decision = _drawn(material, lambda decision: bool(decision.ecli))
    text = decision and re.sub(r"\d(?=\D{0,4}$)", lambda digit: str((int(digit.group()) + 3) % 10), decision.ecli)
    known = text and (
        text in {other.ecli for other in material.all}
        or squash(text.split(":")[-1].removesuffix(".AN")) in material.heads
        or squash(text.split(":")[-1]) in material.heads
    )
    return (
        citing(material, text, absent("invented ECLI", text, decision.ecli, decision))
        if decision and text and not known
        else None
    )


def identifier(material: Material, invented: bool = False) -> Passage | None:
    """Name a decision by its id in Légifrance or Judilibre, or its address there."""
    decision = _drawn(
        material, lambda decision: bool(re.fullmatch(r"(?:JURITEXT|CONSTEXT)\d{12}|[0-9a-f]{24}", decision.id))
    )
    if not decision:
        return None
    name = (
        decision.id[:-2] + f"{(int(decision.id[-2:], 16 if len(decision.id) == 24 else 10) + 37) % 99:02}"
        if invented
        else decision.id
    )
    if invented and name in {other.id for other in material.all}:
        return None
    folder = "juri" if name.startswith("JURI") else "cons"
    forms = (
        [f"https://www.courdecassation.fr/decision/{name}"]
        if len(name) == 24
        else [name, f"https://www.legifrance.gouv.fr/{folder}/id/{name}", f"www.legifrance.gouv.fr/{folder}/id/{name}/"]
    )
    text = material.pick(forms)
    mention = (
        absent("invented id", text, decision.id, decision) if invented else confirmed("id or address", text, decision)
    )
    return citing(material, text, mention)


def invented_identifier(material: Material) -> Passage | None:
    return identifier(material, invented=True)


def two_references(material: Material) -> Passage:
    first, second = material.decision(), material.decision()
    texts = [cite(material, first), cite(material, second)]
    joint = material.pick([" ; ", " et ", ", puis ", " ; dans le même sens, "])
    return citing(
        material,
        joint.join(texts),
        *(confirmed("two references", text, decision) for text, decision in zip(texts, (first, second), strict=True)),
    )


def right_beside_invented(material: Material) -> Passage | None:
    decision, other = material.decision(), material.decision()
    number = other_number(material, other)
    if not number:
        return None
    pair = [
        confirmed("beside an invented one", cite(material, decision), decision),
        absent("invented beside a right one", cite(material, other, number=number), other.numbers[0], other),
    ]
    material.rng.shuffle(pair)
    return citing(material, material.pick([" ; ", " et "]).join(mention.text for mention in pair), *pair)


def referring_back(material: Material) -> Passage:
    """Name a decision, then refer to it in short."""
    decision = material.decision()
    first = cite(material, decision)
    day = french_date(decision.date)
    name = {
        "Cass": filled(material, "Cass. {ch}, {short}", decision, "", decision.date),
        "CA": filled(material, "CA {place}, {short}", decision, "", decision.date),
        "CC": f"Cons. const., {short_date(decision.date)}",
        "CE": f"CE, {short_date(decision.date)}",
    }[decision.family]
    noun = "la décision" if decision.family in ("CC", "CE") else "l'arrêt"
    kind, short = material.pick(
        [
            ("préc.", f"{name}, préc."),
            ("préc.", f"{name}, précité"),
            ("the day", f"{noun} du {day}"),
            ("the day", f"{noun} précité{'e' if noun[:2] == 'la' else ''} du {day}"),
            ("ibid.", "Ibid."),
            ("the number", f"{noun} n° {decision.numbers[0]} précité{'e' if noun[:2] == 'la' else ''}"),
        ]
    )
    sentence = f"La règle est posée ({first}). " + (
        "Ibid., pour un autre exemple." if kind == "ibid." else f"Rien n'y contredit : {short} est sans équivoque."
    )
    return Passage(
        sentence, (confirmed("reference", first, decision), confirmed(f"referring back: {kind}", short, decision))
    )


# Decisions with something wrong


def other_date(material: Material, decision: Decision) -> str:
    """Return another day, on which the decision's number is no decision's and which its text does not name."""
    year, month, day = map(int, decision.date.split("-"))
    part = material.rng.randrange(3)
    year += (part == 0) * material.pick([-2, -1, 1])
    month = (month + 4) % 12 + 1 if part == 1 else month
    day = day % 27 + 1 if part == 2 else min(day, 28)
    other = f"{year}-{month:02}-{day:02}"
    shared = any(other in material.dates[decision.family, number] for number in decision.numbers)
    return "" if other == decision.date or shared or squash(french_date(other)) in squashed_content(decision) else other


def other_number(material: Material, decision: Decision) -> str:
    """Change, swap or drop digits of a number, to one that stands nowhere."""
    number = decision.numbers[0]
    stem = number.removesuffix(" AN")
    last = [at.start() for at in re.finditer(r"\d", stem)][-3:]
    at = material.pick(last)
    swapped = re.sub(r"(\d)(\d)(?=\D*$)", r"\2\1", stem)
    new = material.pick([swapped, *[stem[:at] + digit + stem[at + 1 :] for digit in "0123456789"]])
    known = any(squash(new) in number or number in squash(new) for number in material.heads if number)
    return "" if known or squash(new) in material.whole else new + number[len(stem) :]


def invented_number(material: Material) -> Passage | None:
    decision = material.decision()
    number = other_number(material, decision)
    if not number:
        return None
    text = cite(material, decision, number=number)
    named = "Sté" in text
    return citing(
        material,
        text,
        absent("invented number with a true name" if named else "invented number", text, decision.numbers[0], decision),
    )


def true_name_invented_number(material: Material) -> Passage | None:
    decision = _drawn(material, lambda decision: bool(decision.party), "Cass")
    number = decision and other_number(material, decision)
    if not decision or not number:
        return None
    text = cite(material, decision, number=number, named="name after")
    return citing(material, text, absent("invented number with a true name", text, decision.numbers[0], decision))


def number_of_a_neighbour(material: Material) -> Passage | None:
    """Cite a decision under the number of another of its court."""
    decision, other = material.decision(), material.decision()
    if (
        decision.document.juridiction != other.document.juridiction
        or decision.date == other.date
        or squash(french_date(decision.date)) in squashed_content(other)
    ):
        return None
    text = cite(material, decision, number=other.numbers[0])
    if text.startswith("Cons. const. n°"):
        return None
    return citing(material, text, mutated("number of another decision", text, "date number court", other.date, other))


def party_name(material: Material) -> Passage | None:
    """Call a decision by the name of a party, as the doctrine does."""
    if not material.called_by_party:
        return None
    decision = material.pick(material.called_by_party)
    text = f"l'arrêt {decision.party}"
    return citing(material, text, confirmed("by a party's name", text, decision))


def cited_only(material: Material) -> Passage | None:
    if not material.cited_only:
        return None
    number = material.pick(material.cited_only)
    text = material.pick(["le pourvoi n° {}", "Cass., pourvoi n° {}", "Cour de cassation, n° {}"]).format(number)
    return Passage(f"V. {text}.", (absent("cited by a decision, not there", text),))


def _other_chamber(material: Material, decision: Decision) -> str:
    return material.pick([name for name in CHAMBERS if name not in (decision.formation, "Assemblée plénière")])


def _other_town(material: Material, decision: Decision) -> str:
    return material.pick([town for town in OTHERS["other_towns"] if town != decision.town])


def wrong_court(material: Material) -> Passage:
    decision = material.decision()
    mention = mutated("wrong court", "", "court", decision.document.juridiction, decision)
    if decision.family == "Cass":
        text = cite(material, decision, court=_other_chamber(material, decision))
        mention = mention._replace(kind="wrong chamber", right=decision.formation)
    elif decision.family == "CA":
        text = cite(material, decision, court=_other_town(material, decision))
    else:
        court = material.pick(["CA Paris", "Cass. soc.", "TA Lyon", "Cass. 1re civ."])
        text = f"{court}, {short_date(decision.date)}, n° {decision.numbers[0]}"
    return citing(material, text, mention._replace(text=text))


def chamber_and_wrong_court(material: Material) -> Passage | None:
    """Name a court of appeal that is not the decision's, with a chamber between court and date."""
    decision = material.decision("CA")
    chamber = material.pick(["4e ch. soc.", "1re ch. civ.", "ch. sociale", "2e ch., sect. A"])
    form, town = f"CA {{place}}, {chamber}, {{short}}, n° {{n}}", _other_town(material, decision)
    text = filled(material, form, decision, decision.numbers[0], decision.date, town)
    right = decision.document.juridiction
    return citing(material, text, mutated("wrong court before a chamber", text, "court", right, decision))


def wrong_date(material: Material) -> Passage | None:
    decision = material.decision()
    date = other_date(material, decision)
    if not date:
        return None
    text = cite(material, decision, date=date)
    if text.startswith("Cons. const. n°"):
        return None
    return citing(material, text, mutated("wrong date", text, "date", decision.date, decision))


def _other_outcome(material: Material, decision: Decision) -> str:
    """Return an outcome that the decision has not: an election annulled may make a candidate ineligible too."""
    right = decision.outcome
    others = [name for name in FORMS["outcomes"]["verbs"][decision.family] if name != right]
    return material.pick([name for name in others if (right, name) != ("Annulation", "Inéligibilité")])


def outcome(material: Material, wrong: bool = False) -> Passage | None:
    """Say a decision's outcome, or its contrary, in a sentence, a relative clause, brackets."""
    decision = material.decision("Cass", "CC", "CE")
    if decision.outcome not in FORMS["outcomes"]["verbs"][decision.family]:
        return None
    stated = _other_outcome(material, decision) if wrong else decision.outcome
    kind = "wrong outcome" if wrong else "outcome"
    mention = mutated("", "", "outcome", decision.outcome, decision) if wrong else confirmed("", "", decision)
    noun = "un arrêt" if decision.family == "Cass" else "une décision"
    if material.rng.random() < 0.5 or stated not in FORMS["outcomes"]["beside"][decision.family]:
        text = f"{noun} du {french_date(decision.date)} (n° {decision.numbers[0]})"
        return Passage(
            f"Par {text}, {material.pick(FORMS['outcomes']['verbs'][decision.family][stated])}.",
            (mention._replace(kind=f"{kind} in a sentence", text=text),),
        )
    text = cite(material, decision)
    return citing(
        material,
        material.pick(FORMS["outcomes"]["beside"][decision.family][stated]).format(text),
        mention._replace(kind=f"{kind} beside", text=text),
    )


def wrong_outcome(material: Material) -> Passage | None:
    return outcome(material, wrong=True)


# Quotations


def _quoting(
    material: Material,
    decision: Decision,
    words: str,
    kind: str,
    *,
    what: str = "",
    right: str = "",
    sentences: Sequence[str] = SENTENCES["neutral"],
) -> Passage:
    """Quote words and name a decision, in a sentence or in a block."""
    reference = cite(material, decision)
    mentions = (
        quoted(kind, words, decision.id, what, right),
        confirmed("reference beside a quotation", reference, decision),
    )
    if sentences is SENTENCES["neutral"] and material.rng.random() < 0.3:
        return Passage(f"On peut lire dans {reference} :", mentions, block=words)
    return Passage(
        material.pick(sentences).format(material.pick(OTHERS["quotation_marks"]).format(words), reference), mentions
    )


def _words(material: Material, speaker: Speaker | None = None, at_least: int = 8) -> tuple[Decision, Words] | None:
    families = [name for name in material.by_family if name != "CA"] if speaker else list(material.by_family)
    for _ in range(60):
        decision = material.decision(*families)
        words = [
            words
            for words in decision.words
            if speaker in (None, words.speaker) and len(re.findall(r"\w{4,}", words.text)) >= at_least
        ]
        if words:
            return decision, material.pick(words)
    return None


def quotation(material: Material) -> Passage | None:
    drawn = _words(material)
    return drawn and _quoting(material, drawn[0], drawn[1].text, "quotation")


def quotation_alone(material: Material) -> Passage | None:
    drawn = _words(material, at_least=10)
    if not drawn:
        return None
    words = drawn[1].text
    return Passage(
        material.pick(SENTENCES["unnamed"]).format(material.pick(OTHERS["quotation_marks"]).format(words)),
        (quoted("quotation alone", words, ""),),
    )


def quotation_of_the_court(material: Material) -> Passage | None:
    drawn = _words(material, "court")
    return drawn and _quoting(
        material,
        drawn[0],
        drawn[1].text,
        "the court's words as the court's",
        sentences=FORMS["judged"][drawn[0].family],
    )


def quotation_of_a_party(material: Material) -> Passage | None:
    drawn = _words(material, "party")
    return drawn and _quoting(material, drawn[0], drawn[1].text, "a party's words, speaker not said")


def party_as_court(material: Material) -> Passage | None:
    drawn = _words(material, "party")
    return drawn and _quoting(
        material,
        drawn[0],
        drawn[1].text,
        "a party's words as the court's",
        what="speaker",
        sentences=FORMS["judged"][drawn[0].family],
    )


def quashed_as_court(material: Material) -> Passage | None:
    drawn = _words(material, "quashed")
    return drawn and _quoting(
        material,
        drawn[0],
        drawn[1].text,
        "quashed words as the Court's",
        what="speaker",
        sentences=FORMS["judged"][drawn[0].family],
    )


def cut_quotation(material: Material) -> Passage | None:
    drawn = _words(material, at_least=14)
    if not drawn:
        return None
    words = drawn[1].text.split()
    middle = len(words) // 2
    left_out = " ".join(words[middle : middle + 3])
    if TURNING.search(left_out):
        return None
    mark = material.pick(["[...]", "[…]", "(…)"])
    return _quoting(material, drawn[0], " ".join([*words[:middle], mark, *words[middle + 3 :]]), "quotation cut")


def altered_quotation(material: Material) -> Passage | None:
    drawn = _words(material, at_least=12)
    how = material.pick(list(ALTERATIONS))
    words = drawn and ALTERATIONS[how](drawn[1].text, material.rng)
    if not drawn or not words or not material.stands_nowhere(words):
        return None
    if material.rng.random() < 0.25:
        return Passage(
            material.pick(SENTENCES["unnamed"]).format(material.pick(OTHERS["quotation_marks"]).format(words)),
            (quoted(f"altered, alone: {how}", words, drawn[0].id, "words", drawn[1].text),),
        )
    return _quoting(material, drawn[0], words, f"altered: {how}", what="words", right=drawn[1].text)


def invented_quotation(material: Material) -> Passage:
    return _quoting(
        material, material.decision(), material.pick(OTHERS["invented_words"]), "invented quotation", what="words"
    )


def quotation_of_another(material: Material) -> Passage | None:
    drawn, other = _words(material), material.decision()
    if not drawn or squash(drawn[1].text) in squashed_content(other):
        return None
    return _quoting(
        material, other, drawn[1].text, "quotation of another decision", what="source words", right=drawn[0].id
    )


def _pointed(material: Material) -> tuple[Decision, Point, str] | None:
    for _ in range(60):
        decision = material.decision("Cass", "CC", "CE")
        placed = [
            (point, words.text)
            for words in decision.words
            for point in decision.points
            if point.start <= words.start and words.start + len(words.text) <= point.end
        ]
        if placed:
            return decision, *material.pick(placed)
    return None


def point(material: Material, wrong: bool = False) -> Passage | None:
    """Quote a decision with the number of the paragraph."""
    drawn = _pointed(material)
    if not drawn:
        return None
    decision, right, words = drawn
    others = [
        other.number
        for other in decision.points
        if abs(other.number - right.number) > 1
        and squash(words) not in squash(decision.content[other.start : other.end])
    ]
    number = (
        material.pick([*others[:4], decision.points[-1].number + material.rng.randint(20, 60)])
        if wrong
        else right.number
    )
    pinpoint = material.pick(
        ["§ {}", "point {}", "pt {}", "§{}", "cons. {}", "considérant {}"]
        if decision.family == "CC"
        else ["§ {}", "point {}", "pt. {}", "§{}", "paragr. {}"]
    ).format(number)
    reference = f"{cite(material, decision)}, {pinpoint}"
    text = f"{reference} : {material.pick(OTHERS['quotation_marks'][:4]).format(words)}"
    mention = (
        mutated("wrong point", text, "point", str(right.number), decision)
        if wrong
        else confirmed("point", text, decision)
    )
    return Passage(f"V. {text}.", (mention._replace(sorts=("decision", "quotation")),))


def wrong_point(material: Material) -> Passage | None:
    return point(material, wrong=True)


def point_that_is_not(material: Material) -> Passage | None:
    decision = _drawn(material, lambda decision: bool(decision.points), "Cass", "CC", "CE")
    if not decision:
        return None
    text = f"{cite(material, decision)}, § {decision.points[-1].number + material.rng.randint(15, 60)}"
    return citing(material, text, mutated("no such point", text, "point", str(decision.points[-1].number), decision))


# Articles


def _article(material: Material, number: str) -> str:
    return material.pick(FORMS["articles"]["forms"]).format(l=number[0], n=number[1:])


def article(material: Material) -> Passage | None:
    if not material.half_articles:
        return None
    number = material.pick(material.half_articles)
    text = _article(material, number)
    return _articles(material, text, on_article("article", text, number))


def _articles(material: Material, text: str, *mentions: Mention) -> Passage:
    return Passage(material.pick(SENTENCES["articles"]).format(text), mentions)


def _other_article(material: Material) -> tuple[str, str, str] | None:
    number = material.pick(material.half_articles)
    how, new = material.pick(
        [
            ("number", re.sub(r"\d+$", lambda last: str(int(last.group()) + 40), number)),
            ("letter", ("R" if number[0] == "L" else "L") + number[1:]),
            ("far off", f"L{material.rng.randint(9001, 9999)}-{material.rng.randint(1, 30)}"),
        ]
    )
    return None if new in material.articles else (number, how, new)


def absent_article(material: Material) -> Passage | None:
    drawn = _other_article(material) if material.half_articles else None
    if not drawn:
        return None
    right, how, new = drawn
    text = _article(material, new)
    return _articles(material, text, on_article(f"absent article: {how}", text, right, "absent"))


def list_of_articles(material: Material) -> Passage | None:
    """Name two or three articles of one code, one of them absent at times."""
    if not material.half_articles:
        return None
    numbers = [(number, "confirmed") for number in material.rng.sample(material.half_articles, material.pick([2, 3]))]
    drawn = _other_article(material)
    if drawn and material.rng.random() < 0.5:
        numbers[material.rng.randrange(len(numbers))] = (drawn[2], "absent")
    written = [f"{number[0]}. {number[1:]}" for number, _ in numbers]
    text = material.pick(FORMS["articles"]["lists"]).format(", ".join(written[:-1]) + " et " + written[-1])
    mentions = [
        on_article("in a list of articles" + ": absent" * (status == "absent"), name, number, status)
        for name, (number, status) in zip(written, numbers, strict=True)
    ]
    return _articles(material, text, *mentions)


def range_of_articles(material: Material) -> Passage | None:
    stems = [
        number
        for number in material.half_articles
        if number.count("-") == 1
        and number.endswith("-1")
        and f"{number[:-1]}2" in material.articles
        and f"{number[:-1]}3" in material.articles
    ]
    if not stems:
        return None
    stem = material.pick(stems)[:-1]
    ends = [f"{stem[0]}. {stem[1:]}1", f"{stem[0]}. {stem[1:]}3"]
    return _articles(
        material,
        f"l'application des articles {ends[0]} à {ends[1]} du code du travail",
        *(on_article("range of articles", end, "") for end in ends),
    )


def article_quoted(material: Material, how: str = "") -> Passage | None:
    """Quote an article: its words, altered ones, or those of its neighbour of the same number."""
    number = material.pick(material.half_articles) if material.half_articles else ""
    sentences = [
        words
        for words in re.split(r"(?<=[a-zé][.;])\s+(?=[A-ZÀ-Ý])", material.articles.get(number, ""))
        if 60 < len(words) < 300 and not re.search(r"[«»\"“”()]|\d°", words)
    ]
    if not sentences:
        return None
    words = material.pick(sentences).rstrip(" .;:")
    mention = quoted("quotation of an article", words, number)
    if how == "altered":
        name = material.pick(list(ALTERATIONS))
        altered = ALTERATIONS[name](words, material.rng)
        if not altered or not material.stands_nowhere(altered):
            return None
        mention = quoted("altered quotation of an article", altered, number, "words", words)
    elif how == "neighbour":
        neighbour = ("R" if number[0] == "L" else "L") + number[1:]
        if neighbour not in material.articles or squash(words) in squash(material.articles[neighbour]):
            return None
        mention = quoted("words of the neighbour article", words, neighbour, "source article words", number)
        number = neighbour
    text = _article(material, number)
    sentence = material.pick(["Aux termes de {1} : {0}.", "{0} ({1}).", "{1} dispose : {0}."]).format(
        material.pick(OTHERS["quotation_marks"]).format(mention.text), text
    )
    return Passage(
        sentence[0].upper() + sentence[1:], (mention, on_article("article beside a quotation", text, number))
    )


def altered_article(material: Material) -> Passage | None:
    return article_quoted(material, "altered")


def neighbour_article(material: Material) -> Passage | None:
    return article_quoted(material, "neighbour")


def article_address(material: Material) -> Passage | None:
    if not material.half_articles:
        return None
    number = material.pick(material.half_articles)
    text = material.pick(FORMS["articles"]["addresses"]).format(material.article_ids[number])
    return citing(material, text, on_article("id or address of an article", text, number))


def renumbered_article(material: Material) -> Passage | None:
    """Name an article by its number before 2008 and by the one that it has now."""
    if not material.articles:
        return None
    before, now = material.pick(FORMS["articles"]["renumbered"])
    text = material.pick(FORMS["articles"]["renumbering"]).format(f"L. {before}", f"L. {now}")
    former = on_article("number before 2008", f"L. {before}", "", "absent")
    return _articles(material, text, former, on_article("number since 2008", f"L. {now}", f"L{now}"))


# Laws, which no Library holds: decisions cite them


def law(material: Material) -> Passage | None:
    """Name a law by number and date, or by its usual name."""
    names = [name for name, number in OTHERS["laws_by_name"] if number in material.laws]
    if not material.laws:
        return None
    if names and material.rng.random() < 0.3:
        text = f"la {material.pick(names)}"
        return _articles(material, text, Mention("law by its usual name", text, "confirmed", sorts=("law",)))
    form = material.pick(["la loi n° {} du {}", "l'article 3 de la loi n° {} du {}", "la loi no {} du {}"])
    text = form.format(*material.pick(list(material.laws.items())))
    return _articles(material, text, Mention("law", text, "confirmed", sorts=("law",)))


def wrong_law(material: Material) -> Passage | None:
    """Give a law another law's date."""
    if len(material.laws) < 2:
        return None
    number, other = material.rng.sample(list(material.laws), 2)
    text = f"la loi n° {number} du {material.laws[other]}"
    mention = Mention("law, wrong date", text, "wrong", ("date", "number"), material.laws[number], sorts=("law",))
    return _articles(material, text, mention)


# What no Library holds, and what refers to nothing


def out_of_scope(material: Material) -> Passage:
    scope = FORMS["out_of_scope"]
    if material.rng.random() < 0.4:
        text = material.pick(scope["articles"])
        return _articles(
            material, text, Mention("out of scope: article", text, "out_of_scope", sorts=("article", "law"))
        )
    text = material.pick(scope["decisions"] + ([] if "CE" in material.by_family else scope["administrative"]))
    return citing(material, text, Mention("out of scope: decision", text, "out_of_scope"))


def nothing(material: Material) -> Passage:
    sentence, text = material.pick(OTHERS["nothing"])
    return Passage(sentence, (Mention("nothing", text, "none", sorts=("decision", "article", "law")),))


def _drawn(material: Material, fits: Callable[[Decision], bool], *families: str) -> Decision | None:
    names = [name for name in families or material.by_family if material.by_family.get(name)]
    return (
        next((decision for decision in (material.decision(*names) for _ in range(200)) if fits(decision)), None)
        if names
        else None
    )


Maker = Callable[[Material], Passage | None]
MAKERS: dict[Maker, int] = {  # how often each is drawn
    right_reference: 14, number_spelled: 4, joined_case: 2, judgment_number: 2, court_and_day: 5,
    day_without_decision: 2, cells: 3, wrong_cells: 3, ecli: 2, invented_ecli: 1, identifier: 2,
    invented_identifier: 1, two_references: 3, right_beside_invented: 2, referring_back: 4, invented_number: 5,
    true_name_invented_number: 2, number_of_a_neighbour: 2, cited_only: 2, wrong_court: 4, chamber_and_wrong_court: 2,
    wrong_date: 5, outcome: 4, wrong_outcome: 5, quotation: 5, quotation_alone: 3, quotation_of_the_court: 3,
    quotation_of_a_party: 2, party_as_court: 3, quashed_as_court: 2, cut_quotation: 2, altered_quotation: 6,
    invented_quotation: 1, quotation_of_another: 2, point: 2, wrong_point: 2, point_that_is_not: 1, article: 6,
    absent_article: 4, list_of_articles: 2, range_of_articles: 1, article_quoted: 2, altered_article: 2,
    neighbour_article: 1, out_of_scope: 5, nothing: 3, party_name: 1,
    law: 2, wrong_law: 1, article_address: 1, renumbered_article: 1,
}  # fmt: skip


def passages(material: Material, makers: Mapping[Maker, int] = MAKERS) -> Iterator[Passage]:
    """Draw passages for ever, each maker as often as its weight says."""
    while True:
        turn = [maker for maker, weight in makers.items() for _ in range(weight)]
        material.rng.shuffle(turn)
        for maker in turn:
            passage = maker(material)
            if passage:
                yield passage._replace(text=capitalized(passage.text))


def unrelated(material: Material, drawn: Iterator[Passage]) -> Iterator[Passage]:
    """Leave out passages on a court and day cited before: a short form would refer to what was cited."""
    cited: set[tuple[str, str]] = set()
    for passage in drawn:
        days = {material.days[mention.doc_id] for mention in passage.mentions if mention.doc_id in material.days}
        if not days & cited:
            cited |= days
            yield passage
