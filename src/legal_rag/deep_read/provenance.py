"""Provenance of a program's answer: what of it follows from what the corpus functions returned in the run.

A program cannot be believed about where a value came from, so this is judged by the parent alone, which keeps what its
functions returned. A value is derived if it stands there or is made again from it: counts, sums, least and greatest,
distinct values, groups, orders, sets. What is vouched for is "this value is that derivation", not a sentence around it.
"""

import functools
import inspect
import itertools
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

from legal_rag.corpus.cleaning import normalized

MAX_SCALARS, MAX_CHARS = 500_000, 20_000_000  # kept of one run; what is returned beyond is not vouched for
MAX_LISTS = 300  # of documents kept
MAX_PAIRED = 16  # lists, the last ones, of which intersections, unions and differences are tried
MAX_VALUES = 100_000  # of an answer that are judged
MAX_SECONDS = 3.0  # for judging
MAX_CITED = 100  # texts of an answer whose citations are checked one by one
SECONDS_A_CALL = 0.2  # for judging the documents that a call names
MAX_GROUPED = 2  # fields that documents are grouped by together
MAX_ARGUMENT = 60  # characters of an argument in a derivation
MAX_LABEL_WORDS = 8  # longer arguments and keys are no labels, but sentences
MAX_SAID = 50  # derivations, and values not verified, that are told of one answer
FEW = 3  # documents described by a run whose fields may be given without their document
# A number that a quarter of the numbers of its size would have matched too is a coincidence.
CHANCE, CHANCE_FROM = 0.25, 20

TEXT_FIELDS = ("title", "date", "juridiction", "formation", "solution", "number", "doc_type", "author")
GROUPING = ("juridiction", "formation", "solution", "doc_type", "author", "année", "mois", "keywords")
IN_FRENCH = {"title": "titre", "number": "numéro", "doc_type": "type", "author": "auteur", "keywords": "mot-clé"}
LISTING = frozenset(
    "list_documents find_documents search_by_keyword search_by_keywords search_by_entity documents_in_topic"
    " documents_citing".split()
)
# Arguments that may label what a call counts: those of which no word is without effect.
LABELLING = frozenset("pattern juridiction formation solution topic".split())
EXACT = frozenset({"pattern", "topic"})
PLAIN = re.compile(r"[\w\s.,'’()-]+")  # filters by court, chamber and outcome overlook other signs ("≠ Rejet")
OWN_SIZE = frozenset({"limit", "offset", "top_k", "k", "max_docs", "doc_ids"})  # arguments that may decide a length
LITERAL = re.compile(r"[^\\.^$*+?{}\[\]|()]*")  # a pattern that matches itself alone
CITED = re.compile(r"\[\s*Source\b", re.IGNORECASE)
ANY = frozenset({"*"})
# Keys that say no more than what kind of value theirs is; every other key must itself be a value of the corpus. Kinds
# of numbers by document name what is counted: "sum:occurrences"; "sum" allows all of them.
KINDS: Mapping[str, frozenset[str]] = {
    label: frozenset(kinds.split())
    for labels, kinds in (
        ("nombre|total|n|nb|count|effectif", "count sum distinct ids rows"),
        ("decisions|documents|arrets", "count ids rows"),
        ("nombre de decisions|nombre de documents|nombre d'arrets|n documents|total docs", "count"),
        ("somme", "sum"),
        ("occurrences|nombre d'occurrences|n occurrences", "sum:occurrences"),
        ("minimum|min", "least"),
        ("maximum|max", "greatest"),
        ("date la plus ancienne|plus ancienne|la plus ancienne|premiere|premier|debut", "least:date"),
        ("date la plus recente|plus recente|la plus recente|derniere|dernier|fin", "greatest:date"),
        ("distincts|distinctes|valeurs distinctes", "distinct"),
        ("resultat|resultats|reponse|valeur|liste|lignes|tableau|table", "*"),
        ("identifiants|ids|doc ids", "ids"),
        ("classement|top", "ranked greatest"),
        ("par annee|par an", "rows:année"),
        ("par mois", "rows:mois"),
        ("par juridiction|par cour", "rows:juridiction"),
        ("par formation|par chambre", "rows:formation"),
        ("par solution", "rows:solution"),
        ("par theme", "rows:thème"),
        ("par document|par decision", "rows:document"),
        ("juridictions|nombre de juridictions", "distinct:juridiction"),
        ("formations|chambres|nombre de formations", "distinct:formation"),
        ("solutions|nombre de solutions", "distinct:solution"),
        ("annees|nombre d'annees", "distinct:année"),
    )
    for label in labels.split("|")
}
FIELD_OF: Mapping[str, str] = {
    label: field
    for field, labels in (
        ("doc_id", "id|doc id|identifiant|document|decision|arret"),
        ("title", "title|titre"),
        ("date", "date|decision date|date de decision|date de la decision"),
        ("juridiction", "juridiction|cour"),
        ("formation", "formation|chambre"),
        ("solution", "solution"),
        ("number", "number|numero|pourvoi"),
        ("doc_type", "doc type|type"),
        ("author", "author|auteur"),
        ("année", "annee|year"),
        ("mois", "mois|month"),
        ("score", "score"),
        ("start", "start|char start|debut"),
        ("end", "end|char end|fin"),
        ("chunk_id", "chunk id"),
        ("measure", "n|nb|nombre|count|total"),
        ("occurrences", "occurrences|nombre d'occurrences"),
        ("caractères", "char count|caracteres|longueur"),
    )
    for label in labels.split("|")
}


class Account(NamedTuple):
    """What of an answer is derived from what the functions returned, and what is not; in French."""

    derived: tuple[str, ...] = ()  # such as "12 : nombre de documents rendus par find_documents(…)"
    unverified: tuple[str, ...] = ()

    @property
    def is_computed(self) -> bool:
        """Whether every part of the answer is derived."""
        return bool(self.derived) and not self.unverified


class Listed(NamedTuple):
    """Documents that a function returned, in its order."""

    said: str
    ids: tuple[str, ...]
    whole: bool  # their number follows from the corpus, not from an argument
    ranked: bool = False  # the best first


class _TooLongError(Exception):
    """Judging an answer takes too long."""


class Returned:
    """What the functions of the corpus returned in one run: facts, never a model's words or an argument's echo."""

    def __init__(self) -> None:
        self.lists: list[Listed] = []
        self.fields: dict[str, dict[str, Any]] = {}  # of documents, by id
        self.measures: dict[str, dict[str, int]] = defaultdict(dict)  # numbers by document, by what is counted
        self.records: dict[str, list[dict[str, Any]]] = defaultdict(list)  # places and scores, by document
        self.links: dict[str, list[Listed]] = defaultdict(list)  # of one document
        self.given: dict[int, str] = {}  # numbers that stand alone
        self.tables: dict[str, dict[tuple[str, ...], int]] = {}  # groups with their numbers, as returned
        self.calls: dict[tuple[Any, ...], dict[tuple[str, ...], tuple[int, str]]] = defaultdict(dict)
        self.is_full = False
        self.ids: set[str] = set()  # of documents
        self._known: dict[str, str] = {}  # texts, so that each is kept once
        self._scalars = self._chars = 0
        self._kept: set[tuple[str, int]] = set()  # calls

    def watch(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same and has its results kept, where they are facts of the corpus."""
        keep = _KEEPERS.get(name)
        if keep is None:
            return function
        signature = inspect.signature(function)

        @functools.wraps(function)
        def watched(*arguments: Any, **named: Any) -> Any:
            result = function(*arguments, **named)
            asked = {key: one for key, one in signature.bind(*arguments, **named).arguments.items() if _is_set(one)}
            call = (name, hash(repr(asked)))
            if call not in self._kept and not self.is_full:
                self._kept.add(call)
                keep(self, name, asked, result)
            return result

        return watched

    def give(self, said: str, value: int | Sequence[str]) -> None:
        """Keep a number or the ids of documents that programs find without a call."""
        if isinstance(value, int):
            self.given.setdefault(value, said)
        else:
            self._list(said, value, whole=True)

    def _list(self, said: str, ids: Iterable[str], *, whole: bool, ranked: bool = False) -> tuple[str, ...]:
        listed = tuple(dict.fromkeys(map(self._id, ids)))
        if not self._fits(len(listed)) or len(self.lists) >= MAX_LISTS:
            self.is_full = True
        elif not any(one.ids == listed and one.whole >= whole and one.ranked >= ranked for one in self.lists):
            self.lists.append(Listed(said, listed, whole, ranked))
        return listed

    def _fits(self, scalars: int) -> bool:
        self._scalars += scalars
        return self._scalars <= MAX_SCALARS and self._chars <= MAX_CHARS

    def _text(self, text: str) -> str:
        known = self._known.setdefault(text, text)
        if known is text:
            self._chars += len(text)
        return known

    def _id(self, doc_id: str) -> str:
        known = self._text(doc_id)
        self.ids.add(known)
        return known

    def _is_whole(self, asked: Mapping[str, Any], n: int) -> bool:
        """Tell whether the length of a result follows from the corpus: no argument repeated, no limit reached."""
        if "offset" in asked:
            return False
        named = asked.get("doc_ids")
        if named is not None and not self._is_listed(named):
            return False
        return not any(asked.get(name) == n for name in ("limit", "top_k", "k"))

    def _is_listed(self, ids: Any) -> bool:
        """Tell whether ids are all of a list, or of a group of one."""
        if not isinstance(ids, list | tuple) or not ids or not all(isinstance(one, str) for one in ids):
            return False
        with suppress(_TooLongError):
            choice = _Judge(self, SECONDS_A_CALL).choice(ids)
            return choice is not None and choice.kind == "whole"
        return False

    def _keep_list(self, name: str, asked: Mapping[str, Any], result: Sequence[str]) -> None:
        said = _said(name, asked)
        ids = self._list(f"documents rendus par {said}", result, whole=self._is_whole(asked, len(result)))
        self._label(name, asked, len(ids), f"nombre de documents rendus par {said}")

    def _label(self, name: str, asked: Mapping[str, Any], n: int, said: str) -> None:
        """Keep what one call counted, under each argument that found something, as a label."""
        if not self._is_whole(asked, n):
            return
        texts = {key: one for key, one in asked.items() if isinstance(one, str) and _is_label(one)}
        if "pattern" in texts and not LITERAL.fullmatch(texts["pattern"]):
            return
        found = {key: one for key, one in texts.items() if n and key in LABELLING}
        labels = {key: (one,) for key, one in found.items() if key in EXACT or PLAIN.fullmatch(one)}
        if span := _year_of(texts):
            labels["date"] = (span,)
        for key, label in labels.items():
            names = {"date_from", "date_to"} if key == "date" else {key}
            rest = repr(sorted((k, one) for k, one in asked.items() if k not in names))
            self.calls[name, key, rest, said.split(" rendus")[0]].setdefault(label, (n, said))

    def _keep_metas(self, name: str, asked: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        if name == "get_doc_meta":
            self._describe(result)
            return
        for meta in result.values():
            self._describe(meta)
        self._list(f"documents rendus par {_said(name, asked)}", result, whole=self._is_whole(asked, len(result)))

    def _describe(self, meta: Mapping[str, Any]) -> None:
        if not self._fits(len(TEXT_FIELDS) + len(meta["keywords"]) + 2):
            self.is_full = True
            return
        doc_id = self._id(meta["doc_id"])
        fields: dict[str, Any] = {name: self._text(meta[name] or "") for name in TEXT_FIELDS}
        fields["année"], fields["mois"] = self._text(fields["date"][:4]), self._text(fields["date"][:7])
        fields["keywords"] = tuple(map(self._text, meta["keywords"]))
        self.fields[doc_id] = fields
        self.measures["nombre de caractères (char_count)"][doc_id] = meta["char_count"]

    def _keep_grep(self, name: str, asked: Mapping[str, Any], result: Any) -> None:
        said = _said(name, asked)
        whole = result.complete and self._is_whole({k: v for k, v in asked.items() if k == "doc_ids"}, len(result))
        ids = self._list(f"documents rendus par {said}", result, whole=whole)
        counts = {doc_id: len(found) for doc_id, found in result.items() if doc_id not in result.shortened}
        self._measure(f"occurrences rendues par {said}", counts)
        for doc_id in ids:
            self._record(doc_id, ({"start": one["start"], "end": one["end"]} for one in result[doc_id]))
        if whole:
            self._label(name, asked, len(ids), f"nombre de documents rendus par {said}")
            if len(counts) == len(ids):
                self._label(name, asked, sum(counts.values()), f"occurrences rendues par {said}")

    def _keep_grep_document(self, name: str, asked: Mapping[str, Any], result: Sequence[Mapping[str, Any]]) -> None:
        of_all = _said(name, {key: one for key, one in asked.items() if key != "doc_id"})
        self._measure_of(asked, f"occurrences rendues par {of_all}", len(result))
        if asked["doc_id"] in self.ids:
            self._record(asked["doc_id"], ({"start": one["start"], "end": one["end"]} for one in result))

    def _keep_hits(self, name: str, asked: Mapping[str, Any], result: Sequence[Any]) -> None:
        rows = [{"doc_id": one[0], "score": one[1]} if isinstance(one, tuple) else one for one in result]
        ids = [row["doc_id"] for row in rows]
        self._list(f"documents rendus par {_said(name, asked)}", ids, whole=False, ranked=True)
        for row in rows:
            kept = {key: row[key] for key in ("score", "chunk_id", "title", "date") if key in row}
            places = {key: row[f"char_{key}"] for key in ("start", "end") if f"char_{key}" in row}
            self._record(row["doc_id"], [{**kept, **places}])

    def _keep_summaries(self, name: str, asked: Mapping[str, Any], result: Any) -> None:
        self._list(f"documents rendus par {_said(name, asked)}", result, whole=result.complete)

    def _keep_topics(self, name: str, asked: Mapping[str, Any], result: Mapping[str, int]) -> None:
        if self._fits(2 * len(result)):
            self.tables["nombre de documents par thème, rendu par get_topics()"] = {
                (self._text(topic),): n for topic, n in result.items()
            }

    def _keep_links(self, name: str, asked: Mapping[str, Any], result: Mapping[str, Sequence[str]]) -> None:
        for key, said in (("cites", "documents cités (get_links)"), ("cited_by", "documents citants (get_links)")):
            self._measure_of(asked, said, len(result[key]))
            if self._fits(len(result[key])) and asked["doc_id"] in self.ids:
                ids = tuple(map(self._id, result[key]))
                self.links[asked["doc_id"]].append(Listed(f"{said} de ou vers {asked['doc_id']}", ids, True))

    def _keep_count(self, name: str, asked: Mapping[str, Any], result: Sequence[Any]) -> None:
        said = _said(name, {key: one for key, one in asked.items() if key != "doc_id"})
        self._measure_of(asked, f"éléments rendus par {said}", len(result))

    def _measure_of(self, asked: Mapping[str, Any], said: str, n: int) -> None:
        if asked["doc_id"] in self.ids:
            self._measure(said, {asked["doc_id"]: n})

    def _measure(self, said: str, counts: Mapping[str, int]) -> None:
        if len(self.measures) > MAX_LISTS or not self._fits(2 * len(counts)):
            self.is_full = True
        else:
            self.measures[said].update({self._id(doc_id): n for doc_id, n in counts.items()})

    def _record(self, doc_id: str, records: Iterable[dict[str, Any]]) -> None:
        kept = list(records)
        if self._fits(3 * len(kept)):
            self.records[self._id(doc_id)] += kept

    def account_for(self, value: Any, is_cited: Callable[[str], bool] = lambda text: False) -> Account:
        """Judge an answer: which of its values are derived, and how; which are not.

        Args:
            value: The answer, of plain values.
            is_cited: Tells whether a text rests on citations that hold, all of it: such texts are not judged.
        """
        judge = _Judge(self)
        try:
            judge.judge(_Cited(is_cited).without(value))
        except _TooLongError:
            judge.unverified.append("réponse trop longue à refaire")
        if judge.unverified and self.is_full:
            judge.unverified.append("les fonctions ont rendu plus que ce qui est retenu d'une lecture")
        return Account(_first(judge.derived), _first(judge.unverified))


_KEEPERS: Mapping[str, Callable[[Returned, str, Mapping[str, Any], Any], None]] = {
    **dict.fromkeys(LISTING, Returned._keep_list),
    "get_doc_meta": Returned._keep_metas,
    "get_doc_metas": Returned._keep_metas,
    "get_all_summaries": Returned._keep_summaries,
    "grep_corpus": Returned._keep_grep,
    "grep_document": Returned._keep_grep_document,
    "rank_documents": Returned._keep_hits,
    "search_passages": Returned._keep_hits,
    "get_topics": Returned._keep_topics,
    "get_links": Returned._keep_links,
    "get_entities": Returned._keep_count,
    "get_doc_sections": Returned._keep_count,
}


class _Cited:
    """Replaces the texts of an answer that rest on citations, up to `MAX_CITED` that claim to."""

    def __init__(self, is_cited: Callable[[str], bool]) -> None:
        self._is_cited, self._left = is_cited, MAX_CITED

    def without(self, value: Any, *keys: str) -> Any:
        """Replace texts; the citations of each must hold up the keys above it as well, save neutral ones and its id."""
        if isinstance(value, str) and CITED.search(value) and self._left > 0:
            self._left -= 1
            heads = [one for one in keys if _folded(one) not in KINDS.keys() | FIELD_OF and not _cites(value, one)]
            return _CITED if self._is_cited(" : ".join([*heads, value])) else value
        if isinstance(value, Mapping):
            return {key: self.without(one, *keys, key) for key, one in value.items()}
        return [self.without(one, *keys) for one in value] if isinstance(value, list | tuple) else value


def _cites(text: str, doc_id: str) -> bool:
    return f"[Source: {doc_id}," in text or f"[Source: {doc_id}]" in text


_CITED = object()  # stands for a text that rests on citations


class _Row(NamedTuple):
    """A row of an answer."""

    parts: tuple[tuple[str, Any], ...]  # name of the field, "" where it has none, and value
    ids: tuple[str, ...] | None = None  # documents listed in it


class _Choice(NamedTuple):
    """How the documents of an answer were chosen and ordered."""

    kind: str  # "whole"; "all" of a list whose length an argument decided; "ranked"; "first"; "least:date"…
    said: str


class _Judge:
    """Judges one answer."""

    def __init__(self, returned: Returned, seconds: float = MAX_SECONDS) -> None:
        self.derived: list[str] = []
        self.unverified: list[str] = []
        self._of = returned
        self._left, self._ends = MAX_VALUES, time.monotonic() + seconds
        self._described: list[Listed] | None = None
        self._numbered: dict[str, str | None] | None = None  # documents by their number
        self._grouped: dict[tuple[int, tuple[str, ...]], dict[tuple[str, ...], list[str]]] = {}

    def judge(self, value: Any, kinds: frozenset[str] = ANY) -> None:
        """Judge a value; `kinds` are those that its label allows."""
        self._spend(1)
        if value is _CITED:
            return
        if isinstance(value, Mapping | list | tuple) and not value:
            self._nothing(kinds)
        elif isinstance(value, Mapping):
            self._judge_dict(value, kinds)
        elif isinstance(value, list | tuple):
            self._judge_list(value, kinds)
        elif isinstance(value, str):
            self._judge_text(value, kinds)
        else:
            self._judge_number(value, kinds)

    def _spend(self, values: int) -> None:
        self._left -= values
        if self._left < 0 or time.monotonic() > self._ends:
            raise _TooLongError

    def _say(self, value: Any, said: str | None) -> None:
        if said is None:
            self.unverified.append(_shown(value))
        else:
            self.derived.append(f"{_shown(value)} : {said}")

    def _nothing(self, kinds: frozenset[str]) -> None:
        lists = self._of.lists if kinds & {"*", "ids"} else ()
        empty = next((one for one in lists if one.whole and not one.ids), None)
        self._say("(rien)", empty and f"aucun des {empty.said}")

    def _judge_dict(self, value: Mapping[Any, Any], kinds: frozenset[str]) -> None:
        if self._is_record(value):
            self._judge_rows([_Row(_named(value))], kinds)
            return
        rows: list[_Row] = []
        for key, one in value.items():
            label = _folded(key)
            if self._is_id(key) or (label not in KINDS and label not in FIELD_OF):
                rows += self._rows_of((("", key),), one)
            elif label in KINDS:
                self.judge(one, _common(kinds, KINDS[label]))
            else:
                field = FIELD_OF[label]
                own = frozenset({field, f"sum:{field}", f"least:{field}", f"greatest:{field}"})
                self.judge(one, _common(kinds, own))
        if rows:
            self._judge_rows(rows, kinds)

    def _is_record(self, value: Mapping[Any, Any]) -> bool:
        return _is_named(value) and any(FIELD_OF[_folded(key)] == "doc_id" for key in value)

    def _judge_list(self, value: Sequence[Any], kinds: frozenset[str]) -> None:
        self._spend(len(value))
        value = [one for one in value if one is not _CITED]
        if not value:
            return
        if not all(map(_is_scalar, value)):
            self._judge_rows([row for one in value for row in self._rows_of((), one)], kinds)
        elif all(self._is_id(one) for one in value):
            choice = self.choice(value, ANY if kinds & {"ids", "rows", "rows:document"} else kinds)
            self._say(f"{len(value)} documents", choice and choice.said)
        elif all(isinstance(one, str) for one in value):
            self._say(f"{len(value)} valeurs", self._distinct_said(value, kinds))
        elif all(map(_is_number, value)):
            for one in value:
                self._judge_number(one, kinds)
        else:
            self._judge_rows([_Row(tuple(("", one) for one in value))], kinds)

    def _rows_of(self, path: tuple[tuple[str, Any], ...], value: Any) -> Iterator[_Row]:
        """Read rows below some keys; a key may head a text that rests on citations."""
        self._spend(1)
        if isinstance(value, list | tuple) and value:
            value = [one for one in value if one is not _CITED] or _CITED
        if value is _CITED:
            return
        if isinstance(value, Mapping) and value and _is_named(value):
            yield _Row((*path, *_named(value)))
        elif isinstance(value, Mapping) and value:
            for key, one in value.items():
                yield from self._rows_of((*path, ("", key)), one)
        elif isinstance(value, list | tuple) and value and not all(map(_is_scalar, value)):
            for one in value:
                yield from self._rows_of(path, one)
        elif isinstance(value, list | tuple) and path and value and all(map(self._is_id, value)):
            yield _Row(path, tuple(value))
        elif isinstance(value, list | tuple | Mapping):
            yield _Row((*path, *(("", one) for one in value)))
        else:
            yield _Row((*path, ("", value)))

    def _document(self, value: Any) -> str | None:
        """Return the id of the document that an id, or the number that one described document alone has, names."""
        if not isinstance(value, str) or value in self._of.ids:
            return value if isinstance(value, str) else None
        if self._numbered is None:
            self._numbered = {}
            for doc, fields in self._of.fields.items():
                self._numbered[fields["number"]] = None if fields["number"] in self._numbered else doc
        return self._numbered.get(value) if value else None

    def _is_id(self, value: Any) -> bool:
        return self._document(value) is not None

    def _place(self, row: _Row) -> int | None:
        """Return which part of a row names its document."""
        return next((n for n, (name, one) in enumerate(row.parts) if name in ("", "number") and self._is_id(one)), None)

    def _judge_rows(self, rows: Sequence[_Row], kinds: frozenset[str]) -> None:
        self._spend(sum(len(row.parts) + len(row.ids or ()) for row in rows))
        of_documents = [row for row in rows if self._place(row) is not None]
        if of_documents and len(of_documents) < len(rows):
            self._say(f"{len(rows)} lignes", None)
        elif of_documents:
            self._judge_documents(rows, kinds)
        else:
            self._judge_groups(rows, kinds)

    def _judge_documents(self, rows: Sequence[_Row], kinds: frozenset[str]) -> None:
        """Judge rows about a document each: every part must be of that document, a column of one kind."""
        docs, columns = [], list[dict[str, None]]()
        for row in rows:
            place = cast(int, self._place(row))
            doc = cast(str, self._document(row.parts[place][1]))
            found = self._sources_in_row(doc, row, place)
            if found is None or (columns and len(found) != len(columns)):
                self._say(", ".join(_shown(one) for _, one in row.parts), None)
                return
            docs.append(doc)
            columns = [_both(*pair) for pair in zip(columns, found, strict=True)] if columns else found
        said = ", ".join(next(iter(one)) for one in columns) if all(columns) else None
        if len(rows) == 1:
            counts = {one[docs[0]] for one in self._of.measures.values() if docs[0] in one}
            if any(_is_by_chance(one, counts) for _, one in rows[0].parts if _is_number(one)):
                said = None
            choice = None if "*" in kinds else self.choice(docs, kinds)
            fits = choice or kinds & {"*", "rows"}
            shown = ", ".join(_shown(one) for _, one in rows[0].parts)
            self._say(shown, ", ".join(filter(None, (said, choice and choice.said))) if fits and said else None)
            return
        choice = self.choice(docs, ANY if kinds & {"rows", "rows:document"} else kinds)
        if said and choice is None:
            self.unverified.append(f"{len(rows)} lignes : leur choix ou leur ordre")
        self._say(f"{len(rows)} lignes", f"{said} ; {choice.said}" if said and choice else None)

    def _sources_in_row(self, doc: str, row: _Row, place: int) -> list[dict[str, None]] | None:
        """Return where each part of a row may come from, but for the document; None where one comes from nowhere."""
        parts = [*row.parts[:place], *row.parts[place + 1 :]]
        found = [self._direct_sources(doc, name, one) for name, one in parts]
        if loose := [part for part, sources in zip(parts, found, strict=True) if not sources]:
            records = self._of.records.get(doc, ())
            if loose[0][1:] == loose[-1][1:] and _is_number(loose[0][1]):
                return None  # one number alone, among the places of a document, is a coincidence
            if not any(all(_holds(one, *part) for part in loose) for one in records):
                return None
            found = [sources or {"place ou score rendus avec le document": None} for sources in found]
        if row.ids is not None:
            links = {one.said: None for one in self._of.links.get(doc, ()) if one.ids == row.ids}
            if not links:
                return None
            found.append({said.split(" de ou vers")[0]: None for said in links})
        return found or [{"document rendu": None}]

    def _direct_sources(self, doc: str, name: str, value: Any) -> dict[str, None]:
        found: dict[str, None] = {}
        fields = self._of.fields.get(doc, {})
        for field, held in fields.items():
            if name in ("", field) and field != "keywords" and isinstance(value, str) and value == held:
                found[f"{IN_FRENCH.get(field, field)} de la fiche"] = None
        if name in ("", "année") and _is_number(value) and str(value) == fields.get("année"):
            found["année de la fiche"] = None
        if _is_number(value):
            held = self._of.measures.items()
            found |= {s: None for s, of in held if of.get(doc) == value and name in ("", "measure", _counted(s))}
        if name == "" and isinstance(value, str):
            found |= {one.said.split(" de ou vers")[0]: None for one in self._of.links.get(doc, ()) if value in one.ids}
        return found

    def choice(self, named: Sequence[str], kinds: frozenset[str] = ANY) -> _Choice | None:
        """Say how documents were chosen and ordered: all or the first of a list, the least or the greatest of one."""
        return next((one for one in self._choices(named) if _fits(kinds, one.kind)), None)

    def _choices(self, named: Sequence[str]) -> Iterator[_Choice]:
        docs = [doc for one in named if (doc := self._document(one)) is not None]
        by_name = list(named) == sorted(named) and len(docs) == len(named)
        chosen = frozenset(docs)
        if len(chosen) < len(named):
            return
        for base in self._bases(chosen):
            self._spend(0)
            every = "whole" if base.whole else "all"
            if tuple(docs) == base.ids[: len(docs)]:
                if len(docs) < len(base.ids):
                    yield _Choice("ranked" if base.ranked else "first", _first_of(len(docs), base.said))
                else:
                    yield _Choice("ranked" if base.ranked else every, base.said)
            elif by_name and len(docs) == len(base.ids):
                yield _Choice(every, f"{base.said}, par identifiant")
            yield from self._extremes(docs, chosen, base)

    def _extremes(self, docs: Sequence[str], chosen: frozenset[str], base: Listed) -> Iterator[_Choice]:
        for said, values in self._orders(base):
            if any(doc not in values for doc in docs):
                continue
            own = [values[doc] for doc in docs]
            rest = [value for doc, value in values.items() if doc not in chosen]
            for kind, word, best in (("least", "plus petits", min), ("greatest", "plus grands", max)):
                if own == sorted(own, reverse=kind == "greatest") and (not rest or best(own[-1], *rest) == own[-1]):
                    of = f"les {len(docs)} {word} par {said}, parmi les {base.said}"
                    yield _Choice(f"{kind}:{_counted(said)}", of)

    def _orders(self, base: Listed) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what documents may be ordered by: what, and the value of each; those without a date have none."""
        fields = self._of.fields
        if all(doc in fields for doc in base.ids):
            yield "date", {doc: date for doc in base.ids if (date := fields[doc]["date"])}
        for said, counts in self._of.measures.items():
            if all(doc in counts for doc in base.ids):
                yield said, {doc: counts[doc] for doc in base.ids}

    def _bases(self, chosen: frozenset[str]) -> Iterator[Listed]:
        """Yield lists of documents that hold the chosen ones: returned, then groups of these, then sets of two."""
        lists = self._of.lists
        for one in lists:
            if chosen.issubset(one.ids):
                yield one
        for links in self._of.links.values():
            yield from (one for one in links if chosen.issubset(one.ids))
        if len(chosen) == 1:  # which some group or set would hold alone, whichever it is
            return
        for one in self._lists_described():
            if chosen.issubset(one.ids):
                yield from self._group_of(chosen, one)
        for said, first, second, ids in self._pairs():
            if chosen <= ids:
                ordered = tuple(doc for doc in (*first.ids, *second.ids) if doc in ids)
                yield Listed(said, tuple(dict.fromkeys(ordered)), True)

    def _group_of(self, chosen: frozenset[str], base: Listed) -> Iterator[Listed]:
        """Yield the documents of a list that have all that the chosen ones have in common, if that is anything."""
        common: set[tuple[str, str]] | None = None
        for doc in chosen:
            common = self._traits(doc) if common is None else common & self._traits(doc)
        if common:
            ids = tuple(doc for doc in base.ids if common <= self._traits(doc))
            traits = ", ".join(f"{IN_FRENCH.get(field, field)} « {_shown(one)} »" for field, one in sorted(common)[:4])
            yield Listed(f"documents de {traits} parmi les {base.said}", ids, base.whole)

    def _traits(self, doc: str) -> set[tuple[str, str]]:
        fields = self._of.fields[doc]
        return {(name, fields[name]) for name in GROUPING if name != "keywords" and fields[name]}

    def _pairs(self) -> Iterator[tuple[str, Listed, Listed, frozenset[str]]]:
        whole = [(one, frozenset(one.ids)) for one in self._of.lists if one.whole][-MAX_PAIRED:]
        for n, (first, ids) in enumerate(whole):
            for second, others in whole[n + 1 :]:
                self._spend(0)
                yield f"à la fois {first.said} et {second.said}", first, second, ids & others
                yield f"{first.said} mais non {second.said}", first, second, ids - others
                yield f"{second.said} mais non {first.said}", first, second, others - ids
                yield f"{first.said} ou {second.said}", first, second, ids | others

    def _lists_described(self) -> list[Listed]:
        """Return the lists whose documents were all described."""
        if self._described is None:
            fields = self._of.fields
            self._described = [one for one in self._of.lists if one.ids and all(doc in fields for doc in one.ids)]
        return self._described

    def _judge_groups(self, rows: Sequence[_Row], kinds: frozenset[str]) -> None:
        """Judge rows of labels and a number, a date or a list of documents: all from one table of groups."""
        wanted: dict[tuple[str, ...], Any] = {}
        for row in rows:
            parts = [one for _, one in row.parts]
            labels, value = (parts, row.ids) if row.ids is not None else (parts[:-1], parts[-1] if parts else None)
            if not labels or not all(isinstance(one, str) or _is_number(one) for one in labels):
                break
            wanted[tuple(map(str, labels))] = value
        shown = ", ".join(_shown(one) for _, one in rows[0].parts) if len(rows) == 1 else f"{len(rows)} lignes"
        known, fitting = set[int](), None
        for table in self._tables(next(iter(wanted))) if len(wanted) == len(rows) else ():
            self._spend(0)
            known.update(table.groups[label] for label in wanted if _is_number(table.groups.get(label)))
            if fitting is None and all(_is_of(row, table) for row in rows):
                agree = all(_same(table.groups.get(label), value) for label, value in wanted.items())
                fitting = table if agree and _may_stand(list(wanted), table, kinds) else None
            if fitting and len(rows) > 1:
                break
        if fitting and (len(rows) > 1 or not _is_by_chance(next(iter(wanted.values())), known)):
            self._say(shown, fitting.said)
            return
        self._say(shown, None)

    def _tables(self, labels: tuple[str, ...]) -> Iterator["_Table"]:
        """Yield all groupings that know these labels: as returned, of calls, of the lists whose documents are known."""
        for said, groups in self._of.tables.items():
            yield _Table(("thème",), "count", said, groups)
        for (name, key, _, counted), calls in self._of.calls.items():
            if labels in calls:
                said = calls[labels][1] if len(calls) == 1 else f"{counted} de chaque appel de {name}, par {key}"
                kind = "sum:occurrences" if counted.startswith("occurrences") else "count"
                groups = {label: n for label, (n, _) in calls.items()}
                yield _Table(("année" if key == "date" else key,), kind, said, groups, is_of_calls=True)
        for listed in self._lists_described():
            for fields in self._fields_of(labels, listed):
                by = ", ".join(IN_FRENCH.get(field, field) for field in fields)
                members = self._members(listed, fields)
                for kind, what, groups in self._aggregates(listed, members):
                    yield _Table(fields, kind, f"{what} par {by}, parmi les {listed.said}", groups)

    def _fields_of(self, labels: tuple[str, ...], listed: Listed) -> Iterator[tuple[str, ...]]:
        """Yield the fields whose values in a list the labels are."""
        each = [[field for field in GROUPING if (label,) in self._members(listed, (field,))] for label in labels]
        return itertools.product(*each) if len(labels) <= MAX_GROUPED else iter(())

    def _members(self, listed: Listed, fields: tuple[str, ...]) -> dict[tuple[str, ...], list[str]]:
        known = self._grouped.get((id(listed), fields))
        if known is None:
            self._spend(0)
            known = self._grouped[id(listed), fields] = defaultdict(list)
            for doc in listed.ids:
                held = self._of.fields[doc]
                values = [held[field] if isinstance(held[field], tuple) else (held[field],) for field in fields]
                for labels in itertools.product(*values):
                    known[labels].append(doc)
        return known

    def _aggregates(
        self, listed: Listed, members: Mapping[tuple[str, ...], list[str]]
    ) -> Iterator[tuple[str, str, dict[tuple[str, ...], Any]]]:
        yield "count", "nombre de documents", {label: len(docs) for label, docs in members.items()}
        yield "ids", "documents", {label: tuple(docs) for label, docs in members.items()}
        for said, values in self._orders(listed):
            held = {label: [values[doc] for doc in docs if doc in values] for label, docs in members.items()}
            of = _counted(said)
            if said != "date":
                yield f"sum:{of}", f"somme : {said}", {label: sum(one) for label, one in held.items()}
            least = {label: min(one, default="") for label, one in held.items()}
            greatest = {label: max(one, default="") for label, one in held.items()}
            yield f"least:{of}", f"la plus petite valeur : {said}", least
            yield f"greatest:{of}", f"la plus grande valeur : {said}", greatest

    def _distinct_said(self, values: Sequence[str], kinds: frozenset[str]) -> str | None:
        """Say that texts are all the values of a field in a list, in any order."""
        wanted = set(values)
        for listed in self._lists_described():
            for field in (*GROUPING, "date"):
                name = IN_FRENCH.get(field, field)
                if not kinds & {"*", "distinct", f"distinct:{name}"}:
                    continue
                held = {label for (label,) in self._members(listed, (field,))}
                if wanted in (held, held - {""}) and len(wanted) == len(values):
                    return f"les valeurs distinctes ({name}) parmi les {listed.said}"
        table = next((one for one in self._of.tables.items() if {label for (label,) in one[1]} == wanted), None)
        return f"les groupes : {table[0]}" if table and kinds & {"*", "distinct"} else None

    def _judge_text(self, text: str, kinds: frozenset[str]) -> None:
        if self._is_id(text):
            choice = self.choice([text], ANY if kinds & {"doc_id", "ids"} else kinds)
            self._say(text, choice and choice.said)
            return
        for listed in self._lists_described():
            dates = [self._of.fields[doc]["date"] for doc in listed.ids if self._of.fields[doc]["date"]]
            for kind, word, best in (("least", "la plus ancienne", min), ("greatest", "la plus récente", max)):
                if _fits(kinds, f"{kind}:date") and dates and best(dates) == text:
                    self._say(text, f"{word} des dates des {listed.said}")
                    return
        if len(self._of.fields) <= FEW:
            for doc, fields in self._of.fields.items():
                for field in TEXT_FIELDS:
                    if text and fields[field] == text and kinds & {"*", field}:
                        self._say(text, f"{IN_FRENCH.get(field, field)} de la fiche de {doc}")
                        return
        self._say(text, None)

    def _judge_number(self, value: Any, kinds: frozenset[str]) -> None:
        if not _is_number(value):
            self._say(value, None)
            return
        known: set[int] = set()
        for tier in (self._counts(), self._values(), self._counts_of_pairs()):
            fitting = None
            for kind, number, said in tier:
                self._spend(0)
                if _fits(kinds, kind):
                    known.add(number)
                    fitting = said if fitting is None and number == value else fitting
            if fitting is not None:
                self._say(value, None if _is_by_chance(value, known) else fitting)
                return
        self._say(value, None)

    def _counts(self) -> Iterator[tuple[str, int, str]]:
        for number, said in self._of.given.items():
            yield "sum:caractères" if _counted(said) == "caractères" else "count", number, said
        for one in self._of.lists:
            if one.whole:
                yield "count", len(one.ids), f"nombre de {one.said}"

    def _values(self) -> Iterator[tuple[str, int, str]]:
        """Yield what is made of the fields and numbers of whole lists."""
        for said, groups in self._of.tables.items():
            yield "distinct", len(groups), f"nombre de groupes : {said}"
        for listed in self._of.lists:
            if not listed.whole:
                continue
            for said, values in self._orders(listed):
                of = _counted(said)
                if said != "date" and values:
                    yield f"sum:{of}", sum(values.values()), f"somme : {said}, des {listed.said}"
                    yield f"least:{of}", min(values.values()), f"la plus petite valeur : {said}, des {listed.said}"
                    yield f"greatest:{of}", max(values.values()), f"la plus grande valeur : {said}, des {listed.said}"
            if listed in self._lists_described():
                for field in GROUPING:
                    held, name = self._members(listed, (field,)).keys(), IN_FRENCH.get(field, field)
                    for some, which in ((held - {("",)}, ""), (held, ", la valeur vide comprise")):
                        said = f"nombre de valeurs distinctes ({name}) parmi les {listed.said}{which}"
                        yield f"distinct:{name}", len(some), said

    def _counts_of_pairs(self) -> Iterator[tuple[str, int, str]]:
        for said, _, _, ids in self._pairs():
            yield "count", len(ids), f"nombre de {said}"


class _Table(NamedTuple):
    """Groups of documents, by their labels, with a value each."""

    fields: tuple[str, ...]  # that the labels are of
    kind: str  # of the values: "count", "ids", "sum:occurrences", "least:date"…
    said: str
    groups: Mapping[tuple[str, ...], Any]
    is_of_calls: bool = False


def _fits(kinds: frozenset[str], kind: str) -> bool:
    """Tell whether a label allows a kind, such as "least:date": as "*", "least" and "least:date" do."""
    return bool(kinds & {"*", kind, kind.partition(":")[0]})


def _common(outer: frozenset[str], inner: frozenset[str]) -> frozenset[str]:
    """Return the kinds that two labels allow, one within the other."""
    return frozenset({one for one in inner if _fits(outer, one)} | {one for one in outer if _fits(inner, one)})


def _counted(said: str) -> str:
    """Return what a number by document counts, as labels name it."""
    if said == "date":
        return said
    return next((one for one in ("caractères", "occurrences") if one in said.partition("(")[0]), "autre")


def _is_of(row: _Row, table: _Table) -> bool:
    """Tell whether the names of a row's fields, where it has any, are those of a table."""
    names = [name for name, _ in row.parts]
    value = "" if row.ids is not None else names.pop() if names else ""
    kind, _, of = table.kind.partition(":")
    fits = value in ("", of) or (value == "measure" and kind in ("count", "sum"))
    return fits and all(name in ("", field) for name, field in zip(names, table.fields, strict=False))


def _may_stand(labels: Sequence[tuple[str, ...]], table: _Table, kinds: frozenset[str]) -> bool:
    """Tell whether a label allows groups of a table: their kind, and which they are."""
    if "ranked" in kinds:
        return _is_falling(labels, table)
    by_field = bool(kinds & {"*", f"rows:{', '.join(table.fields)}"})
    return (by_field or ("rows" in kinds and _fits(kinds, table.kind))) and _is_whole_choice(labels, table)


def _is_whole_choice(labels: Sequence[tuple[str, ...]], table: _Table) -> bool:
    """Tell whether groups are all there are, the ones with the least or greatest values, or years in a row."""
    left = [label for label in table.groups if label not in set(labels)]
    if table.is_of_calls or len(labels) == 1 or not any(map(any, left)):
        return True
    if table.fields in (("année",), ("mois",)) and not any(min(labels) < label < max(labels) for label in left):
        return True
    if table.kind == "ids":
        return False
    given, others = [table.groups[label] for label in labels], [table.groups[label] for label in left]
    return _is_falling(labels, table) or (given == sorted(given) and given[-1] <= min(others))


def _is_falling(labels: Sequence[tuple[str, ...]], table: _Table) -> bool:
    """Tell whether groups are those with the greatest numbers, the greatest first."""
    given = [table.groups[label] for label in labels]
    others = [value for label, value in table.groups.items() if label not in set(labels)]
    return table.kind != "ids" and given == sorted(given, reverse=True) and given[-1] >= max(others, default=given[-1])


def _is_by_chance(value: Any, known: Collection[int]) -> bool:
    """Tell whether so many numbers are known that one of this size would be among them whatever it was."""
    span = max(2 * value, CHANCE_FROM) if _is_number(value) else 0
    return sum(0 <= number <= span for number in known) > CHANCE * span


def _same(held: Any, value: Any) -> bool:
    """Tell whether two values are equal and of one type; of documents, in any order."""
    if isinstance(held, tuple) and isinstance(value, tuple):
        return len(held) == len(value) and set(held) == set(value)
    return held is not None and type(held) is type(value) and held == value


def _holds(record: Mapping[str, Any], name: str, value: Any) -> bool:
    return any(name in ("", field) and _same(held, value) for field, held in record.items())


def _is_named(value: Mapping[Any, Any]) -> bool:
    """Tell whether a dict is a row of named fields."""
    return all(_folded(key) in FIELD_OF and _is_scalar(one) for key, one in value.items())


def _named(value: Mapping[Any, Any]) -> tuple[tuple[str, Any], ...]:
    named = ((FIELD_OF[_folded(key)], one) for key, one in value.items())
    return tuple(("" if field == "doc_id" else field, one) for field, one in named)


def _both(first: dict[str, None], second: dict[str, None]) -> dict[str, None]:
    return {key: None for key in first if key in second}


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, Mapping | list | tuple)


def _is_number(value: Any) -> bool:
    """Tell whether a value is a whole number: floats may hide anything in their digits."""
    return type(value) is int


def _is_set(value: Any) -> bool:
    return value is not None and value != ""


def _is_label(text: str) -> bool:
    return len(text) <= MAX_ARGUMENT and len(text.split()) <= MAX_LABEL_WORDS


def _folded(key: Any) -> str:
    """Return a key as the tables of labels write it; empty for what cannot stand there."""
    if not isinstance(key, str) or len(key) > MAX_ARGUMENT:
        return ""
    plain = normalized(key.replace("_", " ").replace("’", "'"), "NFKD").casefold()
    return plain.translate(_ACCENTS).strip()


_ACCENTS = dict.fromkeys(map(ord, "\u0300\u0301\u0302\u0308\u0327"))  # of French: others may strike a word through


def _year_of(texts: Mapping[str, str]) -> str:
    """Return the year that two dates span: 1993, or 1993-01-01 to 1993-12-31; empty if they span none."""
    first, last = texts.get("date_from", ""), texts.get("date_to", "")
    year = first[:4]
    whole = (first, last) in ((year, year), (f"{year}-01-01", f"{year}-12-31"))
    return year if whole and year.isdigit() else ""


def _said(name: str, asked: Mapping[str, Any]) -> str:
    """Write a call: `find_documents(juridiction='Cass. soc.')`, long arguments shortened."""
    return f"{name}({', '.join(f'{key}={_argument(one)}' for key, one in asked.items())})"


def _argument(value: Any) -> str:
    if isinstance(value, list | tuple):
        shown = ", ".join(map(_argument, value[:3]))
        return f"({shown})" if len(value) <= 3 else f"({shown}… {len(value)} en tout)"
    return f"'{_shown(value)}'" if isinstance(value, str) else _shown(value)


def _shown(value: Any) -> str:
    """Write a value in one short line, without what could pass for a citation or hide a text."""
    text = " ".join(str(value)[: 2 * MAX_ARGUMENT].translate(_AS_TEXT).split())
    text = "".join(sign for sign in text if sign.isprintable())
    return text if len(text) <= MAX_ARGUMENT else text[: MAX_ARGUMENT - 1].rstrip() + "…"


_AS_TEXT = str.maketrans({"[": "(", "]": ")", "«": "‹", "»": "›"})


def _first_of(n: int, said: str) -> str:
    return f"{'le premier' if n == 1 else f'les {n} premiers'} des {said}"


def _first(said: Sequence[str]) -> tuple[str, ...]:
    left = len(said) - MAX_SAID
    return (*said[:MAX_SAID], *([f"… et {left} de plus"] if left > 0 else []))
