"""Check a claim against the passage it cites: its quotations, the words around them, or what it says without quoting."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise, takewhile
from typing import Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span
from legal_rag.citations.bindings import is_of_the_same
from legal_rag.citations.claims import STOPS, Claim, Quotation, blanked, is_evidence
from legal_rag.citations.facts import Fact, is_same, stated_in
from legal_rag.citations.markers import MarkedReference
from legal_rag.citations.plain import legible
from legal_rag.citations.relevance import Topic, nearest_sentences
from legal_rag.citations.sources import SourceText, SourceTexts
from legal_rag.citations.wording import (
    LEAST_SHARE,
    TABLES,
    content_stems,
    content_words,
    cues_of,
    denies_alike,
    denies_otherwise,
    is_shared,
    says_the_same,
    telling_stems,
)
from legal_rag.law.courts import find_formations, find_named_courts, words_of_value
from legal_rag.law.outcomes import (
    ANNULATION,
    CASSATION,
    INFIRMATION,
    REJET,
    REPORTED,
    RESERVATION,
    STATED_KINDS,
    Outcome,
    constitutionality,
    kinds_of,
)
from legal_rag.law.tree import Paragraph, Speaker, speaker_in_french
from legal_rag.law.words import negations

# verified: every quotation of the sentence is word for word in the passage cited, speaks of what the sentence says, and
# the sentence states nothing else that can be checked and is not there; one that quotes nothing is never verified.
# relocated: the same, at another place of the same decision, or of the only other decision read that holds it.
# supported: quotes nothing; every fact is in one or two neighbouring sentences of the passage, with most of its
# content words, by which its dates and amounts stand, and negation and direction agree there: same facts, same words,
# not same meaning.
# unverified: none of these; `reworded` where it quotes nothing and is only in other words than its passage.
CitationStatus = Literal["verified", "supported", "relocated", "unverified"]
# In French: what was checked, not whether it is right in law; in the order in which statuses are counted.
STATUS_WORDS: Mapping[str, str] = {
    "verified": "texte conforme",
    "relocated": "texte conforme, place rectifiée",
    "supported": "mêmes faits, mêmes mots",
    "unverified": "non confirmée",
}
HOLDING = frozenset({"verified", "relocated"})

MOST_CITED_CHARS = 6000  # two or three chunks; a marker over a whole decision points at nothing
MOST_ANCHORS = 60  # quotations and facts in one sentence: nobody writes more, and nobody could check them
MOST_REFERENCES = 60  # of one sentence
MOST_PLACES = 50  # of a claim's first quotation that are tried
WIDEST_PLACE = 2000  # characters that a recomputed place may span
FOREIGN_WORDS = 4  # content words of a quotation that is looked for in other documents than the one named
LONGEST_SENTENCE = 2500  # characters of one or two sentences that may support a claim
MOST_TRIED = 400  # sentences of a document that a claim without a place is compared with


@displayed
class Citation(NamedTuple):
    """A passage that an answer rests on: `quote` is the document's text at these offsets."""

    doc_id: str
    char_start: int
    char_end: int
    quote: str
    status: CitationStatus
    section: tuple[str, ...] = ()  # titles, the main part's first; empty where they are not known
    speaker: Speaker | None = None  # who speaks in most of it; None: nobody, or not known
    censured: bool = False  # it quotes reasoning that the court then quashes
    warnings: tuple[str, ...] = ()  # French sentences: what a reader should know about the words around the quotation
    reason: str = ""  # why it is unverified, a French sentence; empty of others

    @property
    def said_by(self) -> str:
        """Who speaks, in French; '' where nobody does."""
        return speaker_in_french(self.speaker, censured=self.censured)

    @property
    def status_in_french(self) -> str:
        """What its check found: "texte conforme"; see `reason` for why not."""
        return "reformulée, à comparer" if self.reworded else STATUS_WORDS[self.status]

    @property
    def holds(self) -> bool:
        """Whether the passage holds, word for word, what the answer quotes."""
        return self.status in HOLDING

    @property
    def reworded(self) -> bool:
        """Whether it is unverified, but its passage speaks of it, and no fact, court or outcome of it is wrong there."""
        return self.reason in (REWORDED, REWORDED_DENIAL)

    @property
    def stands(self) -> bool:
        """Whether its sentence may be shown to a reader who compares: it holds, is supported or is reworded."""
        return self.holds or self.status == "supported" or self.reworded


class CitationChecker:
    """Checks claims against documents."""

    def __init__(self, sources: SourceTexts, searched: Sequence[str]) -> None:
        """Take documents, and the ids of those `searched` for a quotation that is not where its marker says."""
        self._sources, self._searched = sources, searched

    def check(self, claim: Claim, references: Sequence[MarkedReference]) -> list[Citation]:
        """Return a citation for each different reference; together they must hold all of the claim."""
        passages = [self._locate_reference(reference) for reference in dict.fromkeys(references)]
        if len(passages) > MOST_REFERENCES or len(claim.quotations) + len(claim.facts) > MOST_ANCHORS:
            return [_refuse(*passage, TOO_MUCH) for passage in passages]
        if not claim.quotes:
            return self._judge_unquoted(claim, passages)
        checked = self._verify_quotations(claim, passages) or self._relocate_quotations(claim, passages)
        if not claim.is_pointed or len(checked) < len(passages):
            return checked
        # The quotations are not its author's: what they do not bear out may be judged by its own words alone.
        alone = self._judge_unquoted(claim.own_words, passages)
        pairs = zip(checked, alone, strict=True)
        return [judged if judged.stands and not cited.holds else cited for cited, judged in pairs]

    def _judge_unquoted(self, claim: Claim, passages: Sequence[tuple[SourceText, Span | None]]) -> list[Citation]:
        """Cite passages for a claim that quotes nothing; each answers for the facts that no other one states."""
        held = [source.stated(*(span or (0, len(source.content)))) for source, span in passages]
        citations = []
        for number, (source, span) in enumerate(passages):
            others = held[:number] + held[number + 1 :]
            facts = [fact for fact in claim.facts if not any(other.holds(fact) for other in others)]
            citations.append(_judge_unquoted(claim, source, span, facts))
        return citations

    def sources_of(self, claim: Claim, *, apart_from: Iterable[str] = ()) -> list[Citation]:
        """Cite the searched documents that hold all that a claim quotes; at most two, since two are ambiguous."""
        sources = (self._sources.get(doc_id) for doc_id in dict.fromkeys(self._searched) if doc_id not in apart_from)
        places = ((source, _narrowest_place(claim, source, 0)) for source in sources if source)
        holding = ((source, place) for source, place in places if place)
        return [_cite_checked(claim, source, place, "verified") for source, place in islice(holding, 2)]

    def _locate_reference(self, reference: MarkedReference) -> tuple[SourceText, Span | None]:
        source = self._sources[reference.doc_id]
        if reference.place is None:
            return source, None
        start, end = reference.place
        return source, (start, end) if start < end <= min(len(source.content), start + MOST_CITED_CHARS) else None

    def _verify_quotations(self, claim: Claim, passages: Sequence[tuple[SourceText, Span | None]]) -> list[Citation]:
        """Return the citations of passages that together hold all quotations; empty if one is missing."""
        held = [_quotations_within(claim, *passage) for passage in passages]
        if not set(claim.quotations) <= set(chain.from_iterable(held)):
            return []
        citations = []
        for (source, span), places in zip(passages, held, strict=True):
            if span is None or not claim.only(places).quotes:
                citations.append(_refuse(source, span, NO_PLACE if span is None else NOT_IN_PASSAGE))
                continue
            others = [other for (other, _), spans in zip(passages, held, strict=True) if spans and other is not source]
            citations.append(_cite_checked(claim, source, span, "verified", places, others))
        return citations

    def _relocate_quotations(self, claim: Claim, passages: Sequence[tuple[SourceText, Span | None]]) -> list[Citation]:
        places = [_narrowest_place(claim, source, span[0] if span else 0) for source, span in passages]
        if any(places):
            return [
                _cite_checked(claim, source, place, "relocated") if place else _refuse(source, span, NOT_QUOTED)
                for (source, span), place in zip(passages, places, strict=True)
            ]
        quoted = [word for quotation in claim.quotations for word in content_words(quotation.text)]
        if len(quoted) >= FOREIGN_WORDS:
            elsewhere = self.sources_of(claim, apart_from={source.doc_id for source, _ in passages})
            if len(elsewhere) == 1 and elsewhere[0].holds:
                return [elsewhere[0]._replace(status="relocated")]
        return [_refuse(*passage, NOT_QUOTED) for passage in passages]


def count_by_status(citations: Sequence[Citation]) -> dict[str, int]:
    """Count citations by status, without zeros."""
    statuses = [citation.status for citation in citations]
    return {status: statuses.count(status) for status in dict.fromkeys(statuses)}


def _cite_checked(
    claim: Claim,
    source: SourceText,
    cited: Span,
    status: CitationStatus,
    places: dict[Quotation, Span] | None = None,
    others: Sequence[SourceText] = (),
) -> Citation:
    if places is None:
        hits_of = {quotation: source.quotation_spans(quotation.text) for quotation in claim.quotations}
        places = {quote: min(hits, key=lambda span: abs(span[0] - cited[0])) for quote, hits in hits_of.items() if hits}
    part, spans, own = claim.only(places), sorted(places.values()), claim.own_words
    # One or two sentences at the places quoted, or next to them, say the same as the claim's own words.
    beside = _sentences_at(source, spans, beyond=1) if _is_sentence_beside(claim) else []
    restated = _find_support(own, source, beside, reworded=True) is not None
    stated = part
    for other in others:  # the rest of the sentence quotes them, and facts about them are theirs
        stated = stated._replace(facts=_facts_to_find(stated, other))
    check = SurroundingsCheck(stated, source, [places[quotation] for quotation in part.quotations], cited)
    warnings, contradiction = check.remarks(restated=restated)
    objection = _objection_to(claim, part, source, spans, cited, restated=restated) or contradiction
    if not objection and _n_quoted(part) < TERM_WORDS and _quotes_less_than_it_says(part):
        objection = "" if _find_support(part, source, source.sentences_in(*cited)) else TOO_LITTLE
    if objection:
        return _refuse(source, cited, objection)._replace(warnings=warnings)
    return _cite(source, cited, status)._replace(warnings=warnings)


def _objection_to(
    claim: Claim, part: Claim, source: SourceText, spans: Sequence[Span], cited: Span, *, restated: bool
) -> str:
    """Return why the quotations of a claim (those in `part`) do not bear out its own words; '' if they do."""
    own, is_beside = claim.own_words, _is_sentence_beside(claim)
    topic = Topic(claim, source, spans, _facts_to_find(own, source))
    if topic.is_formal:
        return "" if topic.stands_there() else OFF_TOPIC
    there = " ".join(source.content[slice(*span)] for span in _sentences_at(source, spans))
    if claim.is_pointed and (topic.stems or not own.facts):
        return "" if restated and _holds_all_words(own.text, there) else OTHERWISE
    if restated:
        return ""
    stems = telling_stems(own.text)
    if is_beside and stems and len(stems & telling_stems(there)) >= LEAST_SHARE * len(stems):
        return OTHERWISE
    if topic.is_spoken_of(is_sentence=is_beside):
        return ""
    said = part if not is_beside and _quotes_less_than_it_says(part) else own._replace(quotations=part.quotations)
    return "" if _find_support(said, source, source.sentences_in(*cited)) else OFF_TOPIC


def _is_sentence_beside(claim: Claim) -> bool:
    """Does a claim say something and then quote, as in "Le bailleur répond du trouble. « … »"?"""
    first, last = claim.quotations[0].start - claim.start, claim.quotations[-1].end - claim.start
    before = claim.lead or claim.text[: max(first, 0)]
    return _is_sentence(legible(before).lower()) and not content_stems(claim.text[last:])


def _is_sentence(before: str) -> bool:
    """Do the words before a quotation, in lower case, say something, and not lead into it?"""
    fewest = 2 if before.rstrip().endswith(":") else 1  # one word before a colon is a label
    return not _LEADS.search(before) and len(content_stems(before)) >= fewest


def _holds_all_words(own: str, there: str) -> bool:
    """Does a text have all words that a claim says itself, and the same negations?"""
    if cues_of(own) & _NEGATIONS != cues_of(there) & _NEGATIONS:
        return False
    return all(is_shared(stem, content_stems(there)) for stem in content_stems(own))


def _sentences_at(source: SourceText, places: Sequence[Span], *, beyond: int = 0) -> list[Span]:
    ranges = [source.sentence_numbers(*place) for place in places]
    numbers = {number for first, last in ranges for number in range(max(first - beyond, 0), last + beyond)}
    return [span for number, span in enumerate(source.sentence_spans) if number in numbers]


def _quotations_within(claim: Claim, source: SourceText, span: Span | None) -> dict[Quotation, Span]:
    if span is None:
        return {}
    hits_of = {quotation: source.quotation_spans(quotation.text) for quotation in claim.quotations}
    within = {quotation: [hit for hit in hits if _span_holds(span, hit, source)] for quotation, hits in hits_of.items()}
    return {quotation: hits[0] for quotation, hits in within.items() if hits}


def _span_holds(span: Span, place: Span, source: SourceText) -> bool:
    """Does a span hold a place, except for a stop at its end?"""
    start, end = place
    return span[0] <= start and start + len(source.content[start:end].rstrip(STOPS)) <= span[1]


def _narrowest_place(claim: Claim, source: SourceText, near: int) -> Span | None:
    """Return the narrowest span of a document with all quotations of a claim, the nearest to `near`."""
    quotations = sorted(claim.quotations, key=lambda quotation: -is_evidence(quotation))
    spans = list(takewhile(bool, (source.quotation_spans(quotation.text) for quotation in quotations)))
    if len(spans) < len(quotations):
        return None
    places = [span for span in _narrowest_spans(spans) if span[1] - span[0] <= WIDEST_PLACE]
    return min(places, key=lambda span: (span[1] - span[0], abs(span[0] - near)), default=None)


def _narrowest_spans(spans: Sequence[Sequence[Span]]) -> Iterator[Span]:
    """Yield, for each span of the first quotation, the span from it to the nearest ones of all the others."""
    for start, end in spans[0][:MOST_PLACES]:
        for others in spans[1:]:
            near = min((max(span[0] - end, start - span[1]), span) for span in others)[1]
            start, end = min(start, near[0]), max(end, near[1])
        yield start, end


def _judge_unquoted(claim: Claim, source: SourceText, span: Span | None, facts: list[Fact]) -> Citation:
    """Cite a claim that quotes nothing: supported where one or two sentences state it, else perhaps reworded.

    A reworded one need not have other facts than `facts` there.
    """
    if len(claim.text.split()) < 2 and not claim.facts:
        return _refuse(source, span, SAYS_NOTHING)
    sentences = source.sentences_in(*(span or (0, len(source.content))))[:MOST_TRIED]
    place = _find_support(claim, source, sentences)
    if place:
        return _cite(source, span or place, "supported")
    span = span or next(iter(nearest_sentences(claim.text, source, 1)), None)
    if span is None:
        return _refuse(source, span, OFF_TOPIC)
    return _judge_reworded(claim._replace(facts=facts), source, span)


def _judge_reworded(claim: Claim, source: SourceText, span: Span) -> Citation:
    """Cite a claim in other words than its passage: reworded where the passage speaks of it and nothing is wrong."""
    stated = claim._replace(facts=[fact for fact in claim.facts if _must_stand(fact, claim)])
    check = SurroundingsCheck(stated, source, [span], span)
    if contradiction := check.contradiction():
        return _refuse(source, span, contradiction)
    if not Topic(claim, source, [span], _facts_to_find(claim, source)).is_touched(span):
        return _refuse(source, span, OFF_TOPIC)
    sentences = (source.content[slice(*sentence)] for sentence in source.sentences_in(*span))
    nearest = max(sentences, key=lambda sentence: len(telling_stems(claim.text) & telling_stems(sentence)))
    return _refuse(source, span, REWORDED if denies_alike(claim.text, nearest) else REWORDED_DENIAL)


def _must_stand(fact: Fact, claim: Claim) -> bool:
    """Is a fact one that a paraphrase takes from its passage, and not "en première instance", "deux conditions", "SMIC"?"""
    written = claim.text[fact.start - claim.start : fact.end - claim.start]
    if fact.kind == "quantity":
        return fact.value.unit in TABLES["units"] or any(map(str.isdigit, written))
    return fact.kind != "ordinal" and not (fact.kind == "name" and written.isupper())


def _find_support(
    claim: Claim, source: SourceText, sentences: Sequence[Span], *, reworded: bool = False
) -> Span | None:
    """Return the first sentence, or pair of neighbours, that states all the facts of a claim and says the same.

    `reworded`: see `says_the_same`.
    """
    stems, facts, known = telling_stems(claim.text), _facts_to_find(claim, source), telling_stems(source.own.court)
    verdict = constitutionality(claim.text)
    courts = [court for court in _courts_named(claim.text) if not court <= source.own.court_words]
    pairs = ((start, end) for (start, _), (_, end) in pairwise(sentences) if end - start <= LONGEST_SENTENCE)
    for span in (*sentences, *pairs) if stems or facts else ():
        text = source.content[slice(*span)]
        if len(stems & telling_stems(text)) * 2 < len(stems):  # most are not worth reading for facts
            continue
        if not all(map(source.stated(*span).holds, facts)):
            continue
        if len(_quotations_within(claim, source, span)) < len(set(claim.quotations)):
            continue
        if verdict and verdict != constitutionality(text):
            continue
        named = _courts_named(text) if courts else []
        if not all(any(court <= name for name in named) for court in courts):
            continue
        if says_the_same(claim.text, text, known=known, reworded=reworded) and (
            reworded or (denies_alike(claim.text, text) and is_of_the_same(claim.text, text))
        ):
            return span
    return None


def _cite(source: SourceText, span: Span | None, status: CitationStatus) -> Citation:
    start, end = span or (0, 0)
    return Citation(source.doc_id, start, end, source.content[start:end], status)


def _refuse(source: SourceText, span: Span | None, reason: str) -> Citation:
    return _cite(source, span, "unverified")._replace(reason=reason)


AROUND = 300  # characters on either side of a quotation in which the facts of its claim may be stated
LED = 60  # characters before a quotation in its sentence that may negate it
TERM_WORDS = 4  # a quotation of fewer content words is a term

_STATUTE = re.compile(
    r"(?:lois?|décrets?|convention|directive|règlement|arrêté|circulaire|accord|avenant|contrat|bail|acte|lettre|courrier|protocole|ordonnance n\S*)\b[^.;:]{0,40}\Z"
)
# What may stand between a decision, or its court, and its date.
_UNTIL_DATE = r"(?:(?!\b(?:a|est|été|ayant|avait|était|qui|que|contre|licencié|conclu|signé|né)\b)[^.;:“”]){0,70}\Z"
_DECISION = re.compile(r"(?:arrêts?|décisions?|jugements?|ordonnance|chambre|cour|juridiction|tribunal)" + _UNTIL_DATE)
_AFTER_COURT = re.compile(_UNTIL_DATE)
_ATTACKED = re.compile(
    r"attaqu|déféré|entrepris|frappé|dont appel|critiqué|contre (?:l|un)|premiers juges|première instance|appel (?:de|du|interjeté)|(?:cass|annul|infirm|confirm)[eé]"
    r"|\bil (?:a été|est|fut) (?:\w+ )?(?:jugé|décidé|rappelé|énoncé|retenu)|\battendu de principe"
)
_COURT_FOLLOWS = re.compile(
    r"[ ,]{1,3}(?:la (?:cour|chambre|haute|première|deuxième|troisième)|le (?:conseil|tribunal|juge)|l['’]assemblée|les juges)"
)
_SAYS = r"(?:jug|retien|reten|considè|considér(?!ants?\s\d)|estim|décid|énonc|affirm|admet|admis|reconn|di[ts]\b|précis|rappel|pos[eé]|constat|relèv|relev|soulign|répond|déclar|indiqu|ajout|observ|dédui|conclu|consacr|approuv|écri|expliqu|exig|impos|prévoi)\w*"
_AFTER = rf"{negations(after=True)}|plus\b"
_DENIED_REPORT = re.compile(
    rf"\b(?:ne|n['’]) ?(?:\w+ ){{0,2}}?(?:(?:{_AFTER}) (?:\w+ ){{0,2}}?)?{_SAYS}(?: (?:{_AFTER}))?"
    r"|\b(?:refus|s['’]abstien|omet|évit)\w* (?:de |d['’])"
    r"|\b(?:il est|serait|est) (?:faux|inexact|erroné|exclu|impossible) (?:que|qu['’]|de|d['’])|\bcontrairement à|\bà tort\b|\bloin de\b|\b(?:nul(?:le)?|aucune?) (?:décision|juge|arrêt|cour|juridiction)"
    r"|\b(?:écart|rejet|réfut|repouss|dément|contredi|désavou)\w* l['’](?:idée|affirmation|analyse)"
    r"|\bcondamn\w* (?:le raisonnement|l['’](?:idée|argument|affirmation|analyse)|la (?:thèse|solution|règle)|le (?:moyen|principe|motif))"
    r"|\b(?:ni|démen|désavou|réfut|exclu|contest|contredi|infirm|écart|rejet|refus)\w* (?:que\b|qu['’])"
    r"|\bn['’](?:a|ont|avait|avaient|aurait|eût)\b(?:(?! (?:a|ont|avait|est) )[^.;:“”]){0,80}\b(?:jugé|retenu|considéré|estimé|décidé|énoncé|affirmé|admis|reconnu|dit|précisé|rappelé|posé|constaté|relevé|écrit|conclu|consacré|répondu)\b"
    r"|\bl(?:e|['’])[ ]?(?:contraire|inverse|opposé)\b|\b(?:s['’]est|s['’]être|se) (?:bien )?gard|\bsans (?:jamais )?(?:juger|retenir|dire|affirmer|décider|énoncer|considérer|reconnaître|admettre|poser)\b"
)
_REJECTED = re.compile(
    r"\b(?:rejett|rejet|écart|réfut|repouss|désavou|désapprouv|contredi|invalid|censur|infirm|cass|annul|nie|dément|condamn)\w* (?:\w+ ){0,3}?(?:(?P<argument>l['’](?:idée|argument|affirmation|analyse|interprétation|allégation)|la (?:thèse|prétention|demande)|le (?:moyen|grief|raisonnement))"
    r"|la (?:solution|règle|position|formule)|le (?:principe|motif)|les (?:juges|motifs)|la cour d['’]appel|les motifs|que\b|qu['’])[^.;:“”]{0,80}(?:que|qu['’]|selon|retenu|jugé|énoncé|considéré|estimé|:|tir)"
)
# "n'a jamais jugé que": right before the quotation.
_NEVER_SAID = re.compile(
    rf"(?:\b(?:n['’](?:a|ont|avait|avaient)|ne)\s(?:\w+\s){{0,2}}?(?:pas|jamais|nullement|point|guère)\s{_SAYS}"
    rf"|\bne\s{_SAYS}\s(?:pas|jamais|nulle part)\b|\bloin de {_SAYS})(?!\s(?:autre chose|seulement))[^.;:“”«]{{0,80}}\Z"
)
# The decision below is told in the pluperfect, or named right before: "du jugement attaqué, selon lequel".
_HAD_SAID = re.compile(
    rf"\bav(?:ait|aient)\s(?:\w+\s){{0,2}}?{_SAYS}|\b(?:arrêt|jugement|ordonnance|décision)\squi\s\w+ai(?:t|ent)\b|(?:attaqué|déféré|entrepris)e?s?,? (?:selon|d['’]après) l(?:e|a)quel"
)
_NEGATED = re.compile(rf"{negations(verb=True)}|\bnon\b")
_MAIN = STATED_KINDS - {REJET}  # of a whole case; single claims are rejected too
_IMPLIED = {CASSATION: {ANNULATION}, INFIRMATION: {ANNULATION}}  # "casse et annule"
_ATTRIBUTED_ELSEWHERE = re.compile(
    r"(?:cour d['’]appel|juges? du fond|premiers juges|tribunal|conseil de prud['’]hommes|arrêt attaqué|jugement|qui|ayant|avait|avaient|demand\w+|tendant|pour)\b[^.;:“”]{0,60}\Z"
)
_LOWER = re.compile(
    r"\b(?:(?:les )?(?:premiers juges|juges du fond|juges d['’]appel)|l['’]arrêt attaqué|la décision attaquée|le jugement (?:attaqué|déféré|entrepris)|la cour d['’]appel|le tribunal|le conseil de prud['’]hommes)\b"
)
_PARTY = re.compile(
    r"\b(?:moyen|pourvoi|demandeur|demanderesse|défendeur|défenderesse|requérante?|salariée?|employeur|appelante?|intimée?|m\. \S+|mme \S+|société|assuré|bailleur|locataire|preneur|prévenue?|ministère public|candidate?)\b[^.;:“”]{0,60}"
    r"\b(?:soutien|soutena|soutenu|fait valoir|faisait valoir|font valoir|préten|allègu|allégu|invoqu|reproch|contest|argu|plaid|fait grief|affirm|critiqu|sollicit|demand)\w*"
    r"|\bselon (?:le (?:moyen|pourvoi|demandeur|requérant|salarié)|l['’](?:employeur|appelant|intimé)|la (?:société|demanderesse|requérante))"
)
_CLAIMED = re.compile(
    r"(?<!à )(?:soutien(?:t|nent)|soutenai(?:t|ent)|(?:fai(?:t|sait)|font) valoir|préten(?:d|dent|dait)\b|all[èé]gu(?:e|ent|ait)|reproch(?:e|ent|ait)|affirm(?:e|ent|ait)|fait grief)\b[^;]{0,400}\Z|\balors (?:que|qu['’])[^;]{0,600}\Z"
)
_CLAIMED_THAT = re.compile(
    r"(?<!à )(?<!pas )(?:soutien(?:t|nent)|soutenai(?:t|ent)|(?:fai(?:t|sait)|font) valoir|préten(?:d|dent|dait)|all[èé]gu(?:e|ent|ait)|affirm(?:e|ent|ait))\b"
    r"(?![^;]{0,60}\b(?:raison|titre|droit)\b)[^;,.]{0,60}\bqu(?:e\s|['’])\s?\Z"
)
_COURT = re.compile(
    rf"\b(?:cour|conseil|juridiction|décision|arrêt|chambre|juges?|tribunal)\b[^.;:“”]{{0,60}}?\b{_SAYS}|\b(?:selon|d['’]après|pour) (?:la (?:cour|décision|juridiction|haute|\w+ chambre|chambre)|l['’]arrêt|le conseil)|\b{_SAYS}(?:(?! dans | de l)[^.;:“”]){{0,20}} (?:la cour|la juridiction|le conseil)"
)
# How words end that lead into the quotation after them: "juge que", "selon l'article 4,"; others are a sentence of their own.
_LEADS = re.compile(
    rf"(?:[,;(—–-]|\b{_SAYS}[^.;:]{{0,25}}:"
    r"|\b(?:que|de|du|des|à|aux?|par|sur|en|pour|selon|et|mais|car|ou|où|dont|qui|quel(?:le)?s?|comme|l[ae]s?|une?|ces?|cette|son|sa|ses"
    rf"|est|sont|était|a|ont|avait|être|avoir|doit|peut|{_SAYS})|\w['’])\W{{0,3}}\Z|\A\W*\Z"
)
_NEGATIONS = frozenset({"not", "except"})
_REFUSALS = frozenset({"not", "wrongly", "refuses"})
_DENYING = _REFUSALS | {"except"}
_GOES_ON_ABOUT = re.compile(r"[ ,;—–-]{0,4}(?:ce qu[ei]|mais|or|quod non)\b")  # after a quotation
_DENIED_AFTER = re.compile(r"[ ,;—–-]{0,4}(?:à tort|faussement|est (?:faux|inexact|rejeté|écarté)|n['’]est pas)")
_CONDITION = r"(?:sauf|hormis|excepté|si\b|s['’]ils?\b|à moins|sous (?:\w+ )?réserves?|à l['’]exception|à (?:la )?condition|pourvu que)"
_CONDITION_AFTER = re.compile(rf"[ ,]{{0,3}}{_CONDITION}")
_CONDITION_BEFORE = re.compile(r"\bsous (?:\w+ )?réserves?\b[^;.:]{0,60},\s*\Z")
_CONDITIONAL = re.compile(rf"\b(?:{_CONDITION}|réserves?\b|conditions?\b|exceptions?\b)")
_MODALS = ("must", "maybe")

OF_PARTY = "Ces mots sont ceux d'une partie, non de la juridiction."
OF_LOWER_COURT = "Ces mots sont ceux de la décision attaquée, non de la juridiction."
OF_CENSURED = "Ces mots sont ceux de la décision attaquée, que la juridiction censure sur ce point."
AFTER_NEGATION = "Dans la décision, une négation précède ces mots."
WITHOUT_CONDITION = "Dans la décision, une condition ou une exception accompagne ces mots."
TOO_MUCH = "La phrase cite ou énonce plus qu'il n'est contrôlé en une fois."
SAYS_NOTHING = "Aucune phrase ne précède ce marqueur."
NO_PLACE = "Le marqueur n'indique aucun passage de la décision."
NOT_IN_PASSAGE = "Aucun des mots cités n'est dans ce passage."
NOT_QUOTED = "Les mots cités ne se trouvent pas, ou pas tous, dans la décision."
OTHERWISE = "La phrase ne dit pas la même chose que la citation."
OFF_TOPIC = "La citation ne parle pas de ce que dit la phrase."
TOO_LITTLE = "La phrase dit plus que les mots cités."
REWORDED = "La phrase ne reprend pas les mots du passage : comparez-les."
REWORDED_DENIAL = "La phrase et le passage ne semblent pas nier la même chose : comparez-les."
OTHER_FACT = "Une date, un nombre ou un nom de la phrase n'est pas dans la décision."
OTHER_COURT = "La phrase nomme une autre juridiction."
OTHER_OUTCOME = "L'issue que dit la phrase n'est pas celle de la décision."
DENIED = "Une négation autour de la citation en change le sens."
OTHER_SPEAKER = "La phrase attribue ces mots à un autre que la juridiction."
INSERTED = "Les mots entre crochets sont de l'auteur de la réponse."


def _facts_to_find(claim: Claim, source: SourceText) -> list[Fact]:
    """Return the facts of a claim except the decision's own date, number and court, stated as such."""
    check = SurroundingsCheck(claim, source, [(0, 0)], (0, 0))
    return [fact for fact in claim.facts if not check.is_own(fact)]


def _courts_named(text: str) -> list[frozenset[str]]:
    return [words_of_value(text[slice(*span)]) for span in find_named_courts(text)]


def _quotes_less_than_it_says(claim: Claim) -> bool:
    framing = telling_stems(blanked(claim.masked, find_named_courts(claim.masked)))
    return len(framing) > _n_quoted(claim)


def _n_quoted(claim: Claim) -> int:
    return sum(len(telling_stems(quotation.text)) for quotation in claim.quotations)


class SurroundingsCheck:
    """What a claim says around its quotations, against the places of a decision that have their words."""

    def __init__(self, claim: Claim, source: SourceText, places: Sequence[Span], cited: Span) -> None:
        self._claim, self._source, self._places = claim, source, places
        self._courts = find_named_courts(claim.masked)
        self._frame = legible(claim.masked).lower()
        # Without the courts' names: "Cour de cassation" states no outcome.
        self._frame_without_courts = blanked(self._frame, self._courts)
        first = max(0, min(start for start, _ in places) - AROUND)
        last = min(len(source.content), max(end for _, end in places) + AROUND)
        self._near_spans: list[Span] = [(first, last), cited] if cited[1] > cited[0] else [(first, last)]
        self._warnings: list[str] = []

    def remarks(self, *, restated: bool = False) -> tuple[tuple[str, ...], str]:
        """Return what a reader should know, French sentences, and how the claim contradicts the decision, or ""."""
        checks = {
            OTHER_FACT: self._wrong_fact,
            OTHER_COURT: self._wrong_court,
            OTHER_OUTCOME: self._wrong_outcome,
            DENIED: self._denied,
            OTHER_SPEAKER: self.wrong_speaker,
        }
        if restated:
            del checks[DENIED]
        contradiction = next((words for words, is_wrong in checks.items() if is_wrong()), "")
        self._warn_of_context()
        return tuple(dict.fromkeys(self._warnings)), contradiction

    def contradiction(self) -> str:
        """Return how a claim that quotes nothing contradicts the decision by a fact, a court or an outcome, or ""."""
        if self._wrong_fact():
            return OTHER_FACT
        if self._wrong_court():
            return OTHER_COURT
        if self._wrong_constitutionality():
            return OTHER_OUTCOME
        stems = (match.group()[:5] for match in REPORTED.finditer(self._frame_without_courts))
        near = " ".join(self._source.lower[slice(*span)] for span in self._near_spans)
        # "Sa demande est rejetée" may be said of one claim, whatever became of the case.
        return OTHER_OUTCOME if not all(stem in near for stem in stems) and self._wrong_outcome() else ""

    def _wrong_fact(self) -> bool:
        masked = [(start + self._claim.start, end + self._claim.start) for start, end in self._courts]
        facts = [fact for fact in self._claim.facts if not any(start <= fact.start < end for start, end in masked)]
        return any(self._is_wrong_fact(fact) for fact in facts)

    def is_own(self, fact: Fact) -> bool:
        """Is a fact the decision's own date, number or court, stated as such?"""
        at, _ = self._place_in_claim(fact)
        if any(start <= at < end and self._is_own_court((start, end)) for start, end in self._courts):
            return True
        if fact.kind == "case":
            return fact.value in self._source.own.numbers
        return self._is_own_date(fact) and (self._dates_the_decision(fact) or self._is_year_of_citation(fact))

    def _is_own_court(self, span: Span) -> bool:
        named = words_of_value(self._claim.masked[slice(*span)])
        return bool(named) and named <= self._source.own.court_words

    def _is_own_date(self, fact: Fact) -> bool:
        day = self._source.own.date
        return day is not None and fact.kind in ("date", "month") and is_same(fact, Fact("date", day, 0, 0))

    def _place_in_claim(self, fact: Fact) -> Span:
        return fact.start - self._claim.start, fact.end - self._claim.start

    def _is_wrong_fact(self, fact: Fact) -> bool:
        known, is_date = self._source.own, fact.kind in ("date", "month")
        if is_date and known.date and self._dates_the_decision(fact):
            if self._is_own_date(fact):
                return False
            if not self._mentions_attacked(fact):
                return True
        if fact.kind == "case" and known.numbers:
            return fact.value not in known.numbers and not self._is_stated_near(fact)
        if self._is_stated_near(fact) or stated_in(known.title).holds(fact):
            return False
        if fact.kind == "month" and self._is_own_date(fact) and self._is_year_of_citation(fact):
            return False
        if not (is_date or fact.kind in ("article", "case", "name")) or not self._source.states_somewhere(fact):
            return True
        if fact.kind != "name":
            words = " ".join(self._claim.text[slice(*self._place_in_claim(fact))].split())
            self._warnings.append(f"« {words} » se trouve ailleurs dans la décision.")
        return False

    def _dates_the_decision(self, fact: Fact) -> bool:
        """Does a date say when the decision was given, and not a statute, an event or a deed?"""
        at, end = self._place_in_claim(fact)
        before = self._frame[max(0, at - 100) : at]
        if _STATUTE.search(before):
            return False
        follows = not re.search(r"\w{4}", before[before.rfind("“") + 1 :]) or before.rstrip().endswith(
            (". le", ", le", "le")
        )
        return self._names_decision_before(at, 100) or bool(follows and _COURT_FOLLOWS.match(self._frame, end))

    def _mentions_attacked(self, fact: Fact) -> bool:
        at, end = self._place_in_claim(fact)
        around = self._frame[max(0, at - 70) : end + 30]
        return bool(_ATTACKED.search(around) or _LOWER.search(around)) and (
            self._is_stated_near(fact) or self._source.states_somewhere(fact)
        )

    def _is_year_of_citation(self, fact: Fact) -> bool:
        at, _ = self._place_in_claim(fact)
        return self._frame[max(0, at - 1) : at] == "(" or self._names_decision_before(at, 60)

    def _names_decision_before(self, at: int, reach: int) -> bool:
        first = max(0, at - reach)
        return bool(_DECISION.search(self._frame[first:at])) or any(
            first < end <= at and _AFTER_COURT.match(self._frame[end:at]) for _, end in self._courts
        )

    def _is_stated_near(self, fact: Fact) -> bool:
        return any(self._source.states(fact, *span) for span in self._near_spans)

    def _wrong_court(self) -> bool:
        """Is the quotation attributed to another court or chamber?"""
        known = self._source.own
        court_words = known.court_words if known.court else words_of_value(self._source.content[:400])
        for start, end in self._courts:
            named = words_of_value(self._claim.masked[start:end])
            if not named or named <= court_words:
                continue
            if not self._source.names_court(named):
                return True
            reports = self._court_reports(end) or re.search(
                r"\b(?:selon|d['’]après|pour)[ ](?:la |le |l['’])?\Z", self._frame[max(0, start - 14) : start]
            )
            if reports:
                paragraph = self._quoted_paragraph()
                # "la chambre sociale" alone is a chamber of this court, and only one chamber decided.
                if self._source.court_speaks_at(self._places[0]) or (
                    known.court and find_formations(self._claim.masked[start:end])
                ):
                    return True
                if paragraph is None or paragraph.speaker is None:
                    self._warnings.append(
                        f"« {self._claim.masked[start:end].strip()} » n'est pas la juridiction qui a rendu la décision."
                    )
        return False

    def _court_reports(self, end: int) -> bool:
        """Does the court named before `end` report what is quoted after it?"""
        behind = self._frame[end : end + 90]
        return bool(re.match(rf"[^.;:“”]{{0,40}}?\b(?:a |avait |ayant )?{_SAYS}", behind))

    def _wrong_constitutionality(self) -> bool:
        """Is a statute said to conform to the Constitution, or not to, where the decision says the contrary alone?"""
        verdict = constitutionality(self._frame) - {RESERVATION}
        decided = constitutionality(self._source.content) if verdict else frozenset()
        return bool(decided) and verdict.isdisjoint(decided)

    def _wrong_outcome(self) -> bool:
        if self._wrong_constitutionality():
            return True
        for match in REPORTED.finditer(self._frame_without_courts):
            stated, outcome = Outcome(kinds_of(match.group(), reported=True), ""), self._source.outcome
            if _NEGATED.search(self._frame[max(0, match.start() - 25) : match.start()]):
                if stated.kinds & outcome.kinds:
                    return True
                continue
            other = _ATTRIBUTED_ELSEWHERE.search(self._frame[max(0, match.start() - 80) : match.start()])
            known = outcome.kinds.union(*(_IMPLIED.get(kind, ()) for kind in outcome.kinds))
            if not other:
                if stated.kinds & known:
                    continue
                if stated.opposes(outcome) or (stated.kinds & _MAIN and outcome.kinds):
                    return True
            stem = match.group()[:5]
            if any(stem in self._source.lower[slice(*span)] for span in self._near_spans):
                continue
            if stem not in self._source.lower:
                return True
            if not stated.kinds & outcome.kinds:
                self._warnings.append(f"« {match.group()} » : l'issue n'a pas pu être vérifiée.")
        return False

    def _denied(self) -> bool:
        """Does the claim have the decision deny what is quoted, or state what it denies?"""
        for number, place in enumerate(self._places):
            before, after = self._clauses_around(number)
            led = self._words_before(place)[-LED:]
            if _DENIED_REPORT.search(before):
                return True
            if rejected := _REJECTED.search(before):
                spoken = self._quoted_paragraph()
                speaker = "party" if rejected["argument"] else "lower_court"
                if spoken is None or spoken.speaker != speaker or (speaker == "lower_court" and not spoken.censured):
                    return True
                continue
            cues, source_cues = cues_of(before[-120:]), cues_of(led)
            quoted = self._source.content[slice(*place)]
            if _is_sentence(before) and cues_of(quoted) & _DENYING and not denies_otherwise(before, quoted):
                source_cues |= _DENYING
            denying = cues & _REFUSALS - {"refuses" if REPORTED.search(before) else ""}
            if denying - source_cues:
                if self._negation_governs(before):
                    return True
                self._warnings.append("Une négation autour de la citation n'a pas pu être vérifiée.")
            elif "except" in cues - source_cues:
                return True
            modal = [kind for kind in _MODALS if kind in cues_of(" ".join(before.split()[-2:]))]
            behind = cues_of(" ".join(led.split()[-4:]))
            if modal and (({*_MODALS} & behind and modal[0] not in behind) or ("not" in behind and "not" not in cues)):
                return True
            if _DENIED_AFTER.match(after) or (
                _GOES_ON_ABOUT.match(after) and cues_of(after) & (_REFUSALS | {"quashes"})
            ):
                return True
        return False

    def _negation_governs(self, before: str) -> bool:
        """Is there a negation in the clause of the quotation itself, not in one before a comma?"""
        return bool(cues_of(re.split(r"[,;:]", before)[-1]) & _REFUSALS)

    def _clauses_around(self, number: int) -> tuple[str, str]:
        """Return the words from the previous quotation to this one, and from this one to the next."""
        quotations = self._claim.quotations
        quotation = quotations[number]
        first = quotations[number - 1].end if number else self._claim.start
        last = quotations[number + 1].start if number + 1 < len(quotations) else self._claim.end
        text, start = legible(self._claim.text).lower(), self._claim.start
        return text[first - start : max(quotation.start - start, 0)], text[quotation.end - start : last - start]

    def _words_before(self, place: Span) -> str:
        sentence = self._source.sentence_around(place)[0]
        return self._source.lower[sentence : place[0]]

    def is_denied_report(self) -> bool:
        """Does the claim say that the court did not say what is quoted?"""
        return _NEVER_SAID.search(self._clauses_around(0)[0]) is not None

    def wrong_speaker(self) -> bool:
        """Are the court's words attributed to a party or the court below?"""
        before, place = self._clauses_around(0)[0], self._places[0]
        led = self._words_before(place)
        if _PARTY.search(before):
            sentence = self._source.lower[slice(*self._source.sentence_around(place))]
            return not _CLAIMED.search(led) and "moyen" not in sentence and self._source.court_speaks_at(place)
        if self._is_attributed_below(before):
            return "arrêt" not in led[-LED:] and self._source.court_speaks_at(place)
        if warning := self.other_speaker():
            self._warnings.append(warning)
        return False

    def _is_attributed_below(self, before: str) -> bool:
        """Is it the court below that is said to speak, and not the court that decided?"""
        lower = _LOWER.search(before)
        if lower is None or not self._court_reports(lower.end()):
            return False
        court = words_of_value(self._source.own.court)
        return not (court and words_of_value(lower.group()) <= court)

    def other_speaker(self) -> str:
        """Return, in French, who speaks where the claim says that the court does; empty where it does, or is not said to."""
        before, after = self._clauses_around(0)
        if _PARTY.search(before) or self._is_attributed_below(before) or _HAD_SAID.search(before):
            return ""
        if not (_COURT.search(before) or _COURT.search(after)):
            return ""
        paragraph, led = self._quoted_paragraph(), self._words_before(self._places[0])
        if paragraph is not None and paragraph.censured:
            return OF_CENSURED
        if paragraph is not None and paragraph.speaker == "lower_court":
            return OF_LOWER_COURT
        is_party = (paragraph is not None and paragraph.speaker == "party") or _CLAIMED.search(led)
        return OF_PARTY if is_party else ""

    def is_claimed(self) -> bool:
        """Do the source's own words lead into the quotation by "la requérante soutient que"?"""
        return _CLAIMED_THAT.search(self._words_before(self._places[0])) is not None

    def _quoted_paragraph(self) -> Paragraph | None:
        return self._source.passage_at(self._places[0])

    def _warn_of_condition(self) -> None:
        """Warn where a quotation that states a rule is cut off from its condition, and the claim states none."""
        if _CONDITIONAL.search(legible(self._claim.text).lower()):
            return
        for quotation, place in zip(self._claim.quotations, self._places, strict=True):
            after = _CONDITION_AFTER.match(self._source.lower, place[1])
            if len(telling_stems(quotation.text)) >= TERM_WORDS and (
                after or _CONDITION_BEFORE.search(self._words_before(place))
            ):
                self._warnings.append(WITHOUT_CONDITION)

    def _warn_of_context(self) -> None:
        for number, place in enumerate(self._places):
            led = self._words_before(place)[-LED:]
            if "not" in cues_of(" ".join(re.split(r"[,;:.]", led)[-1].split()[-4:])) and "not" not in cues_of(
                self._clauses_around(number)[0]
            ):
                self._warnings.append(AFTER_NEGATION)
        self._warn_of_condition()
        if any(
            re.search(r"\[(?![.…\s])[a-zà-ÿ][^\]]{2,}\]", quotation.text) and "[sic]" not in quotation.text
            for quotation in self._claim.quotations
        ):
            self._warnings.append(INSERTED)
