"""The agent's tools: search, read a passage, read a decision, list what was extracted of it.

As plain functions they take the retriever or the documents; `build_tools` closes them over one corpus and writes
down every call. What they return to the agent is French text; they never raise at it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from legal_rag.chunking import chunk_id as format_chunk_id
from legal_rag.chunking import parse_chunk_id
from legal_rag.citations import format_marker
from legal_rag.corpus import ID_COLUMN, Document
from legal_rag.extraction.entities import Entity
from legal_rag.extraction.rules import find_entities
from legal_rag.extraction.terms import class_named
from legal_rag.filters import Filters
from legal_rag.library import StoredChunk
from legal_rag.retriever import Corpus, Retriever, SearchHit
from legal_rag.rows import document_of, nearest_id
from legal_rag.run_log import RunLog

__all__ = [
    "ID_COLUMN",
    "build_tools",
    "lookup_chunk",
    "lookup_legal_doc",
    "parse_chunk_id",
    "search_legal_docs",
]

EXCERPT_CHARS = 600  # of each hit in a list of results
MOST_HITS, MOST_NEIGHBOURS = 50, 5  # that one call gives an agent
SHOWN_ID_CHARS = 100  # of an id that names nothing; a model may send a page in its place
MOST_ENTITIES, ENTITY_CHARS = 100, 200  # in one list, and of each one's text
READ_CHARS = 40_000  # of a decision in one reading; the longest ones would fill a model's whole context


def search_legal_docs(query: str, k: int = 5, *, retriever: Retriever) -> list[SearchHit]:
    """Search the decisions: the `k` best chunks, best first, each with score, title, date and text.

    Raises:
        ValueError: If the query is empty or too long for the encoder, or k is below 1.
    """
    return retriever.search(query, k)


def lookup_legal_doc(chunk_id: str, dataset: Any, score: float | None = None) -> str:
    """Render the whole decision that a chunk belongs to, in French.

    Args:
        chunk_id: A chunk's id; a document's id is understood too.
        dataset: A Library, a Hugging Face dataset, or a mapping from id to row.
        score: The chunk's score, to be shown.

    Returns:
        Identifier, title, date, score, then the text exactly as it is in the source once cleaned; or, for an id
        that names nothing, a French sentence that says so and gives the nearest valid form.
    """
    try:
        document = find_document(chunk_id, dataset)
    except LookupError as error:
        return str(error)
    return _render_document(document, score)


def lookup_chunk(chunk_id: str, context_chunks: int = 1, *, dataset: Corpus) -> str:
    """Render a chunk with its neighbours, in French, each with the offsets that a citation needs.

    Args:
        chunk_id: A chunk's id.
        context_chunks: Neighbours on either side.
        dataset: A Library, or another corpus that knows its chunks.

    Returns:
        The passages in the order of the text; or a French sentence for an id that names nothing.
    """
    try:
        return "\n\n".join(map(_render_chunk, _find_chunks(chunk_id, context_chunks, dataset)))
    except LookupError as error:
        return str(error)


def find_document(identifier: str, dataset: Any) -> Document:
    """Return the document that a chunk id or a document id names.

    Raises:
        LookupError: If there is none; the message is a French sentence with the nearest valid form.
    """
    identifier = identifier.strip()
    try:
        doc_id, _ = parse_chunk_id(identifier)
    except ValueError:
        candidates = [identifier]
    else:
        candidates = [doc_id, identifier]
    for candidate in candidates:
        try:
            return document_of(dataset, candidate)
        except LookupError:
            continue
    shown = _printable(identifier[:SHOWN_ID_CHARS])
    nearest = nearest_id(dataset, candidates[0][:SHOWN_ID_CHARS])
    hint = f" Identifiant le plus proche : « {format_chunk_id(nearest, 0)} »." if nearest else ""
    expected = " (forme attendue : « identifiant-numéro », par exemple « JURITEXT000007022836-0 »)"
    raise LookupError(f"Aucune décision pour « {shown} »{'' if len(candidates) > 1 else expected}.{hint}")


def entities_of(document: Document, corpus: Corpus) -> list[Entity]:
    """Return what was extracted of a document; where nothing was, what the rules find in it now."""
    stored = corpus.entities_of(document.id)
    return find_entities(document.content) if stored is None else stored


def build_tools(corpus: Corpus, retriever: Retriever, log: RunLog | None = None) -> list[Callable[..., str]]:
    """Close the tools over one corpus, for an agent; their French docstrings are its instructions.

    Args:
        corpus: Where decisions are looked up.
        retriever: What searches them.
        log: Where every call is written down.
    """
    log = log if log is not None else RunLog()
    return [
        _search_tool(retriever, log),
        _document_tool(corpus, log),
        _chunk_tool(corpus, log),
        _entity_tool(corpus, log),
    ]


def _search_tool(retriever: Retriever, log: RunLog) -> Callable[..., str]:
    def search_legal_docs(
        query: str,
        k: int = 5,
        juridiction: str = "",
        formation: str = "",
        solution: str = "",
        date_from: str = "",
        date_to: str = "",
        number: str = "",
        article: str = "",
        entites: str = "",
    ) -> str:
        """Cherche dans les décisions les passages les plus proches d'une question en français.

        Donne au plus k passages (1 à 50), du plus proche au moins proche : identifiant du passage, score, titre, date,
        position dans la décision, extrait. Reformulez la question avec les mots du droit si rien ne convient.
        Filtres facultatifs : juridiction (« Cass. soc. », « CA Lyon »), formation (« chambre sociale »), solution
        (« rejet »), date_from et date_to (« 2023 », « 8 novembre 2023 »), number (numéro ou ECLI de la décision),
        article (« L. 1152-1 du code du travail »), entites (ce que le texte doit contenir, séparé par « ; » :
        « partie=Société Lever ; date=12 mai 1993 ; montant=1 000 francs »).
        """
        asked = {
            "juridiction": juridiction,
            "formation": formation,
            "solution": solution,
            "date_from": date_from,
            "date_to": date_to,
            "number": number,
            "article": article,
            "entites": entites,
        }
        asked = {name: text for name, value in asked.items() if value and (text := str(value).strip())}
        with log.record("search", "search_legal_docs", query=query, k=k, **asked) as ids:
            try:
                wanted = _whole_number("k", k, 1, MOST_HITS)
                text, filters = _question(query), _filters(asked)
            except ValueError as error:
                return f"Recherche impossible : {error}."
            try:
                retriever.encoder.check_query(text)
            except ValueError:  # the encoder's own words are not for the agent
                return "Recherche impossible : la question est trop longue, reformulez-la en une phrase."
            try:
                hits = retriever.search(text, wanted, filters=filters)
            except ValueError:
                return "Recherche impossible dans ce corpus avec ces filtres."
            ids += [hit.chunk_id for hit in hits]
        for hit in hits:
            log.saw(hit)
        nothing = "Aucun passage trouvé avec ces filtres." if asked else "Aucun passage trouvé."
        return "\n\n".join(map(_render_hit, hits)) or nothing

    return search_legal_docs


def _document_tool(corpus: Corpus, log: RunLog) -> Callable[..., str]:
    def lookup_legal_doc(chunk_id: str) -> str:
        """Donne le texte de la décision entière à laquelle appartient un passage.

        chunk_id est l'identifiant d'un passage donné par search_legal_docs, par exemple JURITEXT000007022836-0.
        """
        with log.record("read", "lookup_legal_doc", chunk_id=chunk_id) as ids:
            try:
                document = find_document(str(chunk_id), corpus)
            except LookupError as error:
                return str(error)
            ids.append(document.id)
        log.read(document)
        return _cut(_render_document(document), document)

    return lookup_legal_doc


def _chunk_tool(corpus: Corpus, log: RunLog) -> Callable[..., str]:
    def lookup_chunk(chunk_id: str, context_chunks: int = 1) -> str:
        """Donne un passage avec ceux qui l'entourent, et la position exacte de chacun pour le citer.

        chunk_id est l'identifiant d'un passage ; context_chunks, le nombre de voisins de chaque côté (0 à 5).
        """
        with log.record("read", "lookup_chunk", chunk_id=chunk_id, context_chunks=context_chunks) as ids:
            try:
                around = _whole_number("context_chunks", context_chunks, 0, MOST_NEIGHBOURS)
                chunks = _find_chunks(str(chunk_id), around, corpus)
            except LookupError as error:
                return str(error)
            except ValueError as error:
                return f"Lecture impossible : {error}."
            ids += [format_chunk_id(chunk.doc_id, chunk.chunk_index) for chunk in chunks]
        document = corpus.document(chunks[0].doc_id)
        log.read(document)
        return _cut("\n\n".join(map(_render_chunk, chunks)), document)

    return lookup_chunk


def _entity_tool(corpus: Corpus, log: RunLog) -> Callable[..., str]:
    def lookup_entities(doc_id_or_chunk_id: str, classes: str = "") -> str:
        """Donne les éléments repérés dans une décision, chacun avec sa position exacte pour le citer.

        Parties, avocats, juridiction, dates, numéros, montants, délais, articles cités, solution, etc.
        doc_id_or_chunk_id est l'identifiant d'une décision ou d'un passage ; classes, facultatif, n'en garde que
        certaines, séparées par des virgules : « partie, montant ».
        """
        with log.record("read", "lookup_entities", doc_id_or_chunk_id=doc_id_or_chunk_id, classes=classes) as ids:
            try:
                document = find_document(str(doc_id_or_chunk_id), corpus)
            except LookupError as error:
                return str(error)
            ids.append(document.id)
        log.read(document)
        wanted = classes if isinstance(classes, str) else ""
        return _render_entities(document, entities_of(document, corpus), wanted)

    return lookup_entities


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())


def _question(query: object) -> str:
    # Halves of characters, which no tokenizer takes, are left out.
    text = query.encode(errors="ignore").decode().strip() if isinstance(query, str) else ""
    if not text:
        raise ValueError("la question est vide")
    return text


def _filters(asked: Mapping[str, Any]) -> Filters:
    """Read the filters that a model sent, each by itself, so that the one which is not understood can be named."""
    read: dict[str, Any] = {}
    for name, value in asked.items():
        one = {"entity": _parts(value, ";")} if name == "entites" else {name: value}
        try:
            Filters(**one)
        except ValueError as error:
            raise ValueError(f"{name} n'est pas compris : « {_printable(value[:SHOWN_ID_CHARS])} »") from error
        read |= one
    return Filters(**read)


def _parts(text: str, sign: str) -> list[str]:
    return [part for one in text.split(sign) if (part := one.strip())]


def _whole_number(name: str, value: object, least: int, most: int) -> int:
    """Read a number that a model sent, cut to `most`."""
    try:
        number = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        number = least - 1
    if number < least:
        raise ValueError(
            f"{name} doit être un nombre entier de {least} à {most}, reçu : « {_printable(str(value)[:20])} »"
        )
    return min(number, most)


def _find_chunks(chunk_id: str, context_chunks: int, corpus: Corpus) -> list[StoredChunk]:
    document = find_document(chunk_id, corpus)
    _, _, number = chunk_id.strip().rpartition("-")
    index = int(number) if number.isascii() and number.isdecimal() and document.id != chunk_id.strip() else 0
    index = min(index, 2**31)  # SQLite's own numbers end somewhere; no decision has as many passages
    around = min(max(context_chunks, 0), 2**31)
    chunks = corpus.chunks_of(document.id, max(index - around, 0), index + around)
    if not any(chunk.chunk_index == index for chunk in chunks):
        last = format_chunk_id(document.id, len(corpus.chunks_of(document.id)) - 1)
        raise LookupError(f"Pas de passage « {chunk_id} » : cette décision va de « {document.id}-0 » à « {last} ».")
    # In an index of the old form every passage stands for the whole document: it is shown once.
    return list({(chunk.char_start, chunk.char_end): chunk for chunk in chunks}.values())


def _render_hit(hit: SearchHit) -> str:
    excerpt = hit.text if len(hit.text) <= EXCERPT_CHARS else hit.text[:EXCERPT_CHARS].rsplit(" ", 1)[0] + " […]"
    marker = format_marker(hit.doc_id, hit.char_start, hit.char_end)
    date = f" ({hit.decision_date})" if hit.decision_date else ""
    return f"{hit.rank}. {hit.chunk_id}, score {hit.score:.2f} : {hit.title}{date}\n{marker}\n« {excerpt} »"


def _render_chunk(chunk: StoredChunk) -> str:
    marker = format_marker(chunk.doc_id, chunk.char_start, chunk.char_end)
    return f"{format_chunk_id(chunk.doc_id, chunk.chunk_index)} {marker}\n« {chunk.text} »"


def _render_entities(document: Document, entities: Sequence[Entity], classes: str) -> str:
    wanted = {class_named(name) for name in _parts(classes, ",")}
    kept = [one for one in entities if not wanted or one["extraction_class"] in wanted]
    head = f"Décision {document.id}, éléments repérés : {len(kept)}"
    if not kept:
        known = ", ".join(sorted({one["extraction_class"] for one in entities})) or "aucune"
        return f"Décision {document.id} : aucun élément de ce genre. Classes présentes : {known}."
    lines = [_render_entity(document.id, one) for one in kept[:MOST_ENTITIES]]
    rest = len(kept) - len(lines)
    more = [f"[{rest} autres éléments : précisez classes, par exemple « partie, montant ».]"] if rest else []
    return "\n".join([head, *lines, *more])


def _render_entity(doc_id: str, one: Entity) -> str:
    text = " ".join(one["extraction_text"].split())
    shown = text if len(text) <= ENTITY_CHARS else text[:ENTITY_CHARS].rsplit(" ", 1)[0] + " […]"
    said = ", ".join(f"{name} : {value}" for name, value in one["attributes"].items())[:ENTITY_CHARS]
    marker = format_marker(doc_id, one["char_start"], one["char_end"])
    return f"- {one['extraction_class']} : « {shown} »{f' ({said})' if said else ''} {marker}"


def _render_document(document: Document, score: float | None = None) -> str:
    lines = [
        f"Décision : {document.id}",
        f"Titre : {document.title}" if document.title else "",
        f"Date : {document.decision_date}" if document.decision_date else "",
        f"Score : {score:.2f}" if score is not None else "",
    ]
    return "\n".join(filter(None, lines)) + "\n\n" + document.content


def _cut(text: str, document: Document) -> str:
    if len(text) <= READ_CHARS:
        return text
    rest = (
        f"[Texte coupé : {len(document.content)} caractères en tout. La suite se lit par passages avec lookup_chunk.]"
    )
    return f"{text[:READ_CHARS]}\n{rest}"
