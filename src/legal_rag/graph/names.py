"""Canonical keys: all spellings of a decision, an article, a court or a name share one key.

Decisions and articles have the keys of `legal_rag.law.keys`; a document of the Library has 'doc:<id>'.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from legal_rag.base.text import key_of, within_sentence, without_accents, words_of
from legal_rag.extraction.lookup import FORMS, SMALL_WORDS, name_words, singular
from legal_rag.extraction.names import LEAD
from legal_rag.law import SERIES, Identifier, find_courts, find_dates, find_identifiers, find_texts
from legal_rag.law.articles import NAMES_OF_TEXTS, find_abbreviated_articles
from legal_rag.law.citation import spaced_number
from legal_rag.law.courts import UNIQUE_COURTS, court_at_start, parse_court, words_of_value
from legal_rag.law.keys import NO_CODE, canonical_key, relaxed_key
from legal_rag.law.mentions import EUROPEAN, find_european_cases
from legal_rag.law.scanning import NO_BREAK
from legal_rag.law.words import TITLES, TITLES_OF_ANYONE, TITLES_OF_MEN, TITLES_OF_WOMEN

DOCUMENT, COURT, STATUTE, NAME, TERM, LOWER = "doc:", "court:", "statute:", "name:", "term:", "lower:"
NAMED_TYPES = frozenset(("party", "person", "organization", "judge_or_counsel"))
MOST_CHARS = 300  # of a name
SHORTEST_NAME = 3  # letters of a name that is searched in a text
CACHED_STATUTES = 20_000  # names: many decisions share codes and statutes
_NUMBER = re.compile(r"(?<![\d/-])(\d{1,4})\s?[-‐‑–/]\s?(\d{1,5})(?!\d)")
_LEADING_ARTICLE = re.compile(r"(?:l['’]|l[ae]s?\b)\s*", re.IGNORECASE)
_PART_OF_COURT = re.compile(r"\b(p[ôo]le|section|sect\.?)\s*(?:n\s?[°o]\s*)?(\d{1,2}|[A-Z](?!\w))", re.IGNORECASE)
_FORMER = re.compile(r"^(?:(?:le|la|l) )?(?:nouveau )?")
_STATUTE_KINDS = ("decret loi", "loi", "ordonnance", "decret", "arrete", "circulaire", "directive", "reglement")
_STATUTE_KIND = re.compile(rf"\b({'|'.join(_STATUTE_KINDS)})s?\b")
_OF_MANY_ISSUERS = ("arrete", "circulaire")  # several may share a number and date
_KNOWN_BY_DATE = ("loi", "decret loi")  # of the others there are several a day
MOST_ABBREVIATED = 30  # characters of a code's abbreviation
_CONSTITUTION = "constitution du 4 octobre 1958"
# Treaties of several names, and the words of that which `codes.toml` has.
_TREATIES = (
    (
        re.compile("convention (?:europeenne )?(?:de sauvegarde )?des droits de l homme"),
        "convention europeenne des droits de l homme",
    ),
    (
        re.compile("charte des droits fondamentaux"),
        "charte des droits fondamentaux de l union europeenne",
    ),
)
_LAW_KEY = re.compile(rf"({STATUTE}|article:.+? )((?:{'|'.join(_KNOWN_BY_DATE)}) \d+-\d+(?:-\d\d)?)")
_NATURES = dict(zip(_STATUTE_KINDS, ("décret-loi", "loi", "ordonnance", "décret"), strict=False))
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_STATUTE_KEY = re.compile(rf"(?P<article>article:.+?) (?P<kind>{'|'.join(_NATURES)}) (?P<value>\d+-[\d-]+)")
# Of a statute without a number, its day: see `legal_rag.law.keys`.
_STATUTE_TERM = re.compile(
    rf"(?P<article>article:.+?) (?P<nature>{'|'.join(_NATURES.values())})"
    rf" n° (?:(?P<number>\d+-\d[\d-]*)|\{NO_CODE} du (?P<day>{_ISO_DAY.pattern}))"
)
_FIRST_YEAR = 45  # of statutes with a number: "08-496" is of 2008
# The number that follows is a related decision's, not that of the name.
_RELATED = re.compile(
    r"(?<!rendu )(?<!rendue )\bpar\b|\b(?:contre|renvoi|demande\w*|d[ée]fende\w*|avocat\w*|parties?|"
    r"(?:cit|cass|annul|confirm|infirm|rejet)(?:[ée]\w*|ant))\b",
    re.IGNORECASE,
)
# Forms that distinguish firms of the same name; a company may change between the others.
_KEPT_FORMS = frozenset("sci scp selarl selas selafa gie gaec earl scea sccv association".split())
_VAGUE_FORMS = frozenset("societe societes ste stes compagnie cie ets etablissement etablissements entreprise".split())
_FORMS_IN_FULL = (
    ("sarl", "societe a responsabilite limitee"),
    ("sas", "societe par actions simplifiee"),
    ("sa", "societe anonyme"),
    ("snc", "societe en nom collectif"),
    ("sci", "societe civile immobiliere"),
    ("scp", "societe civile professionnelle"),
)
# What the key of a party's name may begin with, before the words that are looked up.
_FORM_STARTS = ("societe", *(form for form, _ in _FORMS_IN_FULL), *_KEPT_FORMS)
NAME_STARTS = ("", "m ", "mme ", "m mme ", "epoux ", "consorts ", *(f"{form} " for form in _FORM_STARTS))
# Words that begin or qualify the names of many bodies.
_COMMON_WORDS = frozenset(
    """
    syndicat syndicats syndicale union unions federation confederation comite social economique entreprise etablissement
    central cse caisse caisses fonds garantie assurance assurances maladie mutuelle mutuelles mutualite sociale agricole
    cgt cfdt fo cftc cfe cgc unsa sud solidaires force ouvriere departemental departementale local locale regional
    regionale national nationale general generale primaire groupe societe direction office agence chambre conseil cpam
    cram crama cramif caf urssaf msa carsat assedic automobile accidents france francaise francais travail
    """.split()
)
_OF_SOME_TEXT = re.compile(r"\d\S* (?:du|de la|de l['’]|des)\b", re.IGNORECASE)  # article 3 of an unknown text
_OF_STATUTES = re.compile(
    r"\b(?:loi|d[ée]cret|arr[êe]t[ée]|circulaire|directive|r[èe]glement)s?\b(?!.*\barticles?\b)", re.IGNORECASE
)
_FIRST = re.compile(r"\barticle premier\b", re.IGNORECASE)
_HOMONYMS = frozenset(("commune", "communes", "ville", "mairie"))  # several share a name
_TITLE = "|".join(sorted(TITLES, key=len, reverse=True))
_PSEUDONYM = re.compile(r"\[|\.\.\.|…")


class Named(NamedTuple):
    """A node before it is stored: its key, its type, and its display name."""

    key: str
    type: str  # one of `NODE_TYPES`
    name: str


def document_node(doc_id: str, node_type: str = "decision") -> Named:
    """Build the node of a document of the Library: a decision, an article, or another document."""
    return Named(DOCUMENT + doc_id, node_type, doc_id)


def identifier_node(identifier: Identifier) -> Named:
    """Build the node of a cited decision or article."""
    if identifier.kind == "article":
        code = identifier.code.removeprefix("nouveau ")  # the code de procédure civile was the new one until 2007
        if code in NAMES_OF_TEXTS:  # a treaty's
            return article_of_statute(identifier.value, Named(STATUTE + key_of(code), "statute", code))
        return Named(canonical_key(identifier._replace(code=code)), "article", _article_name(identifier.value, code))
    key = canonical_key(identifier)
    return Named(relaxed_key(key) if identifier.kind == "number" else key, "decision", _decision_name(identifier))


def court_node(*written: str, within: str = "") -> Named | None:
    """Build the node of a court, perhaps with its chamber: 'Cass. soc.' is 'Cour de cassation', 'Chambre sociale'.

    If the town is missing, the id of its document (`within`) becomes part of the key.
    """
    parts = [" ".join(part.split()) for part in written if part.strip()]
    words = court_words(" ".join(parts))
    if not words:
        return None
    name = ", ".join([parts[0], *map(within_sentence, parts[1:])])
    court = parse_court(" ".join(parts))
    is_unique = court.types & UNIQUE_COURTS or court.town
    return Named(COURT + " ".join(sorted(words)) + ("" if is_unique else _of_doc(within)), "court", name)


def court_words(written: str) -> frozenset[str]:
    """Return the words that identify a court and chamber: "pôle 6, chambre 3" is not "pôle 3, chambre 6"."""
    numbered = {f"{match[1][0].lower()}{match[2].lower()}" for match in _PART_OF_COURT.finditer(written)}
    return words_of_value(_PART_OF_COURT.sub(" ", written)) | numbered


def statute_node(written: str, within: str = "") -> Named | None:
    """Build the node of a code, a statute or a treaty, keyed by kind and number if it has a number.

    If others share date or number ("arrêté du 3 mars 2021"), the id of its document (`within`) is part of the key.
    """
    statute = _read_statute(written)
    if statute is None:
        return None
    return Named(statute.key + ("" if statute.is_unique else _of_doc(within)), "statute", _trim(written))


def numbered_statutes(written: Iterable[str]) -> dict[str, Named]:
    """Map the date key of a statute to its node with a number, where only one of the names fits.

    Within one text, "ordonnance du 7 novembre 1958" is "ordonnance n° 58-1067 du 7 novembre 1958".
    """
    numbered = _numbered_by_date(written)
    return {key: min(nodes) for key, nodes in numbered.items() if len({node.key for node in nodes}) == 1}


def dated_laws(written: Iterable[str]) -> set[tuple[str, str]]:
    """Return the laws that are named by number and day, each by both: ('loi 1989-07-06', 'loi 89-462')."""
    laws = set()
    for by_date, nodes in _numbered_by_date(written).items():
        by_day = by_date.removeprefix(STATUTE)
        kind, _, day = by_day.rpartition(" ")
        years = day[:4], _short_year(day[:4])
        numbered = (node.key.removeprefix(STATUTE) for node in nodes if kind in _KNOWN_BY_DATE)
        laws |= {(by_day, law) for law in numbered if law.rpartition(" ")[2].partition("-")[0] in years}
    return laws


def _numbered_by_date(written: Iterable[str]) -> dict[str, set[Named]]:
    """Return the statutes that are named by number and day, by the key that they have by day alone."""
    numbered: dict[str, set[Named]] = {}
    for name in set(written):
        statute = _read_statute(name)
        if statute and statute.day and (kind := _STATUTE_KIND.match(statute.key.removeprefix(STATUTE))):
            by_date = f"{STATUTE}{kind[1]} {statute.day}"
            if statute.key != by_date:
                numbered.setdefault(by_date, set()).add(Named(statute.key, "statute", _trim(name)))
    return numbered


def law_in(key: str) -> tuple[str, str] | None:
    """Split the key of a law, or of an article of one, before the law: ('article:22 ', 'loi 89-462')."""
    match = _LAW_KEY.fullmatch(key) if "loi " in key else None  # few are: looking is faster than the pattern
    return (match[1], match[2]) if match else None


def key_of_term(term: str) -> str:
    """Return the graph's key for a Library's key of an article: 'article:22 loi 89-462' for '… loi n° 89-462'."""
    match = _STATUTE_TERM.fullmatch(term) if " n° " in term else None
    if not match:
        return term
    number = _statute_number(*match["number"].split("-")[:2]) if match["number"] else match["day"]
    return f"{match['article']} {key_of(match['nature'])} {number}"


def term_of_key(key: str) -> str:
    """Return the Library's key for a graph's key of an article, where it has another."""
    match = _STATUTE_KEY.fullmatch(key)
    if not match:
        return key
    number = f"{NO_CODE} du {match['value']}" if _ISO_DAY.fullmatch(match["value"]) else match["value"]
    return f"{match['article']} {_NATURES[match['kind']]} n° {number}"


class _Statute(NamedTuple):
    key: str
    is_unique: bool  # others share neither number nor date
    day: str  # ISO 8601, of its only date; else empty


@lru_cache(CACHED_STATUTES)
def _read_statute(written: str) -> _Statute | None:
    words = _abbreviated_code(written) or _FORMER.sub("", " ".join(words_of(written)), count=1)
    words = next((name for pattern, name in _TREATIES if pattern.match(words)), words)
    if not words:
        return None
    dates = find_dates(written)
    day = dates[0].value.isoformat() if len(dates) == 1 else ""
    number = next(
        (m for m in _NUMBER.finditer(written) if not any(day.start <= m.start() < day.end for day in dates)), None
    )
    if not number and not day:
        return _Statute(STATUTE + words, is_unique=True, day=day)
    kinds = set(_STATUTE_KIND.findall(" ".join(words_of(written[: number.start() if number else dates[0].start]))))
    kind = kinds.pop() if len(kinds) == 1 else ""
    if not kind or not words.startswith(kind):  # several statutes, or something about one
        return _Statute(STATUTE + ("constitution" if words == _CONSTITUTION else words), is_unique=True, day=day)
    value = _statute_number(*number.groups()) if number else day
    is_unique = kind not in _OF_MANY_ISSUERS and (number is not None or kind in _KNOWN_BY_DATE)
    return _Statute(f"{STATUTE}{kind} {value}", is_unique, day)


def _abbreviated_code(written: str) -> str:
    """Return the words of the code behind an abbreviation such as "C. trav.", '' if there is none."""
    if len(written) > MOST_ABBREVIATED or any(map(str.isdecimal, written)):  # "C. trav., L. 1233-4" is an article
        return ""
    codes = {article.code for article in find_abbreviated_articles(f"article 1 {written}") if article.code}
    return key_of(codes.pop()) if len(codes) == 1 else ""


def _statute_number(first: str, second: str) -> str:
    """Return a statute's number with its usual year: two digits until 1999; "883/2004" is unchanged."""
    is_european = len(second) == 4 and second[:2] in ("19", "20") and len(first) < 4
    return f"{first}-{second}" if is_european else f"{_short_year(first)}-{int(second)}"


def _short_year(written: str) -> str:
    if len(written) == 2:  # as in "directive 93/13"
        return written if int(written) >= _FIRST_YEAR else f"20{written}"
    return written[2:] if written.startswith("19") and int(written[2:]) >= _FIRST_YEAR else written


def _of_doc(within: str) -> str:
    return f" @{within}" if within else ""


def article_of_statute(number: str, statute: Named) -> Named:
    """Build the node of an article of a text other than a code: article 59 of the Constitution."""
    value = re.sub(r"\bpremier\b", "1", number.rstrip(" .,"), flags=re.IGNORECASE).lstrip("0")
    key = f"article:{value} {statute.key.removeprefix(STATUTE)}"
    return Named(key, "article", f"article {spaced_number(value).replace(NO_BREAK, ' ')}, {statute.name}")


def person_node(node_type: str, written: str, within: str) -> Named | None:
    """Build the node of a person or an organisation; None for a name without content ("M. X...").

    Persons are keyed by document (`within`, empty for a lookup), as two may share a name; so are organisations whose
    name others may have ("syndicat CGT", "société Martin", "commune de Saint-Denis").
    """
    folded = words_of(written)
    words = [word for word in folded if word not in TITLES | FORMS | SMALL_WORDS]
    if all(word.isdecimal() for word in words) or (len(words) == 1 and len(words[0]) == 1):
        return None
    title = _title(folded)
    if not title and is_organisation(written):
        form = _legal_form(folded)
        words = (not _PSEUDONYM.search(written) and name_words(written)) or words
        is_unique = _is_unique_name(written, words)
        kept = [form] if form in _KEPT_FORMS or (form and not is_unique) else []
        return Named(
            NAME + " ".join([*kept, *words]) + ("" if is_unique else _of_doc(within)), node_type, _trim(written)
        )
    return Named(NAME + " ".join([*title, *words]) + _of_doc(within), node_type, _trim(written))


def _legal_form(folded: Sequence[str]) -> str:
    """Return the leading legal form, abbreviated: 'sarl' for "S.A.R.L.", 'societe' if it is unspecific."""
    text = " ".join(folded)
    in_full = next((form for form, words in _FORMS_IN_FULL if text.startswith(words)), "")
    letters = "".join(itertools.takewhile(lambda word: len(word) == 1, folded))
    spaced = next((letters[:n] for n in range(len(letters), 1, -1) if letters[:n] in FORMS), "")
    first = folded[0] if folded and folded[0] in FORMS else ""
    return in_full or spaced or ("societe" if first in _VAGUE_FORMS else first)


def _title(folded: Sequence[str]) -> list[str]:
    """Return the normalised titles before a name: 'm', 'mme', both for a couple, 'epoux'; none for "Maître"."""
    head = itertools.takewhile(lambda word: word in TITLES or word in SMALL_WORDS, folded)
    kinds = [
        "m" if word in TITLES_OF_MEN else "mme" if word in TITLES_OF_WOMEN else word
        for word in head
        if word in TITLES - TITLES_OF_ANYONE
    ]
    return list(dict.fromkeys(kinds))


def _is_unique_name(written: str, words: Sequence[str]) -> bool:
    """Guess whether a name is unique: two distinctive words, or one and the kind of body."""
    distinctive = [word for word in words if word not in _COMMON_WORDS | _KEPT_FORMS and len(word) > 1]
    is_distinct = len(distinctive) > 1 or (len(distinctive) == 1 and not _COMMON_WORDS.isdisjoint(words))
    return is_distinct and _HOMONYMS.isdisjoint(words) and not _PSEUDONYM.search(written)


def is_distinctive(words: Iterable[str]) -> bool:
    """Tell whether folded words may name one party: not those that begin or qualify the names of many bodies."""
    return not _COMMON_WORDS.union(_KEPT_FORMS).issuperset(words)


def is_known_as(words: Sequence[str], key: str, name: str) -> bool:
    """Tell whether some folded words name a party: of a person, its surname; of a body, any words of its name."""
    known = words_of_key(key)
    if _PSEUDONYM.search(name) or not words or not set(words) <= set(known):
        return False
    return is_organisation(name) or set(words_of(" ".join(_surname(name)))) <= set(words)


def is_named_in(text: str, name: str) -> bool:
    """Tell whether a text without accents has a party's name: a body's, or a person's surname behind a title."""
    if _PSEUDONYM.search(name):
        return False
    is_body = is_organisation(name)
    words = name_words(name) if is_body else words_of(" ".join(_surname(name)))
    if not is_distinctive(words) or max(map(len, words), default=0) < SHORTEST_NAME:
        return False
    written = r"\W+(?:(?:de|du|des|la|le|les|et|l|d)\W+)*".join(map(re.escape, words))
    before = (
        ""
        if is_body or not TITLES.intersection(words_of(name))
        else rf"\b(?i:{_TITLE})\W{{1,2}}(?:[A-Z][\w-]*\s){{0,3}}"
    )
    matches = re.finditer(rf"{before}\b(?P<name>(?i:{written}))\b", text)
    return any(match["name"][0].isupper() for match in matches)


def _surname(name: str) -> list[str]:
    parts = _split_name(name)
    return [part for part in parts if part.isupper()] or parts[-1:]


def words_of_key(key: str) -> list[str]:
    """Return the words in the key of a name or a term, without title and legal form."""
    words = key.partition(":")[2].partition(" @")[0].split()
    return [word for word in words if word not in TITLES | FORMS] if key.startswith(NAME) else words


def may_stand_for(short: Named, full: Named) -> bool:
    """Tell whether, within one document, a name may be short for another: "Mme Pailler", "Mme Aline Pailler".

    Titles and forms must agree; a surname is last, or first in capitals; half of a double name does not count.
    """
    title, form = _title_and_form(short.key)
    other_title, other_form = _title_and_form(full.key)
    if (title and title != other_title) or not _same_form(form, other_form):
        return False
    if sorted(words_of_key(short.key)) == sorted(words_of_key(full.key)):
        return True
    if form or words_of(full.name)[:1] not in ([title] for title in TITLES):  # not recognisably a person
        return False
    parts, other = _split_name(short.name), _split_name(full.name)
    first, last = other[: len(parts)], other[-len(parts) :]
    folded = [word.lower() for word in parts]
    is_first = all(map(str.isupper, first)) and not all(map(str.isupper, other[len(parts) :]))
    return 0 < len(parts) < len(other) and (
        folded == list(map(str.lower, last)) or (is_first and folded == list(map(str.lower, first)))
    )


def agrees_with(key: str, before: Iterable[str]) -> bool:
    """Tell whether a name fits the folded words before an occurrence, nearest first.

    The first title or legal form among them must agree: "Mme Martin" does not match "M. Jean Martin".
    """
    title, form = _title_and_form(key)
    words = (word.strip(".'’") for word in before)
    nearest = next((word for word in words if word in TITLES | FORMS), "")
    if not nearest or not (title or form) or nearest in TITLES_OF_ANYONE:
        return True
    if form:
        other = _legal_form([nearest])
        return bool(other) and (_same_form(form, other) or _same_form(other, form))
    return nearest in TITLES and not title.isdisjoint(_title([nearest]))


def _title_and_form(key: str) -> tuple[frozenset[str], str]:
    words = frozenset(key.removeprefix(NAME).partition(" @")[0].split())
    return words & TITLES, min(words & FORMS, default="")


def _same_form(form: str, other: str) -> bool:
    return form in ("", other) or (form == "societe" and other not in _KEPT_FORMS | {""})


def _split_name(name: str) -> list[str]:
    """Split a person's name without accents, double names in one part: 'Jean-Marc', 'SAINT-MARTIN'."""
    parts = re.findall(r"[^\W_]+(?:[-‐‑][^\W_]+)*", without_accents(name))
    return [part for part in parts if part.lower() not in TITLES | SMALL_WORDS]


def is_organisation(written: str) -> bool:
    """Tell whether a name has the form of a company, a public body or an association."""
    name = _LEADING_ARTICLE.sub("", written.strip())
    return LEAD.match(name) is not None or bool(FORMS.intersection(words_of(name)[:1]))


def term_node(node_type: str, written: str) -> Named | None:
    """Build the node of a concept, an event or the like, keyed by its words in the singular."""
    folded = words_of(written)
    words = [singular(word) for word in folded if word not in SMALL_WORDS] or folded
    return Named(TERM + " ".join(words), node_type, _trim(written)) if words else None


def node_of(node_type: str, written: str, within: str = "") -> Named | None:
    """Build the node of a name of one of `NODE_TYPES`; None for a name without content, or too long.

    A decision or an article without an identifying number becomes a term of its document (`within`).
    """
    if len(written) > MOST_CHARS:
        return None
    if node_type in ("decision", "article"):
        node = _identified(node_type, written)
        term = term_node(node_type, written)
        return node or (term and term._replace(key=term.key + _of_doc(within)))
    if node_type == "court":
        return court_node(written, within=within)
    if node_type == "statute":
        return statute_node(written, within)
    if node_type in NAMED_TYPES:
        return person_node(node_type, written, within)
    return term_node(node_type, written)


def _identified(node_type: str, written: str) -> Named | None:
    """Return the decision or article that a name identifies by its number, if it is unique."""
    written = _FIRST.sub("article 1er", written)
    is_article = node_type == "article"
    refs = [ref for ref in identifiers_in(written, bare=is_article) if (ref.kind == "article") == is_article]
    nodes = set(map(identifier_node, refs))
    if len({node.key for node in nodes}) != 1 or not is_named_by(written, refs):
        return None
    named = min(nodes)
    if not named.key.endswith(f" {NO_CODE}"):
        return named
    texts = [text for text in find_texts(written, find_dates(written)) if text.kind != "code"]
    statutes = [node for text in texts if (node := statute_node(written[text.start : text.end]))]
    if not texts and not _OF_SOME_TEXT.search(written):
        return named
    return article_of_statute(refs[0].value, statutes[0]) if len(statutes) == 1 else None


def is_named_by(written: str, found: Iterable[Identifier]) -> bool:
    """Tell whether a name is the decision's or article's whose number it holds, not a related one's."""
    before = written[: min((identifier.start for identifier in found), default=0)]
    return not _RELATED.search(before) and not _OF_STATUTES.search(before)


def identifiers_in(text: str, *, bare: bool = False) -> list[Identifier]:
    """Find the decisions and articles in a name, abbreviated codes included; `bare`: "1240" too.

    An article without a code gets the only code in the name: "article L1152-1 Code du travail".
    """
    abbreviated = [Identifier("article", *article) for article in find_abbreviated_articles(text)]
    refs = [ref for ref in find_identifiers(text) if not any(ref.value == other.value for other in abbreviated)]
    refs = [*abbreviated, *refs, *(Identifier(*case) for case in find_european_cases(text))]
    if not refs and bare:
        return identifiers_in(f"article {text}")
    codes = {" ".join(text[ref.start : ref.end].lower().split()) for ref in find_texts(text, []) if ref.kind == "code"}
    if len(codes) == 1:
        (code,) = codes
        refs = [ref._replace(code=ref.code or code) if ref.kind == "article" else ref for ref in refs]
    return refs


def guessed_type(written: str) -> str:
    """Guess the type of a name from its form; 'concept' by default."""
    refs = identifiers_in(written)
    if refs:
        return "article" if all(ref.kind == "article" for ref in refs) else "decision"
    if find_courts(written) or court_at_start(written):
        return "court"
    if find_texts(written, find_dates(written)):
        return "statute"
    words = words_of(written)[:1]
    return "party" if TITLES.intersection(words) or is_organisation(written) else "concept"


def is_reference(key: str) -> bool:
    """Tell whether a key is one of a document's own: see `legal_rag.law.keys.own_keys`."""
    return not key.startswith((DOCUMENT, COURT, STATUTE, NAME, TERM, LOWER))


def is_of_one_document(key: str) -> bool:
    """Tell whether a key is that of a person or organisation known within one document only."""
    return key.startswith(NAME) and " @" in key


def _article_name(value: str, code: str) -> str:
    number = spaced_number(value).replace(NO_BREAK, " ")
    if not code:
        return f"article {number}"
    return f"article {number} {'des' if code.startswith('livre des') else 'du'} {code}".replace("des livre", "du livre")


def _decision_name(identifier: Identifier) -> str:
    if identifier.kind == "ecli":
        return identifier.value
    if identifier.kind == "pourvoi":
        return f"pourvoi n° {identifier.value[:5]}.{identifier.value[5:]}"
    if identifier.kind == "rg":
        return f"RG n° {identifier.value}"
    if identifier.kind in EUROPEAN:
        court = (
            "CEDH, n°"
            if identifier.kind == "cedh"
            else "Trib. UE, aff."
            if identifier.value[0] in "TF"
            else "CJUE, aff."
        )
        return f"{court} {identifier.value}"
    return f"décision n° {identifier.value}{f' {identifier.kind.upper()}' if identifier.kind in SERIES else ''}"


def _trim(written: str) -> str:
    return " ".join(written.split())[:MOST_CHARS]
