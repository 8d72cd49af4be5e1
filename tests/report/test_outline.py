"""A document beside its outline says in words who speaks, leads to every section, and runs nothing of its text."""

import json
import re
from types import SimpleNamespace

import pytest
from support.headless_browser import HeadlessBrowser
from support.html_pages import ATTACKS, Page

from legal_rag.agent import Prediction
from legal_rag.agent.prediction import Passage
from legal_rag.citations import Citation, format_marker
from legal_rag.corpus.documents import Document
from legal_rag.law.tree import Paragraph, TreeNode
from legal_rag.library.outlines import Outline, make_outline
from legal_rag.report import render_answer, render_outline, show_outline
from legal_rag.report.outline import TextMark, list_sections, shares_in_french, view_document

QUASHED = "Pour débouter le salarié, l'arrêt retient que l'employeur n'avait pas à chercher un autre poste."
ANSWER = "En statuant ainsi, alors que l'obligation de reclassement s'imposait, la cour d'appel a violé ce texte."
CONTENT = f"""COUR DE CASSATION

Faits et procédure

1. Selon l'arrêt attaqué, M. Lebrun, mécanicien, a été licencié le 4 mai 2016.

Examen du moyen

Énoncé du moyen

2. M. Lebrun fait grief à l'arrêt de rejeter sa demande, alors que l'employeur doit chercher un autre emploi.

Réponse de la Cour

3. Aux termes de l'article L. 1226-2 du code du travail, l'employeur propose un autre emploi au salarié inapte.

4. {QUASHED}

5. {ANSWER}

PAR CES MOTIFS, la Cour :

CASSE ET ANNULE l'arrêt rendu le 4 avril 2017 par la cour d'appel de Lyon."""
VOICES = ("la juridiction", "argument d'une partie", "décision attaquée, censurée sur ce point", "texte cité")


@pytest.fixture(scope="module")
def library(index_of):
    rows = [{"id": "A", "content": CONTENT, "title": "Cass. soc."}, {"id": "B", "content": "Un bail simple."}]
    return index_of(rows)


def cite(quote, status="verified"):
    start = CONTENT.index(quote)
    return Citation("A", start, start + len(quote), quote, status)


def answered(*citations, evidence=()):
    markers = "".join(format_marker(*one[:3]) for one in citations)
    settings = {"mode": "evidence", "status": "answered", "citations": list(citations), "evidence": list(evidence)}
    return Prediction(question="Quel emploi ?", answer=f"Voici {markers}.", **settings)


def view(content, outline=None, cited=()):
    document = Document(id="D", content=content)
    return view_document(document, outline or make_outline(document), "d1", cited)


def tree(children, length, **changed):
    return TreeNode("0000", "", 0, 0, length, (0, 0), "document", tuple(children), **changed)


def section(number, level, start, end, children=()):
    return TreeNode(f"{number:04d}", f"Titre {number}", level, start, end, (start, start), "heading", tuple(children))


def links_and_places(page):
    links = {attrs["href"] for tag, attrs in Page(page).tags if tag == "a" and "href" in attrs}
    return links, {f"#{attrs['id']}" for _, attrs in Page(page).tags if "id" in attrs}


def test_a_page_says_in_words_who_speaks_and_quashed_reasoning_leads_to_the_courts_answer(library):
    text = Page(render_outline(library, "A")).text()
    for voice in VOICES:
        assert text.count(voice) >= 2  # in the legend and in the text
    assert "raisonnement que la juridiction rejette ensuite" in text
    assert "ce qu’ont retenu les juges" not in text  # of nobody who speaks in it
    page = render_outline(library, "A")
    (answer,) = re.findall(r'href="(#[^"]*)">ce que la juridiction répond</a>', page)
    stretch = page[page.index(f'id="{answer[1:]}"') :]
    assert ANSWER.replace("'", "&#39;") in stretch[: stretch.index("</div>")]
    assert "rapporte un raisonnement censuré" in page


def test_every_link_of_a_page_has_its_place(library):
    for page in (render_outline(library, "A"), render_answer(answered(cite(QUASHED), cite(ANSWER)), library)):
        links, places = links_and_places(page)
        assert len(links) > 8
        assert links <= places


def test_a_page_shows_the_whole_text_once_and_one_of_no_decision_has_neither_speakers_nor_legend(library):
    shown = re.findall(r'<div class="words">(.*?)</div>', render_outline(library, "A"), re.DOTALL)
    assert " ".join(Page(one).text() for one in shown).split() == CONTENT.split()
    page = render_outline(library, "B")
    assert "Un bail simple." in page
    assert [attrs for tag, attrs in Page(page).tags if tag == "dl" or "speaker" in attrs.get("class", "")] == []


def hostile_page(attack):
    """Render a text, a title, an id and an outline that say nothing but an attack."""
    text = f"{attack}\n\n{attack}"
    nodes = [TreeNode(attack, attack, 1, 0, len(text), (0, len(attack)), "heading", (), attack)]
    outline = Outline(tree(nodes, len(text)), [Paragraph(0, len(attack), "reasons", "court", True)], attack)
    document = Document(id=attack, content=text, title=attack, decision_date=attack)
    return render_outline(SimpleNamespace(document=lambda _: document, stored_outline=lambda _: outline), attack)


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_texts_and_titles_add_no_tag_and_no_handler(attack):
    tags, plain = Page(hostile_page(attack)).tags, Page(hostile_page("Rien")).tags
    assert [tag for tag, _ in tags] == [tag for tag, _ in plain]
    for _, attributes in tags:
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "style", "srcdoc")}
        assert attributes.get("href", "#d1-").startswith("#d1-")


@pytest.mark.parametrize("attack", ATTACKS[:10])
def test_hostile_texts_are_shown_as_they_are(attack):
    assert Page(hostile_page(attack)).text().count(attack) == 7  # window, heading, id, description, outline, text twice


def test_an_outline_of_any_depth_is_nested_eight_deep_and_a_text_of_absurd_length_cut(monkeypatch):
    node = ()
    for level in range(400, 0, -1):
        node = (section(level, level, 0, 15, node),)
    shown = view("Un bail simple.", Outline(tree(node, 15), []))
    depth, level = 0, shown.sections
    while level:
        depth, level = depth + 1, level[-1].sections
    assert depth == 8
    assert len(shown.anchors) == 400
    nodes = [section(number, 1, number, number + 1) for number in range(5000)]
    monkeypatch.setattr("legal_rag.report.outline.MAX_CHARS", 4000)
    shown = view("x" * 5000, Outline(tree(nodes, 5000), []))
    assert (shown.chars_left_out, shown.sections_left_out, len(shown.anchors)) == (1000, 1000, 3000)


@pytest.mark.parametrize(
    "passages",
    [
        [Paragraph(-5, 400, "reasons", "court", False)],
        [Paragraph(9, 4, "reasons", "court", False), Paragraph(2, 6, "reasons", "party", True)],
        [Paragraph(0, 8, "reasons", "court", False), Paragraph(3, 12, "reasons", "party", False)],
        [Paragraph(900, 950, "reasons", "text", False)],
    ],
)  # fmt: skip
def test_passages_outside_their_text_lose_and_repeat_nothing(passages):
    nodes = [section(1, 1, -3, 4), section(2, 1, 4, 900)]
    shown = view("Un bail simple.", Outline(tree(nodes, 15), passages), [TextMark("place-1", 3, 700, cited=1)])
    assert "".join(run.text for one in shown.stretches for run in one.runs) == "Un bail simple."
    assert shown.anchors == {"d1-1", "d1-2", "place-1"}


def test_sections_count_who_speaks_in_them():
    passages = [Paragraph(0, 10, "reasons", "court", False), Paragraph(12, 42, "reasons", "lower_court", True)]
    nodes = [section(1, 1, 0, 32), section(2, 1, 32, 50), section(3, 1, 42, 50)]
    one, two, three = list_sections(Outline(tree(nodes, 50), passages))
    assert (one.spoken, two.spoken, three.spoken) == ({"censured": 20, "court": 10}, {"censured": 10}, {})
    assert shares_in_french(one.spoken) == "décision attaquée, censurée sur ce point 67 % · la juridiction 33 %"


def test_an_answers_page_shows_the_court_beside_what_it_quashes(library):
    start, end = CONTENT.index("4. Pour"), CONTENT.index("5. En")
    found = Passage("A", "A-0", start, end, CONTENT[start:end], 1.0, "Cass. soc.", "")
    page = render_answer(
        answered(cite(QUASHED)._replace(censured=True, speaker="lower_court"), evidence=[found]), library
    )
    assert page.count("La juridiction répond</span> « 5. En statuant ainsi") == 1
    assert "décision attaquée, censurée sur ce point" in page[page.index('id="evidence"') : page.index('id="voices"')]
    label, mark = re.search(r'<span class="note" id="place-1">(.*?)<mark>(.*?)</mark>', page, re.DOTALL).groups()
    assert "texte conforme" in label
    assert mark == QUASHED.replace("'", "&#39;")


def test_a_citation_of_a_text_that_changed_or_is_gone_is_shown_alone_and_says_so(library):
    page = render_answer(answered(cite(QUASHED)._replace(quote="Un autre texte"), cite(ANSWER)), library)
    links, places = links_and_places(page)
    assert "#place-1" not in links | places
    assert {"#note-1", "#place-2"} <= places
    assert 'Un autre texte</mark></blockquote><p class="quiet">Ce passage n’est plus dans le texte' in page
    page = render_answer(answered(cite(QUASHED)._replace(doc_id="GONE")), library)
    assert "Extraits : cette page n’a pas le texte entier de la décision." in page
    assert "#place-1" in links_and_places(page)[1]


def test_an_answers_page_bears_few_texts_and_says_so(library, monkeypatch):
    monkeypatch.setattr("legal_rag.report.page.MAX_TEXTS", 1)
    evidence = [Passage("B", "B-0", 3, 7, "bail", 1.0, "", "")]
    page = render_answer(answered(cite(ANSWER), evidence=evidence), library)
    assert page.count("Extraits : cette page") == 1
    assert "PAR CES MOTIFS" in page
    assert "Un bail simple." not in page


def test_each_passage_stands_once_in_an_answers_page(library):
    start = CONTENT.index(ANSWER)
    found = Passage("A", "A-0", start - 50, start + 90, CONTENT[start - 50 : start + 90], 1.0, "Cass. soc.", "")
    for corpus in (library, None):
        text = Page(render_answer(answered(cite(ANSWER), evidence=[found]), corpus)).text()
        assert text.count(ANSWER) == 1


def test_a_notebook_shows_the_outline_in_a_closed_frame_and_a_terminal_prints_it(library, monkeypatch, capsys):
    assert show_outline(library.path, "A") is None
    printed = capsys.readouterr().out
    assert "Motifs" in printed
    assert "[décision attaquée, censurée sur ce point 100 %]" in printed
    monkeypatch.setattr("legal_rag.report.outline.in_notebook", lambda: True)
    ((tag, attributes),) = [one for one in Page(show_outline(library, "A")._repr_html_()).tags if one[0] != "div"]
    assert (tag, attributes["sandbox"], attributes["title"]) == ("iframe", "allow-scripts", "Plan et texte")
    assert attributes["srcdoc"] == render_outline(library, "A")


def test_lookup_prints_an_outline_or_writes_its_page(library, said, refused, tmp_path):
    place = ["--index-folder", str(library.path.parent), "--index-name", library.path.name]
    assert "Dispositif" in said("lookup", "A", "--outline", *place)
    assert said("lookup", "A", "--html", tmp_path / "a.html", *place) == ""
    assert (tmp_path / "a.html").read_text("utf-8") == render_outline(library, "A")
    sections = json.loads(said("lookup", "A", "--outline", "--json", *place))["sections"]
    of_kind = {one["kind"]: one for one in sections}
    assert of_kind["reasons"]["spoken"].keys() == {"court", "party", "censured", "text"}
    assert CONTENT[of_kind["ruling"]["char_start"] :].startswith("PAR CES MOTIFS")
    assert "no folder" in refused("lookup", "A", "--html", tmp_path / "none" / "a.html", *place)
    assert "no document 'ABSENT'" in refused("lookup", "ABSENT", "--outline", *place)


def test_on_a_phone_and_in_a_notebooks_frame_links_lead_to_their_places(browser, library, tmp_path, monkeypatch):
    monkeypatch.setattr("legal_rag.report.outline.in_notebook", lambda: True)
    page, host = tmp_path / "page.html", tmp_path / "host.html"
    page.write_text(render_answer(answered(cite(QUASHED)), library), "utf-8")
    host.write_text(f"<!DOCTYPE html><meta charset=utf-8>{show_outline(library, 'A')._repr_html_()}", "utf-8")
    browser.forget()
    browser.resize(390, 700)
    browser.open(page.as_uri())
    browser.click("#answer .cite")
    browser.wait_for("document.activeElement.id === 'place-1' && document.querySelector('#d1').open")
    assert browser.run("document.documentElement.scrollWidth <= 390")
    assert "texte conforme" in browser.text(".reached")
    browser.open(host.as_uri())
    entry = "[...document.querySelectorAll('.outline a.place')].at(-1)"
    reached = browser.run_in_frame(f"{entry}.click(); document.activeElement.id === {entry}.hash.slice(1)")
    assert reached
    assert "PAR CES MOTIFS" in browser.run_in_frame("document.querySelector('.reached').innerText")
    assert (browser.messages, browser.alerts) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_a_decision_of_438_000_characters_opens_and_shows_a_place_without_delay(tmp_path, width):
    text = "\n\n".join(f"{n}. {QUASHED} {ANSWER}" for n in range(2200))[:438_000]
    document = Document(id="A", content=text, title="Une très longue décision")
    outline = make_outline(document)
    corpus = SimpleNamespace(document=lambda _: document, stored_outline=lambda _: outline)
    cited = Citation("A", 300_000, 300_200, text[300_000:300_200], "verified")
    page = tmp_path / "page.html"
    page.write_text(render_answer(answered(cited), corpus), "utf-8")
    drawn = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    with HeadlessBrowser(tmp_path / "profile") as browser:
        browser.resize(width, 850)
        browser.open(page.as_uri())
        browser.run(drawn)
        opened = browser.thread_seconds()
        browser.run(f"document.querySelector('#ref-1').click(); {drawn}")
        browser.wait_for(
            "(({top}) => top > 0 && top < 400)(document.querySelector('#place-1').getBoundingClientRect())"
        )
        assert (opened < 2, browser.thread_seconds() - opened < 1) == (True, True)
