"""Check the words around a true quotation: facts, court, outcome, negation, who is made to say it.

Only a closed set is checked: what contradicts the decision, and what cannot be told from it.
"""

import re
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from legal_rag.citations.claims import Claim
from legal_rag.citations.facts import Fact, is_same, stated_in
from legal_rag.citations.plain import legible
from legal_rag.citations.sources import SourceText, Span
from legal_rag.citations.wording import cues_of, telling_stems
from legal_rag.corpus.patterns.courts import find_courts, find_formations, words_of_value
from legal_rag.corpus.structure.tree import Paragraph
from legal_rag.extraction.outcomes import Outcome, kinds_of

AROUND = 300  # characters either side of a quotation in which the facts beside it may stand
LED = 60  # characters before a quotation in its sentence that may negate it
TERM_WORDS = 4  # a quotation of fewer content words is a term

_ABBREVIATED_COURT = re.compile(
    r"(?<!\w)(?:(?:C\. ?)?[Cc]ass(?:\.|(?=[ ,]))(?:[ ,]+(?:(?:[123](?:re|e|ème)|première|deuxième|troisième)? ?civ|soc|crim|com|ass\. plén|ch\. mixte)\b\.?)?"
    r"|(?:[123](?:re|e) civ|[Ss]oc|[Cc]rim|[Cc]om|[Aa]ss\. plén)\.(?=,? \d)|CE(?=[ ,.])|Cons\. d['’]État|[Cc]ons\. const\.?|CA [A-ZÀ-Ý][\w-]+|CAA [A-ZÀ-Ý][\w-]+|(?:TGI|TJ|TA) [A-ZÀ-Ý][\w-]+"
    r"|\b[Cc]hambres? régionales? des comptes|\b[Cc]onseils? de prud['’]hommes|\b[Cc]our (?:administrative )?d['’](?:appel|assises)"
    r"|\b[Tt]ribun(?:al|aux) (?:judiciaires?|administratifs?|correctionnels?|paritaires? des baux ruraux|de (?:commerce|grande instance|proximité|police)|d['’]instance))"
)
_STATUTE = re.compile(
    r"(?:lois?|décrets?|convention|directive|règlement|arrêté|circulaire|accord|avenant|contrat|bail|acte|lettre|courrier|protocole|ordonnance n\S*)\b[^.;:]{0,40}\Z"
)
_DECISION = re.compile(
    r"(?:arrêts?|décisions?|jugements?|ordonnance|cass\b\.?|cassation|conseil d['’]état|constitutionnel|const\.|chambre|civ\.|soc\.|com\.|crim\.|plén\.|plénière|(?<!\w)ce\b|cour|juridiction|tribunal|(?<!\w)ca [\w-]+)"
    r"(?:(?!\b(?:a|est|été|ayant|avait|était|qui|que|contre|licencié|conclu|signé|né)\b)[^.;:“”]){0,70}\Z"
)
_ATTACKED = re.compile(
    r"attaqu|déféré|entrepris|frappé|dont appel|critiqué|contre l|contre un|premiers juges|première instance|appel (?:de|du|interjeté)|(?:casse|annule|infirme|confirme|cassé|annulé|infirmé|confirmé)"
)
_COURT_FOLLOWS = re.compile(
    r"[ ,]{1,3}(?:la (?:cour|chambre|haute|première|deuxième|troisième)|le (?:conseil|tribunal|juge)|l['’]assemblée|les juges)"
)
_SAYS = r"(?:jug|retien|reten|considè|considér|estim|décid|énonc|affirm|admet|admis|reconn|di[ts]\b|précis|rappel|pos[eé]|constat|relèv|relev|soulign|répond|déclar|indiqu|ajout|observ|dédui|conclu|consacr|approuv|écri|expliqu|exig|impos|prévoi)\w*"
_DENIED_REPORT = re.compile(
    rf"\b(?:ne|n['’]) ?(?:\w+ ){{0,2}}?(?:(?:pas|jamais|nullement|point|aucunement|plus|guère) (?:\w+ ){{0,2}}?)?{_SAYS}(?: (?:pas|jamais|nullement|point|aucunement|plus|guère)\b)?"
    r"|\b(?:refus|s['’]abstien|se gard|omet|évit)\w* (?:de |d['’])"
    r"|\b(?:il est|serait|est) (?:faux|inexact|erroné|exclu|impossible) (?:que|qu['’]|de|d['’])|\bcontrairement à|\bà tort\b|\bloin de\b|\bnul(?:le)? (?:décision|juge|arrêt|cour|juridiction)|\baucune? (?:décision|juge|arrêt|cour|juridiction)"
    r"|\b(?:écart|rejet|réfut|repouss|dément|contredi|désavou)\w* l['’](?:idée|affirmation|analyse)"
    r"|\bcondamn\w* (?:le raisonnement|l['’](?:idée|argument|affirmation|analyse)|la (?:thèse|solution|règle)|le (?:moyen|principe|motif))"
    r"|\b(?:ni|démen|désavou|réfut|exclu|contest|contredi|infirm|écart|rejet|refus)\w* (?:que\b|qu['’])"
    r"|\bn['’](?:a|ont|avait|avaient|aurait|eût)\b(?:(?! (?:a|ont|avait|est) )[^.;:“”]){0,80}\b(?:jugé|retenu|considéré|estimé|décidé|énoncé|affirmé|admis|reconnu|dit|précisé|rappelé|posé|constaté|relevé|écrit|conclu|consacré|répondu)\b"
    r"|\bl(?:e|['’])[ ]?(?:contraire|inverse|opposé)\b|\bl['’](?:inverse|opposé)\b|\b(?:s['’]est|s['’]être|se) gard|\b(?:s['’]est|se) (?:bien )?gard|\bsans (?:jamais )?(?:juger|retenir|dire|affirmer|décider|énoncer|considérer|reconnaître|admettre|poser)\b"
)
_REJECTED = re.compile(
    r"\b(?:rejett|rejet|écart|réfut|repouss|désavou|désapprouv|contredi|invalid|censur|infirm|cass|annul|nie|dément|condamn)\w* (?:\w+ ){0,3}?(?:(?P<argument>l['’](?:idée|argument|affirmation|analyse|interprétation|allégation)|la (?:thèse|prétention|demande)|le (?:moyen|grief|raisonnement))"
    r"|la (?:solution|règle|position|formule)|le (?:principe|motif)|les (?:juges|motifs)|la cour d['’]appel|les motifs|que\b|qu['’])[^.;:“”]{0,80}(?:que|qu['’]|selon|retenu|jugé|énoncé|considéré|estimé|:|tir)"
)
_NEGATED = re.compile(r"\b(?:ne|n['’]) ?|\b(?:pas|jamais|nullement|point|aucune?|non)\b")
_OUTCOME = re.compile(
    r"\b(?P<verb>cass(?:e|é|ée|ent|ation|ant)|rejet(?:te|é|ée|és|ées|tent|ant)?|annul(?:e|é|ée|ent|ation|ant)|confirm(?:e|é|ée|ent|ation|ant)|infirm(?:e|é|ée|ent|ation|ant)|condamn(?:e|é|ée|ent|ation|ant)|relax(?:e|é|ée|ent)"
    r"|débout(?:e|é|ée|ent)|réform(?:e|é|ée|ent|ant)|inéligib\w+|censur(?:e|é|ée|ent))\b(?! que| qu['’])"
)
_MAIN = frozenset({"cassation", "annulation", "confirmation", "infirmation", "inéligibilité"})  # of a whole case
_IMPLIED = {"cassation": frozenset({"annulation"}), "infirmation": frozenset({"annulation"})}  # "casse et annule"
_TOLD = re.compile(
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
_COURT = re.compile(
    rf"\b(?:cour|conseil|juridiction|décision|arrêt|chambre|juges?|tribunal)\b[^.;:“”]{{0,60}}?\b{_SAYS}|\b(?:selon|d['’]après|pour) (?:la (?:cour|décision|juridiction|haute)|l['’]arrêt|le conseil)|\b{_SAYS}[^.;:“”]{{0,20}} (?:la cour|la juridiction|le conseil)"
)
_MODALS = ("must", "maybe")

OF_PARTY = "Ces mots sont ceux d'une partie, non de la juridiction."
OF_LOWER_COURT = "Ces mots sont ceux de la décision attaquée, non de la juridiction."
OF_CENSURED = "Ces mots sont ceux de la décision attaquée, que la juridiction censure sur ce point."
AFTER_NEGATION = "Dans la décision, une négation précède ces mots."
INSERTED = "Les mots entre crochets sont de l'auteur de la réponse."


class Surroundings(NamedTuple):
    """What the words around a quotation are worth."""

    contradicted: bool = False
    warnings: tuple[str, ...] = ()  # French sentences


def check_surroundings(
    claim: Claim, source: SourceText, places: Sequence[Span], cited: Span, others: Sequence[SourceText] = ()
) -> Surroundings:
    """Check the words around the quotations of a claim.

    Args:
        claim: It quotes.
        source: The document quoted.
        places: Where its quotations stand there.
        cited: The passage that the claim points to.
        others: Documents that the rest of the sentence quotes: what is said of them is theirs.
    """
    judged = _Check(claim, source, places, cited).result()
    if judged.contradicted and others:
        return _Check(_without_others(claim, others), source, places, cited).result()
    return judged


def facts_to_find(claim: Claim, source: SourceText) -> list[Fact]:
    """Return the facts of a claim but the decision's own date, number and court, said as such."""
    check = _Check(claim, source, [(0, 0)], (0, 0))
    return [one for one in claim.facts if not check.is_own(one)]


def courts_to_find(claim: Claim, source: SourceText) -> list[frozenset[str]]:
    """Return the words of each court and chamber that a claim names, but the decision's own."""
    return [one for one in courts_named(claim.text) if not one <= source.own.court_words]


def courts_named(text: str) -> list[frozenset[str]]:
    """Return the words of each court and chamber that a text names."""
    return [words_of_value(text[slice(*span)]) for span in _courts_in(text)]


def quotes_a_term(claim: Claim) -> bool:
    """Is so little quoted that a sentence rests on its own words?"""
    quoted = sum(len(telling_stems(one.text)) for one in claim.quotations)
    said = telling_stems(_blanked(claim.masked, _courts_in(claim.masked)))
    return quoted < TERM_WORDS and len(said) > quoted


def _without_others(claim: Claim, others: Sequence[SourceText]) -> Claim:
    """Return a claim without the facts that are the own date or number of another document it quotes."""
    for other in others:
        claim = claim._replace(facts=facts_to_find(claim, other))
    return claim


class _Check:
    def __init__(self, claim: Claim, source: SourceText, places: Sequence[Span], cited: Span) -> None:
        self._claim, self._source, self._places = claim, source, places
        self._courts = _courts_in(claim.masked)
        self._frame = legible(claim.masked).lower()
        # Without the courts' names: "Cour de cassation" states no outcome.
        self._words = _blanked(self._frame, self._courts)
        first = max(0, min(start for start, _ in places) - AROUND)
        last = min(len(source.content), max(end for _, end in places) + AROUND)
        self._near: list[Span] = [(first, last), cited] if cited[1] > cited[0] else [(first, last)]
        self._warnings: list[str] = []

    def result(self) -> Surroundings:
        contradicted = any(
            check() for check in (self._facts, self._other_courts, self._outcomes, self._denied, self._made_to_speak)
        )
        if not contradicted:
            self._warn_of_context()
        return Surroundings(contradicted, () if contradicted else tuple(dict.fromkeys(self._warnings)))

    def _facts(self) -> bool:
        """Is a fact beside the quotation not the decision's?"""
        masked = [(start + self._claim.start, end + self._claim.start) for start, end in self._courts]
        facts = [one for one in self._claim.facts if not any(start <= one.start < end for start, end in masked)]
        return any(self._is_wrong(one) for one in facts)

    def is_own(self, fact: Fact) -> bool:
        """Is a fact the decision's own date, number or court, said as such?"""
        own = self._source.own
        if any(
            start <= fact.start - self._claim.start < end and self._is_own_court((start, end))
            for start, end in self._courts
        ):
            return True
        if fact.kind == "case":
            return fact.value in own.numbers
        dates = fact.kind in ("date", "month") and bool(own.date) and _is_own_date(fact, own.date)
        return dates and (self._dates_the_decision(fact) or self._is_year_of_citation(fact))

    def _is_own_court(self, span: Span) -> bool:
        named = words_of_value(self._claim.masked[slice(*span)])
        return bool(named) and named <= self._source.own.court_words

    def _is_wrong(self, fact: Fact) -> bool:
        own = self._source.own
        if fact.kind in ("date", "month") and self._dates_the_decision(fact):
            if own.date and _is_own_date(fact, own.date):
                return False
            if own.date and not self._speaks_of_attacked(fact):
                return True
        if fact.kind == "case" and own.numbers:
            return fact.value not in own.numbers and not self._stands_near(fact)
        if self._stands_near(fact) or stated_in(own.title).holds(fact):
            return False
        if fact.kind == "month" and own.date and _is_own_date(fact, own.date) and self._is_year_of_citation(fact):
            return False
        if fact.kind in ("date", "month", "article", "case", "name") and self._source.states_somewhere(fact):
            if fact.kind != "name":
                self._warnings.append(f"« {self._words_of(fact)} » se trouve ailleurs dans la décision.")
            return False
        return True

    def _words_of(self, fact: Fact) -> str:
        return " ".join(self._claim.text[fact.start - self._claim.start : fact.end - self._claim.start].split())

    def _dates_the_decision(self, fact: Fact) -> bool:
        """Does a date say when the decision was given, and not a statute, an event or a deed?"""
        at, end = fact.start - self._claim.start, fact.end - self._claim.start
        before = self._frame[max(0, at - 100) : at]
        if _STATUTE.search(before):
            return False
        follows = not re.search(r"\w{4}", before[before.rfind("“") + 1 :]) or before.rstrip().endswith(
            (". le", ", le", "le")
        )
        return bool(_DECISION.search(before) or (follows and _COURT_FOLLOWS.match(self._frame, end)))

    def _speaks_of_attacked(self, fact: Fact) -> bool:
        at, end = fact.start - self._claim.start, fact.end - self._claim.start
        around = self._frame[max(0, at - 70) : end + 30]
        return bool(_ATTACKED.search(around) or _LOWER.search(around)) and (
            self._stands_near(fact) or self._source.states_somewhere(fact)
        )

    def _is_year_of_citation(self, fact: Fact) -> bool:
        at = fact.start - self._claim.start
        return self._frame[max(0, at - 1) : at] == "(" or bool(_DECISION.search(self._frame[max(0, at - 60) : at]))

    def _stands_near(self, fact: Fact) -> bool:
        return any(self._source.states(fact, *span) for span in self._near)

    def _other_courts(self) -> bool:
        """Is another court, or chamber, made to say what this one says?"""
        own = self._source.own
        known = own.court_words if own.court else words_of_value(self._source.content[:400])
        for start, end in self._courts:
            named = words_of_value(self._claim.masked[start:end])
            if not named or named <= known:
                continue
            if not self._source.names_court(named):
                return True
            reports = self._reports(end) or re.search(
                r"\b(?:selon|d['’]après|pour)[ ](?:la |le |l['’])?\Z", self._frame[max(0, start - 14) : start]
            )
            if reports:
                said = self._passage()
                # "la chambre sociale" alone is one of this court's, of which there is but one that decided.
                if _is_court(said) or (own.court and find_formations(self._claim.masked[start:end])):
                    return True
                if said is None or said.speaker is None:
                    self._warnings.append(
                        f"« {self._claim.masked[start:end].strip()} » n'est pas la juridiction qui a rendu la décision."
                    )
        return False

    def _reports(self, end: int) -> bool:
        """Does a court named up to a place report what is quoted behind it?"""
        behind = self._frame[end : end + 90]
        return bool(re.match(rf"[^.;:“”]{{0,40}}?\b(?:a |avait |ayant )?{_SAYS}", behind))

    def _outcomes(self) -> bool:
        """Is an outcome stated that is not the decision's?"""
        found = list(_OUTCOME.finditer(self._words))
        if not found:
            return False
        outcome = self._source.outcome
        for match in found:
            stated = Outcome(kinds_of(match["verb"]), "")
            if match["verb"].startswith("débout"):
                stated = Outcome(frozenset({"rejet"}), "")
            if match["verb"].startswith("censur"):
                stated = Outcome(frozenset({"cassation"}), "")
            denied = _NEGATED.search(self._frame[max(0, match.start() - 25) : match.start()])
            if denied:
                if stated.kinds & outcome.kinds:
                    return True
                continue
            told = _TOLD.search(self._frame[max(0, match.start() - 80) : match.start()])
            if stated.kinds & (outcome.kinds | _IMPLIED.get(next(iter(outcome.kinds), ""), frozenset())) and not told:
                continue
            main = stated.kinds & _MAIN and outcome.kinds
            if not told and (stated.opposes(outcome) or main):
                return True
            stem = match["verb"][:5]
            if any(stem in self._source.lower[slice(*span)] for span in self._near):
                continue
            if stem not in self._source.lower:
                return True
            if not stated.kinds & outcome.kinds:
                self._warnings.append(f"« {match['verb']} » : l'issue n'a pas pu être vérifiée.")
        return False

    def _denied(self) -> bool:
        """Is the decision made to deny what is quoted, or to say what it denies?"""
        for number, place in enumerate(self._places):
            before, after = self._clauses(number)
            led = self._led_by(place)
            if _DENIED_REPORT.search(before):
                return True
            if rejected := _REJECTED.search(before):
                said = self._passage()
                speaker = "party" if rejected["argument"] else "lower_court"
                if said is None or said.speaker != speaker or (speaker == "lower_court" and not said.censured):
                    return True
                continue
            wanted, there = cues_of(before[-120:]), cues_of(led)
            denying = wanted & {"not", "wrongly", "refuses"} - {"refuses" if _OUTCOME.search(before) else ""}
            if denying - there:
                if self._governs(before):
                    return True
                self._warnings.append("Une négation autour de la citation n'a pas pu être vérifiée.")
            elif "except" in wanted - there:
                return True
            modal = [kind for kind in _MODALS if kind in cues_of(" ".join(before.split()[-2:]))]
            behind = cues_of(" ".join(led.split()[-4:]))
            if modal and (
                ({*_MODALS} & behind and modal[0] not in behind) or ("not" in behind and "not" not in wanted)
            ):
                return True
            if re.match(r"[ ,;—–-]{0,4}(?:ce qu[ei]|mais|or|quod non)\b", after) and cues_of(after) & {
                "not",
                "wrongly",
                "refuses",
                "quashes",
            }:
                return True
            if re.match(r"[ ,;—–-]{0,4}(?:à tort|faussement|est (?:faux|inexact|rejeté|écarté)|n['’]est pas)", after):
                return True
        return False

    def _governs(self, before: str) -> bool:
        """Does a negation stand in the clause of the quotation itself, not in one before a comma?"""
        return bool(cues_of(re.split(r"[,;:]", before)[-1]) & {"not", "wrongly", "refuses"})

    def _clauses(self, number: int) -> tuple[str, str]:
        """Return the words before a quotation since the last one, and those behind it up to the next."""
        quotations = self._claim.quotations
        one = quotations[number]
        first = quotations[number - 1].end if number else self._claim.start
        last = quotations[number + 1].start if number + 1 < len(quotations) else self._claim.end
        text, start = legible(self._claim.text).lower(), self._claim.start
        return text[first - start : max(one.start - start, 0)], text[one.end - start : last - start]

    def _led_by(self, place: Span) -> str:
        """Return the words before a quotation in its sentence of the decision."""
        sentence = self._source.sentence_around(place)[0]
        return self._source.lower[max(sentence, place[0] - LED) : place[0]]

    def _made_to_speak(self) -> bool:
        """Is a party, or the court below, made to say what the court says?"""
        before = self._clauses(0)[0]
        said = None
        if _PARTY.search(before):
            said = self._passage()
            if _is_court(said):
                at, end = self._source.sentence_around(self._places[0])
                sentence = self._source.lower[at:end]
                return not _CLAIMED.search(sentence[: max(0, self._places[0][0] - at)]) and "moyen" not in sentence
        elif (lower := _LOWER.search(before)) and self._reports(lower.end()):
            own = words_of_value(self._source.own.court)
            if not (own and words_of_value(lower.group()) <= own):
                said = self._passage()
                return bool(_is_court(said) and "arrêt" not in self._led_by(self._places[0]))
        elif _COURT.search(before) or _COURT.search(self._clauses(0)[1]):
            said = self._passage()
            start = self._places[0][0]
            led = self._source.lower[self._source.sentence_around(self._places[0])[0] : start]
            if said is not None and (warning := _not_the_court(said)):
                self._warnings.append(warning)
            elif _CLAIMED.search(led):
                self._warnings.append(OF_PARTY)
        return False

    def _passage(self) -> Paragraph | None:
        return self._source.passage_at(self._places[0])

    def _warn_of_context(self) -> None:
        for number, place in enumerate(self._places):
            led = self._led_by(place)
            if "not" in cues_of(" ".join(re.split(r"[,;:.]", led)[-1].split()[-4:])) and "not" not in cues_of(
                self._clauses(number)[0]
            ):
                self._warnings.append(AFTER_NEGATION)
        if any(
            re.search(r"\[(?![.…\s])[a-zà-ÿ][^\]]{2,}\]", one.text) and "[sic]" not in one.text
            for one in self._claim.quotations
        ):
            self._warnings.append(INSERTED)


def _is_court(said: Paragraph | None) -> bool:
    """Does the court itself speak, be it in the words of a statute?"""
    return said is not None and said.speaker in ("court", "text") and not said.censured


def _not_the_court(said: Paragraph) -> str:
    if said.censured:
        return OF_CENSURED
    return {"party": OF_PARTY, "lower_court": OF_LOWER_COURT}.get(said.speaker or "", "")


def _courts_in(text: str) -> list[Span]:
    abbreviated = [match.span() for match in _ABBREVIATED_COURT.finditer(text)]
    return sorted({*find_courts(text), *find_formations(text), *abbreviated})


def _blanked(text: str, spans: Sequence[Span]) -> str:
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _is_own_date(fact: Fact, own: str) -> bool:
    try:
        return is_same(fact, Fact("date", date.fromisoformat(own), 0, 0))
    except ValueError:
        return False
