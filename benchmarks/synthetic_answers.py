"""Synthetic answers: French answers as models write them, with the truth about every claim they make.

In: documents. Out: `SyntheticAnswer`s: their text, the documents their author read, and their claims.
"""

import random
from collections.abc import Mapping
from typing import NamedTuple

from answer_material import Material
from synthetic_claims import KINDS, Claim, Scene

N_READ = 20  # documents that an answer's author has read
TRIES = 30  # draws for one claim before another kind is taken
MOST_WEIGHT = 20_000  # characters: longer documents are read as often as those of this length


class SyntheticAnswer(NamedTuple):
    """An answer and the truth about it."""

    text: str
    read: tuple[str, ...]
    claims: tuple[Claim, ...]


def make_answers(
    documents: Mapping[str, str], n: int, seed: int, n_claims: tuple[int, int] = (3, 8)
) -> list[SyntheticAnswer]:
    """Make answers whose truth is known.

    Args:
        documents: Texts by id, at least N_READ of them with some hundred words.
        n: How many answers.
        seed: The same documents and seed give the same answers.
        n_claims: The least and the most claims of an answer.
    """
    rng = random.Random(seed)
    return [_make_answer(rng, documents, rng.randint(*n_claims)) for _ in range(n)]


def _make_answer(rng: random.Random, documents: Mapping[str, str], n_claims: int) -> SyntheticAnswer:
    read = _read(rng, documents)
    scene = Scene(rng, Material({doc_id: documents[doc_id] for doc_id in read}), documents)
    claims: list[Claim] = []
    while len(claims) < n_claims:
        make = rng.choices(list(KINDS), list(KINDS.values()))[0]
        claim = next(filter(None, (make(scene) for _ in range(TRIES))), None)
        claims += [claim] if claim else []
    return _laid_out(rng, tuple(read), claims)


def _read(rng: random.Random, documents: Mapping[str, str]) -> list[str]:
    ids, weights = list(documents), [min(len(text), MOST_WEIGHT) for text in documents.values()]
    read: dict[str, None] = {}
    while len(read) < min(N_READ, len(ids)):
        read[rng.choices(ids, weights)[0]] = None
    return list(read)


def _laid_out(rng: random.Random, read: tuple[str, ...], claims: list[Claim]) -> SyntheticAnswer:
    head = rng.choice(["", "", "", "Voici la réponse.\n\n", "## Réponse\n\n", "**Réponse**\n\n"])
    before = rng.choice(["", "", "", "- ", "* ", "{n}. ", "{n}) "])
    between = rng.choice([" ", " ", "\n\n"]) if not before else "\n"
    text, placed = head, []
    for number, claim in enumerate(claims, 1):
        text += (between if placed else "") + before.format(n=number)
        placed.append(claim._replace(at=len(text)))
        text += claim.text
    return SyntheticAnswer(text, read, tuple(placed))
