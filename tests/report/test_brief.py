import re
import shutil
import subprocess
from io import BytesIO
from zipfile import ZipFile

import docx
import pytest
from docx.oxml.ns import qn
from lxml import etree
from support.html_pages import ATTACKS

from legal_rag.agent import Prediction
from legal_rag.agent.prediction import CitedDocument
from legal_rag.citations import Citation, format_marker
from legal_rag.citations.checks import DENIED
from legal_rag.corpus import read_file
from legal_rag.corpus.documents import Document
from legal_rag.report.brief import CAUTION, MAX_LISTED, answer_bibtex, answer_docx
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


FIRST, SECOND = citation(0, 31), citation(32, 95, speaker="court")
WRONG = citation(0, 10, "unverified", "GONE", reason=DENIED)
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
        documents=[CitedDocument(DOCUMENT.id, "", "", solution="REJET"), CitedDocument("GONE", "Un arrêt retiré", "")],
        **more,
    )


def written(one, corpus=None):
    return docx.Document(BytesIO(answer_docx(one, corpus)))


def texts(paragraphs):
    """Return texts, those of links included."""
    return ["".join(node.text or "" for node in one._p.iter() if node.tag.endswith("}t")) for one in paragraphs]


def notes_of(one, corpus=None):
    """Return the texts of the footnotes, in their order."""
    with ZipFile(BytesIO(answer_docx(one, corpus))) as archive:
        root = etree.fromstring(archive.read("word/footnotes.xml"))
    return ["".join(note.itertext()) for note in root][2:]  # the first two are the lines above notes


CITED = "Cass.\u00a0soc., 5\u00a0oct.\u00a02023, n°\u00a020-23.523"


def test_each_marker_becomes_a_footnote_and_what_is_not_confirmed_says_so_in_its_sentence():
    document = written(prediction(), Corpus())
    assert texts(document.paragraphs)[:7] == [
        "La démission se présume-t-elle ?",
        "Réponse",
        "Non : « La démission ne se présume pas. »",
        "•\u00a0Il faut « une volonté claire »",
        f"•\u00a0Autre chose [{STATUS_WORDS['unverified']}]",
        "3.\u00a0Point",
        "Une citationsuivie",
    ]
    called = [node.get(qn("w:id")) for node in document.element.iter(qn("w:footnoteReference"))]
    assert called == ["1", "2", "3", "4"]


def test_a_footnote_has_the_decision_the_passage_and_its_check_and_the_next_one_refers_to_it():
    quoted = f"{CITED} : «\u00a0{FIRST.quote}\u00a0» ({STATUS_WORDS['verified']} ; caractères 0 à 31)."
    notes = [note.strip() for note in notes_of(prediction(), Corpus())]
    assert notes[0] == quoted
    assert notes[1].endswith(f"({STATUS_WORDS['verified']} ; la juridiction ; caractères 32 à 95).")
    reason = f"{STATUS_WORDS['unverified']} ; {DENIED} ; caractères 0 à 10"
    assert notes[2] == f"Un arrêt retiré : «\u00a0{WRONG.quote}\u00a0» ({reason})."
    assert notes[3] == f"{CITED}, préc. note 1."


def test_our_own_reader_reads_the_footnotes_back(tmp_path):
    file = tmp_path / "answer.docx"
    file.write_bytes(answer_docx(prediction(), Corpus()))
    text = read_file(file)
    assert all(note.strip() in text for note in notes_of(prediction(), Corpus()))


@pytest.mark.slow
def test_a_word_processor_opens_it_with_its_notes(tmp_path):
    office = shutil.which("soffice") or pytest.skip("no LibreOffice here")
    file = tmp_path / "answer.docx"
    file.write_bytes(answer_docx(prediction(), Corpus()))
    command = [office, "--headless", f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}", "--convert-to", "odt"]
    subprocess.run([*command, "--outdir", tmp_path, file], check=True, capture_output=True)
    content = ZipFile(tmp_path / "answer.odt").read("content.xml").decode()
    assert content.count('text:note-class="footnote"') == 4


def test_markdown_becomes_styles_and_a_decision_a_link():
    document = written(prediction(), Corpus())
    heading, answer, quote = (document.paragraphs[place] for place in (1, 2, 6))
    assert (heading.style.name, quote.style.name) == ("Heading 3", "Quote")
    assert [run.text for run in answer.runs if run.bold] == ["Non"]
    assert [run.text for run in quote.runs if run.italic] == ["citation"]
    listed = [link.address for paragraph in document.paragraphs for link in paragraph.hyperlinks]
    assert listed == ["https://www.legifrance.gouv.fr/juri/id/" + DOCUMENT.id]


@pytest.mark.parametrize(
    ("solution", "outcome"), [("REJET", "rejet"), ("Cassation partielle", "cassation partielle"), ("QPC autres",) * 2]
)
def test_an_outcome_is_written_as_within_a_sentence_and_keeps_its_abbreviation(solution, outcome):
    assert CitedDocument("A", "", "", solution=solution).outcome == outcome


def test_the_decisions_are_listed_once_each_with_their_outcome_and_on_a_page_at_most():
    document = written(prediction(notice="Attention.", ungrounded_claims=["Une phrase."]), Corpus())
    shown = texts(document.paragraphs)
    assert shown[shown.index("Sources") + 1 :] == [f"•\u00a0{CITED}, rejet", "•\u00a0Un arrêt retiré", CAUTION]
    assert {"Attention.", "Une phrase."} <= set(shown)
    many = [citation(0, 31, doc_id=f"D{n}") for n in range(MAX_LISTED + 5)]
    shown = texts(written(prediction("".join(map(marker, many)), many)).paragraphs)
    assert len(shown[shown.index("Sources") + 1 :]) == MAX_LISTED + 2
    assert "… et 5 autres, que nomment les notes." in shown


def test_an_answer_that_cites_nothing_has_no_note_and_two_decisions_cited_alike_have_two_keys():
    document = written(prediction("Aucun passage pertinent.", ()))
    assert list(document.element.iter(qn("w:footnoteReference"))) == []
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
    assert len(notes_of(hostile)) == ("\ue000" not in attack)  # which no marker in a document keeps
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


def test_a_word_document_says_who_made_it_and_has_no_picture_of_another():
    answered = answer_docx(prediction("Réponse.", ()))
    assert docx.Document(BytesIO(answered)).core_properties.author == "legal_rag"
    assert not [name for name in ZipFile(BytesIO(answered)).namelist() if "thumbnail" in name]
