"""A node's page shows every fact with its words, draws no unsupported claim, and runs nothing of what it shows."""

import re
from importlib.resources import files
from itertools import combinations

import pytest
from support.graph_cases import with_answer, with_stated
from support.headless_browser import HeadlessBrowser
from support.html_pages import ATTACKS, Page

from legal_rag.graph import ExtractedEpisode, ExtractionResult, KnowledgeGraph, render_graph, view_graph
from legal_rag.graph.drawing import HEIGHT, OTHERS, WIDTH, Placed, draw
from legal_rag.graph.names import Named
from legal_rag.graph.page import D3, Quotation, quote, treatment_in_french
from legal_rag.graph.types import EDGE_TYPES, NODE_TYPES

HOSTILE = [*ATTACKS, "Nom " * 400, "😀" * 90, "x" * 3000, '"l\'" & <b>', "\u202eegnarté\u2066 \u200f"]


def of_class(page, name, tag=None):
    named = [(one, attrs) for one, attrs in page.tags if name in (attrs.get("class") or "").split()]
    return [attrs for one, attrs in named if tag in (None, one)]


def drawn(page):
    return [attrs["aria-label"].replace("\xa0", " ") for attrs in of_class(page, "node", "g")]


def hostile_graph(library, folder, attack):
    """Give a decision links to nodes of every type that bear a hostile name, and a hostile episode."""
    attack = attack.replace("\ud800", "")  # no column can hold it
    ends = [Named(f"x:{node_type} {attack}", node_type, attack) for node_type in NODE_TYPES]
    edges = [("SOC-2019", kind, end) for end, kind in zip(ends, EDGE_TYPES, strict=False)]
    (folder / "plain").mkdir()
    plain = with_answer(library, folder / "plain", ExtractionResult([], [], [hostile_episode(attack)]))
    return KnowledgeGraph(with_stated(plain, folder, *edges, support="text", detail=attack))


def hostile_episode(attack):
    return ExtractedEpisode(attack, attack, attack, (attack,), ("SOC-2019",))


def test_what_cites_and_what_is_cited_is_drawn_around_the_node(graph):
    page = Page(render_graph(graph, "SOC-2019"))
    assert drawn(page)[0] == "Cass. soc., 9 janv. 2019, n° 17-11.111"
    assert {"Cass. soc., 23 nov. 2016, n° 15-12.345", "Cass. 2e civ., 8 avr. 2021, n° 19-25.640"} < set(drawn(page))
    kinds = [attrs["data-kind"] for attrs in of_class(page, "link", "path") if "data-kind" in attrs]
    assert sorted(kinds) == ["applies", "cites", "cites", "decided_by", "interprets stated", "overrules"]


def test_each_link_stands_with_its_words_and_what_a_model_said_is_dashed_and_labelled(graph):
    text = " ".join(Page(render_graph(graph, "SOC-2019")).text().split())
    assert "L'obligation de reclassement s'impose (Soc., 23 novembre 2016, pourvoi n° 15-12.345)." in text
    assert re.search(r"SOC-2019, caractères \d+-\d+ \(9 janv\. 2019\)", text)
    assert re.findall(r"<mark>([^<]*)</mark>", render_graph(graph, "SOC-2019")).count("15-12.345") == 1
    html = render_graph(graph, "SOC-2019")
    page = Page(html)
    stated = [attrs for attrs in of_class(page, "stated") if "data-kind" in attrs]
    assert {attrs["data-kind"] for attrs in stated} == {"interprets stated"}
    assert "selon le modèle, non vérifié" in page.text()
    assert "Plan de vigilance" not in html
    assert "Notes de travail du modèle, non vérifiées" in page.text()


def test_treatment_is_said_in_french_and_a_page_of_many_nodes_is_bounded(graph):
    node = graph.find("SOC-2016")
    assert "Traitement : cité par 2 décisions." in " ".join(Page(render_graph(graph, node)).text().split())
    rulings = [edge._replace(type=kind) for edge in graph.citing(node) for kind in ("overrules", "upholds", "upholds")]
    assert treatment_in_french(node, rulings) == (
        "cassé, annulé ou infirmé par 2 décisions, maintenu par 4 décisions, cité par 2 décisions"
    )
    page = Page(render_graph(graph, "article L. 1226-2 du code du travail", most=3))
    assert len(drawn(page)) == 3
    assert "2 décisions, textes et personnes sont montrés ; 1 autre ne l’est pas" in page.text()
    assert [name.split()[-1] for name in drawn(page)[1:]] == ["17-11.111", "16/01234"]


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


@pytest.mark.parametrize("attack", ATTACKS[:10])
def test_hostile_names_are_shown_as_they_are(library, tmp_path, attack):
    page = Page(render_graph(hostile_graph(library, tmp_path, attack), "SOC-2019"))
    assert page.text().count(attack) >= 3 * len(NODE_TYPES)  # tooltip, table, detail
    assert attack in drawn(page)


def test_no_name_turns_the_writing_or_fills_the_page(library, tmp_path):
    attack = "\u202eegnarté\u2066 \x1b[31m " + "W" * 5000
    html = render_graph(hostile_graph(library, tmp_path, attack), "SOC-2019")
    assert not re.findall("[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069]", html)
    assert not re.findall("W{241}", html.partition("Notes de travail")[0])
    labels = re.findall(r'<text y="16">([^<]*)</text>', html)
    assert max(map(len, labels)) == 22


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
    assert isinstance(found, Quotation)


def test_a_notebook_shows_the_page_in_a_closed_frame(graph):
    ((_, frame),) = [
        one for one in Page(view_graph(graph.library, "SOC-2019")._repr_html_()).tags if one[0] == "iframe"
    ]
    assert (frame["sandbox"], frame["title"]) == ("allow-scripts", "Graphe des décisions")
    assert frame["srcdoc"] == render_graph(graph, "SOC-2019")


def test_the_vendored_scripts_are_those_that_the_readme_names_and_none_reads_text_as_markup():
    folder = files("legal_rag.graph").joinpath("templates", "vendor")
    named = dict(re.findall(r"\| (d3-[a-z]+) \| ([\d.]+) \|", folder.joinpath("README.md").read_text("utf-8")))
    assert named.keys() == {f"d3-{one}" for one in D3}
    for name, version in named.items():
        text = folder.joinpath(f"{name}.min.js").read_text("utf-8")
        assert text.startswith(f"// https://d3js.org/{name}/ v{version} ")
        assert not re.findall(r"\beval\(|new Function|createElement\(.style", text)
    script = files("legal_rag.graph").joinpath("templates", "graph.js").read_text("utf-8")
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(|\.html\(", script)


def overlapping(drawing):
    boxes = enumerate(drawing.places)
    return [
        (a, b)
        for (a, (x1, y1)), (b, (x2, y2)) in combinations(boxes, 2)
        if abs(x1 - x2) < WIDTH and abs(y1 - y2) < HEIGHT
    ]


@pytest.mark.parametrize(
    "nodes",
    [
        [Placed("Cour", 2000)],
        [Placed("Articles", 0)],
        [Placed("Articles", 0), *[Placed("Articles", 0)] * 50, *[Placed("Cour", 2020)] * 200],
        [Placed("Cour", 2000 + n % 23) for n in range(300)],
        [Placed(f"Cour {n % 40}", 1990 + n % 7) for n in range(300)],
        [Placed("Cour", 0), Placed("Cour", 2001), Placed("", 2002)],
    ],
)
def test_nodes_do_not_overlap_and_stand_in_their_lane_and_year(nodes):
    drawing = draw(nodes)
    assert overlapping(drawing) == []
    columns = {one.year: one for one in drawing.years}
    for number, (x, y) in enumerate(drawing.places):
        lane = drawing.lanes[drawing.lane_of[number]]
        assert lane.y < y < y + HEIGHT <= lane.y + lane.height
        assert 0 < x < x + WIDTH < drawing.width
        if nodes[number].year:
            column = columns[nodes[number].year]
            assert column.x < x < column.x + column.width
            assert lane.name in (nodes[number].lane, OTHERS)


def test_the_court_of_the_node_has_the_middle_lane_and_years_are_in_order_with_gaps_marked():
    nodes = [Placed("Cour 39", 2000), *(Placed(f"Cour {n % 30}", 2000) for n in range(200))]
    names = [lane.name for lane in draw(nodes).lanes]
    assert len(names) == 10
    assert OTHERS in names
    assert names.index("Cour 39") in (4, 5)
    years = draw([Placed("Cour", year) for year in (2019, 1987, 1988, 2019)]).years
    assert [(one.year, one.jumps) for one in years] == [(1987, False), (1988, False), (2019, True)]


@pytest.fixture
def browser(tmp_path):
    with HeadlessBrowser(tmp_path / "profile") as opened:
        yield opened


def opened(browser, tmp_path, html, width=1280):
    (tmp_path / "page.html").write_text(html, "utf-8")
    browser.resize(width, 850)
    browser.open((tmp_path / "page.html").as_uri())


def test_a_chosen_node_shows_its_words_and_filters_hide_in_both_views(browser, tmp_path, graph):
    opened(browser, tmp_path, render_graph(graph, "SOC-2019"))
    browser.click("g.node[data-node='1']")
    browser.wait_for("!document.querySelector('.card').hidden")
    name = browser.run("document.querySelector(\"g.node[data-node='1']\").getAttribute('aria-label')")
    assert browser.text("#panel h2") == name
    assert "caractères" in browser.text("#panel .quotes")
    browser.run("document.querySelector('#filters details').open = true")
    assert len(browser.texts("tbody tr")) == 6
    browser.click("input[name=kind][value='interprets stated']")
    assert len(browser.texts("tbody tr")) == 5
    assert browser.text("#status") == "5 nœuds sur 6 répondent aux filtres."
    browser.type_into("#search", "15-12.345 reclassement")
    browser.run("document.querySelector('#search').dispatchEvent(new Event('input', {bubbles: true}))")
    assert browser.run("[...document.querySelectorAll('g.node.found')].length") >= 1
    browser.run("document.querySelector('#filters').reset()")
    browser.wait_for("document.querySelector('#status').textContent === '6 nœuds autour de celui-ci.'")
    browser.type_into("#from", "2019")
    assert "2016" not in " ".join(browser.texts("tbody .day"))
    assert (browser.messages, browser.alerts) == ([], [])
    assert [one for one in browser.requests if not one.startswith("file:")] == []


def test_the_keyboard_goes_from_node_to_node_and_buttons_zoom_to_the_whole(browser, tmp_path, graph):
    opened(browser, tmp_path, render_graph(graph, "SOC-2019"))
    browser.run("document.querySelector('g.node').focus()")
    browser.press("ArrowRight")
    label = "document.activeElement.getAttribute('aria-label').replaceAll('\\u00a0', ' ')"
    assert browser.run(label) == "Cass. 2e civ., 8 avr. 2021, n° 19-25.640"
    assert browser.run("document.querySelectorAll('g.node[tabindex=\"0\"]').length") == 1
    browser.press("Enter")
    assert "est cité par" in browser.text("#panel .quotes")
    browser.press("Escape")
    assert browser.run("document.querySelector('.card').hidden")
    assert browser.run(label) == "Cass. 2e civ., 8 avr. 2021, n° 19-25.640"
    opened(browser, tmp_path, render_graph(graph, "SOC-2019"))
    scale = "Number(document.querySelector('.stage').getAttribute('transform').match(/scale\\(([\\d.]+)/)[1])"
    before = browser.run(scale)
    browser.click("#closer")
    browser.wait_for(f"{scale} > {before * 1.3}")
    browser.click("#fit")
    browser.wait_for(f"Math.abs({scale} - {before}) < .05")


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_names_run_nothing_and_break_no_layout(browser, tmp_path, library, width):
    for number, attack in enumerate(HOSTILE):
        (tmp_path / str(number)).mkdir()
        opened(
            browser, tmp_path, render_graph(hostile_graph(library, tmp_path / str(number), attack), "SOC-2019"), width
        )
        browser.click("tbody button.plain")
        browser.wait_for("!document.querySelector('.card').hidden")
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert (browser.messages, browser.alerts) == ([], [])


def test_on_paper_and_without_scripts_the_drawing_is_whole(browser, tmp_path, graph):
    opened(browser, tmp_path, render_graph(graph, "SOC-2019"))
    browser.medium("print")
    browser.wait_for("document.querySelector('#drawing > svg').hasAttribute('viewBox')")
    assert browser.texts("#filters, #panel, .buttons") == []
    browser.medium("screen")
    browser.wait_for("!document.querySelector('#drawing > svg').hasAttribute('viewBox')")
    browser.run_scripts(allowed=False)
    browser.open((tmp_path / "page.html").as_uri())
    assert len(browser.texts("tbody tr")) == 6


def test_in_a_notebooks_frame_the_page_works(browser, tmp_path, graph):
    opened(
        browser, tmp_path, f"<!DOCTYPE html><meta charset=utf-8>{view_graph(graph.library, 'SOC-2019')._repr_html_()}"
    )
    clicked = "document.querySelectorAll('g.node')[1].dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    assert "caractères" in browser.run_in_frame(f"{clicked}; document.querySelector('#panel .quotes').textContent")
    assert (browser.messages, browser.alerts) == ([], [])
