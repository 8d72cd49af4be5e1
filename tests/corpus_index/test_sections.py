"""Level 2 of the corpus index: a document's sections by name, with what each says, its terms and its entities."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legal_rag.corpus import Document
from legal_rag.corpus.chunking import READ_CHARS
from legal_rag.corpus_index.sections import SHORT_CHARS, WHOLE, build_document_index
from legal_rag.extraction.entities import rule_entity

CONTRACT = """BAIL COMMERCIAL

ENTRE LES SOUSSIGNÉS

La société Les Deux Tilleuls, de Lyon, ci-après le Bailleur, et la société Au Levain, ci-après le Preneur.

Article 1 - Loyer

Le loyer annuel est de 16 800 euros, payable d'avance le premier jour de chaque trimestre. Le loyer est indexé chaque
année sur l'indice des loyers commerciaux. Tout retard de paiement du loyer donne lieu à une pénalité de trois fois le
taux de l'intérêt légal, sans mise en demeure. Le Preneur verse un dépôt de garantie égal à trois mois de loyer.

Article 2 - Durée

Le bail est consenti pour neuf années.

Article 3 - Assurance

Le Preneur assure les lieux contre l'incendie."""

GRIEFS = range(120)
LONG = Document(
    id="long",
    content="\n".join(
        f"Sur le grief n° {grief} :\n"
        + "".join(f"La requête critique le scrutin de la commune {grief}-{n} ; ce grief sera rejeté.\n" for n in GRIEFS)
        for grief in range(10)
    ),
)  # fmt: skip


class Scribe:
    """A model that notes what it is asked and answers always the same, or fails."""

    def __init__(self, reply: str = "Le loyer est de 16 800 euros.", failure: Exception | None = None) -> None:
        self.prompts: list[str] = []
        self.reply, self.failure = reply, failure

    def query(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if self.failure is not None:
            raise self.failure
        return self.reply


def contract(**others) -> Document:
    return Document(id="BC-1", content=CONTRACT, title="Bail", **others)


def entity(text: str, start: int = 0):
    at = CONTRACT.index(text, start)
    return rule_entity("PARTY", CONTRACT, at, at + len(text))


def names_in(contents) -> list[str]:
    return [name for one in contents for name in (one["title"], *names_in(one["children"]))]


def test_sections_have_names_places_and_a_table_of_contents():
    index = build_document_index(contract(), file_path="baux/bc1.txt")
    assert (index.doc_id, index.file_path, index.has_structure) == ("BC-1", "baux/bc1.txt", True)
    assert list(index.section_map) == [
        *("BAIL COMMERCIAL", "ENTRE LES SOUSSIGNÉS"),
        *("Article 1 - Loyer", "Article 2 - Durée", "Article 3 - Assurance"),
    ]
    start, end = index.section_map["Article 2 - Durée"]
    assert CONTRACT[start:end] == "Article 2 - Durée\n\nLe bail est consenti pour neuf années.\n\n"
    (whole,) = index.toc["sections"]
    assert whole["children"][2] == {
        "title": "Article 2 - Durée", "start": start, "end": end, "level": 2, "children": [],
    }  # fmt: skip


def test_a_section_is_its_own_summary_or_that_of_its_sentences_and_keywords_tell_what_it_is_about():
    summaries = build_document_index(contract()).section_summaries
    assert summaries["Article 2 - Durée"] == "Le bail est consenti pour neuf années."
    whole = " ".join(CONTRACT.split())
    for sentence in summaries["Article 1 - Loyer"].split(" […] "):
        assert sentence.removesuffix("…") in whole
    assert len(summaries["Article 1 - Loyer"]) <= 420
    keywords = build_document_index(contract()).keywords_by_section
    assert "loyer" in keywords["Article 1 - Loyer"]
    assert not any("loyer" in word for word in keywords["Article 3 - Assurance"])


def test_entities_belong_to_the_sections_that_hold_them_and_to_those_around():
    crossing = rule_entity("PARTY", CONTRACT, CONTRACT.index("Durée"), CONTRACT.index("Article 3") + 5)
    second = entity("Preneur", CONTRACT.index("Article 3"))
    found = [second, crossing, entity("Au Levain"), entity("Preneur"), entity("Bailleur"), entity("Bailleur")]
    entities = build_document_index(contract(), entities=found).entities_by_section
    assert entities["ENTRE LES SOUSSIGNÉS"] == ["Bailleur", "Au Levain", "Preneur"]
    assert entities["Article 3 - Assurance"] == ["Preneur"]
    assert entities["Article 2 - Durée"] == []
    assert set(map(tuple, build_document_index(contract()).entities_by_section.values())) == {()}
    text = "MOTIFS\nSur la faute :\nM. Durand a tardé.\nSur le dommage :\nMme Petit a perdu son emploi."
    at = text.index("Durand")
    index = build_document_index(Document(id="a", content=text), entities=[rule_entity("PARTY", text, at, at + 6)])
    assert index.entities_by_section == {"MOTIFS": ["Durand"], "Sur la faute": ["Durand"], "Sur le dommage": []}
    assert names_in(index.toc["sections"]) == ["MOTIFS", "Sur la faute", "Sur le dommage"]


def test_a_title_that_comes_again_gets_a_number_and_a_long_one_a_name_that_can_be_typed():
    text = "Sur le moyen :\nUn.\nSur le moyen :\nDeux.\nSur le moyen (2) :\nTrois.\nSur le moyen :\nQuatre."
    section_map = build_document_index(Document(id="a", content=text)).section_map
    assert list(section_map) == ["Sur le moyen", "Sur le moyen (2)", "Sur le moyen (2) (2)", "Sur le moyen (3)"]
    assert [text[end - 8 : end].split()[-1] for _, end in section_map.values()] == ["Un.", "Deux.", "Trois.", "Quatre."]
    text = f"Sur le grief tiré de {'la violation du principe ' * 8}:\nIl est écarté."
    (name,) = build_document_index(Document(id="a", content=text)).section_map
    assert name.startswith("Sur le grief tiré de la violation")
    assert len(name) <= 121


@pytest.mark.parametrize("text", ["Bonjour.", "x" * 9000, "La cour dit. " * 2000, " ", ""])
def test_a_text_without_structure_is_one_section(text):
    index = build_document_index(Document(id="a", content=text))
    assert (index.has_structure, index.toc) == (False, {"sections": []})
    assert index.section_map == {WHOLE: (0, len(text))}
    assert set(index.section_summaries) == set(index.keywords_by_section) == {WHOLE}


def test_the_official_summary_is_that_of_a_text_without_structure():
    scribe = Scribe()
    index = build_document_index(Document(id="a", content="x " * 500, summary="Bail"), sub_llm=scribe)
    assert index.section_summaries == {WHOLE: "Bail"}
    assert scribe.prompts == []


def test_a_model_writes_the_summaries_of_long_sections_alone_which_are_asked_about_as_they_are():
    scribe = Scribe("  Le loyer est\n de 16 800 euros. ")
    index = build_document_index(contract(), sub_llm=scribe)
    assert index.section_summaries["Article 1 - Loyer"] == "Le loyer est de 16 800 euros."
    assert index.section_summaries["Article 2 - Durée"] == "Le bail est consenti pour neuf années."
    (prompt,) = [prompt for prompt in scribe.prompts if "Section : Article" in prompt]
    assert "Section : Article 1 - Loyer" in prompt
    assert "dépôt de garantie égal à trois mois" in prompt
    assert "Document : Bail" in prompt
    text = "Sur le code :\n" + "Le programme écrit {text} et {0} ; il échoue. " * 20
    build_document_index(Document(id="a", content=text), sub_llm=scribe)
    assert "Le programme écrit {text} et {0}" in scribe.prompts[-1]


@pytest.mark.parametrize(
    "scribe",
    [Scribe(failure=RuntimeError("503")), Scribe(failure=ValueError("budget")), Scribe(""), Scribe("bla " * 9000)],
    ids=["fails", "refuses", "says nothing", "says too much"],
)
def test_sentences_stand_in_for_a_model_that_gives_no_summary(scribe):
    assert build_document_index(contract(), sub_llm=scribe) == build_document_index(contract())
    assert scribe.prompts


def test_a_model_reads_all_of_a_long_section_or_sentences_of_all_sum_it_up():
    text = "MOTIFS\n" + LONG.content
    assert len(text) > 4 * READ_CHARS
    scribe = Scribe()
    index = build_document_index(Document(id="a", content=text), sub_llm=scribe)
    read = "\n".join(scribe.prompts)
    assert all(f"la commune {grief}-{n} ;" in read for grief in range(10) for n in range(120))
    assert max(map(len, scribe.prompts)) < READ_CHARS + 3000
    assert index.section_summaries["MOTIFS"] == scribe.reply
    (whole,) = [prompt for prompt in scribe.prompts if "Section : MOTIFS" in prompt]
    assert whole.count(scribe.reply) == 10  # one of each section inside it
    summaries = build_document_index(Document(id="a", content="MOTIFS\n" + LONG.content)).section_summaries
    assert all(SHORT_CHARS > len(summary) > 0 or " […] " in summary for summary in summaries.values())


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.sampled_from(["Sur le moyen :", "Article 1 - x", "1. Considérant que", "mot " * 90, ""])).map("\n".join)
)
def test_every_section_has_a_name_of_its_own_and_everything_under_it(text):
    index = build_document_index(Document(id="a", content=text))
    names = list(index.section_map)
    assert list(index.section_summaries) == list(index.keywords_by_section) == list(index.entities_by_section) == names
    assert names_in(index.toc["sections"]) == (names if index.has_structure else [])
    assert json.loads(json.dumps(index.toc)) == index.toc
    assert all(0 <= start <= end <= len(text) for start, end in index.section_map.values())
    assert all(" ".join(text.split()) == "" or summary for summary in index.section_summaries.values())


@pytest.mark.shared
@pytest.mark.slow
def test_every_shared_decision_can_be_indexed_by_its_sections(shared_decisions):
    for document in shared_decisions:
        index = build_document_index(document)
        ends = [end for _, end in index.section_map.values()]
        assert max(ends) == len(document.content)
        assert all(index.section_summaries.values())
        assert not any("\n" in name for name in index.section_map)
