"""Receipts of corpus function calls: which values of a program's answer such a call computed.

A program cannot be trusted about where a value comes from. So this process keeps what its functions returned, each
value under a short id with its call. A value of the answer counts as computed if it is the value of a receipt, or a
row or field of one that the answer names; only the receipt's statement is guaranteed, not the words around it.
"""

import hashlib
import inspect
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import chain, islice, product, starmap
from typing import Any, NamedTuple

import regex

from legal_rag.agent.tool_arguments import as_sent, bounded, whole_number
from legal_rag.base.text import fold_text, normalized, without_accents
from legal_rag.citations.markers import without_receipts
from legal_rag.corpus_index.index import CorpusIndex
from legal_rag.corpus_index.keywords import query_terms
from legal_rag.deep_read.grep import GrepResult
from legal_rag.deep_read.prompts import scalar_text
from legal_rag.law.courts import words_of_value
from legal_rag.law.keys import ParsedQuery, article_keys, candidate_keys_of_number, decision_keys
from legal_rag.law.values import find_dates

MAX_RECEIPTS, MAX_DOCUMENTS = 50_000, 2_000_000  # of one run, and in all of these; beyond, nothing is verified
MAX_ROWS = 1000  # of a table
MAX_UNVERIFIED = 50  # values without a receipt that are shown
FIRST_SHOWN = 3  # documents of a receipt, or values
MAX_ALIKE = 20  # receipts listed for one value
MIXED = "valeurs de plusieurs décisions côte à côte"
MAX_SAID = 3000  # characters of a statement, which is shown whole or not at all
MAX_TOLD = 300  # of one in a notice
MAX_TEXT = 60  # characters of a value
MAX_HEADS = 1000  # characters of the keys above a text that is cited

# What functions return, in French.
DECISIONS = """list_documents find_documents search_by_keyword search_by_keywords search_by_entity documents_in_topic
documents_citing grep_corpus""".split()
RANKED = {"rank_documents": "décisions rendues", "search_passages": "passages rendus"}
LISTED = {**dict.fromkeys(DECISIONS, "décisions rendues"), "get_doc_metas": "fiches rendues", **RANKED}
OF_ONE = {
    "get_doc_meta": "fiche rendue",
    "get_links": "liens rendus",
    "get_entities": "éléments rendus",
    "grep_document": "occurrences rendues",
}
NOUNS: Mapping[str, str] = {**LISTED, **OF_ONE, "get_topics": "thèmes rendus"}
HAND_MADE, TOO_LONG = "liste faite par le programme", "demande trop longue pour être montrée"
COMPUTING = ("count", "table", "most_common", "group_by", "earliest", "latest", "share", "receipt")
LIMITING = frozenset({"limit", "offset"})  # arguments that decide how many documents are returned
# Arguments that match by words or similarity, shown with `~`; all others are shown with `=`.
BY_LIKENESS = frozenset("juridiction formation solution keyword keywords entity entites query".split())
DATES = frozenset({"date_from", "date_to"})
FIELDS = {
    "juridiction": "juridiction",
    "formation": "formation",
    "solution": "solution",
    "doc_type": "type",
    "author": "auteur",
    "number": "numéro",
    "title": "titre",
    "date": "date",
    "année": "année",
    "mois": "mois",
    "keywords": "mots-clés",
}
_YEAR, _MONTH, _ISO_DATE = map(regex.compile, ("[0-9]{4}", "[0-9]{4}-[0-9]{2}", "[0-9]{4}-[0-9]{2}-[0-9]{2}"))
KEYS = dict.fromkeys(("reponse", "answer"), "answer") | dict.fromkeys(("recus", "recu", "receipts"), "named")
CITED = regex.compile(r"\[\s*Source\b", regex.IGNORECASE)
NEUTRAL = frozenset(["", *"réponse résultat valeur liste tableau".split()])  # keys without meaning of their own
MAX_WORDS = 5  # texts of the model shown
# A value directly precedes its marker; only the noun that is counted may come between.
_ENDING = regex.compile(
    r"(?P<percent> ?%)?(?: (?:décision|arrêt|jugement|document|affaire|occurrence|passage|lien|thème)s?)? ?\Z", regex.I
)
_LAST_NUMBER = regex.compile(
    r"(?<![^ («“:|])(?<![0-9] )(?:[1-9][0-9]{0,2}(?: [0-9]{3})+(?:,[0-9]+)?|(?:0|[1-9][0-9]*)(?:[.,][0-9]+)?)\Z"
)
# Invisible or look-alike characters of a text, written as escapes.
_INVISIBLE = regex.compile(
    r"[`\p{C}\p{M}\p{Zl}\p{Zp}\uff01-\uff5e\U0001d400-\U0001d7ff]|[^\P{Zs} ]|(?<= ) |\A | \Z"
    r"|[^\p{Latin}\p{Common}\p{Inherited}]|\[(?=\W*(?:source|calcul))",
    regex.IGNORECASE,
)


def _fold_label(text: object) -> str:
    return without_accents(fold_text(str(text))).strip()


_FIELD_NAMES = {_fold_label(name): field for field, french in FIELDS.items() for name in (field, french)}
_FIELD_NAMES |= {"year": "année", "month": "mois"}
# Keys that name a field of a record.
_FIELD_KEYS = {key: field for field, french in FIELDS.items() for key in (field, french)}
_FIELD_KEYS |= dict.fromkeys(("doc_id", "décision", "identifiant", "id"), "doc_id")


class Receipt(NamedTuple):
    """A value that a function returned, with its description."""

    id: str
    function: str
    said: str  # in French: "nombre des décisions rendues par find_documents(solution~'rejet')"
    shown: str  # its value, in one short line
    digests: frozenset[bytes]  # of its value, which may be large and is not kept; of one document's, field by field too
    documents: tuple[str, ...] = ()  # that it concerns
    rows: tuple[Any, ...] = ()  # of a table
    why_not: str = ""  # why it verifies nothing, in French; empty if its value follows from the corpus
    field: str = ""  # of a record, of which this is one value
    record: Mapping[str, str] = {}  # of `earliest` and `latest`
    is_shortened: bool = False  # of a search: some documents have more occurrences than it gives

    def statement(self) -> str:
        """Format the receipt as one line: id, description, value."""
        text = self.said if len(self.said) <= MAX_TOLD else f"{self.said[:MAX_TOLD]}… (entier sur la page)"
        return f"{self.id} : {text} = {self.shown}" + (f" (ne compte pas : {self.why_not})" if self.why_not else "")

    def to_json(self) -> dict[str, Any]:
        """Return the fields that a page shows; `n` is None if it concerns no particular documents."""
        first = list(self.documents[:FIRST_SHOWN])
        n = len(self.documents) if self.function not in ("", "get_topics") else None
        return {"id": self.id, "asked": self.said, "value": self.shown, "n": n, "first": first}


class Account(NamedTuple):
    """Which parts of an answer are computed, and which are not."""

    answer: Any  # without the receipts that it names
    receipts: tuple[Receipt, ...] = ()  # of which it has values
    unverified: tuple[str, ...] = ()  # the rest, in French

    @property
    def is_computed(self) -> bool:
        """Whether every part of the answer is the value of a receipt, or rests on a citation that holds."""
        return bool(self.receipts) and not self.unverified


class Receipts:
    """Receipts of one run, and the functions of programs that compute over what others returned.

    `resolve` reads an argument, by the parameter's name, as functions do; `last_search` returns the last search of a
    pattern.
    """

    def __init__(
        self, index: CorpusIndex, resolve: Callable[[str, Any], Any], last_search: Callable[[], GrepResult]
    ) -> None:
        self._index, self._resolve, self._last_search = index, resolve, last_search
        self._receipts: dict[str, Receipt] = {}
        self._by_documents: dict[bytes, Receipt] = {}  # of each set of documents, the first sound one
        self._metas: dict[str, dict[str, Any]] = {}
        self._n_documents = 0
        self.is_full = False
        self._add_receipt("", "nombre de documents du corpus", index.total_docs)
        self._add_receipt("", "nombre de caractères du corpus", index.total_chars)
        self._n_reported = len(self._receipts)

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """The functions that compute over documents which others returned, by name."""
        return {name: bounded()(getattr(self, name)) for name in COMPUTING}

    @property
    def documents(self) -> Iterator[str]:
        """Ids of the documents whose positions, scores or entities were returned."""
        shown_by = {*RANKED, "grep_corpus", "grep_document", "get_entities"}
        return (doc_id for kept in self._receipts.values() if kept.function in shown_by for doc_id in kept.documents)

    def watch(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that it keeps a receipt, if it returns facts of the corpus.

        Arguments are resolved once, here: the function and the receipt use the same ones.
        """
        if name not in NOUNS:
            return function
        signature = inspect.signature(function)

        @wraps(function)
        def watched(*arguments: Any, **named: Any) -> Any:
            try:
                given = signature.bind(*arguments, **named).arguments
            except TypeError:
                raise TypeError(f"arguments de {name} : {', '.join(signature.parameters)}") from None
            asked = {key: self._resolve(key, value) for key, value in given.items()}
            result = function(**asked)
            self._add_call(name, asked, result)
            return result

        return watched

    def given(self, said: str, doc_ids: Sequence[str]) -> None:
        """Add a receipt for documents available to programs without a call."""
        self._add_receipt("", said, list(doc_ids), doc_ids)

    def count(self, documents: Any, of: str = "documents") -> int:
        """Nombre de décisions d'un résultat (identifiants, résultat de grep_corpus, fiches…) ; of="occurrences" : celui
        des occurrences d'un résultat de grep_corpus.
        """
        source, ids = self._source(documents)
        if of == "documents":
            self._add_receipt("count", f"nombre {_of_source(source)}", len(ids), ids, why_not=_why_unsound(source))
            return len(ids)
        matches: Any = list(documents.values()) if isinstance(documents, Mapping) else [None]
        if of != "occurrences" or not all(isinstance(item, list) for item in matches):
            raise ValueError('of doit être "documents", ou "occurrences" pour un résultat de grep_corpus')
        digest, searches = _digest(documents), (rec for rec in self._receipts.values() if rec.function == "grep_corpus")
        search = next((rec for rec in searches if digest in rec.digests), None)
        why_not = "occurrences plus nombreuses que rendu" if search and search.is_shortened else _why_unsound(search)
        number = sum(map(len, matches))
        self._add_receipt("count", f"nombre des occurrences {_of_source(search)}", number, ids, why_not=why_not)
        return number

    def table(self, documents: Any, field: str, second_field: str = "") -> list[list[Any]]:
        """Nombre de décisions par valeur d'un champ, ou de deux : [[valeur, …, nombre], …], dans l'ordre des valeurs.
        Champs : juridiction, formation, solution, type, auteur, année, mois, date, mots-clés.
        """
        source, ids = self._source(documents)
        names = [_parse_field(field), *([_parse_field(second_field)] if second_field else [])]
        rows: list[list[Any]] = [[*values, n] for values, n in sorted(self._counts(ids, names).items())]
        if len(rows) > MAX_ROWS:
            raise ValueError(f"{len(rows)} lignes : prenez un champ de moins de {MAX_ROWS} valeurs, ou most_common")
        description = f"nombre par {' et '.join(FIELDS[name] for name in names)} {_of_source(source)}"
        why_not, forms = _why_unsound(source), [] if second_field else [dict(rows)]
        self._add_receipt("table", description, rows, ids, why_not=why_not, forms=forms, rows=tuple(rows))
        return rows

    def most_common(self, documents: Any, field: str, n: int = 10) -> list[list[Any]]:
        """Les n valeurs les plus fréquentes d'un champ, avec leur nombre de décisions : [[valeur, nombre], …]."""
        source, ids = self._source(documents)
        name, most = _parse_field(field), whole_number("n", n, 10, 1, MAX_ROWS)
        counts = sorted(self._counts(ids, [name]).items(), key=lambda item: (-item[1], item[0]))
        rows: list[list[Any]] = [[value, k] for (value,), k in counts[:most]]
        head = f"les {len(rows)} valeurs les plus fréquentes" if len(rows) > 1 else "la valeur la plus fréquente"
        if tied := sum(k == rows[-1][1] for _, k in counts[most:]):
            head += f" (et {tied} à égalité avec la dernière)"
        description = f"{head} du champ {FIELDS[name]} {_of_source(source)}"
        why_not, forms = _why_unsound(source), [dict(rows)]
        self._add_receipt("most_common", description, rows, ids, why_not=why_not, forms=forms, rows=tuple(rows))
        return rows

    def group_by(self, documents: Any, field: str) -> dict[str, list[str]]:
        """Identifiants des décisions par valeur d'un champ : {valeur: [identifiants]} ; un groupe peut être compté."""
        source, ids = self._source(documents)
        name, groups = _parse_field(field), defaultdict[str, list[str]](list)
        for doc_id in ids:
            for value in self._field_values(ids, doc_id, name):
                groups[value].append(doc_id)
        kept, description = dict(sorted(groups.items())), f"groupes par {FIELDS[name]} {_of_source(source)}"
        counts = [{value: len(group) for value, group in kept.items()}]
        whole = self._add_receipt("group_by", description, kept, ids, why_not=_why_unsound(source), forms=counts)
        for value, group in kept.items():
            description = f"décisions dont le champ {FIELDS[name]} est {as_text(value)}, parmi {_name_source(source)}"
            self._know(whole._replace(said=description, shown=as_text(group), documents=tuple(group)))
        return kept

    def earliest(self, documents: Any) -> dict[str, str]:
        """La plus ancienne décision d'un résultat : {"doc_id", "date", "title"}."""
        return self._extreme("earliest", documents, "la plus ancienne", min)

    def latest(self, documents: Any) -> dict[str, str]:
        """La décision la plus récente d'un résultat : {"doc_id", "date", "title"}."""
        return self._extreme("latest", documents, "la plus récente", max)

    def share(self, part: Any, whole: Any) -> float:
        """Part, de 0 à 1, des décisions de whole qui sont aussi dans part, à quatre décimales."""
        (source, ids), (base, of) = self._source(part), self._source(whole)
        if not of:
            raise ValueError("aucune décision dans whole")
        both = len(set(ids) & set(of))
        text = f"part, parmi {_name_source(base)}, {_of_source(source)} ({both} sur {len(of)})"
        exact = 100 * both / len(of)
        forms = [f"{exact:.{n}f}" for n in range(3)]  # but for what rounds to all or nothing
        percent = [f"{form} %".replace(".", ",") for form in forms if float(form) % 100 or not exact % 100]
        value, why_not = round(both / len(of), 4), _why_unsound(source) or _why_unsound(base)
        self._add_receipt("share", text, value, of, why_not=why_not, forms=percent)
        return value

    def receipt(self, value: Any = None) -> str:
        """Identifiant (« r12 ») du dernier reçu ; ou du dernier dont value est la valeur."""
        if value is None:
            return next(reversed(self._receipts))
        digest, unsound = _digest(value), reversed(self._receipts.values())
        if match := next((kept for kept in chain(self.sound(), unsound) if digest in kept.digests), None):
            return match.id
        raise LookupError("aucun reçu n'a cette valeur : comptez par count, table, group_by…")

    def news(self) -> list[Receipt]:
        """Return the receipts about several documents added since the last call."""
        news = list(islice(self._receipts.values(), self._n_reported, None))
        self._n_reported += len(news)
        return [receipt for receipt in news if receipt.function not in OF_ONE]

    def account_for(self, value: Any, is_cited: Callable[[str], bool] = lambda text: False) -> Account:
        """Judge an answer, `{"réponse": …, "reçus": ["r3"]}` or a value alone.

        Texts of which `is_cited` says that citations that hold support all of them are not judged.
        """
        answer, named = _split_answer(value)
        judge = _Judge(self, list(dict.fromkeys(named)), is_cited)
        judge.judge_answer(answer)
        unverified = judge.unverified
        if unverified and self.is_full:
            unverified.append("les fonctions ont rendu plus que ce qui est retenu d'une lecture")
        return Account(answer, tuple(judge.matched.values()), tuple(unverified[:MAX_UNVERIFIED]))

    def bears_out(self, before: str, name: str) -> Receipt | None:
        """Return the receipt of a name, or the field of its record, if it is sound and its value ends a text."""
        digests = set(map(_digest, _last_values(before)))
        parts = (part for kept in self.sound([name]) for part in (kept, *self.parts(kept)))
        return next((part for part in parts if not part.digests.isdisjoint(digests)), None)

    def sound(self, names: Iterable[str] | None = None) -> list[Receipt]:
        """Return the sound receipts, all or those named, latest first."""
        kept = self._receipts.values() if names is None else filter(None, map(self._receipts.get, names))
        return [receipt for receipt in kept if not receipt.why_not][::-1]

    def listing(self, value: Any) -> Receipt | None:
        """Return the receipt that lists these documents, in its order or in that of their ids."""
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            return None
        receipt = self._by_documents.get(_hash_ids(value))
        is_listed = receipt and not receipt.why_not and value in ([*receipt.documents], sorted(receipt.documents))
        return receipt if is_listed else None

    def parts(self, receipt: Receipt) -> Iterator[Receipt]:
        """Yield the rows of a table and the fields of a record as separate receipts."""
        named = [(f"ligne {n} sur {len(receipt.rows)}", row) for n, row in enumerate(receipt.rows, 1)]
        if receipt.function == "get_doc_meta":
            meta = self._index.documents[receipt.documents[0]].to_json()
            named = [(french, meta[name]) for name, french in FIELDS.items() if meta.get(name)]
        elif receipt.record:
            named = list(receipt.record.items())
        for name, part in named:
            digests, field = frozenset(map(_digest, (part, {name: part}))), "" if receipt.rows else name
            description = f"{name} : {receipt.said}"
            yield receipt._replace(said=description, shown=as_text(part), digests=digests, field=field)

    def _add_call(self, name: str, asked: Mapping[str, Any], result: Any) -> None:
        is_among, search = asked.get("doc_ids") is not None, self._last_search() if name == "grep_corpus" else None
        among = self._by_documents.get(_hash_ids(asked["doc_ids"])) if is_among else None
        given = {key: value for key, value in asked.items() if key != "doc_ids" and value not in (None, "", [])}
        if name == "search_by_keywords":
            given.setdefault("mode", "any")
        why_not = _why_unsound(among) if is_among else ""
        if name in RANKED:
            why_not = "début d'un classement"
        elif (search and not search.is_complete) or LIMITING & given.keys():
            why_not = "recherche limitée"
        documents = [asked["doc_id"]] if "doc_id" in asked else [] if name == "get_topics" else _ids_of(result)
        description = f"{NOUNS[name]} par {name}({', '.join(starmap(_format_argument, given.items()))})"
        description += " (une année seule compte pour son début)" if DATES & given.keys() else ""
        description += f" parmi {_name_source(among)}" if is_among else ""
        is_shortened = search is not None and bool(search.shortened)
        kept = self._add_receipt(name, description, result, documents, why_not=why_not, is_shortened=is_shortened)
        if name == "get_links":
            for key, relation in (("cites", "cités par"), ("cited_by", "qui citent")):
                self._know(kept._replace(said=f"documents {relation} {asked['doc_id']}", documents=tuple(result[key])))

    def _add_receipt(
        self,
        function: str,
        description: str,
        value: Any,
        documents: Iterable[str] = (),
        *,
        why_not: str = "",
        forms: Iterable[Any] = (),  # in which the same value may be given
        **details: Any,
    ) -> Receipt:
        kept = Receipt(
            f"r{len(self._receipts) + 1}",
            function,
            description[:MAX_SAID],
            as_text(value),
            frozenset(map(_digest, (value, *forms))),
            tuple(dict.fromkeys(documents)),
            why_not=why_not or (TOO_LONG if len(description) > MAX_SAID else ""),
            **details,
        )
        self._n_documents += len(kept.documents)
        self.is_full = len(self._receipts) >= MAX_RECEIPTS or self._n_documents > MAX_DOCUMENTS
        if not self.is_full:
            self._receipts[kept.id] = kept
            if function in LISTED or (kept.documents and not function):
                self._know(kept)
        return kept

    def _know(self, receipt: Receipt) -> None:
        """Index a receipt that lists documents, so that programs may compute over them."""
        known = self._by_documents.get(key := _hash_ids(receipt.documents))
        if not self.is_full and (known is None or (known.why_not and not receipt.why_not)):
            self._by_documents[key] = receipt

    def _source(self, documents: Any) -> tuple[Receipt | None, Sequence[str]]:
        """Return the receipt that lists these documents, in whatever order, and their ids."""
        ids = list(dict.fromkeys(_ids_of(documents)))
        if not ids and documents:
            raise ValueError("donnez ce qu'une fonction du corpus a rendu : une liste d'identifiants, des fiches…")
        source = self._by_documents.get(_hash_ids(ids))
        return source, source.documents if source else ids

    def _extreme(self, function: str, documents: Any, which: str, choose: Callable[..., Any]) -> dict[str, str]:
        source, ids = self._source(documents)
        dates = [(date, doc_id) for doc_id in ids for date in self._field_values(ids, doc_id, "date")]
        dated = [pair for pair in dates if _ISO_DATE.fullmatch(pair[0])]
        if not dated:
            raise ValueError("aucune décision, ou aucune qui ait une date complète")
        date, doc_id = choose(dated)
        n_others = sum(other == date for other, _ in dated) - 1
        others = f" (et {n_others} du même jour)" if n_others else ""
        if undated := len(dates) - len(dated):
            others += f" ({undated} sans date complète non comptées)"
        value = {"doc_id": doc_id, "date": date, "title": self._metas[doc_id]["title"]}
        description = f"décision {which}{others} parmi {_name_source(source)}"
        self._add_receipt(function, description, value, ids, why_not=_why_unsound(source), record=value)
        return value

    def _counts(self, ids: Sequence[str], names: Sequence[str]) -> Counter[tuple[str, ...]]:
        counts: Counter[tuple[str, ...]] = Counter()
        for doc_id in ids:
            counts.update(product(*(self._field_values(ids, doc_id, name) for name in names)))
        return counts

    def _field_values(self, ids: Sequence[str], doc_id: str, name: str) -> Sequence[str]:
        """Return a document's values of a field; those of all `ids` are read together."""
        if doc_id not in self._metas:
            for meta in self._index.metas([other_id for other_id in ids if other_id not in self._metas]):
                fields = {field: getattr(meta, field) for field in FIELDS if hasattr(meta, field)}
                year, month = _YEAR.match(meta.date), _MONTH.match(meta.date)  # "1993" has no month
                known = {"année": year[0] if year else "", "mois": month[0] if month else ""}
                self._metas[meta.doc_id] = fields | known
        if doc_id not in self._metas:
            raise LookupError(f"aucune décision « {as_sent(doc_id)} »")
        value = self._metas[doc_id][name]
        return [value] if isinstance(value, str) else value


class _Judge:
    """Judges the values of one answer, only against the receipts it names, if it names any."""

    def __init__(self, receipts: Receipts, named: Sequence[str], is_cited: Callable[[str], bool]) -> None:
        self._receipts, self._named, self._is_cited = receipts, named, is_cited
        self._by_value: dict[bytes, list[Receipt]] = {}
        self.matched: dict[str, Receipt] = {}  # of which the answer has values, by statement
        self._words: dict[str, None] = {}
        self._values: dict[str, None] = {}
        whole = receipts.sound(named or None)
        parts = [part for receipt in whole if named or receipt.record for part in receipts.parts(receipt)]
        for receipt in (*whole, *parts):
            for digest in receipt.digests:
                self._by_value.setdefault(digest, []).append(receipt)

    def judge(self, value: Any, keys: tuple[str, ...] = ()) -> set[tuple[str, str]]:
        """Judge a value below some keys; return the records and their fields in it.

        A key counts as the model's wording unless it is neutral, names the field, or a citation below supports it.
        Several fields of one record, side by side, are not returned: they belong together.
        """
        if matches := self._receipts_of(value):
            self.matched |= {receipt.statement(): receipt for receipt in matches[:MAX_ALIKE]}
            self._words |= {key: None for key in keys if not _is_true_key(key, value, matches[0])}
            return {(matches[0].id, matches[0].field)} if matches[0].field else set()
        if isinstance(value, str):
            self._judge_text(value, keys)
            return set()
        if not isinstance(value, Mapping | list | tuple) or not value:
            self._words |= dict.fromkeys(keys)
            self._values[as_text(value)] = None
            return set()
        parts = [((*keys, key), item) for key, item in value.items()] if isinstance(value, Mapping) else None
        fields = set[tuple[str, str]]()
        for names, item in parts or [(keys, item) for item in value]:
            fields |= self.judge(item, names)
        return set() if len(fields) > 1 and len({record for record, _ in fields}) == 1 else fields

    def judge_answer(self, answer: Any) -> None:
        """Judge an answer, in which fields of different records must not look as if they belonged to one."""
        fields = self.judge(answer)
        if len({record for record, _ in fields}) > 1 and len({name for _, name in fields}) > 1:
            self._values[MIXED] = None

    @property
    def unverified(self) -> list[str]:
        """Values without a receipt, in French."""
        words = [_format_safe_line(word) for word in self._words if word.strip().casefold() not in NEUTRAL]
        return [*self._values, *([f"mots du modèle : {', '.join(words[:MAX_WORDS])}"] if words else [])]

    def _receipts_of(self, value: Any) -> Sequence[Receipt]:
        """Return the receipts with this value, among those named, else among all, latest first."""
        if isinstance(value, bool) or value in (None, ""):
            return ()
        if matches := self._by_value.get(_digest(value)):
            return matches
        listing = self._receipts.listing(value)
        return (listing,) if listing and (not self._named or listing.id in self._named) else ()

    def _judge_text(self, text: str, keys: tuple[str, ...]) -> None:
        heads = [key for key in keys if f"[Source: {key}," not in text and key.casefold() not in NEUTRAL]
        without, is_short = without_receipts(text), sum(map(len, heads)) <= MAX_HEADS
        if not (is_short and CITED.search(text) and self._is_cited(" : ".join([*heads, without]))):
            self._words |= dict.fromkeys((*keys, without))


def as_text(value: Any) -> str:
    """Format a value as one short line, in French."""
    if isinstance(value, str):
        return f"« {_format_safe_line(value)} »" if value else "(sans)"
    if not isinstance(value, Mapping | list | tuple):
        return scalar_text(value)
    values = list(value.values()) if isinstance(value, Mapping) else list(value)
    are_records = any(isinstance(item, Mapping | list | tuple) for item in values)
    if len(values) > FIRST_SHOWN or are_records:
        return f"{len(values)} {'ligne' if are_records else 'valeur'}{'s' if len(values) > 1 else ''}"
    keys = [f"{_format_safe_line(key)} : " for key in value] if isinstance(value, Mapping) else [""] * len(values)
    return ", ".join(key + as_text(item) for key, item in zip(keys, values, strict=True)) or "aucune valeur"


def _split_answer(value: Any) -> tuple[Any, list[str]]:
    """Split `{"réponse": …, "reçus": […]}`; any other value is the answer itself."""
    given = value.items() if isinstance(value, Mapping) else ()
    parts = {KEYS.get(_fold_label(key), ""): part for key, part in given}
    if parts.keys() != {"answer", "named"} or len(given) != 2:
        return value, []
    numbers = regex.findall(r"(?i)\br?([0-9]{1,6})\b", str(parts["named"]))
    return parts["answer"], [f"r{int(n)}" for n in numbers] or ["r0"]  # which is none: then nothing is computed


def _ids_of(value: Any) -> list[str]:
    """Return the ids that a function's value lists, in order; empty if it lists anything else."""
    if isinstance(value, Mapping):
        value = [value["doc_id"]] if "doc_id" in value else list(value)
    ids = [_id_of(row) for row in value] if isinstance(value, list | tuple) else []
    return ids if all(ids) else []


def _id_of(row: Any) -> str:
    if isinstance(row, Mapping):
        row = row.get("doc_id", "")
    elif isinstance(row, list | tuple) and row:
        row = row[0]
    return row if isinstance(row, str) else ""


def _last_values(text: str) -> Iterator[Any]:
    """Yield the value that ends a text: a date, a number, a percentage as text."""
    tail = " ".join(text.split())
    ending = _ENDING.search(tail)
    head = tail[: ending.start()] if ending else tail
    if (dates := find_dates(head)) and dates[-1].end == len(head):
        yield dates[-1].value.isoformat()
    elif number := _LAST_NUMBER.search(head):
        plain = number[0].replace(" ", "").replace(",", ".")
        if ending and ending["percent"]:
            yield f"{plain.replace('.', ',')} %"
        else:
            yield float(plain) if "." in plain else int(plain)


def _is_true_key(key: str, value: Any, receipt: Receipt) -> bool:
    """Tell whether a key adds nothing to what the receipt states."""
    name = key.strip().casefold()
    is_number = isinstance(value, int | float) and name in ("nombre", "n")
    return is_number or bool(receipt.field and _FIELD_KEYS.get(name) == _FIELD_KEYS[receipt.field])


def _hash_ids(ids: Iterable[str]) -> bytes:
    return _digest(sorted(set(ids)))


def _digest(value: Any) -> bytes:
    """Return a hash of a plain value: tuples are lists, the order of keys does not count, 60 is not 60.0."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()


def _parse_field(name: object) -> str:
    if (field := _FIELD_NAMES.get(_fold_label(name))) is None:
        raise ValueError(f"aucun champ « {as_sent(name)} » : {', '.join(FIELDS.values())}")
    return field


def _why_unsound(source: Receipt | None) -> str:
    return source.why_not if source else HAND_MADE


def _of_source(source: Receipt | None) -> str:
    return f"des {source.said}" if source else f"de décisions d'une {HAND_MADE}"


def _name_source(source: Receipt | None) -> str:
    return f"les {source.said}" if source else f"une {HAND_MADE}"


def _format_argument(name: str, value: Any) -> str:
    """Format an argument as the function normalises it."""
    read = READ.get(name, lambda text: text)
    return f"{name}{'~' if name in BY_LIKENESS else '='}{_literal(read(value))}"


def _terms(text: str) -> str:
    return " ".join(alternatives[0] for alternatives in query_terms(text))


# How functions normalise arguments from which they drop words.
READ: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("juridiction", "formation", "solution"), lambda text: " ".join(sorted(words_of_value(text)))),
    "article": lambda text: article_keys(text)[0],
    "number": lambda text: ", ".join(keys[0] for keys in candidate_keys_of_number(text)),
    "text": lambda text: ", ".join(decision_keys(ParsedQuery(text)) or article_keys(text)[:1]),
    "keyword": _terms,
    "keywords": lambda texts: [_terms(text) for text in texts],
}


def _literal(value: Any) -> str:
    """Format an argument without loss: invisible characters are escaped."""
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_literal, value))})"
    if isinstance(value, int | float):
        return str(value)
    text = normalized(str(value)).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{_INVISIBLE.sub(lambda match: f'{chr(92)}u{ord(match[0]):04x}', text)}'"


def _format_safe_line(text: object) -> str:
    """Shorten a text to one line, without characters that could imitate a citation or hide text."""
    line = " ".join(str(text)[: 4 * MAX_TEXT].translate(_AS_TEXT).split())
    line = "".join(sign for sign in line if sign.isprintable())
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1].rstrip() + "…"


_AS_TEXT = str.maketrans({"[": "(", "]": ")", "«": "‹", "»": "›"})
