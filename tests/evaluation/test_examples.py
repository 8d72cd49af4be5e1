"""A dataset of questions as examples of DSPy: an optimiser that is given them makes a program search better."""

import hashlib
import re

import dspy
import pytest
from support.scripted_server import ScriptedServer, fields

from legal_rag.agent import build_language_model
from legal_rag.evaluation.questions import generate_questions, read_examples, search_metric
from legal_rag.retriever import Retriever

DEMONSTRATION = "[[ ## query ## ]]\nQUERY:"


@pytest.fixture(scope="module")
def retriever(index_of, sample_rows, tiny_encoder):
    return Retriever(index_of(list(sample_rows), n_bits=0), tiny_encoder)


@pytest.fixture(scope="module")
def dataset(retriever, tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples") / "set"
    generate_questions(retriever.corpus, None, output=folder)
    return folder


def learns_from_examples(prompt, attempt):
    """Repeat a question as its query: always if the prompt shows how, else for one question of two."""
    question = re.findall(r"\[\[ ## question ## \]\]\n(.*?)\n\n", prompt, re.DOTALL)[-1]
    knows_how = DEMONSTRATION in prompt or hashlib.sha256(question.encode()).digest()[0] % 2
    return fields(query=f"QUERY: {question[:80]}" if knows_how else "rien")


def test_the_rows_of_a_split_are_examples_with_a_question_as_input(dataset):
    splits = {split: read_examples(dataset, split) for split in ("train", "dev", "test")}
    assert read_examples(dataset) == splits["train"]
    assert sum(map(len, splits.values())) == 20
    documents = [{example.doc_id for example in examples} for examples in splits.values()]
    assert sum(map(len, documents)) == len(set.union(*documents))
    example = splits["train"][0]
    assert example.inputs().keys() == ["question"]
    assert {"answer", "doc_id", "answer_span_start"} <= set(example.labels().keys())
    with pytest.raises(ValueError, match=r"no split 'all' in .* \(there are: train, dev, test\)"):
        read_examples(dataset, "all")


def test_the_metric_is_the_reciprocal_rank_of_the_right_document(retriever):
    metric = search_metric(retriever, k=3, mode="bm25")
    hits = retriever.search("clause de non-concurrence", 4, mode="bm25", by_document=True)
    found = dspy.Prediction(query="clause de non-concurrence")
    values = [metric(dspy.Example(doc_id=hit.doc_id), found) for hit in hits]
    assert values == [1.0, 0.5, pytest.approx(1 / 3), 0.0]
    assert metric(dspy.Example(doc_id=hits[0].doc_id), dspy.Prediction(query="")) == 0.0
    assert metric(dspy.Example(doc_id=hits[0].doc_id), dspy.Prediction(query=None)) == 0.0


def test_an_optimised_program_finds_more_with_examples_of_other_documents(dataset, retriever):
    train, held = read_examples(dataset, "train"), read_examples(dataset, "dev") + read_examples(dataset, "test")
    metric, rewrite = search_metric(retriever, mode="bm25"), dspy.Predict("question -> query")
    score = dspy.Evaluate(devset=held, metric=metric, num_threads=1)
    with ScriptedServer(learns_from_examples) as server:
        lm = build_language_model("scripted", "sk-key", server.api_base, cache=False)
        with dspy.context(lm=lm):
            before = score(rewrite).score
            optimiser = dspy.BootstrapFewShot(metric, metric_threshold=1.0, max_labeled_demos=0)
            optimised = optimiser.compile(rewrite, trainset=train)
            after = score(optimised).score
    assert before < after - 30  # percent
    demos = {demo.question for demo in optimised.demos}
    assert demos
    assert demos < {example.question for example in train}
