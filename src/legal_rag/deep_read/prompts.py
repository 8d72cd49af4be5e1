"""Prompts in French, from `templates/*.txt`, and the texts that models and readers get in place of an answer."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.agent.outlines import cut_line
from legal_rag.agent.tool_outputs import as_data, block
from legal_rag.base.text import Span, one_line
from legal_rag.citations.checks import Citation
from legal_rag.citations.markers import format_marker
from legal_rag.corpus.documents import Document

if TYPE_CHECKING:
    from legal_rag.deep_read.settings import Limits

PACKAGE = "legal_rag.deep_read"
NOTHING, EMPTY = "(rien)", "(sans)"
DEEPEST = 4  # lists within lists of an answer; deeper ones are written as JSON
SAMPLES, SHOWN_SAMPLES = 20, 3  # summaries that programs find beforehand, and those that the prompt shows
SAMPLE_CHARS = 240  # of each
# Functions that a model with a small window is told of; programs may call them all.
CORE = frozenset(
    """find_documents grep_corpus rank_documents search_passages read_document ask_about_document ask_across_documents
    llm_query count table most_common earliest latest receipt""".split()
)
MAX_CONTEXT_CHARS = 2_000_000  # of documents given as a text; more are read by the functions alone
HEAD_CHARS = 300  # of a title, in a notice
SHOWN_REPLY = 1500  # characters of a rejected reply, in the second prompt

BRIEFLY = "en trois phrases au plus"
AS_ASKED = "dans la forme qu'elle demande, sinon brièvement"
NO_ANSWER = "None"  # of a document that does not answer; programs compare with it
UNVERIFIED = "[Non vérifié : aucune citation de cette réponse ne se trouve dans le document]"
WHOLE, PART = "une décision de justice", "une partie d'une décision de justice"
CONTEXT_OF_DOCUMENTS = """les {n} décisions sur lesquelles porte la question : d'abord EXTRACTION INDEX, les éléments
déjà repérés, chacun avec son document et sa position (extraction_index[identifiant] les contient aussi) ; ensuite RAW
DOCUMENTS, le texte entier de chaque décision après une ligne ===== DOCUMENT n: identifiant =====. Une position de
l'index se lit read_document(identifiant)[début:fin]."""
CONTEXT_TOO_LONG = """la liste des {n} décisions sur lesquelles porte la question ; leurs textes sont trop longs pour y
être : lisez-les par les fonctions."""
CONTEXT_OF_CORPUS = "une description du corpus, avec des résumés ; lisez les décisions par les fonctions."
QUESTION = "Question : {question}"
TURN = "Tour {number}/{most} : écrivez le premier programme, dans un bloc ```repl."
NEXT_TURN = """Tour {number}/{most} : si ce qui est affiché répond à la question, rendez-le par FINAL(valeur) ; sinon, \
écrivez un autre programme, dans un bloc ```repl."""


def prompt_text(name: str, **values: Any) -> str:
    """Return the template `templates/{name}.txt` filled in with values."""
    return _template(name).format(**values)


@cache
def _template(name: str) -> str:
    return files(PACKAGE).joinpath("templates", f"{name}.txt").read_text("utf-8").rstrip("\n")


def corpus_description(name: str, n_documents: int, n_chars: int, summaries: Iterable[tuple[str, str]]) -> str:
    """Describe a corpus: its name, its size in documents and characters, and the summaries of some documents by id."""
    lines = [f"- {doc_id} : {cut_line(summary, SAMPLE_CHARS)}" for doc_id, summary in summaries]
    head = f"{name} : {n_documents} décisions, {n_chars} caractères en tout."
    return "\n".join([head, "Résumés des premières :", *lines]) if lines else head


class Sizes(NamedTuple):
    """Sizes that the prompt states, in characters."""

    context: int = 0  # of the variable
    shown: int = 20_000  # at most, of what a program prints
    read: int = 40_000  # at most, by one call of the sub-model


def system_prompt(
    description: str,
    context: str,
    instructions: str,
    limits: "Limits",
    functions: Mapping[str, str],
    sizes: Sizes,
) -> str:
    """Return the system prompt: the project's own, then the user's instructions (French, may be empty).

    `context` describes the variable of that name, `limits` are each program's, `functions` are described by name.
    """
    base = prompt_text(
        "root_prompt",
        corpus=as_data(description),
        context=context,
        context_chars=sizes.context,
        functions="\n".join(f"- {name}{text}" for name, text in functions.items()),
        shown=sizes.shown,
        read=sizes.read,
        seconds=f"{limits.seconds:g}",
        memory_mb=limits.memory_mb,
    )
    return "\n\n".join(part.strip() for part in (base, instructions) if part.strip())


def map_prompt(question: str, document: Document, window: Span, form: str = BRIEFLY) -> str:
    """Ask what a window of a document brings to a question, in which form."""
    start, end = window
    whole = (start, end) == (0, len(document.content))
    return prompt_text(
        "map_prompt",
        what=WHOLE if whole else PART,
        question=as_data(question),
        form=form,
        notice=block(map_reduce_notice(document)),
        start=start,
        end=end,
        n_chars=len(document.content),
        text=block(document.content[start:end]),
    )


def again(prompt: str, reply: str, problem: str) -> str:
    """Ask again, and say what was wrong with the first reply."""
    shown = reply[:SHOWN_REPLY] + (" […]" if len(reply) > SHOWN_REPLY else "")
    return prompt_text("retry_prompt", prompt=prompt, reply=block(shown), problem=as_data(problem))


def final_prompt(question: str, found: Sequence[str], n_read: int, n_telling: int, n_left: int) -> str:
    """Ask for the answer, from findings in `n_telling` of `n_read` documents; `n_left` were not read whole."""
    read = f"{n_read} décision{'s' if n_read > 1 else ''}"
    if n_left:
        others = f"{n_left} autre{'s n' if n_left > 1 else ' n'}'{'ont' if n_left > 1 else 'a'}"
        read += f" ({others} pas pu être lue{'s' if n_left > 1 else ''} en entier)"
    return prompt_text(
        "answer_prompt",
        question=as_data(question),
        n_read=read,
        n_telling=f"{n_telling} contien{'nent' if n_telling > 1 else 't'}",
        found=block("\n\n".join(found)),
    )


def map_reduce_notice(document: Document) -> str:
    """Return the metadata of a document as lines."""
    fields = {
        "Décision": document.id,
        "Titre": document.title,
        "Date": document.decision_date,
        "Juridiction": ", ".join(filter(None, (document.juridiction, document.formation))),
        "Solution": document.solution,
    }
    lines = {name: " ".join(value.split())[:HEAD_CHARS] for name, value in fields.items()}
    return "\n".join(f"{name} : {value}" for name, value in lines.items() if value)


def cited_text(citation: Citation) -> str:
    """Return a quotation with its marker."""
    return f"« {citation.quote} » {format_marker(citation.doc_id, citation.char_start, citation.char_end)}"


def error_text(reason: str) -> str:
    """Return the text that replaces a failed answer."""
    return f"Erreur : {reason}"


def unread_text(window: Span, reason: str) -> str:
    """Return the note on a window that could not be read."""
    return f"[Partie chars {window[0]}-{window[1]} non lue : {reason}]"


def cited_answer(answer: str, citations: Sequence[Citation]) -> str:
    """Return an answer with its quotations in the same sentence: « answer : « quotation » [Source: …] ; … »."""
    quotations = " ; ".join(map(cited_text, citations))
    return f"{answer.rstrip(' .')} : {quotations}" if answer else quotations


def answer_text(value: Any) -> str:
    """Write a value that JSON can hold as text: nested lists become nested bullets, `**key** : value`."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping | list | tuple):
        return "\n".join(_bullet_lines(value, 0)) or NOTHING
    return scalar_text(value)


def _bullet_lines(value: Any, depth: int) -> list[str]:
    pairs = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
    lines: list[str] = []
    for key, item in pairs:
        name = "" if key is None else f"**{one_line(str(key))}** : "
        if not _is_group(item) or depth + 1 == DEEPEST:
            lines.append(f"{'  ' * depth}- {name}{one_line(scalar_text(item))}")
        elif isinstance(item, Sequence) and len(item) <= 3 and not any(map(_is_group, item)):
            lines.append(f"{'  ' * depth}- {name}{', '.join(one_line(scalar_text(part)) or EMPTY for part in item)}")
        else:
            lines += [f"{'  ' * depth}- {name}".rstrip(), *_bullet_lines(item, depth + 1)]
    return lines


def _is_group(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and len(value) > 0


def scalar_text(value: Any) -> str:
    """Write one value in French."""
    if value is None or (isinstance(value, Mapping | list | tuple) and not value):
        return NOTHING
    if isinstance(value, bool):
        return "oui" if value else "non"
    if isinstance(value, float):
        return f"{value:.10g}".replace(".", ",") if math.isfinite(value) else NOTHING
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
