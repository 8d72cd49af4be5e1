"""DILA's archives: every field is kept or dropped by name, and a damaged file costs one line."""

import gc
import gzip
import io
import re
import tarfile
import tomllib
from pathlib import Path

import pytest
from lxml import etree
from support.dila_files import EMPTY, FORMS, LEGI, OTHERS, article, members, write_archive

from legal_rag.base.text import words_of
from legal_rag.corpus import dila as module
from legal_rag.corpus import read_documents, removed_ids
from legal_rag.corpus.sources import BadRecord
from legal_rag.law.keys import own_keys

TABLES = tomllib.loads(Path(module.__file__).with_suffix(".toml").read_text("utf-8"))
FILES = [pytest.param(file, id=f"{form}-{file.doc_id}") for form, files in FORMS.items() for file in files]


def read(source):
    """Read a source; return its documents by id, and its bad records as 'where: problem'."""
    bad = []
    documents = {document.id: document for document in read_documents(source, on_bad=bad.append)}
    return documents, [f"{record.where}: {record.problem}" for record in bad]


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """All the documents of one archive."""
    path = tmp_path_factory.mktemp("dila") / "TOUT_20260101-000000.tar.gz"
    found, bad = read(write_archive(path, members([file for files in FORMS.values() for file in files])))
    assert bad == []
    return found


@pytest.mark.parametrize("file", FILES)
def test_a_file_gives_the_columns_that_were_written_for_it(file, documents):
    row = documents[file.doc_id].row()
    assert {column: row.get(column, "") for column in file.row} == file.row


def fields_of(root):
    """Yield each element with a text of its own and each attribute: its name in the table, its text."""
    waiting = [(root, "")]
    while waiting:
        element, parent = waiting.pop()
        name = f"{parent}/{element.tag}"
        yield from ((f"{name}@{key}", value) for key, value in element.attrib.items())
        if element.tag in module.TEXT_HOLDERS:
            yield name, "".join(f"{text} " for text in element.itertext())
        else:
            yield name, (element.text or "").strip()
            waiting.extend((child, element.tag) for child in element)


def kept_in(row, form, name):
    """Return what a row keeps of a field, '' if the field is dropped; KeyError if nothing accounts for it."""
    if name.startswith("LIENS/LIEN"):
        key = TABLES["link"][name.partition("@")[2]] if "@" in name else "title"
        return [link.get(key) for link in row["links"]]
    table = TABLES[form]
    if name in table["dropped"]:
        return ""
    column = table["columns"][name]
    return [row.get(column, ""), row.get("numbers"), row.get("decision_number"), row.get("lower_date")]


# What is written in another form, or says nothing: the words of the table, and the titles of other days.
REWRITTEN = {*TABLES["formations"], *TABLES["publications"], *module.NO_DAYS, "SUPPRIME", "Texte", "2018-13-45"}
REWRITTEN |= {"Cour d'appel de Paris , du 12 mars 2008", "Cour d'appel Bordeaux 1995-03-01"}  # split
OTHER_TITLES = {"Code rural", "Sans date", "Code général des impôts, CGI."}
OTHER_SECTIONS_AND_VERSIONS = ("TM/TITRE_TM@id", "VERSION/LIEN_ART@id")


@pytest.mark.parametrize("file", FILES)
def test_every_field_is_kept_under_its_name_or_dropped_by_name(file, documents):
    root = etree.fromstring(file.xml.encode())
    form = "article" if root.tag == "ARTICLE" else "decision"
    row = documents[file.doc_id].row()
    wrappers = {"", *OTHER_SECTIONS_AND_VERSIONS}
    for name, text in fields_of(root):
        if name not in wrappers and (text.strip() or "@" in name) and text.strip() not in REWRITTEN | OTHER_TITLES:
            kept = kept_in(row, form, name)
            said = words_of(re.sub(r"<[^<>]*>|&[#\w]+;", " ", text))
            assert kept == "" or set(said) <= set(words_of(str(kept).replace("\\n", " "))), (name, text)


def test_the_table_accounts_for_no_field_that_no_file_has():
    written = {
        name for files in FORMS.values() for file in files for name, _ in fields_of(etree.fromstring(file.xml.encode()))
    }
    listed = {name for form in ("decision", "article") for part in TABLES[form].values() for name in part}
    assert listed - written == set()
    assert {f"LIENS/LIEN@{name}" for name in TABLES["link"]} <= written


@pytest.mark.parametrize(
    ("file", "citation"),
    [
        (FORMS["CASS"][0], "Cass. soc., 3 mai 2018, n° 16-26.437, publié"),
        (FORMS["CASS"][2], "Cass. soc., 3 mai 2018, n° 10-12.345 et a., publié"),
        (FORMS["CASS"][10], "T. confl., 3 mai 2018, n° 06-03.486, publié"),
        (FORMS["INCA"][0], "Cass. 1re civ., 3 mai 2018, n° 10-81.000, inédit"),
        (FORMS["CAPP"][1], "CA Aix-en-Provence, 12 juin 2007, n° 06/01234, inédit"),
        (FORMS["JADE"][5], "CE, 2e et 7e ch. réun., 21 mars 2024, nos 352894 et 352895, mentionné aux tables"),
        (FORMS["CONSTIT"][3], "Cons. const., 6 févr. 2026, n° 2001-2589 AN"),
        (LEGI[0], "C. trav., art. L. 1233-4"),
        (LEGI[2], "C. trav., annexe 1-2"),
        (LEGI[3], "Décret n°2017-1387 du 22 septembre 2017, article 3"),
        (LEGI[14], "CGI, art. L. 1233-4"),
    ],
)
def test_a_document_is_cited_as_lawyers_do(file, citation, documents):
    assert documents[file.doc_id].citation.text.replace("\u00a0", " ") == citation


def test_a_decision_is_found_by_each_of_its_numbers(documents):
    keys = own_keys(documents[FORMS["CASS"][2].doc_id])
    assert {"pourvoi:10-12345", "pourvoi:10-12346", "pourvoi:10-12347"} <= set(keys)


@pytest.mark.parametrize("form", FORMS)
def test_there_are_twenty_files_of_each_form(form):
    assert len({file.doc_id for file in FORMS[form]}) == 20


@pytest.mark.parametrize("name", ["LEGI.tar.gz", "legi.tgz", "LEGI.tar", "folder", "article.xml"])
def test_an_archive_a_folder_and_a_file_give_the_same_document(name, tmp_path, documents):
    path, file = tmp_path / name, LEGI[0]
    if name == "folder":
        (path / "deep").mkdir(parents=True)
        (path / "deep" / f"{file.doc_id}.xml").write_text(file.xml, "utf-8")
    elif name == "article.xml":
        path.write_text(file.xml, "utf-8")
    else:
        write_archive(path, members([file]))
    assert read(path) == ({file.doc_id: documents[file.doc_id]}, [])


def test_files_that_are_not_documents_are_counted_in_one_line(tmp_path):
    path = write_archive(tmp_path / "LEGI.tar.gz", OTHERS | members(LEGI[:2]) | {"legi/lisez-moi.txt": b"x"})
    found, bad = read(path)
    assert sorted(found) == [LEGI[0].doc_id, LEGI[1].doc_id]
    assert bad == [
        "LEGI.tar.gz: files of kinds that are not documents: 1 <TEXTELR>, 1 <TEXTE_VERSION>, 1 <SECTION_TA>, "
        "1 <VERSIONS>, 1 .txt"
    ]


def test_an_article_without_text_is_left_out_by_its_id(tmp_path):
    found, bad = read(write_archive(tmp_path / "LEGI.tar.gz", members([EMPTY, LEGI[0]])))
    assert sorted(found) == [LEGI[0].doc_id]
    assert bad == [f"LEGI.tar.gz, {EMPTY.doc_id}.xml: no text (column 'content' of {EMPTY.doc_id} is empty or missing)"]


GOOD = LEGI[0].xml.encode()
BOMB = "".join(f'<!ENTITY e{at} "{f"&e{at - 1};" * 10}">' for at in range(1, 10))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "damaged XML ("),
        (GOOD[:500], "damaged XML ("),
        (GOOD.replace(b"<NUM>", b"<NUM"), "damaged XML ("),
        (GOOD.replace("é".encode(), b"\xe9"), "damaged XML ("),
        (GOOD.replace(b"UTF-8", b"UTF-99"), "damaged XML ("),
        (GOOD.replace("motivé".encode(), b"motiv&eacute;"), "damaged XML ("),
        (b"<a>" * 5_000 + b"</a>" * 5_000, "damaged XML ("),
        (b'<!DOCTYPE ARTICLE [<!ENTITY e0 "e">%b]>\n<ARTICLE>&e9;</ARTICLE>' % BOMB.encode(), "damaged XML ("),
        (
            b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><ARTICLE>&e;</ARTICLE>',
            "XML that refers to an entity",
        ),
        (b'<!DOCTYPE ARTICLE SYSTEM "http://127.0.0.1:9/a.dtd"><ARTICLE>&e;</ARTICLE>', "XML that refers to an entity"),
        (b"<ARTICLE/>", "<ARTICLE> without an id"),
        (
            b"<TEXTE_JURI_JUDI><META><META_COMMUN><ID/></META_COMMUN></META></TEXTE_JURI_JUDI>",
            "<TEXTE_JURI_JUDI> without",
        ),
        (b" " * (module.MEMBER_BYTES + 1), "16,000,001 bytes (at most 16,000,000)"),
    ],
)
def test_a_damaged_file_is_one_line_and_the_others_are_read(data, problem, tmp_path):
    files = {"a/LEGIARTI000000000001.xml": data} | members(LEGI[:1])
    found, bad = read(write_archive(tmp_path / "LEGI.tar.gz", files))
    assert list(found) == [LEGI[0].doc_id]
    assert len(bad) == 1
    assert bad[0].startswith(f"LEGI.tar.gz, LEGIARTI000000000001.xml: {problem}")


def test_a_file_in_the_encoding_that_it_declares_is_read(tmp_path):
    data = LEGI[0].xml.replace("UTF-8", "ISO-8859-1").encode("latin-1")
    found, _ = read(write_archive(tmp_path / "LEGI.tar.gz", {"x.xml": data}))
    assert found[LEGI[0].doc_id].extra["section"].startswith("Code du travail > Partie législative")


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_huge_header_is_not_read(tmp_path, kind):
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 1 << 20
    (tmp_path / "LEGI.tar.gz").write_bytes(gzip.compress(header.tobuf() + b"0" * header.size))
    with pytest.raises(ValueError, match="a header of 1,048,576 bytes"):
        removed_ids(tmp_path / "LEGI.tar.gz")


def test_headers_of_headers_without_end_are_one_line(tmp_path):
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 2
    (tmp_path / "LEGI.tar").write_bytes((header.tobuf() + b"a".ljust(512, b"\0")) * 2000)
    with pytest.raises(ValueError, match="the archive breaks off"):
        removed_ids(tmp_path / "LEGI.tar")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_not_followed(kind, tmp_path):
    path = tmp_path / "LEGI.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("../x/LEGIARTI1.xml")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
        member = tarfile.TarInfo("../../../tmp/LEGIARTI2.xml")  # nothing is unpacked: a path outside is only a name
        member.size = len(GOOD)
        archive.addfile(member, io.BytesIO(GOOD))
    found, bad = read(path)
    assert list(found) == [LEGI[0].doc_id]
    assert bad == ["LEGI.tar, LEGIARTI1.xml: a link or a device, not a file"]


def test_of_an_archive_that_is_cut_off_or_damaged_what_stands_before_is_read(tmp_path):
    whole = gzip.decompress(write_archive(tmp_path / "a.tar.gz", members(LEGI)).read_bytes())
    headers = [at for at in range(0, len(whole), 512) if whole[at : at + 5] == b"legi/"]
    for cut in (headers[5], headers[5] + 100, headers[5] + 600):
        (tmp_path / "a.tar.gz").write_bytes(gzip.compress(whole[:cut]))
        found, bad = read(tmp_path / "a.tar.gz")
        assert (len(found), len(bad)) == (5, 1)
        assert bad[0].startswith("a.tar.gz: the archive breaks off (ReadError: ")
    damaged = whole[: headers[5]] + b"x" * 512 + whole[headers[5] + 512 :]
    (tmp_path / "a.tar").write_bytes(damaged)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(damaged)[:-600])
    (tmp_path / "b.tar.gz").write_bytes(b"no archive at all")
    (tmp_path / "c.txt").write_text("un", "utf-8")
    found, bad = read(tmp_path)
    assert len(found) == 6
    assert sorted(line.split(" (")[0] for line in bad if "breaks off" in line) == [
        f"{name}: the archive breaks off" for name in ("a.tar.gz", "a.tar", "b.tar.gz")
    ]


def moved(file):
    return f"legi/global/non_vigueur/{file.doc_id}.xml"


@pytest.fixture
def increments(tmp_path):
    """Three archives of articles: the second changes one, removes one and moves one, the third gives one back."""
    second, third, fourth = LEGI[1:4]
    changed = article(36000001, {}, body="<p>Changé.</p>")
    gone = "\n".join(file.path.removesuffix(".xml") for file in (second, third, fourth))
    write_archive(tmp_path / "Freemium_legi_global_20250713-140000.tar.gz", members(LEGI[:5]))
    update = {"20250714/liste_suppression_legi.dat": f"{gone}\n".encode(), moved(third): third.xml.encode()}
    write_archive(tmp_path / "LEGI_20250714-210000.tar.gz", update | members([changed]))
    write_archive(tmp_path / "LEGI_20250715-210000.tar.gz", members([fourth]))
    return tmp_path


def test_a_later_archive_replaces_and_removes(increments):
    found, bad = read(increments)
    assert sorted(found) == [LEGI[at].doc_id for at in (0, 2, 3, 4)]
    assert found[LEGI[0].doc_id].content == "Changé."
    assert bad == [f"{increments.name}: 4 documents that a later archive replaces or removes"]


def test_ids_that_an_increment_withdraws_are_those_that_it_does_not_carry_elsewhere(increments):
    second, third, fourth = (LEGI[at].doc_id for at in (1, 2, 3))
    assert removed_ids(increments / "LEGI_20250714-210000.tar.gz") == [second, fourth]
    assert removed_ids(increments / "LEGI_20250715-210000.tar.gz") == []
    assert removed_ids(str(increments)) == [second]
    assert third not in removed_ids(increments)


@pytest.mark.parametrize(
    "line", ["juri/x/JURITEXT000007022836.xml", "JURITEXT000007022836", "./x/JURITEXT000007022836\r"]
)
def test_a_suppression_list_is_a_path_a_line(line, tmp_path):
    text = f"{line}\n\n../x/JURITEXT1\n/LEGITEXT000006072050/texte\nrien\n\xff".encode("latin-1")
    path = write_archive(tmp_path / "CASS_20260101-000000.tar.gz", {"20260101/liste_suppression_cass.dat": text})
    assert removed_ids(path) == ["JURITEXT000007022836"]


def test_an_unpacked_increment_removes_too_and_a_file_of_another_kind_removes_nothing(tmp_path):
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "unpacked" / "liste_suppression_legi.dat").write_text(LEGI[1].path, "utf-8")
    assert removed_ids(tmp_path / "unpacked") == [LEGI[1].doc_id]
    (tmp_path / "a.jsonl").write_text("{}", "utf-8")
    assert removed_ids(tmp_path / "a.jsonl") == []
    with pytest.raises(FileNotFoundError, match=r"no such file or folder: .*absent \(expected an archive of DILA"):
        removed_ids(tmp_path / "absent")


def test_the_suppression_list_of_a_damaged_archive_is_an_error(tmp_path):
    (tmp_path / "LEGI.tar.gz").write_bytes(b"rien")
    with pytest.raises(ValueError, match=r"LEGI\.tar\.gz: the archive breaks off"):
        removed_ids(tmp_path / "LEGI.tar.gz")


def test_memory_does_not_grow_with_the_files_of_an_archive(tmp_path):
    path = write_archive(tmp_path / "LEGI.tar", {f"legi/{at}.dat": b"x" for at in range(4_000)} | members(LEGI[:1]))
    records = module.read_dila([path])
    assert not isinstance(next(records), BadRecord)
    gc.collect()  # what other tests left
    assert sum(isinstance(held, tarfile.TarInfo) for held in gc.get_objects()) < 10
    assert isinstance(next(records), BadRecord)
