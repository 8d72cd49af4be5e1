"""Reduce: one answer is written of what was found; of too much for one prompt, summaries first, in a tree.

In: findings that quotations bear out. Out: a French answer with their markers. Where no model can write it, the
quotations themselves are the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, zip_longest
from typing import NamedTuple

from legal_rag.answer_language import is_french_answer
from legal_rag.citation_checks import Citation
from legal_rag.citations import CitationEnricher, is_abstention
from legal_rag.deep_read.models import SubCallError
from legal_rag.deep_read.plan.asked import AskedModel, Judged
from legal_rag.deep_read.plan.documents_read import Documents
from legal_rag.deep_read.plan.findings import Finding
from legal_rag.deep_read.plan.prompts import Scope, final_prompt, partial_prompt, quoted
from legal_rag.failures import UNCITED, NotFrenchError, reason_in_french
from legal_rag.step_parsing import clean_answer

MOST_SEARCHED = 40  # documents in which what an answer quotes without a marker is looked for
MOST_QUOTED = 30  # quotations of an answer that no model wrote: one of each document first
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


class Written(NamedTuple):
    """An answer, or a part of one."""

    text: str
    is_cut: bool = False  # it was longer than asked for
    is_quoted: bool = False  # it is made of quotations: no summary could be had


class _Item(NamedTuple):
    """What a prompt shows of what was found: a finding, or a summary of several."""

    text: str
    quoted: tuple[str, ...]  # its quotations with their markers, as they stand in it


class Reducer:
    """Writes one answer of findings."""

    def __init__(
        self,
        question: str,
        model: AskedModel,
        library: Documents,
        findings_chars: int,
        *,
        workers: int,
        on_call: Callable[[str], None] = lambda what: None,
    ) -> None:
        """Take a question, and the model that writes.

        Args:
            question: That is answered.
            model: The root model.
            library: Where citations are checked.
            findings_chars: Characters of findings that one prompt shows.
            workers: Summaries that are written at once.
            on_call: Told what was written: 'résumé 2/5', 'réponse'.
        """
        self._question, self._model, self._library = question, model, library
        self._most, self._workers, self._on_call = findings_chars, workers, on_call
        self.remarks: list[str] = []  # in French: what was lost on the way

    def answer(self, findings: Sequence[Finding], notices: Mapping[str, str], scope: Scope) -> str:
        """Write the answer.

        Args:
            findings: That quotations bear out; not none.
            notices: What the corpus says about each of their documents, by id.
            scope: How many documents it is about.

        Raises:
            SubCallError: If the model fails, or neither of two replies is a French answer with a citation that holds.
            BudgetExceededError: If the budget has no room for a call.
        """
        judge = _Judge(self._library, list(dict.fromkeys(one.doc_id for one in findings)))
        items = [item for one in findings for item in _items(one, notices[one.doc_id], self._most // 2)]
        groups, summed_up = _groups(items, self._most), False
        while len(groups) > 1:
            groups, summed_up = _groups(self._summaries(groups, judge, scope), self._most), True
        texts = [item.text for item in groups[0]]
        prompt = final_prompt(self._question, texts, scope, summed_up=summed_up)
        answer = self._model.ask(prompt, judge.answer)
        self._on_call("réponse")
        return answer

    def _summaries(self, groups: Sequence[Sequence["_Item"]], judge: "_Judge", scope: Scope) -> list["_Item"]:
        most = self._most // 4

        def summary(number: int) -> Written:
            texts = [item.text for item in groups[number]]
            prompt = partial_prompt(self._question, texts, number + 1, len(groups), scope, most)
            try:
                return self._model.ask(prompt, lambda reply: judge.summary(reply, most))
            except SubCallError:
                return Written(_quotations_of(groups[number], most), is_quoted=True)

        written: list[Written] = []
        with ThreadPoolExecutor(min(self._workers, len(groups))) as pool:
            try:
                for one in pool.map(summary, range(len(groups))):
                    written.append(one)
                    self._on_call(f"résumé {len(written)}/{len(groups)}")
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        self._remark(written)
        return [_summed_up(one.text, group) for one, group in zip(written, groups, strict=True)]

    def _remark(self, written: Sequence[Written]) -> None:
        if n_quoted := sum(one.is_quoted for one in written):
            self.remarks.append(QUOTED_ONLY.format(n_quoted, len(written)))
        if n_cut := sum(one.is_cut for one in written):
            self.remarks.append(CUT_SHORT.format(n_cut))


def quotations_text(findings: Sequence[Finding], introduction: str) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer made of quotations alone, and these: the first of each finding before the second ones."""
    in_turn = chain.from_iterable(zip_longest(*(finding.citations for finding in findings)))
    citations = tuple(dict.fromkeys(one for one in in_turn if one))
    shown = citations[:MOST_QUOTED]
    left = len(citations) - len(shown)
    rest = [OTHERS.format(left)] if left else []
    return "\n\n".join([introduction, *map(quoted, shown), *rest]), shown


class _Judge:
    """Tells what the root model's replies are worth: whether they cite what bears them out."""

    def __init__(self, library: Documents, read: Sequence[str]) -> None:
        """Take the documents, and the ids of those that quotations without a marker are searched in."""
        self._enricher, self._read = CitationEnricher(library), read[:MOST_SEARCHED]

    def answer(self, reply: str) -> Judged[str]:
        text = clean_answer(reply)
        if not text:
            return Judged(None, EMPTY)
        if not is_french_answer(text):
            return Judged(None, NOT_FRENCH, reason_in_french(NotFrenchError()))
        if not is_abstention(text) and not self._is_borne_out(text, self._read):
            return Judged(None, UNPROVEN, UNCITED)
        return Judged(text)

    def summary(self, reply: str, most: int) -> Judged[Written]:
        text = clean_answer(reply)
        if not text:
            return Judged(None, EMPTY)
        if is_long := len(text) > most:
            text = text[:most]
            text = text[: max(text.rfind("\n"), text.rfind("]") + 1)].strip()
        if self._is_borne_out(text) or (is_abstention(text) and not is_long):
            return Judged(Written(text, is_cut=is_long), TOO_LONG.format(most) if is_long else "")
        return Judged(None, TOO_LONG.format(most) if is_long else UNPROVEN)

    def _is_borne_out(self, text: str, read: Sequence[str] = ()) -> bool:
        """Tell whether a citation of a text holds."""
        return any(one.holds for one in self._enricher.enrich(text, read=read).citations)


def _items(finding: Finding, notice: str, most: int) -> list[_Item]:
    """Write a finding with its quotations, in one text or, where it would be longer than `most`, in several."""
    head = f"{notice}\nConstat : {finding.answer}" if finding.answer else notice
    items = [_Item(head, ())]
    for line in map(quoted, finding.citations):
        if items[-1].quoted and len(items[-1].text) + len(line) + 1 > most:
            items.append(_Item(head, ()))
        text, lines = items[-1]
        items[-1] = _Item(f"{text}\n{line}", (*lines, line))
    return items


def _groups(items: Sequence[_Item], most: int) -> list[list[_Item]]:
    """Put neighbours together as long as they stay within `most` characters."""
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
    """Return a summary with those of the group's quotations whose marker it has."""
    lines = (line for item in group for line in item.quoted)
    return _Item(text, tuple(line for line in lines if line[line.rindex("[") :] in text))


def _quotations_of(group: Sequence[_Item], most: int) -> str:
    """Return the quotations of a group that have room, the first of each item before the second ones."""
    taken: dict[str, None] = {}
    for line in chain.from_iterable(zip_longest(*(item.quoted for item in group))):
        if line and sum(map(len, taken)) + len(taken) + len(line) <= most:
            taken.setdefault(line)
    return "\n".join(taken)
