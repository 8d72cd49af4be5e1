"""Probe a model: which errors in French law its answers hold, and which of them the checks of citations mark.

The kinds of errors are those that studies found in legal answers of models, in the forms of French law: invented
authorities, wrong quotations, courts, outcomes and persons (Dahl et al., Large Legal Fictions, 2024); what a party says
taken for what the court holds, the order of courts, texts no longer in force, false premises (Magesh et al.,
Hallucination-Free?, 2025); words that a decision does not have (Charlotin's database of filings).
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from legal_rag.base.files import locked, progress, write_whole
from legal_rag.base.html import displayed
from legal_rag.base.text import Span, fold_text, read_toml
from legal_rag.citations import Citation, CitationEnricher, format_marker, is_abstention, verify_text
from legal_rag.law import Reading, read, split_sentences
from legal_rag.library.library import Library
from legal_rag.llm import Endpoint, ModelError, ask

REPLIES = "replies.jsonl"
REPLY_TOKENS = 140
PASSAGES, PASSAGE_CHARS = 2, 900  # shown with a question: the first ones of an answer without a model
QUOTED_WORDS = 4  # that words in quotation marks need, to count as a decision's own
SEED = 0
PROMPT = """Répondez en français à la question de droit, en une ou deux phrases, d'après les seuls passages ci-dessous.
Citez-les mot pour mot entre « », puis recopiez le repère du passage. Si les passages ne le disent pas, dites-le.

Exemple de forme : Le bailleur doit délivrer la chose : « le bailleur est obligé de délivrer la chose louée » [Source: \
FICTIF0000, chars 120-480].

Passages :

{passages}

Question : {question}"""

# right: it says what is expected and nothing that is forbidden; wrong: it says something forbidden.
Verdict = Literal["right", "wrong", "neither"]
# How the checks leave the words that decide: under a citation shown as verified or supported; without any mark; marked
# as to be compared (reworded, or with a warning); in a sentence that is refused. An error's most trusted place counts.
Shown = Literal["", "vouched", "unmarked", "compare", "refused"]
STATES: Mapping[Shown, tuple[str, ...]] = {
    "vouched": ("supported",),
    "unmarked": ("unchecked",),
    "compare": ("reworded", "warned"),
    "refused": ("unsupported",),
}

_QUOTATION = re.compile(r"[«“\"]([^«»“”\"]+)[»”\"]")
_CUT = re.compile(r"\[?\(?(?:\.{3}|…)\)?\]?")


class Pattern(NamedTuple):
    """What an answer says: a value of a reader, or words."""

    reader: str
    value: str
    instead: bool = False  # an error only where the answer lacks what is expected


@displayed
class ProbeQuestion(NamedTuple):
    """A question, what a right answer says, what an answer with one kind of error says, and one of each by hand."""

    id: str
    kind: str
    doc_id: str
    question: str
    expected: list[Pattern]
    forbidden: list[Pattern]
    right: str
    wrong: str


@cache
def read_probe() -> tuple[dict[str, str], list[ProbeQuestion]]:
    """Return the kinds of errors, each in a few words, and the questions: the first of each kind, then the second…"""
    rows = read_toml("legal_rag.evaluation", "probe.toml")
    several = ("expected", "forbidden")
    questions = [
        ProbeQuestion(**row | {name: [*map(_pattern, row[name])] for name in several}) for row in rows["questions"]
    ]
    return rows["kinds"], sorted(questions, key=lambda question: question.id.rpartition("-")[2])


def _pattern(text: str) -> Pattern:
    written = text.removeprefix("instead ")
    reader, _, value = written.partition(" ")
    return Pattern(reader, value, written != text)


def _articles(reading: Reading) -> set[str]:
    named = (name.value for name in reading.identifiers if name.kind == "article")
    return {cited.value for cited in reading.articles}.union(named)


READERS: Mapping[str, Callable[[Reading], set[str]]] = {
    "article": _articles,
    "decision": lambda reading: {name.value for name in reading.identifiers if name.kind != "article"},
    "date": lambda reading: {day.value.isoformat() for day in reading.dates},
    "amount": lambda reading: {f"{amount.value.normalize():f} {amount.currency}" for amount in reading.amounts},
    "quotation": lambda reading: set(_quotations(reading.text)),
}


def _quotations(text: str) -> Iterator[str]:
    pieces = (piece for match in _QUOTATION.finditer(text) for piece in _CUT.split(match[1]))
    return (words for piece in pieces if len((words := _plain(piece).strip(" .,;:")).split()) >= QUOTED_WORDS)


def _plain(text: str) -> str:
    return " ".join(fold_text(text).split())


class Judge:
    """Says what is right and wrong in answers to the probe's questions, and what the checks make of it."""

    def __init__(self, library: Library) -> None:
        """Take the Library of the sample corpus; LookupError if it lacks a decision that is asked about."""
        if missing := next((asked.doc_id for asked in read_probe()[1] if asked.doc_id not in library), None):
            raise LookupError(
                f"{library.path} lacks {missing}, which the probe asks about "
                "(expected an index of the sample: legal-rag index --source sample)"
            )
        self._library, self._enricher = library, CitationEnricher(library)

    @cached_property
    def _texts(self) -> dict[str, str]:
        """Each document with its title and numbers."""
        documents = self._library.documents()
        return {one.id: "\n".join([one.title, *map(str, one.extra.values()), one.content]) for one in documents}

    @cached_property
    def _decisions(self) -> set[str]:
        return set().union(*(READERS["decision"](read(text)) for text in self._texts.values()))

    @cached_property
    def _folded(self) -> str:
        return "\n".join(map(_plain, self._texts.values()))

    def _says(self, text: str, pattern: Pattern, asked: ProbeQuestion) -> bool:
        if pattern.reader == "words":
            return re.search(pattern.value, _plain(text)) is not None
        if pattern.reader == "abstains":
            return is_abstention(text) or _DOES_NOT_SAY.search(_plain(text)) is not None
        if pattern.reader != "other":
            return pattern.value in READERS[pattern.reader](read(text))
        values = READERS[pattern.value](read(text)) - READERS[pattern.value](read(asked.question))
        if pattern.value == "decision":
            return not values <= self._decisions
        if pattern.value == "quotation":
            return any(value not in self._folded for value in values)
        return not values <= READERS[pattern.value](read(self._texts[asked.doc_id]))

    def verdict(self, asked: ProbeQuestion, reply: str) -> tuple[Verdict, list[Pattern]]:
        """Judge a reply without the checks; also return the forbidden patterns that count."""
        complete = all(self._says(reply, pattern, asked) for pattern in asked.expected)
        counted = (pattern for pattern in asked.forbidden if not (pattern.instead and complete))
        errors = [pattern for pattern in counted if self._says(reply, pattern, asked)]
        return ("wrong" if errors else "right" if complete else "neither"), errors

    def outcome(self, asked: ProbeQuestion, reply: str, seen: Sequence[str] | None = None) -> "ReplyOutcome":
        """Judge a reply without and with the checks; `seen` are the documents that its model was shown, None: any."""
        parts = self._enricher.enrich(reply, seen, seen=seen).parts
        text = "".join(part.text for part in parts)
        states = [part.state for part in parts for _ in part.text]
        verdict, errors = self.verdict(asked, text)

        def shown() -> Shown:
            deciding, quantified = (errors, any) if verdict == "wrong" else (asked.expected, all)
            trusted: tuple[str, ...] = ()
            for how, more in STATES.items():
                trusted += more
                pairs = zip(text, states, strict=True)
                left = "".join(letter if state in trusted else "¤" for letter, state in pairs)
                if quantified(self._says(left, pattern, asked) for pattern in deciding):
                    return how
            return ""

        by_citations = shown()
        for start, end in self._sentences_with_wrong_references(text):
            states[start:end] = ["unsupported"] * (end - start)
        names = [f"{pattern.reader} {pattern.value}" for pattern in errors]
        return ReplyOutcome(asked.id, asked.kind, reply, verdict, names, shown(), by_citations)

    def _sentences_with_wrong_references(self, text: str) -> list[Span]:
        references = verify_text(text, self._library).references if text.strip() else ()
        wrong = [one.start for one in references if one.status in ("wrong", "absent")]
        return [(start, end) for start, end in split_sentences(text) if any(start <= at < end for at in wrong)]


_DOES_NOT_SAY = re.compile(
    r"\b(?:ne|n')[^.]{0,12}(?:précis|mention|indiqu|parl|di[ts]|permet|contien|répon|figur|fourni|connu|donn|spécifi)"
    r"|\baucune? (?:information|mention|précision|indication|réponse|passage|élément)"
)


@displayed
class ReplyOutcome(NamedTuple):
    """What a reply says, and what the checks make of it."""

    id: str
    kind: str
    reply: str
    verdict: Verdict
    errors: list[str]  # patterns
    shown: Shown  # with all checks
    by_citations: Shown  # with the check of its citations alone, without that of its references


@displayed
class KindCounts(NamedTuple):
    """Replies to the questions of one kind."""

    kind: str
    asked: int
    right: int
    right_compare: int  # of the right ones; see `Shown`
    right_refused: int
    wrong: int
    refused: int  # of the wrong ones, as the next three
    compare: int
    unmarked: int
    vouched: int

    @property
    def caught(self) -> int:
        """Of the wrong ones, those that are marked."""
        return self.refused + self.compare


@displayed
@dataclass(frozen=True)
class ProbeReport:
    """Outcomes of a model's replies, or of those written by hand."""

    model: str
    outcomes: list[ReplyOutcome]

    @cached_property
    def rows(self) -> list[KindCounts]:
        """Counts by kind, in the probe's order, and of all."""
        kinds = [*read_probe()[0]]
        rows = [_counts(kind, [one for one in self.outcomes if one.kind == kind]) for kind in kinds]
        return [*rows, _counts("all", self.outcomes)]

    @cached_property
    def shares(self) -> dict[str, tuple[float, float, float]]:
        """Shares of all replies, with Wilson's intervals of 95 %: value, low, high; without cases they are left out."""
        all_ = self.rows[-1]
        cases = {
            "wrong, without checks": (all_.wrong, all_.asked),
            "wrong and not marked, with checks": (all_.wrong - all_.caught, all_.asked),
            "marked, of the wrong": (all_.caught, all_.wrong),
            "vouched for, of the wrong": (all_.vouched, all_.wrong),
            "marked, of the right": (all_.right_compare + all_.right_refused, all_.right),
            "refused, of the right": (all_.right_refused, all_.right),
        }
        return {name: _wilson(k, n) for name, (k, n) in cases.items() if n}

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        rows, outcomes = ([one._asdict() for one in several] for several in (self.rows, self.outcomes))
        return {"model": self.model, "kinds": rows, "shares": self.shares, "outcomes": outcomes}


def _counts(kind: str, outcomes: Sequence[ReplyOutcome]) -> KindCounts:
    shown = Counter((one.verdict, one.shown) for one in outcomes)
    right, wrong = (sum(one.verdict == verdict for one in outcomes) for verdict in ("right", "wrong"))
    of_right = shown["right", "compare"], shown["right", "refused"]
    of_wrong = [shown["wrong", how] for how in ("refused", "compare", "unmarked", "vouched")]
    return KindCounts(kind, len(outcomes), right, *of_right, wrong, *of_wrong)


def _wilson(k: int, n: int) -> tuple[float, float, float]:
    from scipy.stats import binomtest

    interval = binomtest(k, n).proportion_ci(method="wilson")
    return k / n, float(interval.low), float(interval.high)


def score_written(library: Library) -> ProbeReport:
    """Judge the answers written by hand with the probe, a right and a wrong one for each question."""
    judge, (_, questions) = Judge(library), read_probe()
    replies = [(asked, reply) for asked in questions for reply in (asked.right, asked.wrong)]
    return ProbeReport("written by hand", [judge.outcome(asked, reply) for asked, reply in replies])


def probe_hash() -> str:
    """Return the SHA-256 of what a model is asked: replies are kept for it; the patterns may be mended."""
    asked = [[one.id, one.question] for one in read_probe()[1]]
    settings = [PROMPT, PASSAGES, PASSAGE_CHARS, REPLY_TOKENS, SEED]
    return hashlib.sha256(json.dumps([settings, asked], ensure_ascii=False).encode()).hexdigest()


def probe_model(library: Library, model: Endpoint | None, output: str | Path) -> ProbeReport:
    """Ask a model the probe's questions and judge its replies; those kept in the folder `output` are not asked again.

    Without a model, those kept are judged, be they all or some.

    Raises:
        FileNotFoundError: If there is neither a model nor a reply.
        LookupError: If the Library is not of the sample.
        ValueError: If the folder holds replies of another model, or to other questions.
        OSError: If the model does not reply.
    """
    judge, path = Judge(library), Path(output).expanduser() / REPLIES
    if model is None:
        kept_of, replies = _kept(path)
        return _report(judge, kept_of["model"], replies)
    header = {"model": model.name, "probe": probe_hash()}
    with locked(path):
        if not path.exists():
            write_whole(path, _line(header))
        found, replies = _kept(path)
        if found != header:
            raise ValueError(f"{path} holds replies of {found} (expected {header}: name another folder)")
        write_whole(path, _line(header) + "".join(map(_line, replies.values())))  # without a line that a kill cut off
        left = [asked for asked in read_probe()[1] if asked.id not in replies]
        bar = progress("Asking the model", total=len(left) + len(replies), initial=len(replies), unit=" questions")
        with path.open("a", encoding="utf-8") as file, bar:
            for reply in _asked(library, model, left):
                replies[reply["id"]] = reply
                file.write(_line(reply))
                file.flush()
                bar.update()
    return _report(judge, model.name, replies)


def _asked(library: Library, model: Endpoint, questions: Sequence[ProbeQuestion]) -> Iterator[dict[str, Any]]:
    from legal_rag.agent import build_agent

    find = build_agent(library)
    settled = replace(model, temperature=0.0, seed=SEED, cache=False)
    for asked in questions:
        passages = find(asked.question).citations[:PASSAGES]
        shown = "\n\n".join(_passage(library, cited) for cited in passages) or "(aucun passage)"
        prompt = PROMPT.format(passages=shown, question=asked.question)
        try:
            reply = ask(settled, [{"role": "user", "content": prompt}], reply_tokens=REPLY_TOKENS)
        except ModelError as error:
            raise OSError(f"{model.name} did not reply to {asked.id}: {error} (the same command resumes)") from error
        doc_ids = sorted({cited.doc_id for cited in passages})
        used = {"tokens": reply.usage.tokens, "seconds": round(reply.seconds, 1)}
        yield {"id": asked.id, "prompt": prompt, "seen": doc_ids, "reply": reply.text, **used}


def _passage(library: Library, cited: Citation) -> str:
    text = cited.quote[:PASSAGE_CHARS]
    title = library.document(cited.doc_id).title.partition("] ")[2]
    marker = format_marker(cited.doc_id, cited.char_start, cited.char_start + len(text))
    return f"{marker} {title}\n{' '.join(text.split())}"


def _kept(path: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Read the header of a file of replies, and the replies by their questions, but for what a kill cut off."""
    try:
        header, *replies = map(json.loads, path.read_text("utf-8").split("\n")[:-1])
        return {name: header[name] for name in ("model", "probe")}, {reply["id"]: reply for reply in replies}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} does not hold replies to the probe ({error}): name another folder") from error


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def _report(judge: Judge, model: str, replies: Mapping[str, Mapping[str, Any]]) -> ProbeReport:
    answered = ((asked, replies[asked.id]) for asked in read_probe()[1] if asked.id in replies)
    return ProbeReport(model, [judge.outcome(asked, reply["reply"], reply["seen"]) for asked, reply in answered])
