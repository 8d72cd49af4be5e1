"""Claims of synthetic answers: a sentence of each kind, true or not, and the truth about it.

In: what the author of an answer has read. Out: a `Claim`, or None where this draw cannot make one. What a citation is
worth is not decided here.
"""

import random
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import answer_wording as wording
from altered_quotations import ALTERATIONS
from answer_material import Fact, Material, Passage, clause_around, find_facts, letters_of, window, with_facts

HALVES = 600  # most characters between the two sentences that are joined without a cut
CLAUSE = 30  # characters that a fact's clause has besides; with fewer the fact is stated in general words


class Claim(NamedTuple):
    """A sentence of an answer."""

    kind: str  # of KINDS
    detail: str  # how it was altered, which sort of fact it states…; "" where there is no more to say
    text: str
    markers: str  # as written, all of them; "" where it has none
    passages: tuple[Passage, ...]  # what a right citation holds, one for each; none where nothing bears the claim out
    at: int = 0  # where it starts in the answer


class Scene(NamedTuple):
    """What a claim is made from."""

    rng: random.Random
    material: Material
    known: Mapping[str, str]  # all documents, read or not


def correct_quotation(scene: Scene) -> Claim:
    """Quote a passage, a few words or many, and point at it or at the chunk around it."""
    place = scene.material.passage(scene.rng, *scene.rng.choice([(4, 8), (8, 25), (25, 45)]))
    quotation = wording.quote(scene.rng, scene.material.text_of(place))
    return _quoting(scene, "correct quotation", quotation, _place_or_window(scene, place), place)


def correct_cut_quotation(scene: Scene) -> Claim | None:
    """Quote a passage with words left out, and say so."""
    place = scene.material.passage(scene.rng, 18, 60)
    words = wording.cut(scene.rng, scene.material.text_of(place))
    if words is None:
        return None
    quotation = wording.quote(scene.rng, words)
    return _quoting(scene, "correct quotation, cut", quotation, _place_or_window(scene, place), place)


def two_correct_quotations(scene: Scene) -> Claim:
    """Quote two passages, of one document or two, in one sentence."""
    first = scene.material.passage(scene.rng, 5, 20)
    second = scene.material.passage(scene.rng, 5, 20, scene.rng.choice(["", first.doc_id]))
    quotations = [wording.quote(scene.rng, scene.material.text_of(place)) for place in (first, second)]
    return _pair(scene, "two correct quotations", "", quotations, (first, second), (first, second))


def correct_and_altered_quotation(scene: Scene) -> Claim | None:
    """Quote two passages in one sentence, the second one altered."""
    first = scene.material.passage(scene.rng, 5, 20)
    second, how, words = _altered(scene)
    if not words:
        return None
    quotations = [wording.quote(scene.rng, scene.material.text_of(first)), wording.quote(scene.rng, words)]
    return _pair(scene, "one correct, one altered", how, quotations, (first, second), (first,))


def quotation_after_date(scene: Scene) -> Claim | None:
    """Quote a passage after an introduction that gives a date standing elsewhere in the document."""
    place = scene.material.passage(scene.rng)
    dates = [fact for fact in with_facts(scene.material, ("date",), range(1, 99)) if fact.place.doc_id == place.doc_id]
    if not dates:
        return None
    introduction = f"Par une décision se rapportant au {scene.rng.choice(dates).text}, il est jugé que "
    quotation = wording.quote(scene.rng, scene.material.text_of(place))
    return _quoting(scene, "quotation, date of elsewhere", quotation, place, place, introduction=introduction)


def correct_paraphrase(scene: Scene) -> Claim | None:
    """State a fact that stands at the offsets, in words of its clause or in general ones."""
    fact = _fact(scene, tuple(wording.STATEMENTS), range(1, 99))
    return fact and _stating(scene, "correct paraphrase", fact, wording.respelt(scene.rng, fact), (fact.place,))


def shifted_offsets(scene: Scene) -> Claim | None:
    """Quote a passage and point 30 to 3,000 characters beside it."""
    place = scene.material.passage(scene.rng)
    shift = scene.rng.choice([-1, 1]) * int(30 * 100 ** scene.rng.random())
    marked = place._replace(char_start=max(0, place.char_start + shift), char_end=place.char_end + shift)
    if marked.char_end <= marked.char_start or marked.holds(place):
        return None
    quotation = wording.quote(scene.rng, scene.material.text_of(place))
    return _quoting(scene, "shifted offsets", quotation, marked, place)


def swapped_documents(scene: Scene) -> Claim:
    """Quote a passage and name another document that was read."""
    place = scene.material.passage(scene.rng)
    other = scene.rng.choice([doc_id for doc_id in scene.material.texts if doc_id != place.doc_id])
    length = place.char_end - place.char_start
    start = scene.rng.randrange(max(1, len(scene.material.texts[other]) - length))
    quotation = wording.quote(scene.rng, scene.material.text_of(place))
    return _quoting(scene, "swapped documents", quotation, Passage(other, start, start + length), place)


def invented_id(scene: Scene) -> Claim | None:
    """Quote a passage and name a document that is nowhere."""
    place = scene.material.passage(scene.rng)
    made_up = re.sub(r"\d", lambda digit: str(scene.rng.randrange(10)), place.doc_id)
    doc_id = scene.rng.choice([made_up, "JURITEXT000099999999", "Cass. soc., 12 mars 2003", "Arrêt Dupont", "doc_3"])
    if doc_id in scene.known:
        return None
    quotation = wording.quote(scene.rng, scene.material.text_of(place))
    return _quoting(scene, "invented id", quotation, place._replace(doc_id=doc_id), place)


def altered_quotation(scene: Scene) -> Claim | None:
    """Quote a passage in words that stand nowhere, and point at it."""
    place, how, words = _altered(scene)
    if not words:
        return None
    quotation = wording.quote(scene.rng, words, spared=how == "letter")
    marked = scene.rng.choice([_place_or_window(scene, place)] * 8 + [None])
    return _quoting(scene, "altered quotation", quotation, marked, None, detail=how)


def joined_sentences(scene: Scene) -> Claim | None:
    """Join the beginning of one passage to the end of one further on, with no sign of a cut, and point at both."""
    first = scene.material.passage(scene.rng, 10, 20)
    second = scene.material.passage(scene.rng, 10, 20, first.doc_id)
    if not 0 < second.char_start - first.char_end < HALVES:
        return None
    halves = [scene.material.text_of(place).split() for place in (first, second)]
    words = " ".join(halves[0][: scene.rng.randint(4, 9)] + halves[1][-scene.rng.randint(4, 9) :])
    if scene.material.count(words):
        return None
    whole = first._replace(char_end=second.char_end)
    return _quoting(scene, "altered quotation", wording.quote(scene.rng, words), whole, None, detail="joined")


def changed_fact(scene: Scene) -> Claim | None:
    """State a date, an amount or an article that is not the document's, and point at where the right one stands."""
    fact = _fact(scene, ("date", "amount", "article"), range(1, 99))
    changed = fact and _changed(scene, fact)
    return fact and changed and _stating(scene, f"changed {fact.kind}", fact, changed, ())


def missing_offsets(scene: Scene) -> Claim:
    """Quote a passage and name its document without offsets."""
    place = scene.material.passage(scene.rng)
    quotation = wording.quote(scene.rng, scene.material.text_of(place))
    marks = wording.placeless_marker(scene.rng, place.doc_id)
    return Claim("missing offsets", "", wording.quoting_sentence(scene.rng, quotation, marks), marks, (place,))


def unmarked_quotation(scene: Scene) -> Claim:
    """Quote a passage and name nothing."""
    place = scene.material.passage(scene.rng)
    quotation = wording.quote(scene.rng, scene.material.text_of(place))
    return _quoting(scene, "quotation without marker", quotation, None, place)


def unmarked_fact(scene: Scene) -> Claim | None:
    """State a fact that stands once in what was read, and name nothing."""
    fact = _fact(scene, tuple(wording.STATEMENTS), range(1, 2))
    if not fact or scene.material.count_fact(fact.text) > 1:
        return None
    return _stating(scene, "fact without marker", fact, wording.respelt(scene.rng, fact), (fact.place,), marked=False)


def fact_of_several(scene: Scene) -> Claim | None:
    """State a fact that stands in several of the documents read, in general words, and name nothing."""
    fact = _fact(scene, tuple(wording.STATEMENTS), range(2, 99))
    if not fact or len(scene.material.holders(fact)) < 2:
        return None
    text = wording.stating_sentence(scene.rng, _in_general(scene, fact, fact.text), "")
    return Claim("fact of several documents", fact.kind, text, "", ())


def fact_of_none(scene: Scene) -> Claim | None:
    """State a fact that stands in none of the documents read, and name nothing."""
    fact = _fact(scene, ("date", "amount", "article"), range(1, 99))
    changed = fact and _changed(scene, fact)
    return fact and changed and _stating(scene, "fact of no document", fact, changed, (), marked=False)


def no_facts(scene: Scene) -> Claim:
    """Say nothing that could be checked, half of the time as analysis."""
    tag = scene.rng.choice(["", "", "[Analyse] ", "[Analysis] "])
    return Claim("no facts", tag.strip(), f"{tag}{scene.rng.choice(wording.OPINIONS)}.", "", ())


KINDS: dict[Callable[[Scene], Claim | None], int] = {  # how often each is drawn
    correct_quotation: 24,
    correct_cut_quotation: 6,
    two_correct_quotations: 5,
    correct_paraphrase: 12,
    quotation_after_date: 3,
    shifted_offsets: 9,
    swapped_documents: 6,
    invented_id: 6,
    altered_quotation: 14,
    joined_sentences: 2,
    correct_and_altered_quotation: 2,
    changed_fact: 9,
    missing_offsets: 6,
    unmarked_quotation: 6,
    unmarked_fact: 6,
    fact_of_several: 2,
    fact_of_none: 2,
    no_facts: 9,
}


def _quoting(
    scene: Scene,
    kind: str,
    quotation: wording.Quotation,
    marked: Passage | None,
    truth: Passage | None,
    *,
    detail: str = "",
    introduction: str | None = None,
) -> Claim:
    marks = wording.marker(scene.rng, marked) if marked else ""
    text = wording.quoting_sentence(scene.rng, quotation, marks, introduction)
    return Claim(kind, detail, text, marks, (truth,) if truth else ())


def _pair(
    scene: Scene,
    kind: str,
    detail: str,
    quotations: list[wording.Quotation],
    marked: tuple[Passage, Passage],
    truths: tuple[Passage, ...],
) -> Claim:
    marks = wording.paired_markers(scene.rng, *marked)
    joint = scene.rng.choice([" et ", " et que ", ", tandis que ", " ; en outre, "])
    body = wording.Quotation(
        f"{quotations[0]}{joint}{quotations[1].opening}", quotations[1].words, quotations[1].closing
    )
    return Claim(
        kind, detail, wording.quoting_sentence(scene.rng, body, marks, "La décision énonce que "), marks, truths
    )


def _stating(
    scene: Scene, kind: str, fact: Fact, spelt: str, truths: tuple[Passage, ...], marked: bool = True
) -> Claim:
    text = scene.material.texts[fact.place.doc_id]
    clause = clause_around(scene.rng, text, fact.place)
    words = scene.material.text_of(clause)
    alone = [one.text for one in find_facts("", words)] == [fact.text]
    if scene.rng.random() < 0.7 and alone and len(words) > len(fact.text) + CLAUSE:
        statement = wording.reworded(scene.rng, words.replace(fact.text, spelt))
    else:
        clause, statement = fact.place, _in_general(scene, fact, spelt)
    marks = wording.marker(scene.rng, window(scene.rng, text, clause)) if marked else ""
    return Claim(kind, fact.kind, wording.stating_sentence(scene.rng, statement, marks), marks, truths)


def _in_general(scene: Scene, fact: Fact, spelt: str) -> str:
    return scene.rng.choice(wording.STATEMENTS[fact.kind]).format(spelt)


def _place_or_window(scene: Scene, place: Passage) -> Passage:
    if scene.rng.random() < 0.5:
        return place
    return window(scene.rng, scene.material.texts[place.doc_id], place)


def _fact(scene: Scene, kinds: tuple[str, ...], times: range) -> Fact | None:
    kind = scene.rng.choice(kinds)
    facts = list(with_facts(scene.material, (kind,), times))
    return scene.rng.choice(facts) if facts else None


def _changed(scene: Scene, fact: Fact) -> str | None:
    """Return another fact of the kind, which stands in none of the documents; None where the draw is not one."""
    number = scene.rng.choice(list(re.finditer(r"\d+", fact.text)))
    other = str(max(1, int(number.group()) + scene.rng.choice([-2, -1, 1, 2, 10]))).zfill(len(number.group()))
    changed = fact.text[: number.start()] + other + fact.text[number.end() :]
    found = Material({"": changed + "."}).facts
    values = [one.value for one in found if one.text == changed]
    stands = values and (scene.material.times[values[0]] or scene.material.count_fact(changed))
    return changed if values and not stands else None


def _altered(scene: Scene) -> tuple[Passage, str, str | None]:
    """Return a passage, how it was altered, and its altered words where they stand in none of the documents."""
    place = scene.material.passage(scene.rng, 6, 35)
    how = scene.rng.choice(list(ALTERATIONS))
    words = ALTERATIONS[how](" ".join(scene.material.text_of(place).split()), scene.rng)
    nowhere = words and letters_of(words).strip() and not scene.material.count(words)
    return place, how, words if nowhere else None
