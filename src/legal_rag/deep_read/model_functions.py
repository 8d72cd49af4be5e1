"""The functions that ask the sub-model: about a text, a document, many documents.

Their French docstrings tell a model how to call them.
"""

from collections.abc import Iterable, Sequence

from legal_rag.deep_read.asking import AnswersCutShortError
from legal_rag.deep_read.function_base import MOST_IDS_TOLD, MOST_READ, FunctionBase
from legal_rag.deep_read.function_inputs import prompt_of
from legal_rag.extraction.entities import Entity
from legal_rag.tool_arguments import question_of, text_of


class ModelFunctions(FunctionBase):
    """Functions over the sub-model; see `legal_rag.deep_read.asking`."""

    def llm_query(self, prompt: str, model: str | None = None) -> str:
        """Réponse du modèle à une demande ; « Erreur : … » s'il échoue. model est accepté et sans effet."""
        return self._asker.query(prompt_of(prompt))

    def llm_query_batched(self, prompts: Sequence[str], model: str | None = None) -> list[str]:
        """Réponses du modèle à plusieurs demandes, posées en même temps, dans leur ordre."""
        return self._asker.query_all([prompt_of(one) for one in ([prompts] if isinstance(prompts, str) else prompts)])

    def ask_about_document(self, question: str, doc_id: str) -> str:
        """Réponse du modèle à une question sur un document, lu en entier, avec ses citations ; « AUCUNE RÉPONSE » si le
        document n'en donne pas.
        """
        asker, asked = self._asker, question_of(question)
        document = self._document(doc_id)
        with self._event("read", "ask_about_document", question=asked) as ids:
            ids.append(document.id)
            return asker.about(asked, document)

    def ask_across_documents(self, question: str, doc_ids: Sequence[str]) -> dict[str, str]:
        """La même question posée à plusieurs documents en même temps : {doc_id: réponse}, dans l'ordre de doc_ids.
        Une réponse peut être « AUCUNE RÉPONSE » ou « Erreur : … ».
        """
        asker, asked, names = self._asker, question_of(question), self._ids(doc_ids, keep_unknown=True)
        with self._event("read", "ask_across_documents", question=asked, documents=len(names)) as ids:
            try:
                answers = asker.across(asked, names, lambda name: self._load(self._id(name)))
            except AnswersCutShortError as error:
                ids += self._asked(error.partial)
                raise
            ids += self._asked(answers)
        return answers

    def on_demand_extract(self, doc_id: str, extraction_classes: Sequence[str], description: str = "") -> list[Entity]:
        """Éléments d'un document que get_entities ne connaît pas, repérés par le modèle, chacun à sa place : liste de
        {"extraction_class", "extraction_text", "char_start", "char_end", "attributes"}. extraction_classes les nomme,
        description dit en français quoi chercher.
        """
        from legal_rag.deep_read.extracting import extract_on_demand

        given = [extraction_classes] if isinstance(extraction_classes, str) else extraction_classes
        classes = [name for one in given if (name := text_of(one))]
        if not classes:
            raise ValueError('aucune classe à extraire (par exemple : ["plafond d\'indemnité"])')
        document = self._document(doc_id)
        with self._event("read", "on_demand_extract", document=document.id, classes=classes) as ids:
            ids.append(document.id)
            self._note_read(document)
            told = text_of(description) or f"Repérez dans le texte : {', '.join(classes)}."
            asker = self._asker
            return extract_on_demand(document.content, classes, told, asker.model, asker.workers)

    def parallel_document_search(self, doc_ids: Sequence[str], question: str) -> dict[str, str]:
        """Comme ask_across_documents, les documents d'abord."""
        return self.ask_across_documents(question, doc_ids)

    def _asked(self, answers: Iterable[str]) -> list[str]:
        """Write down that documents were read; return the first ones' ids."""
        known = self.library.contents().known(list(answers))
        read = [doc_id for doc_id in answers if doc_id in known]
        for doc_id in read[:MOST_READ]:
            self._note_read(self._load(doc_id))
        return read[:MOST_IDS_TOLD]
