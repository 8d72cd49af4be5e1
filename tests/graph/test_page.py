"""A node's page shows every fact with its words and no unsupported claim, and runs nothing of what it shows."""

import re
from html import unescape
from importlib.resources import files

import pytest
from support.graph_cases import linked_library, with_answer, with_stated
from support.headless_browser import HeadlessBrowser
from support.html_pages import ATTACKS, Page

from legal_rag.graph import ExtractedEpisode, ExtractionResult, KnowledgeGraph, render_graph, view_graph
from legal_rag.graph.names import Named
from legal_rag.graph.page import PageQuotation, quote, treatment_in_french
from legal_rag.graph.types import EDGE_TYPES, NODE_TYPES

HOSTILE = [*ATTACKS, "Nom " * 400, "😀" * 90, "x" * 3000, '"l\'" & <b>', "\u202eegnarté\u2066 \u200f"]


def kinds_in(page):
    return [attributes["data-kind"] for _, attributes in page.tags if "data-kind" in attributes]


def names_in(html):
    return [unescape(name).replace("\xa0", " ") for name in re.findall(r'<bdi class="name">([^<]*)</bdi>', html)]


def hostile_graph(library, folder, attack):
    """Give a decision links to nodes of every type that bear a hostile name."""
    attack = attack.replace("\ud800", "")  # no column can hold it
    ends = [Named(f"x:{node_type} {attack}", node_type, attack) for node_type in NODE_TYPES]
    edges = [("SOC-2019", kind, end) for end, kind in zip(ends, EDGE_TYPES, strict=False)]
    return KnowledgeGraph(with_stated(library, folder, *edges, support="text", detail=attack))


def test_what_cites_and_what_is_cited_stands_by_year_the_latest_first(graph):
    html = render_graph(graph, "SOC-2019")
    assert "<h1><bdi>Cass.\xa0soc., 9\xa0janv.\xa02019, n°\xa017-11.111</bdi></h1>" in html
    assert {"Cass. soc., 23 nov. 2016, n° 15-12.345", "Cass. 2e civ., 8 avr. 2021, n° 19-25.640"} < set(names_in(html))
    assert sorted(kinds_in(Page(html))) == ["applies", "cites", "cites", "decided_by", "interprets stated", "overrules"]
    years = re.findall(r'<th scope="rowgroup" colspan="4">([^<]*)</th>', html)
    assert years == [*sorted(years[:-1], reverse=True), "Sans date"]
    assert {"2021", "2016"} < set(years)


def test_each_link_stands_with_its_words_and_what_a_model_said_is_labelled(graph):
    text = " ".join(Page(render_graph(graph, "SOC-2019")).text().split())
    assert "L'obligation de reclassement s'impose (Soc., 23 novembre 2016, pourvoi n° 15-12.345)." in text
    assert re.search(r"SOC-2019, caractères \d+-\d+ \(9 janv\. 2019\)", text)
    assert re.findall(r"<mark>([^<]*)</mark>", render_graph(graph, "SOC-2019")).count("15-12.345") == 1
    html = render_graph(graph, "SOC-2019")
    page = Page(html)
    assert [kind for kind in kinds_in(page) if "stated" in kind] == ["interprets stated"]
    assert "selon le modèle, non vérifié" in page.text()
    assert "Plan de vigilance" not in html


def test_treatment_is_said_in_french_and_a_page_of_many_nodes_is_bounded(graph):
    node = graph.find("SOC-2016")
    assert "Traitement : cité par 2 décisions." in " ".join(Page(render_graph(graph, node)).text().split())
    rulings = [edge._replace(type=kind) for edge in graph.citing(node) for kind in ("overrules", "upholds", "upholds")]
    assert treatment_in_french(node, rulings) == (
        "cassé, annulé ou infirmé par 2 décisions, maintenu par 4 décisions, cité par 2 décisions"
    )
    html = render_graph(graph, "article L. 1226-2 du code du travail", most=2)
    assert "2 décisions, textes et personnes sont montrés ; 1 autre ne l’est pas" in Page(html).text()
    assert [name.split()[-1] for name in names_in(html)] == ["17-11.111", "16/01234"]


def test_a_european_case_has_its_page_on_eur_lex(tiny_encoder, tmp_path):
    row = {"id": "D1", "title": "Décision", "content": "Le juge l'a dit (CJUE, 13 mai 2014, Google Spain, C-131/12)."}
    graph = KnowledgeGraph(linked_library(tmp_path, tiny_encoder, [row]))
    (address,) = (attrs["href"] for _, attrs in Page(render_graph(graph, "C-131/12")).tags if "href" in attrs)
    assert address == "https://eur-lex.europa.eu/legal-content/FR/TXT/?uri=CELEX:62012CJ0131"


def test_a_node_without_links_says_so_and_has_no_script(library, tmp_path):
    result = ExtractionResult([], [], [ExtractedEpisode("Noter", entities=("Plan de vigilance",))])
    page = render_graph(KnowledgeGraph(with_answer(library, tmp_path, result)), "Plan de vigilance")
    assert "Aucun texte de l’index ne lie ce nœud à un autre." in page
    assert "<script" not in page


def test_the_policy_lets_only_the_pages_own_script_and_style_through(graph, lets_through):
    html = render_graph(graph, "SOC-2019")
    lets_through(html, "".join(Page(html).scripts))


@pytest.mark.parametrize("attack", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_add_no_tag_and_no_handler(library, tmp_path, attack):
    tags = []
    for name, text in (("hostile", attack), ("plain", "Rien")):
        (tmp_path / name).mkdir()
        tags.append(Page(render_graph(hostile_graph(library, tmp_path / name, text), "SOC-2019")).tags)
    assert sorted(tag for tag, _ in tags[0]) == sorted(tag for tag, _ in tags[1])
    for _, attributes in tags[0]:
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "style", "srcdoc", "href")}


@pytest.mark.parametrize("attack", ATTACKS[:3])
def test_hostile_names_are_shown_as_they_are(library, tmp_path, attack):
    html = render_graph(hostile_graph(library, tmp_path, attack), "SOC-2019")
    assert Page(html).text().count(attack) >= 2 * len(NODE_TYPES)  # name, detail
    assert attack in names_in(html)


def test_no_name_turns_the_writing_or_fills_the_page(library, tmp_path):
    attack = "\u202eegnarté\u2066 \x1b[31m " + "W" * 5000
    html = render_graph(hostile_graph(library, tmp_path, attack), "SOC-2019")
    assert not re.findall("[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069]", html)
    assert not re.findall("W{241}", html)


def test_quotations_are_cut_at_words_and_say_so(graph):
    (edge,) = graph.neighbours("CIV-2021", types=("cites",), direction="out")[:1]
    assert quote(graph, edge._replace(doc_id="")) is None
    assert quote(graph, edge._replace(char_start=-1)) is None
    assert quote(graph, edge._replace(doc_id="GONE")) is None
    content = graph.library.document("SOC-2019").content
    start = content.index("PAR CES")
    found = quote(graph, edge._replace(doc_id="SOC-2019", char_start=start, char_end=start + 14))
    assert found.text == "PAR CES MOTIFS"
    assert found.before.startswith("…")
    assert found.after.endswith("Lyon.")
    assert found.whole == f"{found.before}PAR CES MOTIFS{found.after}"
    assert isinstance(found, PageQuotation)


def test_a_notebook_shows_the_page_in_a_closed_frame(graph):
    ((_, frame),) = [
        one for one in Page(view_graph(graph.library, "SOC-2019")._repr_html_()).tags if one[0] == "iframe"
    ]
    assert (frame["sandbox"], frame["title"]) == ("allow-scripts", "Graphe des décisions")
    assert frame["srcdoc"] == render_graph(graph, "SOC-2019")


def test_the_script_never_reads_text_as_markup():
    script = files("legal_rag.graph").joinpath("templates", "graph.js").read_text("utf-8")
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(", script)


@pytest.fixture
def browser(tmp_path):
    with HeadlessBrowser(tmp_path / "profile") as opened:
        yield opened


def opened(browser, tmp_path, html, width=1280):
    (tmp_path / "page.html").write_text(html, "utf-8")
    browser.resize(width, 850)
    browser.open((tmp_path / "page.html").as_uri())


def test_filters_hide_links_and_years_without_any(browser, tmp_path, graph):
    opened(browser, tmp_path, render_graph(graph, "SOC-2019"))
    assert browser.text("#status") == "6 liens."
    browser.click("input[name=kind][value='interprets stated']")
    assert browser.text("#status") == "5 liens sur 6 répondent aux filtres."
    browser.type_into("#search", "15-12.345 reclassement rejet")
    browser.run("document.querySelector('#search').dispatchEvent(new Event('input', {bubbles: true}))")
    browser.wait_for("document.querySelector('#status').textContent === '1 lien sur 6 répond aux filtres.'")
    assert browser.texts(".year") == ["2016"]
    browser.run("document.querySelector('#filters').reset()")
    browser.wait_for("document.querySelector('#status').textContent === '6 liens.'")
    assert (browser.messages, browser.alerts) == ([], [])
    assert [one for one in browser.requests if not one.startswith("file:")] == []


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_names_run_nothing_and_break_no_layout(browser, tmp_path, library, width):
    for number, attack in enumerate(HOSTILE):
        (tmp_path / str(number)).mkdir()
        opened(
            browser, tmp_path, render_graph(hostile_graph(library, tmp_path / str(number), attack), "SOC-2019"), width
        )
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert (browser.messages, browser.alerts) == ([], [])


def test_on_paper_and_without_scripts_the_table_is_whole(browser, tmp_path, graph):
    opened(browser, tmp_path, render_graph(graph, "SOC-2019"))
    browser.medium("print")
    assert browser.texts("#filters") == []
    browser.medium("screen")
    browser.run_scripts(allowed=False)
    browser.open((tmp_path / "page.html").as_uri())
    assert (len(browser.texts("tr[data-kind]")), browser.texts("#filters")) == (6, [])


def test_in_a_notebooks_frame_the_page_works(browser, tmp_path, graph):
    opened(
        browser, tmp_path, f"<!DOCTYPE html><meta charset=utf-8>{view_graph(graph.library, 'SOC-2019')._repr_html_()}"
    )
    assert browser.run_in_frame("document.querySelector('#status').textContent") == "6 liens."
    assert (browser.messages, browser.alerts) == ([], [])
