"""The reduce step: write one answer from verified findings."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from legal_rag.agent.failures import NOT_FRENCH as IN_ANOTHER_LANGUAGE
from legal_rag.agent.failures import UNCITED
from legal_rag.agent.step_parsing import clean_answer
from legal_rag.citations.checks import Citation
from legal_rag.citations.enricher import CitationEnricher, is_abstention
from legal_rag.corpus.language import is_french_answer
from legal_rag.deep_read.map_reduce.mapping import Finding, Judged, ask, map_in_threads
from legal_rag.deep_read.models import SubCallError, SubModel
from legal_rag.deep_read.prompts import Scope, final_prompt, partial_prompt, quoted
from legal_rag.library.corpus import Corpus

MAX_SEARCHED = 40  # documents in which quotations without a marker are looked for
MAX_QUOTED = 30  # quotations of an answer that no model wrote
EMPTY = "elle est vide"
NOT_FRENCH = "elle n'est pas en français"
UNPROVEN = (
    "aucune source ne la prouve : recopiez mot pour mot les citations, et après chacune son repère, crochets compris"
)
TOO_LONG = "elle dépasse {} caractères"
BEFORE_THE_END = "Passages relevés avant l'arrêt :"
FOUND = "Passages relevés :"
OTHERS = "[{} autres passages relevés ne sont pas repris ici.]"
QUOTED_ONLY = "{} des {} parties des constats n'ont pas pu être résumées : leurs premières citations ont été reprises"
CUT_SHORT = "{} résumés intermédiaires ont dû être abrégés"


class WrittenAnswer(NamedTuple):
    """The summary of a group of findings."""

    text: str
    is_cut: bool = False  # the model's was too long
    is_quoted: bool = False  # the model failed: these are quotations


class _Item(NamedTuple):
    """A finding, or a summary of several, as a prompt shows it."""

    text: str
    quoted: tuple[str, ...]  # the lines of it that are quotations with their markers


class Reducer:
    """Writes one answer from findings."""

    def __init__(
        self,
        question: str,
        model: SubModel,
        library: Corpus,
        findings_chars: int,
        *,
        workers: int,
        on_call: Callable[[str], None] = lambda what: None,
    ) -> None:
        """Prepare; `on_call` is called with what was written: 'résumé 2/5', 'réponse'."""
        self._question, self._model, self._library = question, model, library
        self._most, self._workers, self._on_call = findings_chars, workers, on_call
        self.remarks: list[str] = []  # in French: what summaries left out

    def answer(self, findings: Sequence[Finding], notices: Mapping[str, str], scope: Scope) -> str:
        """Write the answer.

        Args:
            findings: Verified ones; at least one.
            notices: The metadata of their documents as text, by id.
            scope: How many documents the answer is about.

        Raises:
            SubCallError: If the model fails, or neither of two replies is a French answer with a citation that holds.
            BudgetExceededError: If the budget has no room for a call.
        """
        judge = _Judge(self._library, list(dict.fromkeys(one.doc_id for one in findings)))
        items = [item for one in findings for item in _items(one, notices[one.doc_id], self._most // 2)]
        groups = _groups(items, self._most)
        summed_up = len(groups) > 1
        while len(groups) > 1:
            groups = _groups(self._summaries(groups, judge, scope), self._most)
        prompt = final_prompt(self._question, [item.text for item in groups[0]], scope, summed_up=summed_up)
        answer = ask(self._model, prompt, judge.answer)
        self._on_call("réponse")
        return answer

    def _summaries(self, groups: Sequence[Sequence["_Item"]], judge: "_Judge", scope: Scope) -> list["_Item"]:
        most = self._most // 4

        def summary(number: int) -> WrittenAnswer:
            texts = [item.text for item in groups[number]]
            prompt = partial_prompt(self._question, texts, number + 1, len(groups), scope, most)
            try:
                return ask(self._model, prompt, lambda reply: judge.summary(reply, most))
            except SubCallError:
                return WrittenAnswer(_quotations_of(groups[number], most), is_quoted=True)

        written: list[WrittenAnswer] = []
        for one in map_in_threads(summary, range(len(groups)), min(self._workers, len(groups))):
            written.append(one)
            self._on_call(f"résumé {len(written)}/{len(groups)}")
        if n_quoted := sum(one.is_quoted for one in written):
            self.remarks.append(QUOTED_ONLY.format(n_quoted, len(written)))
        if n_cut := sum(one.is_cut for one in written):
            self.remarks.append(CUT_SHORT.format(n_cut))
        return [_summed_up(one.text, group) for one, group in zip(written, groups, strict=True)]


def quotations_text(findings: Sequence[Finding], introduction: str) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer made of quotations alone, and these: the first of each finding, then the second ones."""
    in_turn = chain.from_iterable(zip_longest(*(finding.citations for finding in findings)))
    citations = tuple(dict.fromkeys(one for one in in_turn if one))
    shown = citations[:MAX_QUOTED]
    left = len(citations) - len(shown)
    rest = [OTHERS.format(left)] if left else []
    return "\n\n".join([introduction, *map(quoted, shown), *rest]), shown


class _Judge:
    """Judges whether replies cite what proves them; quotations without a marker are looked for in `read`."""

    def __init__(self, library: Corpus, read: Sequence[str]) -> None:
        self._enricher, self._read = CitationEnricher(library), read[:MAX_SEARCHED]

    def answer(self, reply: str) -> Judged[str]:
        text = clean_answer(reply)
        if not text:
            return Judged(None, EMPTY)
        if not is_french_answer(text):
            return Judged(None, NOT_FRENCH, IN_ANOTHER_LANGUAGE)
        if not is_abstention(text) and not self._is_proven(text, self._read):
            return Judged(None, UNPROVEN, UNCITED)
        return Judged(text)

    def summary(self, reply: str, most: int) -> Judged[WrittenAnswer]:
        text = clean_answer(reply)
        if not text:
            return Judged(None, EMPTY)
        if is_long := len(text) > most:
            text = text[:most]
            text = text[: max(text.rfind("\n"), text.rfind("]") + 1)].strip()
        if self._is_proven(text) or (is_abstention(text) and not is_long):
            return Judged(WrittenAnswer(text, is_cut=is_long), TOO_LONG.format(most) if is_long else "")
        return Judged(None, TOO_LONG.format(most) if is_long else UNPROVEN)

    def _is_proven(self, text: str, read: Sequence[str] = ()) -> bool:
        """Tell whether at least one citation of a text is confirmed; a summary need not quote, the answer must."""
        return any(one.status != "unverified" for one in self._enricher.enrich(text, read=read).citations)


def _items(finding: Finding, notice: str, most: int) -> list[_Item]:
    """Return a finding with its quotations as one item, or several of at most `most` characters."""
    head = f"{notice}\nConstat : {finding.answer}" if finding.answer else notice
    items = [_Item(head, ())]
    for line in map(quoted, finding.citations):
        if items[-1].quoted and len(items[-1].text) + len(line) + 1 > most:
            items.append(_Item(head, ()))
        text, lines = items[-1]
        items[-1] = _Item(f"{text}\n{line}", (*lines, line))
    return items


def _groups(items: Sequence[_Item], most: int) -> list[list[_Item]]:
    """Group neighbours of at most `most` characters together."""
    groups: list[list[_Item]] = [[]]
    size = 0
    for item in items:
        if groups[-1] and size + len(item.text) > most:
            groups.append([])
            size = 0
        groups[-1].append(item)
        size += len(item.text) + 2
    return groups


def _summed_up(text: str, group: Sequence[_Item]) -> _Item:
    """Return a summary with those of the group's quotations whose markers it repeats."""
    lines = (line for item in group for line in item.quoted)
    return _Item(text, tuple(line for line in lines if line[line.rindex("[") :] in text))


def _quotations_of(group: Sequence[_Item], most: int) -> str:
    """Return the quotations of a group that have room, the first of each item, then the second ones."""
    taken: dict[str, None] = {}
    for line in chain.from_iterable(zip_longest(*(item.quoted for item in group))):
        if line and sum(map(len, taken)) + len(taken) + len(line) <= most:
            taken.setdefault(line)
    return "\n".join(taken)
