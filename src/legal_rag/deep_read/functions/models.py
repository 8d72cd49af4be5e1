"""Functions that ask the sub-model."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langextract.core.base_model import BaseLanguageModel
from langextract.core.exceptions import InferenceRuntimeError
from langextract.core.types import ScoredOutput

from legal_rag.agent.budget import BudgetExceededError
from legal_rag.agent.tool_arguments import question_of, text_of
from legal_rag.deep_read.functions.base import MOST_IDS_TOLD, MOST_READ, FunctionBase, prompt_of
from legal_rag.deep_read.map_reduce.prompts import error_text
from legal_rag.deep_read.map_reduce.run import answer_each
from legal_rag.deep_read.models import SubCallError, SubModel
from legal_rag.extraction.engine import schema_of_classes
from legal_rag.extraction.entities import Entity
from legal_rag.extraction.langextract import extract_with_langextract
from legal_rag.extraction.schemas import ExtractionSettings


class ModelFunctions(FunctionBase):
    """Functions that call the sub-model; documents are read by `legal_rag.deep_read.map_reduce`."""

    def llm_query(self, prompt: str, model: str | None = None) -> str:
        """Réponse du modèle à une demande ; « Erreur : … » s'il échoue. model est accepté et sans effet."""
        return self.llm_query_batched([prompt])[0]

    def llm_query_batched(self, prompts: Sequence[str], model: str | None = None) -> list[str]:
        """Réponses du modèle à plusieurs demandes, posées en même temps, dans leur ordre."""
        sub = self._model
        asked = [prompt_of(one) for one in ([prompts] if isinstance(prompts, str) else prompts)]
        with ThreadPoolExecutor(self._workers) as pool:
            return list(pool.map(lambda prompt: _reply(sub, prompt), asked))

    def ask_about_document(self, question: str, doc_id: str) -> str:
        """Réponse du modèle à une question sur un document, lu en entier, suivie de ses citations vérifiées, sous la
        forme : réponse : « citation » [Source: …] ; « AUCUNE RÉPONSE » si le document n'en donne pas.
        """
        sub, asked, named = self._model, question_of(question), self._id(doc_id)
        with self._event("read", "ask_about_document", question=asked) as ids:
            return self._ask(sub, asked, [named], ids)[named]

    def ask_across_documents(self, question: str, doc_ids: Sequence[str]) -> dict[str, str]:
        """La même question posée à plusieurs documents en même temps : {doc_id: réponse}, dans l'ordre de doc_ids, avec
        leurs citations. Une réponse peut être « AUCUNE RÉPONSE » ou « Erreur : … ».
        """
        sub, asked, names = self._model, question_of(question), self._ids(doc_ids, keep_unknown=True)
        known = self.library.contents().known(names)
        with self._event("read", "ask_across_documents", question=asked, documents=len(names)) as ids:
            answers = self._ask(sub, asked, [name for name in names if name in known], ids)
        return {name: answers[name] if name in known else self._why_unknown(name) for name in names}

    def on_demand_extract(self, doc_id: str, extraction_classes: Sequence[str], description: str = "") -> list[Entity]:
        """Éléments d'un document que get_entities ne connaît pas, repérés par le modèle, chacun à sa place : liste de
        {"extraction_class", "extraction_text", "char_start", "char_end", "attributes"}. extraction_classes les nomme,
        description dit en français quoi chercher.
        """

        given = [extraction_classes] if isinstance(extraction_classes, str) else extraction_classes
        classes = [name for one in given if (name := text_of(one))]
        if not classes:
            raise ValueError('aucune classe à extraire (par exemple : ["plafond d\'indemnité"])')
        document = self._document(doc_id)
        with self._event("read", "on_demand_extract", document=document.id, classes=classes) as ids:
            ids.append(document.id)
            self._note_read(document)
            told = text_of(description) or f"Repérez dans le texte : {', '.join(classes)}."
            return extract_on_demand(document.content, classes, told, self._model, self._workers)

    def parallel_document_search(self, doc_ids: Sequence[str], question: str) -> dict[str, str]:
        """Comme ask_across_documents, les documents d'abord."""
        return self.ask_across_documents(question, doc_ids)

    def _ask(self, sub: SubModel, question: str, doc_ids: Sequence[str], ids: list[str]) -> dict[str, str]:
        """Ask documents, and log those that were read, also where the budget ends before all are.

        Args:
            sub: The model.
            question: In French.
            doc_ids: Known ones.
            ids: Of the event, to which those of the documents read are added.
        """
        done = answer_each(question, doc_ids, library=self.library, model=sub, workers=self._workers)
        for doc_id in done.read[:MOST_READ]:
            self._note_read(self._load(doc_id))
        ids += done.read[:MOST_IDS_TOLD]
        if done.exhausted is not None:
            raise done.exhausted
        return done.answers

    def _why_unknown(self, name: str) -> str:
        try:
            return error_text(f"Aucun document pour « {self._id(name)} »")
        except LookupError as error:
            return error_text(str(error.args[0]))


def _reply(sub: SubModel, prompt: str) -> str:
    try:
        return sub.query(prompt)
    except SubCallError as error:
        return error_text(str(error))


class ExtractionModel(BaseLanguageModel):
    """The sub-model as LangExtract asks one."""

    def __init__(self, sub: SubModel) -> None:
        super().__init__()
        self._sub = sub
        self.stopped: BudgetExceededError | None = None  # what LangExtract may make another error of

    @property
    def requires_fence_output(self) -> bool:
        """Tell LangExtract that fences are taken off elsewhere."""
        return False

    def infer(self, batch_prompts: Sequence[str], **_: Any) -> Iterator[Sequence[ScoredOutput]]:
        """Yield one reply for each prompt."""
        for prompt in batch_prompts:
            try:
                reply = self._sub.query(prompt)
            except BudgetExceededError as error:
                self.stopped = error
                raise
            except SubCallError as error:
                raise InferenceRuntimeError(str(error)) from error
            yield [ScoredOutput(score=1.0, output=reply)]


def extract_on_demand(text: str, classes: Sequence[str], description: str, sub: SubModel, workers: int) -> list[Entity]:
    """Find entities of some classes in a text, each at its place; pieces without a usable reply bring none.

    Args:
        text: Of the document.
        classes: What entities are to be called.
        description: What to look for, in French.
        sub: Which is asked.
        workers: Pieces at once.

    Raises:
        BudgetExceededError: If the run's budget has no room for a call.
    """
    model = ExtractionModel(sub)
    settings = ExtractionSettings(model_id="sub-model", extraction_passes=1, max_workers=workers)
    try:
        result = extract_with_langextract(text, "document", schema_of_classes(description, classes), model, settings)
    except Exception:
        if model.stopped is not None:  # whatever LangExtract says of it
            raise model.stopped from None
        raise
    return [one for one in result.extractions if one["extraction_class"] in classes]
