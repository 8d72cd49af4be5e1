import re
from io import BytesIO

import docx
import pytest
from support.html_pages import ATTACKS

from legal_rag.agent import Prediction
from legal_rag.agent.prediction import CitedDocument
from legal_rag.citations import Citation, format_marker
from legal_rag.corpus.documents import Document
from legal_rag.report.brief import CAUTION, answer_bibtex, answer_docx
from legal_rag.report.lines import STATUS_WORDS

CONTENT = "La démission ne se présume pas. Le salarié doit manifester une volonté claire et non équivoque."
DOCUMENT = Document(
    id="JURITEXT000048176166",
    content=CONTENT,
    juridiction="Cour de cassation",
    formation="Chambre sociale",
    decision_date="2023-10-05",
    extra={"number": "20-23523"},
)


class Corpus:
    def document(self, doc_id):
        if doc_id != DOCUMENT.id:
            raise LookupError(f"no document {doc_id!r}")
        return DOCUMENT


def citation(start, end, status="verified", doc_id=DOCUMENT.id, **more):
    return Citation(doc_id, start, end, CONTENT[start:end], status)._replace(**more)


def marker(one):
    return format_marker(one.doc_id, one.char_start, one.char_end, verified=one.status != "unverified")


FIRST, SECOND, WRONG = citation(0, 31), citation(32, 95, speaker="court"), citation(0, 10, "unverified", "GONE")
ANSWER = (
    f"## Réponse\n\n**Non** : « La démission ne se présume pas. » {marker(FIRST)}\n\n- Il faut « une volonté claire » "
    f"{marker(SECOND)}\n- Autre chose {marker(WRONG)}\n\n3. Point {marker(FIRST)}\n\n> Une *citation*\n> suivie"
)


def prediction(answer=ANSWER, citations=(FIRST, SECOND, WRONG), **more):
    return Prediction(
        question="La démission se présume-t-elle ?",
        answer=answer,
        mode="agent",
        status="answered",
        citations=list(citations),
        documents=[CitedDocument(DOCUMENT.id, "", ""), CitedDocument("GONE", "Un arrêt retiré", "")],
        **more,
    )


def written(one, corpus=None):
    return docx.Document(BytesIO(answer_docx(one, corpus)))


def texts(paragraphs):
    """Return texts, those of links included."""
    return ["".join(node.text or "" for node in one._p.iter() if node.tag.endswith("}t")) for one in paragraphs]


def test_each_marker_becomes_the_legal_citation_of_its_decision():
    cited = "Cass.\u00a0soc., 5\u00a0oct.\u00a02023, n°\u00a020-23.523"
    assert texts(written(prediction(), Corpus()).paragraphs)[:7] == [
        "La démission se présume-t-elle ?",
        "Réponse",
        f"Non : « La démission ne se présume pas. » ({cited})1",
        f"•\u00a0Il faut « une volonté claire » ({cited})2",
        f"•\u00a0Autre chose (Un arrêt retiré – {STATUS_WORDS['unverified']})3",
        f"3.\u00a0Point ({cited})1",
        "Une citationsuivie",
    ]


def test_markdown_becomes_styles_and_a_citation_a_link():
    document = written(prediction(), Corpus())
    heading, answer, quote = (document.paragraphs[place] for place in (1, 2, 6))
    assert (heading.style.name, quote.style.name) == ("Heading 3", "Quote")
    assert [run.text for run in answer.runs if run.bold] == ["Non"]
    assert [run.text for run in quote.runs if run.italic] == ["citation"]
    assert [link.address for link in answer.hyperlinks] == ["https://www.legifrance.gouv.fr/juri/id/" + DOCUMENT.id]


def test_the_table_gives_each_passage_once_with_what_its_check_found():
    document = written(prediction(notice="Attention.", ungrounded_claims=["Une phrase."]), Corpus())
    (table,) = document.tables
    rows = [[" ".join(texts(cell.paragraphs)) for cell in row.cells] for row in table.rows[1:]]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert [row[2] for row in rows] == [f"«\u00a0{one.quote}\u00a0»" for one in (FIRST, SECOND, WRONG)]
    assert rows[1][3] == f"{STATUS_WORDS['verified']} ; la juridiction ; caractères 32 à 95"
    assert rows[2][3].startswith(STATUS_WORDS["unverified"])
    assert {"Attention.", "Une phrase.", CAUTION} <= set(texts(document.paragraphs))


def test_an_answer_that_cites_nothing_has_no_table_and_two_decisions_cited_alike_have_two_keys():
    document = written(prediction("Aucun passage pertinent.", ()))
    assert document.tables == []
    assert texts(document.paragraphs) == ["La démission se présume-t-elle ?", "Aucun passage pertinent."]
    same = [citation(0, 5, doc_id=name) for name in ("a-1", "a_1", "A 1")]
    keys = re.findall(r"@misc\{(.*),", answer_bibtex(prediction("", same)))
    assert keys == ["a-1", "a-1-2", "a-1-3"]


@pytest.mark.parametrize("attack", [*ATTACKS, "\ue0009\ue001", "a\x00\x1b[2J\ud800b", "[Source: [x], chars 1-2]"])
def test_hostile_texts_are_text_in_the_document_and_in_the_entries(attack):
    one = Citation(attack, 0, 5, attack, "verified")
    hostile = prediction(f"{attack} {marker(one)}\n\n{attack}", [one], notice=attack, ungrounded_claims=[attack])
    document = written(hostile)
    shown = "".join(char for char in attack if char.isprintable())
    assert shown in "\n".join(texts(document.paragraphs))
    assert len(document.tables[0].rows) == 2
    entry = answer_bibtex(hostile)
    assert re.match(r"@misc\{[a-z0-9-]+,\n", entry)
    plain = re.sub(r"\\[{}]", "", entry)
    assert plain.count("{") == plain.count("}")
    assert entry.count("\n@") == 0


def test_an_entry_names_a_decision_once_with_its_number_and_address():
    assert answer_bibtex(prediction(), Corpus()) == (
        "@misc{cass-soc-5-oct-2023-n-20-23-523,\n"
        "  title = {{Cass.~soc., 5~oct.~2023, n°~20-23.523}},\n"
        "  date = {2023-10-05},\n"
        "  year = {2023},\n"
        "  number = {20-23.523},\n"
        "  url = {https://www.legifrance.gouv.fr/juri/id/JURITEXT000048176166},\n"
        f"  note = {{JURITEXT000048176166 ; {STATUS_WORDS['verified']}}}\n"
        "}\n\n"
        "@misc{un-arret-retire,\n"
        "  title = {{Un arrêt retiré}},\n"
        f"  note = {{GONE ; {STATUS_WORDS['unverified']}}}\n"
        "}\n"
    )
