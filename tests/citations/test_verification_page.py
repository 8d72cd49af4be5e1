"""What a lawyer sees of a verification: the page, the lines of the terminal, the comments, the command's end."""

import json
import re
import shutil
import subprocess
import sys
import time

import docx
import pytest
from support.headless_browser import HeadlessBrowser
from support.html_pages import ATTACKS, Page

from legal_rag.citations import Correction, Nearest, Reference, Verification, format_verification, render_verification
from legal_rag.citations.page import MAX_SHOWN, comment_of
from legal_rag.citations.verdicts import STATUSES, CitedSource, ToRead
from legal_rag.cli import main
from legal_rag.indexer import IndexConfig, build_index
from legal_rag.law.citation import Link

LIFTED = "https://www.legifrance.gouv.fr/juri/id/JURITEXT1"
SOURCE = CitedSource(
    "decisions",
    "JURITEXT1",
    "Cass. soc., 9 janv. 2018, n° 16-86.735, publié",
    "Cour de cassation",
    "2018-01-09",
    "Rejet",
    "publié",
    (Link("Légifrance", LIFTED), Link("Judilibre", "https://www.courdecassation.fr/decision/1")),
)
QUASHED = Nearest("JURITEXT2", "Cass. ass. plén., 12 mars 2019, n° 18-11.111", "cassé par")
NOT_READ = "La page 2 est une image : elle n'a pas été lue."


def verification(*references, text=None, **more):
    """Put references one after another in a text, a paragraph each."""
    placed, start = [], 0
    for number, (words, status, fields) in enumerate(references, start=1):
        given = {"kind": "decision", "place": f"note {number}", "explanation": f"Explication {number}.", **fields}
        placed.append(Reference(start=start, end=start + len(words), text=words, status=status, **given))
        start += len(words) + 2
    whole = "\n\n".join(words for words, _, _ in references) if text is None else text
    return Verification(whole, tuple(placed), **more)


def run(*arguments):
    return main([*map(str, arguments)])


def of(status, words="Cass. soc., 9 janv. 2018", **fields):
    return words, status, fields


def shown(*references, **more):
    return " ".join(Page(render_verification(verification(*references, **more))).text().split())


def test_what_is_wrong_and_absent_is_listed_first_each_linked_to_its_place_in_the_text():
    page = render_verification(verification(*(of(status) for status in reversed(STATUSES))))
    assert re.findall(r"<summary><h2>([^<]*)</h2>", page) == [
        "Faux (1)",
        "Absent de l&#39;index (1)",
        "Ambigu (1)",
        "Non lu (1)",
        "Hors du champ (1)",
    ]
    head, body = page.split("</header>")
    linked = re.findall(r'href="#(place-\d)"', head)
    assert linked == ["place-6", "place-5", "place-4", "place-3", "place-2"]
    assert all(f'id="{place}"' in body for place in linked)


def test_a_note_says_what_was_compared_who_speaks_what_became_of_it_and_where_to_read_it():
    note = of(
        "confirmed",
        "« le salarié peut en demander la nullité »",
        kind="quotation",
        place="page 3, note 12",
        checked=("words", "court"),
        source=SOURCE,
        char_start=1200,
        char_end=1240,
        around=("sous la menace d'une sanction, ", " de la rupture"),
        said_by="le moyen du demandeur",
        fate=(QUASHED,),
        supports="La convention est nulle.",
        to_read=(ToRead(1500, 1530, "La Cour casse l'arrêt attaqué.", "la Cour"),),
    )
    text = shown(note)
    for words in (
        "✓ confirmé, cassé par Cass. ass. plén., 12 mars 2019, n° 18-11.111 citation, page 3, note 12",
        "n° 16-86.735, publié Légifrance Judilibre",
        "Comparé : texte cité, juridiction.",
        "…sous la menace d'une sanction, le salarié peut en demander la nullité de la rupture…",
        "Qui parle : le moyen du demandeur.",
        "Cour de cassation, Rejet, JURITEXT1, decisions, caractères 1 200 à 1 240",
        "À lire Le texte l'invoque pour : La convention est nulle. la Cour : « La Cour casse l'arrêt attaqué. »",
        "Suivi d'une autre décision (1)",
    ):
        assert words in text
    page = render_verification(verification(note))
    assert '<details class="to-read">' in page
    assert f'href="{LIFTED}"' in page


def test_changed_words_are_named_and_what_the_source_lacks_altogether_is_not():
    fixes = (("words", "résolution", "nullité"), ("words", "ne", ""), ("words", "", "pas"))
    words = "« il ne peut demander la résolution »"
    changed = of("wrong", words, corrections=tuple(Correction(*fix) for fix in fixes))
    line = "« résolution » au lieu de « nullité » ; « ne » en trop ; « pas » manque."
    assert line in format_verification(verification(changed))
    missing = of("wrong", words, corrections=(Correction("words", words[2:-2], ""),))
    assert "— Explication 1." in format_verification(verification(missing))


def test_what_was_not_read_stands_above_all_else_and_nothing_is_called_complete():
    page = render_verification(verification(of("confirmed"), unread=(NOT_READ,), notices=("Pages sur deux colonnes.",)))
    text = Page(page).text()
    assert page.index("n&#39;a pas été lue.") < page.index('<dl class="counts">') < page.index("deux colonnes")
    assert "Tout n'a pas été lu ou vérifié" in text
    assert "compl" not in text.casefold()
    assert "Tout n'a pas été lu" not in shown(of("confirmed"))


@pytest.mark.parametrize(
    ("unread", "line"),
    [
        ((), "Aucune référence trouvée dans le texte, lu en entier."),
        ((NOT_READ,), "Aucune référence trouvée dans ce qui a été lu."),
    ],
)
def test_a_text_without_references_says_how_much_of_it_was_read(unread, line):
    empty = verification(text="Rien.", unread=unread)
    assert format_verification(empty) == "\n".join([*(f"⚠ {sentence}" for sentence in unread), line])
    assert line in shown(text="Rien.", unread=unread)


def test_the_terminal_has_a_line_a_reference_the_wrong_ones_first_then_what_was_not_read_then_the_counts():
    near = (Nearest("J3", "Cass. soc., 10 janv. 2018", "un chiffre d'écart"),)
    lines = format_verification(
        verification(
            of("confirmed", source=SOURCE, fate=(QUASHED,), said_by="la Cour"),
            of("absent", "n° 16-86.736\x1b[31m", nearest=near),
            of("wrong", "Cass. com., 9 janv. 2018"),
            notices=("Pages sur deux colonnes.",),
            unread=(NOT_READ,),
        )
    ).splitlines()
    assert lines == [
        "note 3 : ✗ faux : Cass. com., 9 janv. 2018 — Explication 3.",
        "note 2 : ? absent de l'index : n° 16-86.736\ufffd[31m — Explication 2. "
        "Proche : Cass. soc., 10 janv. 2018 (un chiffre d'écart).",
        f"note 1 : ✓ confirmé, cassé par {QUASHED.title} : Cass. soc., 9 janv. 2018 [{SOURCE.title}] — Explication 1. "
        "Qui parle : la Cour.",
        "Pages sur deux colonnes.",
        f"⚠ {NOT_READ}",
        "3 références : 1 faux, 1 absent de l'index, 1 confirmé.",
    ]


def test_a_comment_says_the_status_what_is_right_and_the_source_with_its_address():
    (reference,) = verification(of("wrong", source=SOURCE)).references
    assert comment_of(reference) == f"✗ faux — Explication 1.\n{SOURCE.title} {LIFTED}"


def test_a_notebook_shows_the_counts_what_was_not_read_and_a_table_of_what_is_not_confirmed():
    checked = verification(of("absent"), of("absent"), of("wrong", "<b>n° 1</b>"), unread=(NOT_READ,))
    page = Page(checked._repr_html_())
    assert page.text().startswith(f"\n{NOT_READ}\n1 faux, 2 absents de l'index")
    assert re.findall("note .", page.text()) == ["note 3", "note 1", "note 2"]
    assert "b" not in [tag for tag, _ in page.tags]


def test_the_page_runs_nothing_of_what_it_shows():
    for attack in (attack.replace("\ud800", "") for attack in ATTACKS):
        source = SOURCE._replace(title=attack, library=attack, court=attack)
        fields = dict.fromkeys(("place", "explanation", "said_by", "supports"), attack)
        fields |= {"source": source, "around": (attack, attack), "nearest": (Nearest("x", attack, attack),)}
        fields |= {"corrections": (Correction("words", "x", attack),), "to_read": (ToRead(0, 1, attack, attack),)}
        checked = verification(of("wrong", attack, **fields), notices=(attack,), unread=(attack,))
        tags = [tag for tag, _ in Page(render_verification(checked, attack)).tags]
        assert not {"script", "img", "svg", "iframe", "br"} & set(tags)


def test_a_long_text_renders_within_its_bounds():
    fields = {"source": SOURCE, "around": ("avant " * 20, " après" * 20), "to_read": (ToRead(0, 1, "mots " * 60),) * 3}
    brief = [of(STATUSES[n % 6], "Cass. soc., 9 janv. 2018, " + "mots " * 80, **fields) for n in range(278)]
    started = time.process_time()
    render_verification(verification(*brief))
    assert time.process_time() - started < 2
    page = render_verification(verification(of("wrong"), text="mot " * MAX_SHOWN))
    assert len(page) < MAX_SHOWN + 30_000
    assert "derniers caractères du texte ne sont pas montrés" in page


def test_the_policy_lets_only_the_pages_own_style_through(lets_through):
    lets_through(render_verification(verification(of("wrong"))), '"use strict";\n{\n}')


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_links_lead_to_the_text_and_back_and_nothing_is_wider_than_the_window(
    browser: HeadlessBrowser, tmp_path, width
):
    long = of("wrong", "x" * 3000, source=SOURCE, fate=(QUASHED,), explanation="y" * 2000)
    page = tmp_path / "page.html"
    page.write_text(render_verification(verification(long, of("absent")), "z" * 300), "utf-8")
    browser.resize(width, 850)
    browser.open(page.as_uri())
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    browser.click(".group li[value='2'] a")
    assert browser.run("document.querySelector(':target').id") == "place-2"
    browser.click("#place-2")
    assert browser.run("document.querySelector(':target').id") == "note-2"
    assert (browser.messages, browser.requests[-1].partition("#")[0]) == ([], page.as_uri())


@pytest.mark.slow
def test_a_printed_page_has_its_folded_lists(browser: HeadlessBrowser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(render_verification(verification(*[of("unread", to_read=(ToRead(0, 1, "mot"),))] * 13)), "utf-8")
    browser.open(page.as_uri())
    assert browser.texts(".group li") == []
    browser.medium("print")
    assert len(browser.texts(".group li")) == 13
    assert browser.texts(".to-read") == []
    browser.medium("")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make two Libraries: a decision, and an article."""
    folder = tmp_path_factory.mktemp("indexes")
    decision = {
        "id": "J1",
        "number": "16-86.735",
        "decision_date": "2018-01-09",
        "juridiction": "Cour de cassation",
        "formation": "Chambre sociale",
        "content": "Pourvoi n° 16-86.735\n\nLa Cour rejette le pourvoi.",
    }
    article = {"id": "L11", "title": "Code du travail, article L1237-11", "content": "La rupture est libre."}
    for name, row in (("decisions", decision), ("codes", article)):
        build_index(IndexConfig(source=[row], index_folder=str(folder), index_name=name, n_bits=0))
    return folder


RIGHT = "Cass. soc., 9 janv. 2018, n° 16-86.735"
ARTICLE = "l'article L. 1237-11 du code du travail"


@pytest.mark.parametrize(
    ("text", "names", "status"),
    [
        (RIGHT, ["decisions"], 0),
        ("Rien.", ["decisions"], 0),
        (f"{RIGHT} et {ARTICLE}", ["decisions", "codes"], 0),
        ("Cass. com., 9 janv. 2018, n° 16-86.735", ["decisions"], 1),
        ("Cass. soc., 9 janv. 2018, n° 16-86.999", ["decisions", "codes"], 1),
        (f"{RIGHT} et {ARTICLE}", ["decisions"], 3),
    ],
)
def test_the_command_ends_with_the_status_and_writes_json_and_a_page(folder, tmp_path, capfd, text, names, status):
    (tmp_path / "a.md").write_text(text, "utf-8")
    options = ["--index-folder", folder, *(part for name in names for part in ("--index-name", name))]
    assert run("verify", tmp_path / "a.md", *options, "--json", "--html", tmp_path / "a.html") == status
    value = json.loads(capfd.readouterr().out)
    assert (value["status"], value["complete"], value["text"]) == (status, True, text)
    for reference in value["references"]:
        assert value["text"][reference["start"] : reference["end"]] == reference["text"]
    assert text.split(",")[0] in Page((tmp_path / "a.html").read_text("utf-8")).text()


@pytest.mark.parametrize(
    ("file", "names", "line"),
    [
        ("absent.md", ["decisions"], "absent.md"),
        ("blank.md", ["decisions"], "no text"),
        ("a.md", ["decisions", "none"], "none"),
        ("a.md", [], "--index-name"),
    ],
)
def test_the_command_says_in_one_line_why_it_cannot_check(folder, tmp_path, capfd, monkeypatch, file, names, line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text(RIGHT, "utf-8")
    (tmp_path / "blank.md").write_text(" \n", "utf-8")
    options = [part for name in names for part in ("--index-name", name)] or ["--index-name"]
    assert run("verify", file, "--index-folder", folder, *options) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n"), err.startswith("legal-rag: ")) == ("", 1, True)
    assert line in err


def test_a_word_document_is_given_back_with_a_comment_at_each_reference(folder, tmp_path, capfd):
    word = docx.Document()
    word.add_paragraph(f"Voir {RIGHT}.")
    word.add_paragraph(f"Voir Cass. com., 9 janv. 2018, n° 16-86.735, et {ARTICLE}.")
    word.save(str(tmp_path / "a.docx"))
    options = ["--index-folder", folder, "--index-name", "decisions", "--docx", tmp_path / "b.docx"]
    assert run("verify", tmp_path / "a.docx", *options) == 1
    commented = docx.Document(str(tmp_path / "b.docx"))
    assert [paragraph.text for paragraph in commented.paragraphs] == [paragraph.text for paragraph in word.paragraphs]
    comments = [comment.text for comment in commented.comments]
    assert [text.split(" — ")[0] for text in comments] == ["✓ confirmé", "✗ faux", "∅ hors du champ"]
    assert "la décision : « Cour de cassation, Chambre sociale »." in comments[1]
    (tmp_path / "a.md").write_text(RIGHT, "utf-8")
    assert run("verify", tmp_path / "a.md", *options) == 2
    assert "--docx goes with a DOCX, not with " in capfd.readouterr().err


def test_a_settings_file_names_one_library_or_several(folder, tmp_path, capfd):
    (tmp_path / "a.md").write_text(f"{RIGHT} et {ARTICLE}", "utf-8")
    for names, status in (('"decisions"', 3), ('["decisions", "codes"]', 0)):
        (tmp_path / "s.toml").write_text(f"[verify]\nindex_name = {names}", "utf-8")
        assert run("--config", tmp_path / "s.toml", "verify", tmp_path / "a.md", "--index-folder", folder) == status


def test_a_damaged_library_is_named_whichever_it_is(folder, tmp_path, capfd):
    damaged = tmp_path / "folder"
    shutil.copytree(folder, damaged)
    (damaged / "codes" / "corpus.sqlite").write_bytes(b"no database")
    (tmp_path / "a.md").write_text(ARTICLE, "utf-8")
    options = ["--index-folder", damaged, "--index-name", "codes", "--index-name", "decisions"]
    assert run("verify", tmp_path / "a.md", *options) == 2
    assert "codes" in capfd.readouterr().err


@pytest.mark.slow
def test_the_installed_command_checks_a_file_without_loading_an_encoder(folder, tmp_path):
    (tmp_path / "a.md").write_text(f"{RIGHT} ; Cass. soc., 10 janv. 2018, n° 16-86.735", "utf-8")
    code = (
        "import sys\nfrom legal_rag.cli import main\nstatus = main(sys.argv[1:])\n"
        "assert not {'torch', 'openvino', 'dspy', 'transformers'} & set(sys.modules)\nsys.exit(status)"
    )
    options = ["--index-folder", str(folder), "--index-name", "decisions"]
    command = [sys.executable, "-c", code, "verify", str(tmp_path / "a.md"), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert [line.split(" : ")[1] for line in done.stdout.splitlines()[:2]] == ["✗ faux", "✓ confirmé"]
