"""Receipts of what functions of the corpus returned: what of a program's answer is the value of one of them.

A program cannot be believed about where a value comes from. So this process keeps what its functions returned, each
value under a short id with what was asked. A value of the answer is computed where it is the value of a receipt, or a
field of a receipt that the answer names; what is vouched for is the receipt's own statement, not a word around it.
"""

import hashlib
import inspect
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import product
from typing import Any, NamedTuple

from legal_rag.agent.tool_arguments import IDS, bounded, quoted, whole_number
from legal_rag.corpus.folding import fold_text
from legal_rag.corpus.patterns.dates import find_dates
from legal_rag.corpus_index.index import CorpusIndex
from legal_rag.deep_read.grep import GrepResult

MAX_RECEIPTS, MAX_DOCUMENTS = 5000, 2_000_000  # of one run, and in all of these; beyond, nothing is vouched for
MAX_ROWS = 1000  # of a table
MAX_SHOWN = 50  # receipts of one answer, and values that are none
FIRST_SHOWN = 3  # documents of a receipt, or values
MAX_ARGUMENT = 60  # characters of an argument in a statement
MAX_TAIL = 120  # characters before a marker in which its value stands

# What functions return, in French.
DECISIONS = """list_documents find_documents search_by_keyword search_by_keywords search_by_entity documents_in_topic
documents_citing grep_corpus rank_documents""".split()
NOUNS: Mapping[str, str] = {
    **dict.fromkeys(DECISIONS, "décisions rendues"),
    "search_passages": "passages rendus",
    "get_doc_metas": "fiches rendues",
    "get_topics": "thèmes rendus",
    "get_doc_meta": "fiche rendue",
    "get_links": "liens rendus",
    "get_entities": "éléments rendus",
    "grep_document": "occurrences rendues",
}
LISTED = frozenset([*DECISIONS, "search_passages", "get_doc_metas"])  # whose value lists documents
COUNTABLE = LISTED - {"rank_documents", "search_passages"}  # these return as many as they are asked for
OF_ONE_DOCUMENT = frozenset({"", "get_doc_meta", "get_links", "get_entities", "grep_document"})
COMPUTING = ("count", "table", "most_common", "group_by", "earliest", "latest", "share", "receipt")
DECIDING = frozenset({"limit", "offset"})  # arguments that decide how many documents are returned
FIELDS = tuple("juridiction formation solution doc_type author number title date année mois keywords".split())
SYNONYMS = {"annee": "année", "year": "année", "month": "mois", "keyword": "keywords", "mots-cles": "keywords"}
KEYS = {"réponse": "answer", "reponse": "answer", "answer": "answer", "reçus": "named", "recus": "named"}
CITED = re.compile(r"\[\s*Source\b", re.IGNORECASE)
MARKER = re.compile(r"\[\s*Calcul\s*:\s*(?P<id>r\d{1,6})\s*\]", re.IGNORECASE)
NOT_A_RECEIPT = "[calcul non vérifié]"
NEUTRAL = frozenset("nombre n réponse résultat valeur liste tableau".split())  # keys that say nothing of what is below
MAX_WORDS = 5  # texts of the model shown
_NUMBER = r"\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?"
VALUE_BEFORE = re.compile(rf"(?<![\d.,-])(?P<number>{_NUMBER})(?P<rest>[^\d]*)\Z")


class Receipt(NamedTuple):
    """What a function returned, and what that is."""

    id: str
    function: str
    said: str  # in French: "nombre des décisions rendues par find_documents(solution='rejet')"
    shown: str  # its value, in one short line
    digests: frozenset[bytes]  # of its value, which may be large and is not kept; of one document's, field by field too
    documents: tuple[str, ...] = ()  # that it is about
    parts: tuple[tuple[str, Any], ...] = ()  # rows and fields that an answer may give where it names the receipt
    is_sound: bool = True  # it follows from the corpus, not from a list that the program made
    is_whole: bool = True  # no argument and no limit decided how many documents there are
    is_shortened: bool = False  # of a search: some documents have more occurrences than it gives

    @property
    def is_countable(self) -> bool:
        """Whether a number of its documents follows from the corpus."""
        return self.is_sound and self.is_whole

    def statement(self) -> str:
        """Write the receipt in a line: its id, what it is, its value."""
        return f"{self.id} : {self.said} = {self.shown}"

    def part(self, said: str, value: Any) -> "Receipt":
        """Return a part of it as a receipt of its own."""
        return self._replace(said=f"{said}{self.said}", shown=shown(value), digests=frozenset({_digest(value)}))

    def to_json(self) -> dict[str, Any]:
        """Return what a page shows of it."""
        first = list(self.documents[:FIRST_SHOWN])
        return {"id": self.id, "asked": self.said, "value": self.shown, "n": len(self.documents), "first": first}


class Account(NamedTuple):
    """What of an answer is computed, and what is not."""

    answer: Any  # without the receipts that it names
    receipts: tuple[Receipt, ...] = ()  # of which it has values
    unverified: tuple[str, ...] = ()  # the rest, in French

    @property
    def is_computed(self) -> bool:
        """Whether every part of the answer is the value of a receipt, or rests on a citation that holds."""
        return bool(self.receipts) and not self.unverified


class Receipts:
    """Receipts of one run, and the functions of programs that compute over what others returned."""

    def __init__(self, index: CorpusIndex) -> None:
        self._index = index
        self._receipts: dict[str, Receipt] = {}
        self._by_documents: dict[bytes, Receipt] = {}  # of each set of documents, the first that can be counted
        self._metas: dict[str, dict[str, Any]] = {}
        self._n_documents = 0
        self.is_full = False
        self._keep("", "nombre de documents du corpus", index.total_docs, [])
        self._keep("", "nombre de caractères du corpus", index.total_chars, [])
        self._told = len(self._receipts)

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions that compute over documents which others returned, by name."""
        return {name: getattr(self, name) for name in COMPUTING}

    @property
    def documents(self) -> Iterator[str]:
        """Ids of the documents of which places, scores or entities were returned."""
        shown_by = ("rank_documents", "search_passages", "grep_corpus", "grep_document", "get_entities")
        return (doc_id for one in self._receipts.values() if one.function in shown_by for doc_id in one.documents)

    def watch(
        self, name: str, function: Callable[..., Any], last_search: Callable[[], GrepResult]
    ) -> Callable[..., Any]:
        """Return a function that does the same and keeps a receipt, where it returns facts of the corpus.

        `last_search` tells how far a search for a pattern went.
        """
        if name not in NOUNS:
            return function
        signature = inspect.signature(function)

        @wraps(function)
        def watched(*arguments: Any, **named: Any) -> Any:
            result = function(*arguments, **named)
            asked = signature.bind(*arguments, **named).arguments
            given = {key: one for key, one in asked.items() if one not in (None, "")}
            self._keep_call(name, given, result, last_search() if name == "grep_corpus" else None)
            return result

        return watched

    def given(self, said: str, doc_ids: Sequence[str]) -> None:
        """Keep a receipt of documents that programs find without a call."""
        self._keep("", said, list(doc_ids), doc_ids)

    @bounded(documents=IDS)
    def count(self, documents: Any, of: str = "documents") -> int:
        """Nombre de décisions d'un résultat (identifiants, résultat de grep_corpus, fiches…) ; of="occurrences" : celui
        des occurrences d'un résultat de grep_corpus.
        """
        source, ids = self._source(documents)
        if of == "documents":
            return self._computed("count", f"nombre {_of(source)}", len(ids), ids, source)
        if of != "occurrences" or not isinstance(documents, Mapping):
            raise ValueError('of doit être "documents", ou "occurrences" pour un résultat de grep_corpus')
        digest, searches = _digest(documents), (one for one in self._receipts.values() if one.function == "grep_corpus")
        search = next((one for one in searches if digest in one.digests), None)
        number, is_sound = sum(map(len, documents.values())), search is not None and not search.is_shortened
        return self._computed("count", f"nombre des occurrences {_of(search)}", number, ids, search, is_sound=is_sound)

    @bounded(documents=IDS)
    def table(self, documents: Any, field: str, second_field: str = "") -> list[list[Any]]:
        """Nombre de décisions par valeur d'un champ, ou de deux : [[valeur, …, nombre], …], dans l'ordre des valeurs.
        Champs : juridiction, formation, solution, doc_type, author, année, mois, date, keywords.
        """
        source, ids = self._source(documents)
        names = [_field(one) for one in (field, second_field) if one]
        rows = [[*values, n] for values, n in sorted(self._counts(ids, names).items())]
        if len(rows) > MAX_ROWS:
            raise ValueError(f"{len(rows)} lignes : prenez un champ de moins de {MAX_ROWS} valeurs, ou most_common")
        return self._computed("table", f"nombre par {' et '.join(names)} {_of(source)}", rows, ids, source)

    @bounded(documents=IDS)
    def most_common(self, documents: Any, field: str, n: int = 10) -> list[list[Any]]:
        """Les n valeurs les plus fréquentes d'un champ, avec leur nombre de décisions : [[valeur, nombre], …]."""
        source, ids = self._source(documents)
        name, most = _field(field), whole_number("n", n, 1, MAX_ROWS, 10)
        counts = sorted(self._counts(ids, [name]).items(), key=lambda one: (-one[1], one[0]))
        rows = [[value, k] for (value,), k in counts[:most]]
        said = f"les {most} valeurs les plus fréquentes du champ {name} {_of(source)}"
        return self._computed("most_common", said, rows, ids, source)

    @bounded(documents=IDS)
    def group_by(self, documents: Any, field: str) -> dict[str, list[str]]:
        """Identifiants des décisions par valeur d'un champ : {valeur: [identifiants]} ; un groupe peut être compté."""
        source, ids = self._source(documents)
        name, groups = _field(field), defaultdict[str, list[str]](list)
        for doc_id in ids:
            for value in self._values(ids, doc_id, name):
                groups[value].append(doc_id)
        said, kept = f"groupes par {name} {_of(source)}", dict(sorted(groups.items()))
        self._computed("group_by", said, kept, ids, source)
        for value, some in kept.items():
            said = f"décisions dont le champ {name} est ‹ {_shown(value)} ›, parmi {_among(source)}"
            self._know(self._last._replace(said=said, shown=shown(some), documents=tuple(some)))
        return kept

    @bounded(documents=IDS)
    def earliest(self, documents: Any) -> dict[str, str]:
        """La plus ancienne décision d'un résultat : {"doc_id", "date", "title"}."""
        return self._extreme("earliest", documents, "la plus ancienne", min)

    @bounded(documents=IDS)
    def latest(self, documents: Any) -> dict[str, str]:
        """La décision la plus récente d'un résultat : {"doc_id", "date", "title"}."""
        return self._extreme("latest", documents, "la plus récente", max)

    @bounded(part=IDS, whole=IDS)
    def share(self, part: Any, whole: Any) -> float:
        """Part, de 0 à 1, des décisions de whole qui sont aussi dans part, à quatre décimales."""
        (source, ids), (base, of) = self._source(part), self._source(whole)
        if not of:
            raise ValueError("aucune décision dans whole")
        value = round(len(set(ids) & set(of)) / len(of), 4)
        is_sound = source is not None and source.is_countable
        return self._computed("share", f"part, parmi {_among(base)}, {_of(source)}", value, of, base, is_sound=is_sound)

    @bounded(value=IDS)
    def receipt(self, value: Any = None) -> str:
        """Identifiant (« r12 ») du dernier reçu ; ou du dernier dont value est la valeur."""
        wanted = None if value is None else _digest(value)
        for one in reversed(self._receipts.values()):
            if wanted is None or wanted in one.digests:
                return one.id
        raise LookupError("aucun reçu n'a cette valeur : comptez par count, table, group_by…")

    def news(self) -> list[Receipt]:
        """Return the receipts of more than one document since the last time."""
        news = list(self._receipts.values())[self._told :]
        self._told += len(news)
        return [one for one in news if one.function not in OF_ONE_DOCUMENT]

    def account_for(self, value: Any, is_cited: Callable[[str], bool] = lambda text: False) -> Account:
        """Judge an answer, `{"réponse": …, "reçus": ["r3"]}` or a value alone.

        Args:
            value: The answer, plain.
            is_cited: Tells whether a text rests on citations that hold, all of it: such texts are not judged.
        """
        answer, named = _parts_of(value)
        judge = _Judge(self._receipts, self._by_documents, named, is_cited)
        answer, unverified = judge.judged(answer), judge.unverified
        if unverified and self.is_full:
            unverified.append("les fonctions ont rendu plus que ce qui est retenu d'une lecture")
        return Account(answer, judge.receipts[:MAX_SHOWN], tuple(unverified[:MAX_SHOWN]))

    def _keep_call(self, name: str, asked: Mapping[str, Any], result: Any, search: GrepResult | None) -> None:
        among = self._by_documents.get(_key(_ids_of(asked["doc_ids"]))) if "doc_ids" in asked else None
        arguments = ", ".join(f"{key}={_argument(one)}" for key, one in asked.items() if key != "doc_ids")
        is_limited = not search.is_complete if search else bool(DECIDING & asked.keys())
        self._keep(
            name,
            f"{NOUNS[name]} par {name}({arguments})" + (f" parmi {_among(among)}" if "doc_ids" in asked else ""),
            result,
            [asked["doc_id"]] if "doc_id" in asked else [] if name == "get_topics" else _ids_of(result),
            is_sound="doc_ids" not in asked or (among is not None and among.is_sound),
            is_whole=name in COUNTABLE and not is_limited and (among is None or among.is_whole),
            is_shortened=search is not None and bool(search.shortened),
        )

    def _computed(
        self, function: str, said: str, value: Any, ids: Sequence[str], source: Receipt | None, *, is_sound: bool = True
    ) -> Any:
        """Keep the receipt of a value computed over documents, and return the value."""
        self._keep(function, said, value, ids, is_sound=is_sound and source is not None and source.is_countable)
        return value

    def _keep(self, function: str, said: str, value: Any, documents: Iterable[str], **flags: bool) -> None:
        ids = tuple(documents)
        fields = value.values() if function in ("earliest", "latest") else ()
        digests, parts = frozenset(map(_digest, (value, *fields))), tuple(_parts(function, value))
        self._last = Receipt(f"r{len(self._receipts) + 1}", function, said, shown(value), digests, ids, parts, **flags)
        self._n_documents += len(ids)
        self.is_full = len(self._receipts) >= MAX_RECEIPTS or self._n_documents > MAX_DOCUMENTS
        if not self.is_full:
            self._receipts[self._last.id] = self._last
            if function in LISTED or (ids and not function):
                self._know(self._last)

    def _know(self, receipt: Receipt) -> None:
        """Keep a receipt whose value lists its documents, which programs may then have counted."""
        known = self._by_documents.get(key := _key(receipt.documents))
        if not self.is_full and (known is None or receipt.is_countable > known.is_countable):
            self._by_documents[key] = receipt

    def _source(self, documents: Any) -> tuple[Receipt | None, list[str]]:
        """Return the receipt that lists these documents, in whatever order, and their ids."""
        ids = list(dict.fromkeys(_ids_of(documents)))
        if not ids and documents:
            raise ValueError("donnez ce qu'une fonction du corpus a rendu : une liste d'identifiants, des fiches…")
        return self._by_documents.get(_key(ids)), ids

    def _extreme(self, function: str, documents: Any, said: str, choose: Callable[..., Any]) -> dict[str, str]:
        source, ids = self._source(documents)
        dated = [(date, doc_id) for doc_id in ids for date in self._values(ids, doc_id, "date") if date]
        if not dated:
            raise ValueError("aucune de ces décisions n'a de date")
        date, doc_id = choose(dated)
        value = {"doc_id": doc_id, "date": date, "title": self._metas[doc_id]["title"]}
        return self._computed(function, f"{said} {_of(source)}", value, ids, source)

    def _counts(self, ids: Sequence[str], names: Sequence[str]) -> Counter[tuple[str, ...]]:
        counts: Counter[tuple[str, ...]] = Counter()
        for doc_id in ids:
            counts.update(product(*(self._values(ids, doc_id, name) for name in names)))
        return counts

    def _values(self, ids: Sequence[str], doc_id: str, name: str) -> Sequence[str]:
        """Return a document's values of a field; those of all `ids` are read together."""
        if doc_id not in self._metas:
            for meta in self._index.metas([one for one in ids if one not in self._metas]):
                fields = {field: getattr(meta, field) for field in FIELDS if hasattr(meta, field)}
                self._metas[meta.doc_id] = {**fields, "année": meta.date[:4], "mois": meta.date[:7]}
        if doc_id not in self._metas:
            raise LookupError(f"aucune décision « {quoted(doc_id)} »")
        value = self._metas[doc_id][name]
        return [value] if isinstance(value, str) else value


class _Judge:
    """Judges the values of one answer."""

    def __init__(
        self,
        receipts: Mapping[str, Receipt],
        by_documents: Mapping[bytes, Receipt],
        named: Sequence[str],
        is_cited: Callable[[str], bool],
    ) -> None:
        self._is_cited, self._by_documents = is_cited, by_documents
        self._all = {key: one for key, one in receipts.items() if one.is_sound}
        self._named = [self._all[key] for key in named if key in self._all]
        self._by_value: dict[bytes, Receipt] | None = None
        self._found: dict[str, Receipt] = {}
        self._words: tuple[str, ...] = ()
        self._values: list[str] = []

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Of which values were found."""
        return tuple(self._found.values())

    def judged(self, value: Any, keys: tuple[str, ...] = ()) -> Any:
        """Judge a value below some keys, and return it as it is shown: with the markers of texts checked.

        A key is a word of the model's, unless it says nothing, or a citation below it bears it out as well.
        """
        if found := self._receipt_of(value):
            self._found.setdefault(found.statement(), found)
            self._words += keys
            return value
        if isinstance(value, Mapping) and value:
            return {key: self.judged(one, (*keys, key)) for key, one in value.items()}
        if isinstance(value, list | tuple) and value:
            return [self.judged(one, keys) for one in value]
        if isinstance(value, str):
            heads = [key for key in keys if f"[Source: {key}," not in value and key.casefold() not in NEUTRAL]
            if not (CITED.search(value) and self._is_cited(" : ".join([*heads, MARKER.sub("", value)]))):
                self._words += (*keys, MARKER.sub("", value))
            return MARKER.sub(self._checked_marker, value)
        self._words += keys
        self._values.append(shown(value))
        return value

    @property
    def unverified(self) -> list[str]:
        """What is the value of no receipt, in French."""
        words = [shown(one) for one in dict.fromkeys(self._words) if one.casefold() not in NEUTRAL]
        return [*dict.fromkeys(self._values), *([f"mots du modèle : {', '.join(words[:MAX_WORDS])}"] if words else [])]

    def _checked_marker(self, marker: re.Match[str]) -> str:
        """Keep a marker whose receipt is the value that stands before it."""
        receipt = self._all.get(marker["id"].lower())
        before = marker.string[: marker.start()]
        if receipt and not {_digest(one) for one in _values_before(before)}.isdisjoint(receipt.digests):
            self._found.setdefault(receipt.statement(), receipt)
            return f"[Calcul : {receipt.id}]"
        return NOT_A_RECEIPT

    def _receipt_of(self, value: Any) -> Receipt | None:
        """Return the receipt whose value this is, or a field or row of which it is, where that is named."""
        if isinstance(value, bool) or value in (None, ""):
            return None
        if self._by_value is None:
            parts = (one.part(*part) for one in self._named for part in one.parts)
            by_rank = (*parts, *self._all.values(), *self._named)
            self._by_value = {digest: one for one in by_rank for digest in one.digests}
        return self._by_value.get(_digest(value)) or self._listing(value)

    def _listing(self, value: Any) -> Receipt | None:
        """Return the receipt that lists these documents, in its order or in that of their ids."""
        if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
            return None
        found = self._by_documents.get(_key(value))
        return found if found and found.is_sound and value in ([*found.documents], sorted(found.documents)) else None


def shown(value: Any) -> str:
    """Write a value in one short line."""
    if isinstance(value, Mapping | list | tuple) and len(value) > FIRST_SHOWN:
        return f"{len(value)} {'lignes' if any(isinstance(one, Mapping | list) for one in value) else 'valeurs'}"
    return _shown(json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list | tuple) else value)


def _parts_of(value: Any) -> tuple[Any, list[str]]:
    """Split `{"réponse": …, "reçus": […]}`; any other value is the answer itself."""
    if not isinstance(value, Mapping) or {KEYS.get(str(key).casefold()) for key in value} != {"answer", "named"}:
        return value, []
    parts = {KEYS[str(key).casefold()]: one for key, one in value.items()}
    named = parts["named"] if isinstance(parts["named"], list) else [parts["named"]]
    return parts["answer"], [found[0] for one in named if (found := re.search(r"r\d{1,6}", str(one)))]


def _ids_of(value: Any) -> list[str]:
    """Return the documents that a function's value lists, in its order; none where it lists something else."""
    if isinstance(value, Mapping):
        value = [value["doc_id"]] if "doc_id" in value else list(value)
    ids = [_id_of(one) for one in value] if isinstance(value, list | tuple) else []
    return ids if all(ids) else []


def _id_of(row: Any) -> str:
    if isinstance(row, Mapping):
        row = row.get("doc_id", "")
    elif isinstance(row, list | tuple) and row:
        row = row[0]
    return row if isinstance(row, str) else ""


def _parts(function: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a table and the fields of a record, and what each is, in French."""
    if function in ("table", "most_common"):
        yield from (("ligne : ", row) for row in value)
    elif function in ("get_topics", "get_links"):
        yield from (("", {key: one}) for key, one in value.items())
    elif function == "get_doc_meta":
        yield from ((f"{name} : ", value[name]) for name in FIELDS if value.get(name))


def _values_before(text: str) -> Iterator[Any]:
    """Yield the readings of the last number or date of a text: 12 and 12.0 of "12", 0.12 of "12 %"."""
    tail = text[-MAX_TAIL:]
    if dates := find_dates(tail):
        yield dates[-1].value.isoformat()
    if found := VALUE_BEFORE.search(tail):
        plain = re.sub(r"\s", "", found["number"]).replace(",", ".")
        if "%" in found["rest"]:
            yield round(float(plain) / 100, 4)
        else:
            yield float(plain) if "." in plain else int(plain)


def _key(ids: Iterable[str]) -> bytes:
    return hashlib.sha256("\n".join(sorted(set(ids))).encode()).digest()


def _digest(value: Any) -> bytes:
    """Return a hash of a plain value: tuples are lists, the order of keys does not count, 60 is not 60.0."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()


def _field(name: object) -> str:
    known = {fold_text(one): one for one in FIELDS} | SYNONYMS
    if (found := known.get(fold_text(str(name)).strip())) is None:
        raise ValueError(f"aucun champ « {quoted(name)} » : {', '.join(FIELDS)}")
    return found


def _of(source: Receipt | None) -> str:
    return f"des {source.said}" if source else "d'une liste faite par le programme"


def _among(source: Receipt | None) -> str:
    return f"les {source.said}" if source else "une liste faite par le programme"


def _argument(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_argument, value[:3]))}{f'… {len(value)} en tout' if len(value) > 3 else ''})"
    return f"'{_shown(value)}'" if isinstance(value, str) else _shown(value)


def _shown(value: Any) -> str:
    """Write a value in one short line, without what could pass for a citation or hide a text."""
    text = " ".join(str(value)[: 2 * MAX_ARGUMENT].translate(_AS_TEXT).split())
    text = "".join(sign for sign in text if sign.isprintable())
    return text if len(text) <= MAX_ARGUMENT else text[: MAX_ARGUMENT - 1].rstrip() + "…"


_AS_TEXT = str.maketrans({"[": "(", "]": ")", "«": "‹", "»": "›"})
