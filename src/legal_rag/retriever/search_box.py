"""The search box: what is typed is read as lawyers mean it, and said back where more was understood than words."""

import math
import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span, words_of
from legal_rag.corpus.documents import Document
from legal_rag.encoder.encoder import check_text
from legal_rag.extraction.entities import outcome_of
from legal_rag.law import (
    Identifier,
    Statute,
    find_cited_courts,
    find_dates,
    find_decisions_of,
    is_statute,
    long_date,
    split_sentences,
)
from legal_rag.law.articles import CODE_FORMS, named_text
from legal_rag.law.citation import is_article, legal_date
from legal_rag.law.courts import CHAMBER_WORDS, COURT_WORDS, level_of, parse_court, words_of_value
from legal_rag.law.keys import ParsedQuery, article_of_key, candidate_keys, rectification_keys, relaxed_key
from legal_rag.law.queries import DecisionsOf
from legal_rag.law.sentences import cut_at_blanks
from legal_rag.law.wordings import days_named, is_former
from legal_rag.library.bm25 import lexical_words
from legal_rag.library.filters import Filters
from legal_rag.library.library import Library, today
from legal_rag.library.query_language import EVERYTHING, All, Node, OneOf, excludes, leaves_of, parse, references_in
from legal_rag.library.versions import NotInForce, as_written, day_asked, none_in_force
from legal_rag.retriever.ranking import Mode
from legal_rag.retriever.retriever import Retriever, SearchHit

NO_FILTERS = Filters()
INFERRED = "Filtre déduit de la demande"
NO_VERSIONS = "Cet index n'a pas de versions d'articles : --at y est sans effet."
NOTHING_LEFT = "Filtres déduits retirés : ensemble, ils ne laissent rien."
ABSENT_ARTICLE = "Ce corpus n'a pas l'article demandé"
MOST_OF_A_DAY = 3  # decisions of a court, up to which a day names them
# What stands around a reference without asking for more.
AROUND_REFERENCES = frozenset(
    "no nos numero numeros pourvoi pourvois arret arrets decision decisions rectification rectificative jugement"
    " ordonnance affaire aff requete req rg ecli article articles art du de des la le les en date et suivants rendu"
    " rendue par code".split()
)
SENTENCE_CHARS, LEAST_CHARS = 400, 60  # shown of a passage at most, and rather than less


class Inferred(NamedTuple):
    """Filters that a text implies, added to those given, and what is said of it in French."""

    filters: Filters
    remarks: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()  # of the text, which the filters say
    named: tuple[str, ...] = ()  # ids of the decisions of a court on a day, where they are few
    absent: tuple[str, ...] = ()  # decisions of a court on a day, of which there is none, in French


@displayed
class SearchResults(NamedTuple):
    """What a search box gives: hits, and in French what was understood, left out or not read."""

    hits: list[SearchHit]
    remarks: tuple[str, ...]
    filters: Filters  # that were applied, the inferred ones included
    query: ParsedQuery  # what ranked them
    condition: Node | None  # on their documents


def inferred_filters(text: str, library: Library, given: Filters = NO_FILTERS, *, in_prose: bool = True) -> Inferred:
    """Read a court with a time as filters: "chambre sociale en 2018", "Cour d'appel d'Aix, mars 2008".

    Of several such designations any counts. Filters that no document meets are left out, as the remark says; where a
    court or a date was given, nothing is inferred.
    """
    designated = find_decisions_of(text, in_prose=in_prose)
    if not designated or given.juridiction or given.formation or given.date_from or given.date_to:
        return Inferred(given)
    options = [replace(given, juridiction=_court_of(one), date_from=one.first, date_to=one.last) for one in designated]
    doc_ids = [library.ids(option) for option in options]
    held = [number for number, ids in enumerate(doc_ids) if ids]
    remarks = [
        f"Filtre déduit retiré, aucune décision n'y répond : {_in_french(one)}."
        for one, ids in zip(designated, doc_ids, strict=True)
        if not ids
    ]
    is_day = [case.first is not None and case.first == case.last for case in designated]
    absent = tuple(
        _in_french(case) for case, ids, day in zip(designated, doc_ids, is_day, strict=True) if day and not ids
    )
    if not held:
        return Inferred(given, tuple(remarks), absent=absent)
    spans = tuple((designated[number].start, designated[number].end) for number in held)
    shown = " ; ".join(_in_french(designated[number]) for number in held)
    one_of = replace(given, doc_ids=tuple(dict.fromkeys(doc_id for number in held for doc_id in doc_ids[number])))
    remarks.insert(0, f"{INFERRED} : {shown}.")
    named = tuple(
        doc_id
        for number in held
        for doc_id in doc_ids[number]
        if is_day[number] and len(doc_ids[number]) <= MOST_OF_A_DAY
    )
    return Inferred(options[held[0]] if len(held) == 1 else one_of, tuple(remarks), spans, named, absent)


def dated(
    query: ParsedQuery, library: Library, given: Filters, *, infers: bool = True
) -> tuple[Filters, tuple[str, ...]]:
    """Return filters with the day whose law a text asks for, if they give none, and what is said of it in French."""
    if given.at:
        return given, () if library.has_versions else (NO_VERSIONS,)
    asked = day_asked(query, library) if infers and given.doc_ids is None else None
    return (replace(given, at=asked[0]), asked[1:]) if asked else (given, ())


def day_not_taken(query: ParsedQuery, library: Library, filters: Filters, doc_ids: Iterable[str]) -> tuple[str, ...]:
    """Say in French how to see the articles among some documents on a day that a text names, where it is not applied.

    The days of acts and of decisions are none.
    """
    if filters.at or not library.has_versions:
        return ()
    names: list[Identifier | Statute | DecisionsOf] = [*query.identifiers, *query.statutes]
    names += find_decisions_of(query.text, in_prose=False)
    days = [
        named.last_by(today())
        for named in days_named(query.text)
        if not any(one.start < named.end and named.start < one.end for one in names)
    ]
    other = next((f"{day}" for day in days if day != today()), "")
    asked = f"leur texte d'un autre jour : --at {other}" if other else ""
    if not other and any(is_former(query.text, name.start, name.end) for name in query.identifiers):
        asked = "une ancienne version : --at et un jour où elle était en vigueur"
    if not asked or not any(library.document(doc_id).force for doc_id in doc_ids):
        return ()
    return (f"Les articles sont donnés au {long_date(today())} ; pour {asked}.",)


def _court_of(designated: DecisionsOf) -> str | None:
    """Return the court's name; a chamber in short, "soc.", is of the Cour de cassation."""
    is_of_cassation = "cassation" in parse_court(designated.court).types
    return (f"Cass. {designated.court}" if is_of_cassation else designated.court) or None


def _in_french(designated: DecisionsOf) -> str:
    first, last = (day and legal_date(day.isoformat()) for day in (designated.first, designated.last))
    if not first and not last:
        return designated.court.rstrip(".")
    if first == last:
        time = f"le {first}"
    elif first and last:
        time = f"du {first} au {last}"
    else:
        time = f"depuis le {first}" if first else f"jusqu'au {last}"
    return f"{designated.court or 'décisions'}, {time}"


def unmet_filter(library: Library, filters: Filters) -> tuple[str, ...]:
    """Return a French sentence that names the first filter that alone excludes every document, if one does."""
    fault = library.filter_at_fault(filters)
    return (f"Aucun document ne répond à {fault}.",) if fault else ()


def among(filters: Filters, doc_ids: Sequence[str]) -> Filters:
    """Return filters that some documents pass alone, if they pass those given."""
    given = filters.doc_ids
    return replace(filters, doc_ids=tuple(doc_id for doc_id in doc_ids if given is None or doc_id in given))


def named_documents(query: ParsedQuery, library: Library, at: date | None = None) -> tuple[list[str], list[str]]:
    """Return the ids of the documents that a text names by number, in its order, then those of their rectifications.

    Of an article that is the version in force on a day, today by default.
    """
    alternatives = candidate_keys(query)
    rectifying = [rectification_keys(keys) for keys in alternatives]
    held = library.ids_named(key for keys in (*alternatives, *rectifying) for key in keys)
    named = [next((held[key] for key in keys if key in held), []) for keys in alternatives]
    pairs = zip(query.identifiers, named, strict=True)
    named = [_of_text(named_text(query.text, name.end) if not name.code else "", ids, library) for name, ids in pairs]
    later = dict.fromkeys(doc_id for keys in rectifying for key in keys for doc_id in held.get(key, []))
    doc_ids = dict.fromkeys(doc_id for ids in named for doc_id in ids if doc_id not in later)
    return library.in_force(doc_ids, at), list(later)


def absent_decisions(query: ParsedQuery, library: Library) -> list[str]:
    """Return the numbers of decisions that a text names and no document bears, as they are written in it.

    Those of statutes are none, nor figures that may number anything.
    """
    alternatives = candidate_keys(query)
    held = library.ids_named(key for keys in alternatives for key in keys)
    is_decision: dict[Span, bool] = {}  # one number may be read as of two kinds of courts
    is_held: dict[Span, bool] = {}
    for name, keys in zip(query.identifiers, alternatives, strict=True):
        span = name.start, name.end
        of_statute = any(law.start <= name.start < law.end for law in query.statutes)
        is_decision[span] = is_decision.get(span, False) or (name.kind not in ("article", "number") and not of_statute)
        is_held[span] = is_held.get(span, False) or any(held.get(key) for key in keys)
    return [query.text[slice(*span)] for span, counts in is_decision.items() if counts and not is_held[span]]


def _of_text(named: str, doc_ids: Sequence[str], library: Library) -> list[str]:
    """Return those of some articles whose title has a text's proper name: the "Syntec" of `named_text`; all of ''."""
    if not named:
        return list(doc_ids)
    words = {word for part in named.split()[1:] if part[0].isupper() for word in words_of(part)}
    return [doc_id for doc_id in doc_ids if words <= set(words_of(library.document(doc_id).title))]


class AbsentArticle(NamedTuple):
    """An article that a text names, where the Library has none of its text, or others of its number, but not it."""

    said: str  # in French
    others: tuple[str, ...]  # ids of those of its number, none of which is it


def absent_articles(query: ParsedQuery, library: Library) -> tuple[AbsentArticle, ...]:
    """Return the articles that a text names by number and code or law, and that the Library lacks.

    It has others of that code or law, or others of that number alone; of codes those of the table, since another may
    have been renamed. So it is of a text's proper name that the titles of all articles of that number lack.
    """
    named = zip(query.identifiers, candidate_keys(query), strict=True)
    of_texts = ((name, keys, "" if name.code else named_text(query.text, name.end)) for name, keys in named)
    coded = [row for row in of_texts if row[2] or is_statute(row[0].code) or row[0].code in CODE_FORMS]
    held = library.ids_named(key for _, keys, _ in coded for key in (*keys, relaxed_key(keys[0])))
    is_held = {name.start for name, keys, _ in coded if any(key in held for key in keys)}
    absent: dict[str, list[str]] = {}
    for name, keys, text in coded:
        others = held.get(relaxed_key(keys[0]), [])
        if text and others and not _of_text(text, others, library):
            said = f"Aucun article {name.value} de cet index n'a dans son titre le nom demandé : {text}."
            absent.setdefault(said, []).extend(others)
        elif name.code and name.start not in is_held:
            texts = {article[1] for article in map(article_of_key, keys) if article}
            if others or texts & library.texts_of_articles:
                written = as_written(name, query) if is_statute(name.code) else f"{name.value} du {name.code}"
                absent.setdefault(f"{ABSENT_ARTICLE} : {written}.", []).extend(others)
    return tuple(AbsentArticle(said, tuple(others)) for said, others in absent.items())


class ArticlesAmiss(NamedTuple):
    """The articles that a text names and that cannot be shown as asked."""

    lacking: tuple[NotInForce, ...]
    absent: tuple[AbsentArticle, ...]

    @property
    def said(self) -> tuple[str, ...]:
        """What is said of each, in French."""
        return (*(one.said for one in self.lacking), *(one.said for one in self.absent))

    def misleading(self, hits: Iterable[SearchHit], library: Library) -> set[str]:
        """Return the documents that would seem to answer in their place.

        These are namesakes of an absent article, and where one is not in force the articles among some hits.
        """
        articles = (hit.doc_id for hit in hits if self.lacking and is_article(library.document(hit.doc_id)))
        return {*articles, *(doc_id for one in self.absent for doc_id in one.others)}


def articles_amiss(query: ParsedQuery, library: Library, day: date) -> ArticlesAmiss:
    """Return the articles that a text names of which no version is in force on a day, and those not in the corpus."""
    return ArticlesAmiss(none_in_force(query, library, day), absent_articles(query, library))


def search_typed(
    retriever: Retriever,
    text: str,
    k: int = 5,
    *,
    filters: Filters = NO_FILTERS,
    infer_filters: bool = True,
    mode: Mode | None = None,
    by_document: bool = False,
    diverse: bool = False,
) -> SearchResults:
    """Search for what is typed: operators, numbers in any form, articles, statutes, courts with a time, and words.

    Args:
        retriever: Over the corpus searched.
        text: As typed; see `legal_rag.library.query_language` for its operators.
        k: How many hits at most.
        filters: Restrict the search to documents that pass them.
        infer_filters: Read a court with a time, an article or a statute as a filter too.
        mode: As for `Retriever.search`, like the rest.
        by_document: Count documents.
        diverse: Leave out near-duplicates.

    Raises:
        ValueError: As `Retriever.search`; if nothing but exclusions or operators is typed.
    """
    check_text(text)
    if (doc_id := text.strip()) in retriever.corpus:
        return _show_named(retriever, ParsedQuery(text), k, filters, mode, [[doc_id], []], EVERYTHING)
    typed = parse(text)
    if not typed.words.strip():
        because = " : il n'y a que des exclusions" if typed.condition else ""
        raise ValueError(f"rien à chercher dans {text!r:.200}{because}")
    query = ParsedQuery(typed.words)
    filters, said = dated(query, retriever.corpus, filters, infers=infer_filters)
    at = filters.at or today()
    amiss = articles_amiss(query, retriever.corpus, at)
    held, rectifying = named_documents(query, retriever.corpus, at)
    heirs = retriever.corpus.in_force([doc_id for one in amiss.lacking for doc_id in one.doc_ids], at)
    named = [*dict.fromkeys((*held, *heirs))], rectifying
    is_alone = is_reference_alone(query) and (typed.condition is None or excludes(typed.condition))
    if named[0] and is_alone:
        shown = _show_named(retriever, query, k, filters, mode, named, typed.condition or EVERYTHING)
        ids = (hit.doc_id for hit in shown.hits)
        said += day_not_taken(query, retriever.corpus, filters, ids)
        return shown._replace(remarks=(*said, *amiss.said, *shown.remarks))
    plain = _Asked(typed.words, filters, typed.condition)
    asked = _implied(retriever, plain, requires=not named[0]) if infer_filters else plain
    remarks = [*said, *amiss.said, *asked.remarks]
    if typed.unread:
        remarks.append(f"Non lu comme opérateur : {', '.join(f'« {sign} »' for sign in typed.unread)}.")
    matches = None if asked.condition is None else retriever.matches(asked.condition)
    is_unmet = matches is not None and not matches.documents and asked.condition == typed.condition
    if is_unmet:
        remarks.append(f"Aucun document ne répond à : {text.strip()}.")
    elif matches and not matches.is_complete:
        remarks.append("Les textes les plus proches ont été lus, pas tous : d'autres peuvent répondre.")
    hits: list[SearchHit] = []
    if not is_unmet and not (is_alone and asked.found_none):
        how: Any = {"mode": mode, "diverse": diverse, "by_document": by_document or asked.is_filter_alone}
        hits = retriever.search(asked.words, k, **how, filters=asked.filters, condition=asked.condition)
        if (
            not hits
            and not (is_alone and amiss.lacking)
            and (asked.filters, asked.condition) != (filters, typed.condition)
        ):
            how["by_document"] = by_document
            literal = search_typed(retriever, text, k, **how, filters=filters, infer_filters=False)
            return literal._replace(remarks=tuple(dict.fromkeys((*said, NOTHING_LEFT, *literal.remarks))))
    others = amiss.misleading(hits, retriever.corpus).difference(named[0])
    kept = (hit for hit in hits if hit.doc_id not in others)
    hits = [hit._replace(rank=rank) for rank, hit in enumerate(kept, start=1)]
    remarks += day_not_taken(query, retriever.corpus, filters, (hit.doc_id for hit in hits))
    return SearchResults(hits, tuple(remarks), asked.filters, ParsedQuery(asked.words), asked.condition)


class _Asked(NamedTuple):
    """What is searched for, and what is said of it in French."""

    words: str
    filters: Filters
    condition: Node | None
    remarks: tuple[str, ...] = ()
    is_filter_alone: bool = False  # a court and a time alone: all its decisions, each once
    found_none: bool = False  # no document cites what is typed


def _implied(retriever: Retriever, plain: _Asked, *, requires: bool) -> _Asked:
    """Return what is typed with the filters that it implies; `requires`: references are to be cited."""
    inferred = inferred_filters(plain.words, retriever.corpus, plain.filters, in_prose=False)
    words = without_spans(plain.words, inferred.spans).strip(" ,;:.")
    is_alone = not words and inferred.filters != plain.filters
    words, condition = words or plain.words, plain.condition
    asked = _Asked(words, inferred.filters, condition, inferred.remarks, is_alone)
    if requires:
        required = require_references(retriever, ParsedQuery(words), condition, asked.filters)
        remarks = (*asked.remarks, *required.remarks)
        asked = _Asked(words, required.filters, required.condition, remarks, is_alone, required.found_none)
    if is_alone and asked.condition is None:
        asked = asked._replace(condition=EVERYTHING)
    return asked


def without_spans(text: str, spans: Iterable[Span]) -> str:
    """Return a text without some spans; its length stays."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def is_reference_alone(query: ParsedQuery) -> bool:
    """Is a text nothing but decisions, articles or statutes, perhaps with their court and date?"""
    references: list[Identifier | Statute] = [*query.identifiers, *query.statutes]
    if not references:
        return False
    dates = [(day.start, day.end) for day in find_dates(query.text)]
    spans = [*((one.start, one.end) for one in references), *dates, *find_cited_courts(query.text)]
    left = {word for word in words_of(without_spans(query.text, spans)) if len(word) > 1} - AROUND_REFERENCES
    codes = {word for name in query.identifiers for word in words_of(name.code)}
    return not words_of_value(" ".join(left - codes)) - COURT_WORDS - CHAMBER_WORDS


def _show_named(
    retriever: Retriever,
    query: ParsedQuery,
    k: int,
    filters: Filters,
    mode: Mode | None,
    named: Sequence[Sequence[str]],
    condition: Node,
) -> SearchResults:
    """Give what the text names alone, each document once, those that rectify it last."""
    hits: list[SearchHit] = []
    counts = []
    are_articles = query.identifiers and all(name.kind == "article" for name in query.identifiers)
    kind = "article" if are_articles else "décision"
    for doc_ids, singular in zip(named, (kind, "rectification"), strict=True):
        within = among(filters, doc_ids)
        n = len(retriever.corpus.ids(within)) if doc_ids else 0
        how: Any = {"mode": mode, "filters": within, "condition": condition, "by_document": True}
        listed = retriever.search(query.text, k, **how) if n else []
        if not listed:
            continue
        counts.append(f"{n} {singular}{'s' * (n > 1)}")
        listed.sort(key=lambda hit: doc_ids.index(hit.doc_id))
        best = next((hit.score for hit in (*hits, *listed)), 0.0)
        hits += [
            hit._replace(rank=len(hits) + place, score=best - len(hits) - place + 1)
            for place, hit in enumerate(listed, start=1)
        ]
    remark = f"{' et '.join(counts)}." if counts else "Ce qui est nommé est exclu."
    return SearchResults(hits[:k], (remark,), filters, query, None)


class Required(NamedTuple):
    """What references add to a search, and what is said of it in French."""

    condition: Node | None
    filters: Filters
    remarks: tuple[str, ...] = ()
    found_none: bool = False


def require_references(retriever: Retriever, query: ParsedQuery, condition: Node | None, filters: Filters) -> Required:
    """Require the articles, decisions and statutes that are typed to be cited, unless no document cites any.

    "Article 12" of no code, beside words, is not required.
    """
    asked = {leaf.shown for leaf in leaves_of(condition)}
    # "L'article 12 de mon contrat": of no code, it is cited by whatever has an article 12, and ranks alone.
    unsaid = [] if query.statutes or is_reference_alone(query) else query.identifiers
    vague = {
        name.end
        for name in unsaid
        if name.kind == "article" and not name.code and name.value.replace("-", "").isdecimal()
    }
    references = [
        reference
        for reference in references_in(query.text)
        if reference.shown not in asked and reference.end not in vague
    ]
    if not references:
        return Required(condition, filters)
    cited = [reference for reference in references if retriever.matches(reference.node).documents]
    uncited = ", ".join(reference.shown for reference in references if reference not in cited)
    remarks = (f"Aucun document ne cite : {uncited}.",) if uncited else ()
    if not cited:
        return Required(condition, filters, remarks, found_none=True)
    nodes = tuple(reference.node for reference in cited)
    together = bool(retriever.matches(All(nodes)).documents)
    articles = [name for name in query.identifiers if name.kind == "article" and name.code]
    if len(references) == len(articles) == 1 and filters.article is None:
        exact = replace(filters, article=f"article {articles[0].value} du {articles[0].code}")
        if retriever.corpus.has_any(exact):
            filters = exact
    cites = All(nodes) if together else OneOf(nodes)
    node = cites if condition is None else All((condition, cites))
    shown = (", " if together else " ou ").join(reference.shown for reference in cited)
    return Required(node, filters, (*remarks, f"{INFERRED} : cite {shown}."))


def relevance(hits: Sequence[SearchHit]) -> list[int]:
    """Rate hits from 0 to 100 against the first of them, which has 100; never more than the one before.

    100 exp(-d / max(1, |s|)), where `s` is the first hit's score and `d` how far below it a hit's score is.
    """
    if not hits:
        return []
    best = hits[0].score
    return [round(100 * math.exp(-max(best - hit.score, 0.0) / max(1.0, abs(best)))) for hit in hits]


class Excerpt(NamedTuple):
    """The best sentence of a passage."""

    start: int  # characters of the text it was taken from
    end: int
    matched: tuple[Span, ...]  # words that answer what was typed, by characters of that text


def best_sentence(text: str, spans: Sequence[Span], query: ParsedQuery, condition: Node | None = None) -> Excerpt:
    """Return the sentence, within some spans of a text, that holds most of what was typed.

    Phrases, beginnings of words and statutes count before words; a longer sentence is cut to `SENTENCE_CHARS`.
    """
    held_spans = [list(leaf.spans(text)) for leaf in leaves_of(condition) if leaf.form]
    references = [(name.start, name.end) for name in query.identifiers]
    terms, keys = set(lexical_words(without_spans(query.text, references))), set(query.keys)
    best, most = (0, 0), (-1, -1, -1)
    for first, last in spans:
        piece = text[first:last]
        for sentence in split_sentences(piece):
            for start, end in cut_at_blanks(piece, *sentence, SENTENCE_CHARS):
                held = sum(bool(_within(of, first + start, first + end)) for of in held_spans)
                held += len(_named(piece[start:end], keys))
                shared = len(terms.intersection(lexical_words(piece[start:end])))
                score = held, shared, min(end - start, LEAST_CHARS)  # "Le Conseil constitutionnel," tells nothing
                if score > most:
                    best, most = (first + start, first + end), score
    start, end = best
    matched = [span for of in held_spans for span in _within(of, start, end)]
    matched += [(start + first, start + last) for first, last in _named(text[start:end], keys)]
    matched += [
        word.span() for word in _WORD.finditer(text, start, end) if terms.intersection(lexical_words(word.group()))
    ]
    return Excerpt(start, end, tuple(_joined(matched)))


def _within(spans: Iterable[Span], start: int, end: int) -> list[Span]:
    return [span for span in spans if start <= span[0] and span[1] <= end]


def _named(text: str, keys: Set[str]) -> list[Span]:
    """Return where a text names a decision or an article of some relaxed keys."""
    names = ParsedQuery(text).keyed_identifiers if keys else []
    return [(name.start, name.end) for name, key in names if key in keys]


_WORD = re.compile(r"[^\W_]+")


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def outcome_in_words(document: Document) -> str:
    """Return a decision's outcome, as its source says it, else as its operative part is read; empty if unknown."""
    level = level_of(document.juridiction, document.formation, document.title)
    return outcome_of(document.solution, level, document.content, None).words if document.solution or level else ""
