"""Answers in a model's own words: how many are shown, and what is said of their sentences.

Run: python benchmarks/paraphrases.py --index-folder FOLDER --index-name NAME QUERIES [--answers 100] [--seed 0]

QUERIES is a JSONL of questions. Figures are printed as JSON; --show N prints N answers on stderr, where those that are
not shown to a reader are printed always.

- answers: a scripted model is asked the questions; of the passages that it is shown it takes one, and says one to three
  clauses of it in other words (`answer_wording.paraphrase`: synonyms, another tense, another order, asides left out),
  with the passage's name, or a source marker with or without offsets. It never quotes, not even when it is asked to.
  All of its answers are right, and all should be shown;
- sentences: those of data/paraphrases.jsonl, each written by hand about a place of a decision, and a false one in
  nearly the same words. None may be verified; a false one should not be supported, and seldom stand.
"""

import argparse
import json
import random
import re
import sys
from collections import Counter
from itertools import count
from pathlib import Path

from answer_wording import paraphrase
from false_answers import clauses_of

from legal_rag.citations import CitationEnricher
from legal_rag.citations.markers import format_marker
from legal_rag.corpus import Document
from legal_rag.library.library import Library

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

PAIRS = Path(__file__).parent / "data" / "paraphrases.jsonl"
DECISION = re.compile(r"Décision (?P<id>\S+) : [^\n]*\n(?P<pieces>(?:\[P\d+\] [^\n]+\n)+)")
PIECE = re.compile(r"\[(?P<name>P\d+)\] (?:\([^)]*\) )?(?P<text>[^\n]+)\n")
MARKED = ("[{name}]", "[Source: {doc}, chars {start}-{end}]", "[Source: {doc}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default="index")
    parser.add_argument("--index-name", default="legal_french_index")
    parser.add_argument("queries", type=Path)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="Print so many answers.")
    arguments = parser.parse_args()
    library = Library.open(arguments.index_folder, arguments.index_name)
    questions = [json.loads(line)["question"] for line in arguments.queries.read_text("utf-8").splitlines()]
    figures = {"answers": answers_shown(library, questions, arguments), "sentences": sentences(library)}
    print(json.dumps(figures, indent=1))


def answers_shown(library: Library, questions: list[str], arguments: argparse.Namespace) -> dict[str, int]:
    """Ask the questions of the scripted model, over and over, and count what became of its answers."""
    from support.scripted_server import ScriptedServer, answer

    from legal_rag.agent import build_agent

    written: list[str] = []

    def script(prompt: str, attempt: int):
        if not written:
            written.append(paraphrased_answer(random.Random(f"{arguments.seed} {asked}"), prompt, library))
        return answer(written[0] or "Aucun passage pertinent.")

    asked, shown, statuses = 0, 0, Counter[str]()
    with ScriptedServer(script) as server:
        agent = build_agent(library, model="scripted", api_base=server.api_base, cache=False, match_words=False)
        for number in count():
            if asked == arguments.answers:
                break
            written[:] = []
            prediction = agent(questions[number % len(questions)])
            if not written[0]:  # no passage shown can be paraphrased by rules
                continue
            is_shown = prediction.mode == "agent" and prediction.status == "answered"
            asked, shown = asked + 1, shown + is_shown
            if is_shown:
                statuses.update("reworded" if one.reworded else one.status for one in prediction.citations)
            if asked <= arguments.show or not is_shown:
                print(f"\n{prediction.mode}, {prediction.notice}\n  {written[0]}", file=sys.stderr)
    return {"asked": asked, "shown": shown, **statuses}


def paraphrased_answer(rng: random.Random, prompt: str, library: Library) -> str:
    """Say one to three clauses of one passage shown in other words; empty where none has a clause that can be."""
    shown = [(match["id"], piece) for match in DECISION.finditer(prompt) for piece in PIECE.finditer(match["pieces"])]
    rng.shuffle(shown)
    for doc_id, piece in shown:
        content = library.document(doc_id).content
        place = re.search(r"\s+".join(map(re.escape, piece["text"].split())), content)
        if place is None:
            continue
        start, end = place.span()
        part = Document(id=doc_id, title="", content=content[start:end])
        clauses = [clause.text for clause in clauses_of(part)]
        if not clauses:
            continue
        marked = rng.choice(MARKED).format(name=piece["name"], doc=doc_id, start=start, end=end)
        chosen = sorted(rng.sample(range(len(clauses)), min(len(clauses), rng.randint(1, 3))))
        return " ".join(f"{paraphrase(rng, clauses[at])} {marked}." for at in chosen)
    return ""


def sentences(library: Library) -> dict[str, dict[str, int]]:
    """Check the sentences written by hand at their places, and count how they fared."""
    enricher = CitationEnricher(library)
    fared: dict[str, Counter[str]] = {truth: Counter(verified=0, supported=0) for truth in ("true", "false")}
    for pair in map(json.loads, PAIRS.read_text("utf-8").splitlines()):
        marker = format_marker(pair["doc_id"], pair["char_start"], pair["char_end"])
        for truth in ("true", "false"):
            (cited,) = enricher.enrich(f"{pair[truth]} {marker}.").citations
            fared[truth]["reworded" if cited.reworded else cited.status] += 1
            fared[truth]["of these with a doubt about a negation"] += cited.reworded and "nier" in cited.reason
    return {truth: dict(counts) for truth, counts in fared.items()}


if __name__ == "__main__":
    main()
