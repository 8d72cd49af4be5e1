"""The search box's operators: « exact phrases », ET, OU, NON, -mot, mot*; parsed, then looked up exactly."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from legal_rag.base.html import displayed
from legal_rag.base.text import PLAIN_CHARS, Span, normalized, without_accents
from legal_rag.law import Identifier, Statute, is_statute
from legal_rag.law.keys import ParsedQuery
from legal_rag.law.words import MONTHS
from legal_rag.library.bm25 import POSITION_BITS, SHORTEST_STEM, Clause, LexicalIndex, lexical_words
from legal_rag.library.store import Contents

MOST_READ = 5_000  # documents whose text is read for one phrase or prefix, the best by BM25
LONGEST_ACRONYM = 5  # letters: "CSE ET RATP" has an operator, "CLAUSE DE NON CONCURRENCE" has none
LONGEST_TYPED = 1000  # characters
MOST_NESTED = 20  # brackets, one within the other
FROM_LAW_TO_DATE = 80  # characters


@dataclass(frozen=True)
class Leaf:
    """A word, a phrase, a beginning of words or a reference to look for."""

    shown: str  # as typed
    clauses: tuple[Clause, ...]  # each passage that has it meets one of them
    form: str = ""  # regular expression of it; without one the clauses say all
    before: str = ""  # regular expression of what is shortly before the group "dated" of the form

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        """The compiled form, for plain texts."""
        return re.compile(self.form) if self.form else None

    def spans(self, text: str) -> Iterator[Span]:
        """Yield where a text holds it, of a leaf with a form."""
        plain = _plain(text)
        for match in self.pattern.finditer(plain) if self.pattern else ():
            lead = plain[max(match.start() - FROM_LAW_TO_DATE, 0) : match.start()]
            if not self.before or match.lastgroup != "dated" or re.search(self.before, lead):
                yield match.span()


@dataclass(frozen=True)
class Not:
    """What must not be in the document."""

    node: "Node"


@dataclass(frozen=True)
class All:
    """All of these in one document."""

    nodes: tuple["Node", ...]


@dataclass(frozen=True)
class OneOf:
    """At least one of these in a document."""

    nodes: tuple["Node", ...]


Node = Leaf | Not | All | OneOf
EVERYTHING = Leaf("", (Clause(),))  # holds in every document, without a look-up


class TypedQuery(NamedTuple):
    """What a text typed into a search box asks for."""

    words: str  # all that is not excluded, without operators: it ranks; may be empty
    condition: Node | None = None  # on documents
    unread: tuple[str, ...] = ()  # what looks like an operator and was searched as words, or left out


def parse(text: str) -> TypedQuery:
    """Parse what is typed into a search box.

    A phrase, "mot*" and "-mot" are conditions; words beside them only rank. Where ET, OU or NON is, in capitals in a
    text that is not, every word is a condition; ET, also between words without operator, binds more closely than OU. A
    longer text than `LONGEST_TYPED` is not typed: it has no operators.
    """
    if len(text) > LONGEST_TYPED:
        return TypedQuery(text)
    tokens, unread = _read_tokens(normalized(text))
    has_operators = any(token.kind in ("ET", "OU", "NON") for token in tokens)
    excluded = list(_excluded(tokens))
    words = " ".join(token.text for token, is_out in zip(tokens, excluded, strict=True) if token.text and not is_out)
    if not has_operators:
        tokens = [token for token, is_out in zip(tokens, excluded, strict=True) if is_out or token.is_marked]
    parser = _Parser(tokens)
    condition = parser.parse()
    return TypedQuery(words, condition, tuple(dict.fromkeys([*unread, *parser.unread])))


def leaves_of(node: Node | None) -> Iterator[Leaf]:
    """Yield what a document should hold, in order; nothing that is excluded."""
    if isinstance(node, Leaf):
        yield node
    elif isinstance(node, All | OneOf):
        for part in node.nodes:
            yield from leaves_of(part)


def excludes(node: Node | None) -> bool:
    """Does a condition exclude anything?"""
    return isinstance(node, Not) or (isinstance(node, All | OneOf) and any(map(excludes, node.nodes)))


class _Token(NamedTuple):
    kind: str  # "ET", "OU", "NON", "-", "(", ")", or "" for a leaf
    text: str = ""
    leaf: Node | None = None
    is_marked: bool = False  # in quotation marks, or with "*"


_OPERATORS = {"ET": "ET", "AND": "ET", "OU": "OU", "OR": "OU", "NON": "NON", "NOT": "NON", "SAUF": "NON"}
_MINUS = re.compile(r"(?<![^\s(])[-−](?=[^\s\d-])")
_TOKEN = re.compile(
    rf"(?P<minus>{_MINUS.pattern})|"
    r"(?P<quoted>«[^«»]*»|“[^“”]*”|\"[^\"]*\")|(?P<bracket>[()])"
    r"|(?P<prefix>[^\W_](?:[\w'’-]*\w)?)\*(?!\w)|(?P<word>[^\s()\"«»“”]+)|(?P<sign>[\"«»“”])"
)
# What other search languages have: proximity, weights, signs within words, fields.
_FOREIGN = re.compile(
    r"[&|]+|\+(?=\w)|[~^][\d.]*|[*?$](?=\w)|(?<=\w)\*+|\b(?:PROX|PRES|NEAR|ADJ)(?:/?\d+)?\b|(?<=\s)[Ww]?/\d+\b"
    r"|\b(?:titre|title|texte|text|juridiction|formation|date|num[ée]ro|solution):(?=\w)"
)


_PAIRED = re.compile(r"[^()\"«»“”]*?\w[-−](?=[\s.,;:!?)]|$)")  # "-un retraité-"
_NEXT_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def _excludes(text: str, at: int) -> bool:
    """Does the dash before some place exclude? One of a pair does not, nor one before "en" or "un"."""
    word = _NEXT_WORD.match(text, at)
    return not _PAIRED.match(text, at) and (not word or bool(lexical_words(word.group())))


def _read_tokens(text: str) -> tuple[list[_Token], list[str]]:
    tokens: list[_Token] = []
    unread: list[str] = []
    is_shouted = text.isupper() and any(len(word) > LONGEST_ACRONYM for word in re.findall(r"[^\W\d_]+", text))
    references = references_in(_MINUS.sub(" ", text))
    at = 0
    while match := _TOKEN.search(text, at):
        reference = next((one for one in references if one.start <= match.start() < one.end), None)
        at = match.end()
        if match["minus"] and not _excludes(text, at) and not any(one.start == at for one in references):
            unread.append("-")
        elif reference and not match["minus"] and not match["quoted"]:
            at = reference.end
            tokens.append(_Token("", text[reference.start : at], reference.node))
        elif match["quoted"]:
            phrase, n = re.subn(r"[*?]+(?!\w)", "", match["quoted"][1:-1].strip())
            unread += ["*"] if n else []
            if phrase:
                tokens.append(_Token("", phrase, _phrase(phrase), is_marked=True))
        elif match["prefix"]:
            tokens.append(_Token("", match["prefix"], _prefix(match["prefix"]), is_marked=True))
        elif match["minus"] or match["bracket"]:
            tokens.append(_Token("-" if match["minus"] else match["bracket"]))
        elif match["sign"]:
            unread.append(match["sign"])
        elif (word := match["word"]) in _OPERATORS:
            if is_shouted:
                unread.append(word)
            tokens.append(_Token("", word) if is_shouted else _Token(_OPERATORS[word]))
        else:
            unread += (sign.group() for sign in _FOREIGN.finditer(f" {word}"))
            if plain := _FOREIGN.sub(" ", f" {word}").strip():
                tokens.append(_Token("", plain, _word(plain)))
    return tokens, unread


def _excluded(tokens: Sequence[_Token]) -> Iterator[bool]:
    """Tell of each token whether it is a sign of exclusion, or what one excludes."""
    depth = group = 0  # of brackets; that of the pair excluded
    is_next = False
    for token in tokens:
        depth += (token.kind == "(") - (token.kind == ")")
        if token.kind == "(" and is_next and not group:
            group = depth
        is_sign = token.kind in ("-", "NON")
        yield is_sign or bool(group) or (is_next and not token.kind)
        group = 0 if depth < group else group
        is_next = is_sign


class _Parser:
    """Recursive descent over tokens; what has no place is `unread`."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens, self._at, self._open = tokens, 0, 0
        self.unread: list[str] = []

    def parse(self) -> Node | None:
        return self._one_of()

    @property
    def _kind(self) -> str | None:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else None

    def _one_of(self) -> Node | None:
        nodes = [self._all()]
        while self._kind == "OU":
            self._at += 1
            nodes.append(self._all())
        if len(nodes) > 1 and None in nodes:
            self.unread.append("OU")
        return _joined(OneOf, [node for node in nodes if node])

    def _all(self) -> Node | None:
        nodes: list[Node] = []
        is_joined = True  # no ET is waiting for what it joins
        while self._kind not in (None, "OU") and not (self._kind == ")" and self._open):
            if self._kind == ")":
                self._at += 1
                self.unread.append(")")
            elif self._kind == "ET":
                self._at += 1
                if not nodes or not is_joined:
                    self.unread.append("ET")
                is_joined = False
            elif node := self._single():
                nodes.append(node)
                is_joined = True
        if nodes and not is_joined:
            self.unread.append("ET")
        return _joined(All, nodes)

    def _single(self) -> Node | None:
        is_excluded = False
        while self._kind in ("NON", "-"):
            is_excluded = not is_excluded
            sign = self._kind
            self._at += 1
            if self._kind in ("ET", "OU", ")", None):
                self.unread.append(sign)
                return None
        node = self._plain()
        return Not(node) if node and is_excluded else node

    def _plain(self) -> Node | None:
        token = self._tokens[self._at]
        self._at += 1
        if token.kind == "(" and self._open == MOST_NESTED:
            self.unread.append("(")
            return None
        if token.kind == "(":
            self._open += 1
            node = self._one_of()
            self._open -= 1
            if self._kind == ")":
                self._at += 1
            else:
                self.unread.append("(")
            return node
        return token.leaf


def _joined(kind: type[All] | type[OneOf], nodes: Sequence[Node]) -> Node | None:
    return kind(tuple(nodes)) if len(nodes) > 1 else nodes[0] if nodes else None


_PLAIN_SIGNS = [(chr(code), plain) for code, plain in PLAIN_CHARS.items() if chr(code) == chr(code).lower()]
_LIGATURES = {"œ": "oe", "æ": "ae"}


def _plain(text: str) -> str:
    """Return a text of the same length in which case, accents, and kinds of signs and blanks do not count."""
    lower = text.lower()
    if len(lower) != len(text):  # "İ" has two letters in lower case
        lower = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    for sign, plain in _PLAIN_SIGNS:
        if sign in lower:  # ten times as fast as `str.translate`
            lower = lower.replace(sign, plain)
    return lower


def _in_letters(text: str) -> str:
    return "".join(_LIGATURES.get(letter, letter) for letter in text.lower())


def _form_of(text: str) -> str:
    """Return a regular expression of a text, to be searched in plain ones."""
    form = re.escape(" ".join(_plain(_in_letters(text)).split()))
    for ligature, letters in _LIGATURES.items():
        form = form.replace(letters, f"(?:{letters}|{ligature})")
    return form.replace("\\ ", " +")


def _whole(text: str) -> str:
    """Return the form of a text that begins and ends where words do."""
    return (r"(?<!\w)" if text[0].isalnum() else "") + _form_of(text) + (r"(?!\w)" if text[-1].isalnum() else "")


def _word(text: str) -> Leaf:
    """Return a word in any form; where its stem does not begin it ("loyer" has that of "loi"), texts are read too."""
    forms = []
    for word in re.findall(r"[^\W_]+", _plain(_in_letters(text))):
        stem = next(iter(lexical_words(word)), "")
        if not word.startswith(stem):
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, stem, strict=False)))
            forms.append(word[: max(shared, SHORTEST_STEM)])
    return Leaf(text, (Clause(words=text),), rf"(?<!\w){forms[0]}" if len(forms) == 1 else "")


def _phrase(text: str) -> Leaf:
    beginnings = tuple(word for word in re.findall(r"[^\W_]{3,}", without_accents(text.lower())))
    # Words typed without their accents have other stems: "salarie" for "salarié".
    clauses = (Clause(words=text),) if not text.isascii() else (Clause(words=text), Clause(prefixes=beginnings))
    return Leaf(f"« {text} »", clauses, _whole(text))


def _prefix(text: str) -> Leaf:
    *before, last = re.split(r"[^\w]+", without_accents(text.lower()))
    clause = Clause(words=" ".join(word for word in before if len(word) > 2), prefixes=(last,))
    return Leaf(f"{text}*", (clause,), rf"(?<!\w){_form_of(text)}\w*")


class Reference(NamedTuple):
    """A decision, an article or a statute that a text names, as a condition."""

    start: int  # characters
    end: int
    shown: str
    node: Node


def references_in(text: str) -> list[Reference]:
    """Return the decisions, articles and statutes that a text names, in order."""
    query = ParsedQuery(text)
    keys: dict[Span, list[str]] = {}
    for name, key in query.keyed_identifiers:
        keys.setdefault((name.start, name.end), []).append(key)
    statutes: dict[Span, list[Statute]] = {}
    for statute in query.statutes:
        statutes.setdefault((statute.start, statute.end), []).append(statute)
    names: dict[Span, Identifier] = {}
    for name in query.identifiers:
        if is_statute(name.code):  # which is a condition of its own
            name = name._replace(code="")
        other = names.get((name.start, name.end), name)
        is_of_any_letter = name.kind == "article" and other.value != name.value  # "1233-4 code du travail"
        names[name.start, name.end] = name._replace(value=name.value.lstrip("LRD")) if is_of_any_letter else name
    references = [
        Reference(_from_noun(text, span[0]), span[1], _shown(names[span], text), _named_by(names[span], text, of))
        for span, of in keys.items()
    ]
    references += (
        Reference(*span, text[slice(*span)], _statute(text[slice(*span)], of)) for span, of in statutes.items()
    )
    return sorted(references, key=lambda reference: reference.start)


_LED = re.compile(
    r"\b(?:articles?|art\.?|(?:pourvoi|arr[êe]t|d[ée]cision|requ[êe]te|affaire|RG)s?|n[°ºo]s?)\s*\Z", re.IGNORECASE
)


def _from_noun(text: str, start: int) -> int:
    """Return where "article" or "pourvoi n°" before a number begins: "-article 1240" excludes the number too."""
    led = _LED.search(text, max(start - 12, 0), start)
    return _from_noun(text, led.start()) if led else start


def _named_by(name: Identifier, text: str, keys: Sequence[str]) -> Node:
    typed, shown = text[name.start : name.end], _shown(name, text)
    named = Leaf(shown, tuple(Clause(names=(key,)) for key in keys))
    if any(key.startswith("cc:") for key in keys):  # "85-677" is the number of a decision, or of a statute
        return OneOf((named, _phrase(typed)))
    if name.code and not name.code.startswith("code"):  # the index has the codes of articles alone
        return All((named, Leaf(name.code, (Clause(words=name.code), Clause(words=re.sub(r"[\W\d]+", " ", typed))))))
    return named


def _shown(name: Identifier, text: str) -> str:
    if name.kind != "article":
        return text[name.start : name.end]
    code = f" du {name.code}" if name.code.startswith("code") else f", {name.code}" if name.code else ""
    return f"l'article {name.value}{code}"


def _statute(typed: str, statutes: Sequence[Statute]) -> Leaf:
    """Return what is looked for where a statute is named: its number, its date after its nature, or the name typed."""
    clauses: list[Clause] = []
    forms: list[str] = []
    days: list[str] = []
    for law in statutes:
        if law.number:
            clauses.append(Clause(words=law.number))
            forms.append(_whole(law.number))
        if law.date:
            clauses.append(Clause(names=(f"date:{law.date.isoformat()}",)))
            day, month, year = law.date.day, law.date.month, law.date.year
            days.append(rf"0?{day}(?:er)?(?: +{_form_of(MONTHS[month - 1])} +|/0?{month}/){year}")
    if not any(letter.isdecimal() for letter in typed):
        clauses.append(Clause(words=typed))
        forms.append(_whole(typed))
    forms += [rf"(?<!\d)(?P<dated>{'|'.join(days)})"] if days else []
    natures = "|".join(sorted({_form_of(law.nature) for law in statutes}))
    return Leaf(typed, tuple(clauses), "|".join(forms), rf"\b(?:{natures})s?\b[^.;]*\Z")


def split_places(places: Iterable[int], n_shards: int) -> list[np.ndarray]:
    """Return places, one integer each, as rising positions for each shard."""
    numbers = np.sort(np.fromiter(places, dtype=np.int64))
    shards = numbers >> POSITION_BITS
    return [numbers[shards == shard] & ((1 << POSITION_BITS) - 1) for shard in range(n_shards)]


@displayed
class TextMatches(NamedTuple):
    """Where a condition holds: documents by the place of their first chunk, chunks by their own."""

    documents: set[int]
    best: dict[int, int] | None  # chunks that hold all of it, with their documents; None where it excludes alone
    any: dict[int, int]  # chunks that hold a part of it, with their documents
    is_complete: bool = True  # False: `MOST_READ` documents were read, and more may match


def find_matches(condition: Node, lexical: LexicalIndex, contents: Contents) -> TextMatches:
    """Look a condition up: words and references in the index, phrases and beginnings of words in the texts too."""
    found = _Lookup(lexical, contents).find(condition)
    passages = lexical.having(()).passages if found.best is None else found.any
    within = {place: document for place, document in passages.items() if document in found.documents}
    best = within if found.best is None else {place: within[place] for place in found.best if place in within}
    return found._replace(best=best, any=within)


class _Lookup:
    def __init__(self, lexical: LexicalIndex, contents: Contents) -> None:
        self._lexical, self._contents = lexical, contents

    def find(self, node: Node, within: set[int] | None = None) -> TextMatches:
        """Look a node up, in no other documents than `within` if texts have to be read."""
        if isinstance(node, Leaf):
            return self._leaf(node, within)
        if isinstance(node, Not):
            excluded = self.find(node.node, within)
            documents = self._all_documents if within is None else within
            return TextMatches(documents - excluded.documents, None, {}, excluded.is_complete)
        if isinstance(node, OneOf):
            parts = [self.find(part, within) for part in node.nodes]
            both = [part.best for part in parts if part.best is not None]
            return _merged(set().union(*(part.documents for part in parts)), parts, _union(both))
        parts = []
        for part in sorted(node.nodes, key=_is_read):
            parts.append(self.find(part, within))
            within = parts[-1].documents if within is None else within & parts[-1].documents
        held = [part.best for part in parts if part.best is not None]
        best = {place: held[0][place] for place in set.intersection(*map(set, held))} if held else None
        return _merged(within or set(), parts, best)

    def _leaf(self, leaf: Leaf, within: set[int] | None) -> TextMatches:
        if leaf.pattern is None:
            found = self._lexical.having(leaf.clauses)
            own = self._contents.bearing([name for clause in leaf.clauses for name in clause.names])
            named = found.passages | own
            return TextMatches({*found.documents, *own.values()}, named, named)
        documents: set[int] = set()
        passages: dict[int, int] = {}
        is_complete = True
        for clause in leaf.clauses:
            candidates = [
                place for place in self._lexical.having([clause]).documents if within is None or place in within
            ]
            candidates = [place for place in candidates if place not in documents]
            is_complete = is_complete and len(candidates) <= MOST_READ
            for document, content, chunks in self._contents.with_chunks(candidates[:MOST_READ]):
                spans = list(leaf.spans(content))
                if spans:
                    documents.add(document)
                    passages |= {
                        place: document
                        for start, end, place in chunks
                        if any(first < end and start < last for first, last in spans)
                    }
        return TextMatches(documents, passages, passages, is_complete)

    @cached_property
    def _all_documents(self) -> set[int]:
        return set(self._lexical.having(()).documents)


def _is_read(node: Node) -> bool:
    """Has a node a form, so that texts are read for it? The others narrow down which."""
    parts = (node.node,) if isinstance(node, Not) else () if isinstance(node, Leaf) else node.nodes
    return any(map(_is_read, parts)) if parts else isinstance(node, Leaf) and bool(node.form)


def _union(parts: Sequence[dict[int, int]]) -> dict[int, int]:
    return {place: document for part in parts for place, document in part.items()}


def _merged(documents: set[int], parts: Sequence[TextMatches], best: dict[int, int] | None) -> TextMatches:
    return TextMatches(documents, best, _union([part.any for part in parts]), all(part.is_complete for part in parts))
