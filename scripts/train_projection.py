"""Train the projection that makes the bundled encoder's token vectors narrower.

Run: python scripts/train_projection.py --data FOLDER --out projection.safetensors [--dim 128] [--steps 3000]

FOLDER holds `decisions.jsonl.gz` and `code-du-travail.jsonl.gz`. Queries are made from these texts alone: a section's
title, for one of its articles; a sentence of a decision's official summary, for the passage it sums up; a sentence, for
the passage it was taken out of; a sentence with words dropped, for its passage. Each batch scores its queries against
all its passages, one of BM25's for each query among them. The narrow vectors learn to rank as the wide ones do (the
divergence of their MaxSim scores, a distillation), and a little to put the passage asked for first (PyLate's
contrastive loss over MaxSim); the encoder itself stays as it comes. A fifth of the documents, told by a hash of their
ids, is left out of training; both parts are measured before and after. Needs the extras `colbert` and `eval`.
"""

import argparse
import hashlib
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save_file

from legal_rag.base.extras import missing_extra
from legal_rag.corpus import ChunkConfig, build_chunker, chunk_document, read_documents
from legal_rag.encoder import ColbertEncoder, bundled_encoder
from legal_rag.law import split_sentences

try:
    import bm25s
    import Stemmer
    import torch
    from pylate.scores import colbert_scores
    from torch.nn import functional
except ModuleNotFoundError as error:
    sys.exit(f"train_projection: {missing_extra(error) or error}")

SEED = 0
BATCH = 24
RATE, WARM_UP = 2e-3, 0.05  # of learning: the highest, and the share of steps in which it rises to that
TEMPERATURE = 0.35  # of scores in standard deviations
CONTRASTIVE = 0.2  # weight of the contrastive loss
QUERY_TOKENS, PASSAGE_TOKENS = 60, 128
PAIRS = 8000  # encoded, left-out ones among them
SHARES = {"section": 0.4, "sentence": 0.25, "dropped": 0.25, "summary": 0.1}  # of the pairs
COMMON_TITLE = 3  # sections with the same title: more, and it says nothing without the one above it
NEGATIVE_RANKS = (3, 40)  # of BM25's, among which one is drawn
DROP = 0.4  # of a sentence's words


class Passage(NamedTuple):
    """A chunk to be found."""

    doc_id: str
    group: str  # passages of one group answer the same queries
    text: str


class Pair(NamedTuple):
    """A query and a passage that answers it."""

    kind: str
    query: str
    passage: int  # its number


class Triple(NamedTuple):
    """A pair as training sees it: token vectors, one row a token."""

    kind: str
    group: str
    query: torch.Tensor
    passage: torch.Tensor
    negative: torch.Tensor


def main() -> None:
    """Train, measure before and after, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--steps", type=int, default=3000)
    arguments = parser.parse_args()
    if not arguments.out.absolute().parent.is_dir():  # before the work, not after it
        raise FileNotFoundError(f"no folder for {arguments.out}")
    torch.manual_seed(SEED)
    generator = random.Random(SEED)  # noqa: S311

    encoder = bundled_encoder()
    passages, rows = read_passages(arguments.data, encoder)
    pairs = chosen_pairs(make_pairs(passages, rows, generator), generator)
    parts: dict[str, list[Pair]] = {"trained with": [], "left out": []}
    for pair in pairs:
        parts["left out" if left_out(passages[pair.passage].doc_id) else "trained with"].append(pair)
    print(f"{len(passages)} passages; pairs: { {name: len(some) for name, some in parts.items()} }", flush=True)

    negatives = negatives_of(passages, pairs, generator)
    triples = {name: encoded(some, passages, negatives, encoder) for name, some in parts.items()}
    projection = principal_axes(triples["trained with"], arguments.dim)
    for name, some in triples.items():
        print(f"{name}: wide {found_first(some, None)}; principal axes {found_first(some, projection)}", flush=True)
    train(projection, triples["trained with"], arguments.steps, generator)
    for name, some in triples.items():
        print(f"{name}: trained {found_first(some, projection)}", flush=True)
    save_file({"projection": projection.detach().half().numpy()}, arguments.out)
    print(f"{arguments.out}: {arguments.out.stat().st_size:,} bytes")


def left_out(doc_id: str) -> bool:
    """Tell whether a document is one of the fifth that training never sees."""
    return hashlib.sha256(doc_id.encode()).digest()[0] % 5 == 0


def read_passages(data: Path, encoder: ColbertEncoder) -> tuple[list[Passage], dict[str, dict[str, Any]]]:
    """Cut both corpora into passages; return them, and the documents' columns by id."""
    chunker = build_chunker(ChunkConfig(header_on="none"), encoder.count_tokens, PASSAGE_TOKENS)
    passages, rows = [], {}
    for name in ("code-du-travail.jsonl.gz", "decisions.jsonl.gz"):
        for document in read_documents(data / name):
            row = document.row()
            rows[document.id] = row
            group = row.get("section") or document.id
            for chunk in chunk_document(document.content, document.id, "", "", chunker):
                passages.append(Passage(document.id, group, chunk.text))
    return passages, rows


def make_pairs(passages: Sequence[Passage], rows: dict[str, dict[str, Any]], generator: random.Random) -> list[Pair]:
    """Make all pairs of each kind, in random order; the kinds' shares are taken when training."""
    by_document: dict[str, list[int]] = defaultdict(list)
    for number, passage in enumerate(passages):
        by_document[passage.doc_id].append(number)
    made = [
        *_section_pairs(by_document, rows),
        *_summary_pairs(passages, by_document, rows),
        *_sentence_pairs(passages, generator),
    ]
    generator.shuffle(made)
    return made


def _section_pairs(by_document: dict[str, list[int]], rows: dict[str, dict[str, Any]]) -> Iterator[Pair]:
    titles = {doc_id: _titles(str(rows[doc_id].get("section") or "")) for doc_id in by_document}
    common = Counter(path[-1] for path in set(map(tuple, titles.values())) if path)
    for doc_id, numbers in by_document.items():
        path = titles[doc_id]
        queries = {" : ".join(path[-2:])} if path else set()
        if path and common[path[-1]] <= COMMON_TITLE:
            queries.add(path[-1])
        for query in sorted(queries):
            yield Pair("section", query, numbers[0])


def _titles(section: str) -> list[str]:
    """Return the titles of an article's place in its code, without 'Livre II :', the widest first."""
    found = (title.partition(":")[2].strip(" .") for title in section.split(">"))
    return [title for title in found if title]


def _summary_pairs(
    passages: Sequence[Passage], by_document: dict[str, list[int]], rows: dict[str, dict[str, Any]]
) -> Iterator[Pair]:
    """Pair each sentence of a summary with the passage of its decision that shares most of its words."""
    for doc_id, numbers in by_document.items():
        for sentence in _sentences(str(rows[doc_id].get("summary") or "")):
            words = set(_words(sentence))
            best = max(numbers, key=lambda number: len(words & set(_words(passages[number].text))))
            yield Pair("summary", sentence, best)


def _sentence_pairs(passages: Sequence[Passage], generator: random.Random) -> Iterator[Pair]:
    for number, passage in enumerate(passages):
        sentences = _sentences(passage.text)
        if len(sentences) < 2:
            continue
        sentence = generator.choice(sentences)
        yield Pair("sentence", sentence, number)  # the passage is given without it: see `_text_for`
        kept = [word for word in sentence.split() if generator.random() > DROP]
        if len(kept) >= 4:
            yield Pair("dropped", " ".join(kept), number)


def _text_for(pair: Pair, passages: Sequence[Passage]) -> str:
    """Return the passage of a pair; without the sentence that asks for it, where it stands there with single blanks."""
    text = passages[pair.passage].text
    return text.replace(pair.query, " ") if pair.kind == "sentence" else text


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text that are long enough to ask something, and short enough for a question."""
    found = (" ".join(text[start:end].split()) for start, end in split_sentences(text))
    return [sentence for sentence in found if 8 <= len(sentence.split()) <= 45]


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if len(word) > 3]


def chosen_pairs(pairs: Sequence[Pair], generator: random.Random) -> list[Pair]:
    """Take some of each kind, by their shares."""
    by_kind = {kind: [pair for pair in pairs if pair.kind == kind] for kind in SHARES}
    return [
        pair
        for kind, some in by_kind.items()
        for pair in generator.sample(some, min(int(SHARES[kind] * PAIRS), len(some)))
    ]


def negatives_of(passages: Sequence[Passage], pairs: Sequence[Pair], generator: random.Random) -> dict[Pair, Passage]:
    """Draw for each pair one of BM25's passages that is not of the same document or section, none of those left out."""
    tokens = partial(bm25s.tokenize, stopwords="fr", stemmer=Stemmer.Stemmer("french"), show_progress=False)
    seen = [one for one in passages if not left_out(one.doc_id)]
    index = bm25s.BM25()
    index.index(tokens([one.text for one in seen]), show_progress=False)
    found, _ = index.retrieve(tokens([pair.query for pair in pairs]), k=NEGATIVE_RANKS[1], show_progress=False)
    negatives = {}
    for pair, numbers in zip(pairs, found, strict=True):
        own = passages[pair.passage]
        others = [seen[number] for number in numbers[NEGATIVE_RANKS[0] :]]
        others = [one for one in others if one.group != own.group and one.doc_id != own.doc_id]
        negatives[pair] = generator.choice(others or seen)
    return negatives


def encoded(
    pairs: Sequence[Pair], passages: Sequence[Passage], negatives: dict[Pair, Passage], encoder: ColbertEncoder
) -> list[Triple]:
    """Encode pairs and their negatives; queries that are too long for a question are left out."""
    lengths = encoder.count_tokens([pair.query for pair in pairs])
    pairs = [pair for pair, length in zip(pairs, lengths, strict=True) if length < QUERY_TOKENS]
    queries = encoder.encode_queries([pair.query for pair in pairs])
    own = encoder.encode_documents([_text_for(pair, passages) for pair in pairs])
    others = encoder.encode_documents([negatives[pair].text for pair in pairs])
    groups = [passages[pair.passage].group for pair in pairs]
    return [
        Triple(pair.kind, group, *(torch.from_numpy(np.asarray(one, dtype=np.float16)) for one in vectors))
        for pair, group, *vectors in zip(pairs, groups, queries, own, others, strict=True)
    ]


def principal_axes(triples: Sequence[Triple], dim: int) -> torch.nn.Parameter:
    """Return the `dim` directions in which token vectors lie most, shape (dim, width)."""
    vectors = torch.cat([triple.passage for triple in triples[:: max(len(triples) // 300, 1)]]).float()
    return torch.nn.Parameter(torch.linalg.svd(vectors, full_matrices=False).Vh[:dim].contiguous())


def train(projection: torch.nn.Parameter, triples: Sequence[Triple], steps: int, generator: random.Random) -> None:
    """Train the projection in place; the learning rate rises, then falls to nothing."""
    optimizer = torch.optim.Adam([projection], lr=RATE)
    started, running = time.monotonic(), 0.0
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(step / steps / WARM_UP, (1 - step / steps) / (1 - WARM_UP))
        loss = loss_of(projection, drawn(triples, generator))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        running = 0.98 * running + 0.02 * loss.item()
        if step % 200 == 0:
            mean = running / (1 - 0.98**step)
            print(f"step {step} of {steps}, {time.monotonic() - started:.0f} s, loss {mean:.4f}", flush=True)


def drawn(triples: Sequence[Triple], generator: random.Random) -> list[Triple]:
    """Draw a batch, no two of a group, which would answer each other's queries."""
    batch: dict[str, Triple] = {}
    while len(batch) < BATCH:
        triple = generator.choice(triples)
        batch.setdefault(triple.group, triple)
    return list(batch.values())


def loss_of(projection: torch.Tensor, batch: Sequence[Triple]) -> torch.Tensor:
    """Return the divergence of the narrow from the wide vectors' scores, and the contrastive loss, as one."""
    with torch.no_grad():
        wide = standardised(scores_of(batch, None)) / TEMPERATURE
    narrow = standardised(scores_of(batch, projection)) / TEMPERATURE
    divergence = functional.kl_div(narrow.log_softmax(1), wide.softmax(1), reduction="batchmean")
    return divergence + CONTRASTIVE * functional.cross_entropy(narrow, torch.arange(len(batch)))


def standardised(scores: torch.Tensor) -> torch.Tensor:
    """Bring each row to mean 0 and deviation 1."""
    return (scores - scores.mean(1, keepdim=True)) / scores.std(1, keepdim=True)


def scores_of(batch: Sequence[Triple], projection: torch.Tensor | None) -> torch.Tensor:
    """Return MaxSim of each query with all passages, then all negatives: shape (n, 2 n)."""
    queries, query_mask = padded([one.query for one in batch], projection)
    documents, mask = padded([*(one.passage for one in batch), *(one.negative for one in batch)], projection)
    return colbert_scores(queries, documents, queries_mask=query_mask, documents_mask=mask)


def padded(vectors: Sequence[torch.Tensor], projection: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token vectors, narrowed to unit length, as (n, longest, dim), and which of them are real."""
    rows = torch.nn.utils.rnn.pad_sequence(list(vectors), batch_first=True).float()
    lengths = torch.tensor([len(one) for one in vectors])
    mask = torch.arange(rows.shape[1]) < lengths[:, None]
    return functional.normalize(rows if projection is None else rows @ projection.T, dim=-1), mask


def found_first(triples: Sequence[Triple], projection: torch.Tensor | None) -> dict[str, float]:
    """Return, by kind, how often the passage asked for is first among 200 of its kind and their negatives."""
    found = {}
    with torch.inference_mode():
        for kind in SHARES:
            some = [triple for triple in triples if triple.kind == kind][:200]
            scores = scores_of(some, projection)
            found[kind] = round(float((scores.argmax(1) == torch.arange(len(some))).float().mean()), 3)
    return found


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(f"train_projection: {error}")
