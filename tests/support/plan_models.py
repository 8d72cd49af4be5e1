"""Models for tests of map-reduce: what they read and write, sound or not, and decisions to read."""

import json
import re
import threading
from dataclasses import replace

from legal_rag.agent import Budget, build_language_model
from legal_rag.corpus import Document
from legal_rag.deep_read.map_reduce import map_reduce
from legal_rag.deep_read.reading import ANSWER_CALLS, ANSWER_SHARE
from legal_rag.llm import ChatModel, UsageTracker, model_of
from support.scripted_server import Reply, ScriptedServer

QUESTION = "Dans quel délai le candidat dépose-t-il son compte de campagne ?"
QUOTE = "le compte de campagne est déposé dans les deux mois qui suivent le tour de scrutin"
BAIL = "Attendu que le bailleur doit délivrer au preneur un logement décent ;\nREJETTE le pourvoi."
WANTS_JSON, WANTS_ANSWER = "Répondez maintenant par l'objet JSON seul", "Répondez maintenant à la question"
AGAIN = "Cette réponse ne convient pas"
NONE = '{"pertinent": false, "reponse": "", "citations": []}'
MARKER = re.compile(r"\[Source: [^\]]*\]")


class Decisions(dict):
    """Documents by id, as a Library gives them."""

    def __init__(self, **contents):
        super().__init__({doc_id: Document(id=doc_id, content=content) for doc_id, content in contents.items()})

    document = dict.__getitem__

    @property
    def texts(self):
        return {doc_id: document.content for doc_id, document in self.items()}


def campaign(name):
    return f"Considérant que la requête de M. {name} est recevable ;\nConsidérant que {QUOTE} ;\nDECIDE : rejet."


ELECTIONS = Decisions(a=campaign("A..."), bail=BAIL, b=campaign("B..."))


def finding(*quotes, answer="Deux mois.", pertinent=True):
    return json.dumps({"pertinent": pertinent, "reponse": answer, "citations": list(quotes)}, ensure_ascii=False)


def reading(prompt):
    """Read as a good sub-model does: quote what is about the question."""
    return finding(QUOTE) if QUOTE in prompt else NONE


def writing(prompt):
    """Write as a good root model does: one sentence for each marker that it was given."""
    cited = [f"Le délai est de deux mois : « {QUOTE} » {marker}." for marker in given_markers(prompt)]
    return "\n".join(cited)


def given_markers(prompt):
    found = prompt[prompt.index("Constats") :] if "Constats" in prompt else ""
    return list(dict.fromkeys(MARKER.findall(found)))


def shown_text(prompt):
    """Return the document's text as a prompt shows it."""
    start = prompt.index("<extrait>\n", prompt.index("Texte,")) + len("<extrait>\n")
    return prompt[start : prompt.index("\n</extrait>", start)]


def sound(prompt, read=reading, write=writing):
    return read(prompt) if WANTS_JSON in prompt else write(prompt)


class Model:
    """A model of a few lines: text in, text out; an error is raised."""

    name = "fake"

    def __init__(self, reply=sound):
        self.prompts = []
        self._reply, self._lock = reply, threading.Lock()

    def query(self, prompt):
        with self._lock:
            self.prompts.append(prompt)
        reply = self._reply(prompt)
        if isinstance(reply, Exception):
            raise reply
        return reply


def planned(sub=sound, root=sound, decisions=ELECTIONS, **more):
    """Run map-reduce over all the decisions with models of a few lines."""
    models = [one if isinstance(one, Model) else Model(one) for one in (root, sub)]
    return map_reduce(QUESTION, list(decisions), library=decisions, root=models[0], sub=models[1], **more)


def served(script, decisions=ELECTIONS, budget=None, timeout=20.0, doc_ids=None, **more):
    """Run map-reduce with a real language model's client and a scripted server."""
    with ScriptedServer(script) as server:
        lm = build_language_model(
            "scripted", "key", server.api_base, num_retries=0, timeout=timeout, cache=False, temperature=0.0
        )
        tracker = UsageTracker(budget or Budget())
        root = ChatModel(model_of(lm), tracker)
        sub = replace(root, within=tracker.budget.reduced(ANSWER_SHARE, ANSWER_CALLS))
        ids = list(decisions) if doc_ids is None else doc_ids
        result = map_reduce(QUESTION, ids, library=decisions, root=root, sub=sub, **more)
        return result, server.prompts


def replying(read=reading, write=writing):
    return lambda prompt, attempt: as_reply(sound(prompt, read, write))


def as_reply(said):
    return said if isinstance(said, Reply) else Reply(said)


def quotes_of(result):
    return {(one.doc_id, one.char_start, one.char_end) for found in result.findings for one in found.citations}
