"""One text with places of a file of any format: what stands in it, what does not, and where."""

import re
import time
import zipfile
from email.message import EmailMessage

import docx
import pytest
from docx.oxml.ns import qn
from support.pdf_files import pdf_of

from legal_rag.corpus import paper_of_text, pdf, read_paper
from legal_rag.corpus.docx import annotate_docx
from legal_rag.corpus.html_page import paper_of_html
from legal_rag.corpus.papers import Paper, PlaceMark

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
HEAD = f'<w:{{}} xmlns:w="{WORD}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def r(text, properties=""):
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def p(*runs, properties=""):
    return f"<w:p><w:pPr>{properties}</w:pPr>{''.join(run if run.startswith('<') else r(run) for run in runs)}</w:p>"


def note_call(number, kind="footnote"):
    return f'<w:r><w:{kind}Reference w:id="{number}"/></w:r>'


def element(name, xml):
    return f"{HEAD.format(name)}{xml}</w:{name}>"


def write_docx(path, body, **parts):
    """Write a Word document: the XML of its body, and of other parts by their name."""
    types = {name: name.rstrip("1") for name in parts}
    roots = {"header1": "hdr", "footer1": "ftr"}
    content = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    overrides = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{content}.{types[name]}+xml"/>' for name in parts
    )
    relations = "".join(
        f'<Relationship Id="r{name}" Type="{RELATIONS}/{types[name]}" Target="{name}.xml"/>' for name in parts
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{content}.document.main+xml"/>{overrides}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{RELATIONS}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{relations}</Relationships>',
        "word/document.xml": element("document", f"<w:body>{body}<w:sectPr/></w:body>"),
        **{f"word/{name}.xml": element(roots.get(name, name), xml) for name, xml in parts.items()},
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, xml in files.items():
            archive.writestr(name, xml)
    return path


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        ("(Cass. soc.,\n12 mars 2019, n° 22-\n17.919).", "(Cass. soc., 12 mars 2019, n° 22-17.919)."),
        ("le pourvoi n°\n498 765 et n° C\n4987", "le pourvoi n° 498 765 et n° C 4987"),
        ("la voie pu-\nblique, consé-\nquence", "la voie publique, conséquence"),
        ("des dommages-\nintérêts, à Saint-\nDenis", "des dommages-intérêts, à Saint-Denis"),
        ("dans les Hauts-\nde-Seine, quarante-\nhuit jours", "dans les Hauts-de-Seine, quarante-huit jours"),
        ("M. GIOR-\nDANO demande, M. GIORDANO obtient", "M. GIORDANO demande, M. GIORDANO obtient"),
        ("l'arrêt du 3 juin\n2021, n° 17-31.\n442", "l'arrêt du 3 juin 2021, n° 17-31.442"),
        ("(CE, 5e et\n\n        - 7 -\n\n\f6e ch., 3 juin\n2021)", "(CE, 5e et 6e ch., 3 juin 2021)"),
        ("la Cour (Cass. soc.,\nPage 3 sur 12\n12 mars 2019)", "la Cour (Cass. soc., 12 mars 2019)"),
        ("« la prime\n\f\nest due »", "« la prime est due »"),
    ],
)
def test_a_phrase_that_a_line_or_a_page_cuts_is_joined(lines, joined):
    assert paper_of_text(lines).text == joined


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("La Cour casse.\n\nArt. 1240 C. civ.", "La Cour casse.\n\nArt. 1240 C. civ."),
        ("- Cass. soc., 12 mars 2019, n° 17-31.442\n- CE, 3 juin 2021", None),
        ("1. Le bail\n2. La vente", None),
        ("| Cour | Date |\n|---|---|\n| CE | 3 juin 2021 |", "Cour\tDate\nCE\t3 juin 2021"),
        ("# Moyens\nLe bail.", "# Moyens\n\nLe bail."),  # an outline is made of its sign
        ("## Moyens ##\nLe bail.", "## Moyens\n\nLe bail."),
        ("Moyens\n======\n\nCongés\n------\nLe bail.", "# Moyens\n\n## Congés\n\nLe bail."),
        ("n° 17-31.442\nCass. com., 3 mai 2019, n° 18-10.001\nCE, 3 juin 2021, n° 498765", None),
    ],
)
def test_paragraphs_items_rows_and_headings_stay_apart(text, read):
    assert paper_of_text(text).text == (read or text)


def test_headers_and_footers_of_pages_are_read_once_and_behind_the_text():
    pages = [f"SELARL Dupont – conclusions n° 2\n\nLe moyen {name}.\n\n{page}" for page, name in enumerate("abc", 1)]
    paper = paper_of_text("\f".join(pages))
    assert paper.text == "Le moyen a.\n\nLe moyen b.\n\nLe moyen c.\n\nSELARL Dupont – conclusions n° 2"
    assert [paper.place_of(paper.text.index(f"moyen {name}")) for name in "abc"] == ["page 1", "page 2", "page 3"]
    assert paper.place_of(len(paper.text) - 1) == "en-tête ou pied de page"


def test_a_header_between_two_lines_of_a_sentence_is_taken_out():
    header = "SELARL Dupont – conclusions n° 2"
    text = f"Il est jugé par la chambre sociale, voir\n{header}\n12 mars 2019, n° 17-31.442, et par la\n{header}\ncour."
    sentence = "Il est jugé par la chambre sociale, voir 12 mars 2019, n° 17-31.442, et par la cour."
    assert paper_of_text(text).text == f"{sentence}\n\n{header}"


@pytest.mark.parametrize(
    ("text", "read", "calls"),
    [
        ("(n° 18/01234).3 Suite", "(n° 18/01234). Suite", ["3"]),
        ("n°&nbsp;17-31.442 de R&D", "n°\u00a017-31.442 de R&D", []),
        ("n° 17-31.442¹ et 500 m²", "n° 17-31.442 et 500 m²", ["1"]),
        (
            "n° 17-31.442[^a].\n\n[^a]: Cass. soc., 12 mars\n    2019.",
            "n° 17-31.442.\n\nCass. soc., 12 mars 2019.",
            ["a"],
        ),
    ],
)
def test_the_number_of_a_note_is_no_part_of_a_reference(text, read, calls):
    paper = paper_of_text(text)
    assert (paper.text, [call.name for call in paper.calls]) == (read, calls)
    assert not paper.places or paper.place_of(paper.text.index("Cass")) == "note a"


def test_html_within_markdown_is_read_as_it_is_shown():
    text = "Dit :\n<blockquote>\nle bail est\ndû</blockquote>\net <q>la prime</q><!-- caché --> "
    paper = paper_of_text(f"{text}n<sup>o</sup> 17-31.442<sup>4</sup> &amp; <X>")
    assert paper.text == "Dit :\n\nle bail est dû\n\net «\u00a0la prime\u00a0» n° 17-31.442 & <X>"
    assert [paper.text[start:end] for start, end in paper.quoted] == ["le bail est dû"]
    assert [call.name for call in paper.calls] == ["4"]


def test_block_quotations_are_known_but_for_what_an_email_answers():
    paper = paper_of_text("La Cour juge :\n\n> la prime\n> est due\n\nEt aussi :\n\n    le bail\n\nFin.")
    assert [paper.text[start:end] for start, end in paper.quoted] == ["la prime est due", "le bail"]
    mail = paper_of_text("De : A\nÀ : B\nObjet : arrêt\n\nOui.\n> > la prime (Cass.\n> > soc.) est due\n> Non.")
    assert mail.text == "De : A\nÀ : B\nObjet : arrêt\n\nOui.\n\nla prime (Cass. soc.) est due\n\nNon."
    assert mail.quoted == ()


def test_what_is_not_seen_is_not_read():
    assert (
        paper_of_text("n° 17\u200b-31.442\ufeff, consé\xad\nquence, ١٢ mars").text
        == "n° 17-31.442, conséquence, 12 mars"
    )


def test_line_ends_of_unicode_are_line_ends_and_u0085_is_an_ellipsis():
    assert paper_of_text("Le bail.\u2029La dette\x85").text == "Le bail.\n\nLa dette…"


def test_bytes_that_the_encoding_does_not_define_are_told(tmp_path):
    (tmp_path / "a.md").write_bytes("L'arrêt n° 17-31.442, caractère perdu : ".encode("cp1252") + b"\x81 fin.")
    paper = read_paper(tmp_path / "a.md")
    assert paper.text == "L'arrêt n° 17-31.442, caractère perdu : \ufffd fin."
    assert "illisible" in paper.notices[0]


REVISED = (
    p(
        "Vu (Cass. soc., ",
        f'<w:del w:id="1">{r("14 avril 2016").replace("w:t", "w:delText")}{note_call(9)}</w:del>',
        f'<w:ins w:id="2">{r("12 mars ")}{r("2019")}</w:ins>',
        ").",
    )
    + f'<w:p><w:moveTo w:id="3">{r("Déplacé.")}</w:moveTo></w:p>'
    + f'<w:p><w:moveFrom w:id="4">{r("Ôté.")}</w:moveFrom></w:p>'
)


def test_pending_insertions_are_read_deletions_are_not_and_it_is_said(tmp_path):
    notes = f'<w:footnote w:id="9">{p("Note ôtée.")}</w:footnote>'
    paper = read_paper(write_docx(tmp_path / "a.docx", REVISED, footnotes=notes))
    assert paper.text == "Vu (Cass. soc., 12 mars 2019).\n\nDéplacé."
    assert "révisions" in paper.notices[0]


BOX = f"<w:txbxContent>{p('Encadré.')}</w:txbxContent>"
BOXES = f"<mc:AlternateContent><mc:Choice>{BOX}</mc:Choice><mc:Fallback>{BOX}</mc:Fallback></mc:AlternateContent>"
LINKED = p("Un ", f"<w:hyperlink>{r('lien')}</w:hyperlink>")
RICH = (
    p("N", r("o", '<w:vertAlign w:val="superscript"/>'), " 17-31.442", note_call(7), ".")
    + f"<w:sdt><w:sdtPr/><w:sdtContent>{LINKED}</w:sdtContent></w:sdt>"
    + p(f"<w:r>{BOXES}</w:r>")
    + p(
        '<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>REF x</w:instrText><w:t>code</w:t>'
        '<w:fldChar w:fldCharType="separate"/><w:t>CE, </w:t><w:fldChar w:fldCharType="end"/></w:r>',
        "<w:r><w:t>n</w:t><w:sym w:font='Symbol' w:char='F0B0'/><w:br/><w:t>498</w:t><w:noBreakHyphen/>"
        "<w:t>7</w:t><w:softHyphen/><w:t>65</w:t></w:r>",
        r("caché", "<w:vanish/>"),
        note_call(3),
        note_call(2, "endnote"),
    )
    + f"<w:tbl><w:tr><w:tc>{p('CA Douai')}</w:tc><w:tc>{p('21 juin')}{p('2017')}</w:tc></w:tr>"
    + f"<w:tr><w:tc>{p('Rejet')}</w:tc><w:tc>{p('')}</w:tc></w:tr></w:tbl>"
)
NOTES = {
    "footnotes": f'<w:footnote w:id="0" w:type="separator">{p("—")}</w:footnote>'
    f'<w:footnote w:id="3">{p("Note deux.")}</w:footnote><w:footnote w:id="7">{p("Note une.")}</w:footnote>',
    "endnotes": f'<w:endnote w:id="2">{p("Note de fin.")}</w:endnote>',
    "header1": p("Conclusions n° 2"),
    "footer1": p("Page 3 sur 12"),
}


def test_a_docx_is_read_whole_its_notes_by_number_its_headers_once(tmp_path):
    paper = read_paper(write_docx(tmp_path / "a.docx", RICH, **NOTES))
    assert paper.text.split("\n\n") == [
        "N° 17-31.442.",
        "Un lien",
        "Encadré.",
        "CE, n° 498-765",
        "CA Douai\t21 juin\n2017\nRejet",
        "Note une.",
        "Note deux.",
        "Note de fin.",
        "Conclusions n° 2",
    ]
    words = ("17-31", "lien", "une", "deux", "fin", "Concl")
    places = ["paragraphe 1", "paragraphe 2", "note 1", "note 2", "note i", "en-tête ou pied de page"]
    assert [paper.place_of(paper.text.index(word)) for word in words] == places
    calls = [(paper.text[call.start - 3 : call.start], call.name) for call in paper.calls]
    assert calls == [("442", "1"), ("765", "2"), ("765", "i")]


def test_quoting_styles_and_paragraphs_set_deeper_after_a_colon_are_quotations(tmp_path):
    styles = (
        '<w:style w:styleId="Citationintense"><w:name w:val="Intense Quote"/></w:style>'
        '<w:style w:styleId="Maison"><w:basedOn w:val="Citationintense"/></w:style>'
    )
    body = (
        p("La Cour juge :")
        + p("le bail", properties='<w:ind w:left="720"/>')
        + p("est dû", properties='<w:ind w:left="720"/>')
        + p("Enfin.")
        + p("la prime", properties='<w:pStyle w:val="Maison"/>')
        + p("Fin.", properties='<w:ind w:left="720"/>')
    )
    paper = read_paper(write_docx(tmp_path / "a.docx", body, styles=styles))
    assert [paper.text[start:end] for start, end in paper.quoted] == ["le bail\n\nest dû", "la prime"]


def test_paragraphs_are_named_by_numbers_of_their_own_if_these_ascend(tmp_path):
    body = p("Faits") + "".join(p(f"{number}. Le bail.") + p("Suite.") for number in (4, 5, 7))
    paper = read_paper(write_docx(tmp_path / "a.docx", body))
    assert paper.place_of(len(paper.text) - 1) == "paragraphe 7"


def properties(run):
    return None if run.rPr is None else run.rPr.xml


def without_comments(path):
    """Return the XML of a body without comment marks, adjacent runs of the same properties merged."""
    body = docx.Document(str(path)).element.body
    for mark in list(body.iter(qn("w:commentRangeStart"), qn("w:commentRangeEnd"), qn("w:commentReference"))):
        marked = mark.getparent() if mark.tag == qn("w:commentReference") else mark
        marked.getparent().remove(marked)
    for run in list(body.iter(qn("w:r"))):
        before = run.getprevious()
        if before is not None and before.tag == run.tag and properties(before) == properties(run):
            for child in reversed([child for child in before if child.tag != qn("w:rPr")]):
                run.insert(0 if run.rPr is None else 1, child)
            before.getparent().remove(before)
    return re.sub(r"</w:t><w:t>", "", re.sub(r' xml:space="preserve"|\s*\n\s*', "", body.xml))


def test_a_docx_is_given_back_with_comments_at_their_words_and_nothing_else_changed(tmp_path):
    source = write_docx(tmp_path / "a.docx", REVISED + RICH, **NOTES)
    paper = read_paper(source)
    words = ["(Cass. soc., 12 mars", "17-31.442", "498-76", "Note une", "Encadré", "CA Douai\t21", "Conclusions"]
    comments = [(at := paper.text.index(word), at + len(word), f"sur {word}") for word in words]
    annotate_docx(source, tmp_path / "b.docx", comments)
    assert read_paper(tmp_path / "b.docx") == paper
    assert without_comments(tmp_path / "b.docx") == without_comments(source)
    document = docx.Document(str(tmp_path / "b.docx"))
    assert [comment.text for comment in document.comments] == [f"sur {word}" for word in words]
    spans = [commented(document, comment.comment_id) for comment in document.comments]
    assert spans == ["(Cass. soc., 12 mars", "17-31.442", "498-76", "", "Encadré.Encadré.", "CA Douai21", "Vu "]


@pytest.mark.parametrize("body", ["", "<w:p/>"])
def test_a_docx_whose_text_is_in_its_header_is_given_back_with_comments(tmp_path, body):
    source = write_docx(tmp_path / "a.docx", body, header1=p("Vu l'article 1240 du code civil."))
    annotate_docx(source, tmp_path / "b.docx", [(3, 31, "sur l'article")])
    assert read_paper(tmp_path / "b.docx") == read_paper(source)
    document = docx.Document(str(tmp_path / "b.docx"))
    assert [comment.text for comment in document.comments] == ["sur l'article"]
    assert document.element.body.findall(f".//{qn('w:r')}/{qn('w:commentReference')}")


def commented(document, number):
    """Return the text between the marks of a comment."""
    start, end = f'<w:commentRangeStart w:id="{number}"/>', f'<w:commentRangeEnd w:id="{number}"/>'
    xml = document.element.body.xml.partition(start)[2].partition(end)[0]
    return "".join(re.findall(r"<w:t(?: [^>]*)?>([^<]*)</w:t>", xml.replace("<w:noBreakHyphen/>", "<w:t>-</w:t>")))


def write_pdf(path, *pages, image=None, turn=(1, 0)):
    """Write a PDF in Helvetica: for each page its texts as (left, height above the bottom, size, text).

    `turn` is the cosine and the sine of the angle by which all is turned around the lower left corner.
    """
    cos, sin = turn
    fonts = b"<</Font<</F1 3 0 R>>/XObject<</Im 4 0 R>>>>"
    objects = [b"", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"]
    width, height, pixels = image or (1, 1, b"\xff")
    head = b"<</Type/XObject/Subtype/Image/Width %d/Height %d/BitsPerComponent 8/ColorSpace/DeviceGray/Length %d>>"
    objects.append(head % (width, height, len(pixels)) + b"stream\n" + pixels + b"\nendstream")
    kids = []
    for texts in pages:
        stream = b"" if image is None or texts else b"q 595 0 0 842 0 0 cm /Im Do Q "
        for left, bottom, size, text in texts:
            escaped = re.sub(r"([\\()])", r"\\\1", text).encode("cp1252")
            matrix = (cos, sin, -sin, cos, cos * left - sin * bottom, sin * left + cos * bottom)
            stream += b"BT /F1 %g Tf %g %g %g %g %g %g Tm (%b) Tj ET " % (size, *matrix, escaped)
        objects.append(b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream))
        page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R/Resources %b>>"
        objects.append(page % (len(objects), fonts))
        kids.append(b"%d 0 R" % len(objects))
    objects[0] = b"<</Type/Catalog/Pages 2 0 R>>"
    objects[1] = b"<</Type/Pages/Kids[%b]/Count %d>>" % (b" ".join(kids), len(kids))
    path.write_bytes(pdf_of(objects))
    return path


def column(left, top, *lines, size=10):
    return [(left, top - 14 * at, size, line) for at, line in enumerate(lines)]


def test_a_pdf_is_joined_over_lines_and_pages_without_what_stands_in_the_margins(tmp_path):
    head, foot = (72, 800, 9, "SELARL Dupont – conclusions n° 2"), [(290, 40, 9, f"- {page} -") for page in (1, 2)]
    first = column(
        72, 740, "La solution est constante (Cass. soc., 12 mars 2019, n° 17-", "31.442), comme au Conseil d'État (CE,"
    )
    second = column(72, 740, "3 juin 2021, n° 498 765), pour la consé-", "quence.")
    paper = read_paper(write_pdf(tmp_path / "a.pdf", [head, *first, foot[0]], [head, *second, foot[1]]))
    sentence = (
        "La solution est constante (Cass. soc., 12 mars 2019, n° 17-31.442), comme au Conseil d'État (CE, 3 juin 2021, "
    )
    assert paper.text == f"{sentence}n° 498 765), pour la conséquence.\n\nSELARL Dupont – conclusions n° 2"
    assert [paper.place_of(paper.text.index(words)) for words in ("31.442", "498", "SELARL")] == [
        "page 1",
        "page 2",
        "en-tête ou pied de page",
    ]


LEFT = (
    "La chambre sociale juge (Cass. soc.,",
    "12 mars 2019, n° 17-31.442) que la",
    "prime « n'entre pas dans l'assiette",
    "des congés ».",
)
RIGHT = (
    "Le Conseil d'État retient que « la",
    "parcelle est desservie par une voie",
    "publique » (CE, 3 juin 2021,",
    "n° 498765).",
)


@pytest.mark.parametrize("lower", [0, 4, 7])
def test_columns_are_read_one_after_the_other_without_the_numbers_of_lines(tmp_path, lower):
    columns = column(40, 700, *"1234"), column(60, 700, *LEFT), column(320, 700 - lower, *RIGHT)
    texts = [text for row in zip(*columns, strict=True) for text in row]
    paper = read_paper(write_pdf(tmp_path / "a.pdf", texts))
    assert paper.text == f"{' '.join(LEFT)}\n\n{' '.join(RIGHT)}"
    assert paper.notices == ()


@pytest.mark.parametrize("turn", [(0, 1), (-1, 0), (0, -1)])
def test_a_page_that_stands_turned_is_read(tmp_path, turn):
    paper = read_paper(write_pdf(tmp_path / "a.pdf", column(60, 700, *LEFT), turn=turn))
    assert paper.text == " ".join(LEFT)


def test_the_cells_of_a_table_stay_side_by_side(tmp_path):
    cells = [
        ("Cass. soc.", "12 mars 2019", "17-31.442"),
        ("CA Douai", "21 juin 2017", "15/02468"),
        ("CE", "3 juin 2021", "1"),
    ]
    texts = [
        (60 + 150 * at, 700 - 20 * row, 10, cell) for row, line in enumerate(cells) for at, cell in enumerate(line)
    ]
    assert read_paper(write_pdf(tmp_path / "a.pdf", texts)).text == "\n".join(map("\t".join, cells))


def test_a_cell_of_several_lines_is_read_whole(tmp_path):
    lines = [("Cour de cassation,", "12 mars 2019", "n'entre pas dans"), ("chambre sociale", "", "l'assiette")]
    lines += [("CA Douai", "21 juin 2017", "Rejet"), ("CE", "3 juin 2021", "Rejet")]
    texts = [
        (60 + 150 * at, 700 - 14 * row, 10, cell) for row, cells in enumerate(lines) for at, cell in enumerate(cells)
    ]
    assert read_paper(write_pdf(tmp_path / "a.pdf", texts)).text.split("\n") == [
        "Cour de cassation, chambre sociale\t12 mars 2019\tn'entre pas dans l'assiette",
        "CA Douai\t21 juin 2017\tRejet",
        "CE\t3 juin 2021\tRejet",
    ]


def test_columns_that_may_be_a_table_are_told(tmp_path):
    left = (
        "La prime est due au salarié",
        "qui travaille de nuit.",
        "Le bail est résilié hier.",
        "La vente est nulle ici.",
        "Fin.",
    )
    right = (
        "Le moyen tiré de la loi est",
        "écarté par le juge.",
        "Le pourvoi est rejeté là.",
        "Elle casse l'arrêt ici.",
        "Fin.",
    )
    texts = [text for row in zip(column(60, 700, *left), column(320, 700, *right), strict=True) for text in row]
    paper = read_paper(write_pdf(tmp_path / "a.pdf", texts))
    assert paper.notices == ("La page 1 a peut-être plusieurs colonnes : leurs lignes peuvent être mêlées.",)


def test_footnotes_of_a_pdf_stand_behind_and_their_calls_are_no_part_of_a_number(tmp_path):
    body = [(72, 700, 12, "Voir l'arrêt n° 18/01234"), (210, 705, 7, "3"), (216, 700, 12, "et la surface de 500 m")]
    body += [(341, 705, 7, "2"), (350, 700, 12, "loués,")]
    notes = [(72, 90, 6, "3"), (76, 87, 9, "Cass. soc., 12 mars 2019, n°"), (72, 76, 9, "17-31.442.")]
    following = [(72, 700, 12, "selon la cour.")]
    paper = read_paper(write_pdf(tmp_path / "a.pdf", [*body, *notes], following))
    note = "Cass. soc., 12 mars 2019, n° 17-31.442."
    assert paper.text == f"Voir l'arrêt n° 18/01234 et la surface de 500 m2 loués, selon la cour.\n\n{note}"
    assert [(call.start, call.name) for call in paper.calls] == [(paper.text.index(" et"), "3")]
    assert paper.place_of(len(paper.text) - 1) == "page 1, note 3"


def test_a_paragraph_set_deeper_in_a_pdf_is_a_quotation(tmp_path):
    texts = column(72, 700, "La Cour de cassation juge de façon constante que :")
    texts += column(120, 672, "la prime de panier est", "due au salarié")
    texts += column(72, 630, "Il en résulte que la demande sera accueillie en totalité.")
    paper = read_paper(write_pdf(tmp_path / "a.pdf", texts))
    assert [paper.text[start:end] for start, end in paper.quoted] == ["la prime de panier est due au salarié"]


def scan_of(path):
    """Return the picture of a page: width, height, grey pixels."""
    import pypdfium2

    with pypdfium2.PdfDocument(path) as document:
        bitmap = document[0].render(scale=3, grayscale=True)
        return bitmap.width, bitmap.height, bitmap.to_numpy().tobytes()


def write_scan(folder):
    """Write a PDF of a page of text, and one that is an image."""
    scanned = column(
        72,
        700,
        "La Cour de cassation rejette le pourvoi formé contre l'arrêt",
        "(Cass. soc., 12 mars 2019, n° 17-31.442).",
        size=14,
    )
    image = scan_of(write_pdf(folder / "text.pdf", scanned))
    return write_pdf(folder / "scan.pdf", column(72, 700, "Vu le pourvoi."), [], image=image)


def test_pages_without_text_are_named_where_no_ocr_is_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "has_ocr", lambda: False)
    paper = read_paper(write_scan(tmp_path))
    assert paper.text == "Vu le pourvoi."
    assert "La page 2 n'a pas de texte" in paper.unread[0]
    assert "tesseract" in paper.unread[0]


@pytest.mark.skipif(not pdf.has_ocr(), reason="tesseract with French is not installed")
def test_scanned_pages_are_read_by_ocr_and_marked(tmp_path):
    paper = read_paper(write_scan(tmp_path))
    assert "(Cass. soc., 12 mars 2019, n° 17-31.442)." in paper.text
    assert (paper.unread, paper.notices) == (
        (),
        ("Texte reconnu par OCR, qui peut se tromper d'un caractère : la page 2.",),
    )


@pytest.mark.skipif(not pdf.has_ocr(), reason="tesseract with French is not installed")
def test_a_large_scanned_page_is_read_at_a_lower_resolution(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "OCR_PIXELS", 2_000_000)
    images = []
    run = pdf.subprocess.run

    def run_tesseract(command, **options):
        images.append(options["input"])
        return run(command, **options)

    monkeypatch.setattr(pdf.subprocess, "run", run_tesseract)
    assert "(Cass. soc., 12 mars 2019, n° 17-31.442)." in read_paper(write_scan(tmp_path)).text
    assert [len(image) for image in images] == [pytest.approx(2_000_000, rel=0.01)]


@pytest.mark.parametrize("limit", ["OCR_SECONDS", "OCR_FILE_SECONDS"])
def test_pages_that_ocr_does_not_read_in_time_are_named_without_a_word_of_installing_it(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(pdf, "has_ocr", lambda: True)
    monkeypatch.setattr(pdf, limit, 0.0001)
    paper = read_paper(write_scan(tmp_path))
    assert (paper.text, paper.notices) == ("Vu le pourvoi.", ())
    assert paper.unread == (
        "La page 2 n'a pas de texte, mais une image : l'OCR a échoué ou aurait pris trop de temps.",
    )


def test_html_is_read_as_it_is_shown_with_its_quotations_and_notes():
    page = """<html><head><title>T</title><style>p {}</style></head><body><p>La Cour (Cass. soc.,<br>12 mars 2019,
        n<sup>o</sup> 17-31.442<sup><a href="#n3">3</a></sup>) dit <q>la prime</q>.</p>
        <p hidden>caché</p><p style="color: red; display:none">caché</p><div aria-hidden="true">caché</div>
        <template><p>caché</p></template><noscript>caché</noscript><span style="visibility: hidden">caché</span>
        <blockquote><p>le bail</p><p>est dû</p></blockquote><pre>un
pré</pre><ul><li>un</li><li>deux</li></ul>
        <table><tr><th>Cour</th><th>Date</th></tr><tr><td><p>CE</p></td><td>3 juin</td></tr></table>
        <ol><li id="n3">Cass. soc., 3 mai 2019 <a href="#r3">↩</a></li></ol></body></html>"""
    paper = paper_of_html(page)
    assert paper.text == (
        "La Cour (Cass. soc., 12 mars 2019, n° 17-31.442) dit la prime.\n\nle bail\n\nest dû\n\n"
        "un pré\n\nun\ndeux\n\n"
        "Cour\tDate\nCE\t3 juin\n\nCass. soc., 3 mai 2019"
    )
    assert [paper.text[start:end] for start, end in paper.quoted] == ["la prime", "le bail\n\nest dû"]
    assert [(paper.text[: call.start].split()[-1], call.name) for call in paper.calls] == [("17-31.442", "3")]
    assert paper.place_of(len(paper.text) - 1) == "note 3"


MAIL = """From: Me A <a@example.org>
To: b@example.org
Subject: =?utf-8?q?Conclusions_n=C2=B0_2?=
Content-Type: {}; charset=utf-8
Content-Transfer-Encoding: 8bit

{}"""


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain", "Voir :\n\n> la décision (Cass. soc., 12 mars\n> 2019)."),
        ("text/html", "<p>Voir :</p><blockquote>la décision (Cass. soc., 12 mars\n 2019).</blockquote>"),
    ],
)
def test_an_email_is_read_with_its_fields_and_what_it_answers_is_no_quotation(tmp_path, kind, body):
    (tmp_path / "a.eml").write_text(MAIL.format(kind, body), "utf-8")
    paper = read_paper(tmp_path / "a.eml")
    fields = "De : Me A <a@example.org>\nÀ : b@example.org\nObjet : Conclusions n° 2"
    assert paper.text == f"{fields}\n\nVoir :\n\nla décision (Cass. soc., 12 mars 2019)."
    assert (paper.quoted, paper.unread) == ((), ())


def test_the_attachments_of_an_email_are_named_as_unread(tmp_path):
    message = EmailMessage()
    message["From"], message["To"] = "a@example.org", "b@example.org"
    message.set_content("Ci-joint.")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="pièce 3.pdf")
    (tmp_path / "a.eml").write_bytes(bytes(message))
    assert read_paper(tmp_path / "a.eml").unread == ("La pièce jointe « pièce 3.pdf » n'a pas été lue.",)


@pytest.mark.parametrize(
    "page",
    [
        f"<p>a{'<sup>x' * 200}{'<b>b</b>' * 20_000}</p>",
        f"<p>a{'<a class=note href=#x>1</a>' * 10_000}</p><div id=x><p>1 {'<a href=#y>b</a>' * 10_000}</p></div>",
        f"<p>a<a href=#x>{' ' * 20_000}bb cc</a></p>",
    ],
    ids=["nested", "calls", "blanks"],
)
def test_html_made_to_take_long_is_read_in_proportion_to_its_length(page):
    start = time.process_time()
    assert paper_of_html(page).text.startswith("a")
    assert time.process_time() - start < 1.5


def test_places_of_a_paper_of_many_marks_are_found_at_once():
    count = 50_000
    marks = [PlaceMark(at * 10, "page" if at % 10 == 0 else "paragraph", str(at)) for at in range(1, count)]
    paper = Paper("x" * 9 + "\n" + "x" * (10 * count), (*marks, PlaceMark(10 * count, "note", "3")))
    start = time.process_time()
    places = [paper.place_of(offset) for offset in range(0, 10 * count, 500)]
    assert (places[0], places[1]) == ("ligne 1", "page 50, paragraphe 49")
    assert places[-1] == f"page {count - 50}, paragraphe {count - 51}"
    assert (paper.place_of(10 * count), paper._replace(places=()).place_of(12)) == ("note 3", "ligne 2")
    assert time.process_time() - start < 1
