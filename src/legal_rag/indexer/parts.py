"""Fill the parts of a Library that are made of its texts, in one pass over the documents."""

import os
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from legal_rag.corpus_index.building import fill_index
from legal_rag.extraction.entities import ENTITIES
from legal_rag.graph.store import graph_parts
from legal_rag.indexer.config import RebuiltPart
from legal_rag.library.library import STORE
from legal_rag.library.outlines import OUTLINES, outline_part
from legal_rag.library.parts import Part, bring_up_to_date, process_pool

PER_PROCESS = 1000  # documents that outweigh the start of a process


def fill_parts(
    folder: Path,
    manifest: Mapping[str, Any],
    names: Collection[RebuiltPart],
    *,
    earlier: Path | None = None,
    summaries: Path | None = None,
    anew: Collection[RebuiltPart] = (),
    parallel: bool = False,
) -> None:
    """Make what some parts of a Library lack, and drop what they hold of other documents; a kill costs a batch.

    The caller keeps other writers out.

    Args:
        folder: The Library's, possibly one being built.
        manifest: Its manifest.
        names: Among `trees`, `graph` and `corpus-index`, which is always made anew.
        earlier: The Library that it replaces, whose outlines of the same texts are copied and entities linked.
        summaries: A corpus index of the same documents and keys, whose summaries by a model are kept.
        anew: Parts of which nothing is kept but what users or a model gave.
        parallel: In as many processes as there are cores.
    """
    store, parts, workers = folder / STORE, list[Part](), (os.cpu_count() or 1) if parallel else 1
    with ExitStack() as opened:
        if "trees" in names:
            before = earlier / OUTLINES if earlier else None
            parts.append(opened.enter_context(outline_part(folder, store, earlier=before, anew="trees" in anew)))
        if "graph" in names:
            entities = (earlier or folder) / ENTITIES
            parts += opened.enter_context(graph_parts(folder, store, entities, anew="graph" in anew))
        if "corpus-index" in names:
            lineage, commit = manifest["lineage"], manifest["commit"]
            fill_index(folder, lineage, commit, workers=workers, earlier=summaries, others=parts)
        else:
            most = max((len(part.lacking) for part in parts), default=0)
            with process_pool(workers, most // PER_PROCESS) as pool:
                bring_up_to_date(store, parts, pool=pool)
