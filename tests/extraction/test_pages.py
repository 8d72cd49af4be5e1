"""The page of entities shows every document as text, runs nothing of theirs, and is usable by mouse, keys and thumb."""

import csv
import io
import json
import re
import shutil
from functools import cache
from importlib.resources import files
from itertools import combinations, islice

import pytest
from support import html_pages

from legal_rag.base.text import printable
from legal_rag.corpus import read_documents
from legal_rag.corpus.documents import Document
from legal_rag.extraction import ExtractionResult, ExtractionStore, outputs, view_entities
from legal_rag.extraction.entities import CLASSES, LABELS, ExtractedDocument, rule_entity
from legal_rag.extraction.outputs import colours, page_parts, write_outputs
from legal_rag.extraction.rules import find_entities
from legal_rag.extraction.store import Recipe
from legal_rag.law.citation import legal_citation
from legal_rag.library import Library

ATTACKS = [
    *html_pages.ATTACKS[:6],
    "javascript:alert('address')",
    *html_pages.ATTACKS[7:9],
    "__proto__",
    "\u202egnihsrever",
]


def entity(text, start, end, name="date", **attributes):
    return rule_entity(name, text, start, end, **attributes)


def hostile_items(*attacks):
    items = []
    for attack in attacks or ATTACKS:
        text = f"Avant {attack} après 😀 fin."
        found = [
            entity(text, 6, 6 + len(attack), attack, **{attack: attack}),
            {**entity(text, 0, 5), "alignment": attack},
        ]
        items.append(ExtractedDocument(attack, attack, text, found[:1]))
        items.append(ExtractedDocument(f"{attack} 2", "", text, found))
    return items


def passage(text, found, name, **attributes):
    start = text.index(found)
    return entity(text, start, start + len(found), name, **attributes)


NESTED = "La Cour condamne la société à payer 😀 3 000 euros à M. X le 3 mars 2021."
NESTED_ITEM = ExtractedDocument(
    "JURI-1",
    "Cour de cassation, 19-60.222",
    NESTED,
    [
        passage(NESTED, "La Cour condamne la société à payer 😀 3 000 euros à M. X", "dispositif"),
        passage(NESTED, "condamne", "solution"),
        passage(NESTED, "3 000 euros", "montant", valeur="3000", devise="EUR"),
        passage(NESTED, "à M. X le 3 mars 2021", "inconnue"),
        passage(NESTED, "3 mars 2021", "date", iso="2021-03-03"),
    ],
)
OTHER_ITEM = ExtractedDocument(
    "JURI-2", "", "Rejet du pourvoi formé à Orléans.", [entity("Rejet du pourvoi", 0, 5, "solution")]
)
RECIPE = Recipe("jurisprudence", "1", "rules-1", 1, "", 2000)
EMPTY_ITEM = ExtractedDocument("JURI-3", "Sans entité", "Rien.", [])


class Page(html_pages.Page):
    """With the documents that stand in its scripts."""

    def blocks(self):
        attributes = [attrs for tag, attrs in self.tags if tag == "script"]
        return [(one, json.loads(text)) for one, text in zip(attributes, self.scripts, strict=True) if "data-id" in one]


def style_of(text):
    return text.partition("<style>")[2].partition("</style>")[0]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_document_is_nothing_but_data(attack, tmp_path):
    items = hostile_items(attack)
    text = "".join(page_parts(items, note=attack))
    page = Page(text)
    harmless = Page("".join(page_parts([], note="Une note")))
    assert [tag for tag, attrs in page.tags if "data-id" not in attrs] == [tag for tag, _ in harmless.tags]
    for _, attributes in page.tags:
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "style", "srcdoc", "href")}
    blocks = page.blocks()
    shown = [tuple(map(printable, item[:3])) for item in items]  # as long, without what overrides directions
    assert [(one["data-id"], one["data-title"], data["text"]) for one, data in blocks] == shown
    named = printable(attack)
    assert blocks[0][1]["entities"] == [[named, 6, 6 + len(attack), [[named, named]], "rules"]]

    write_outputs(tmp_path, items * 300)
    index = Page((tmp_path / "entities.html").read_text("utf-8"))
    assert [attrs["href"][-9:] for tag, attrs in index.tags if tag == "a"] == ["0001.html", "0002.html"]
    assert [tag for tag, _ in index.tags if tag in ("script", "img", "svg", "iframe")] == ["script"] * 3
    assert json.loads(index.scripts[0])[0][:2] == [named, named]


def test_the_policy_stands_first_and_lets_only_the_pages_own_script_and_style_through(lets_through):
    text = "".join(page_parts(hostile_items()))
    lets_through(text, Page(text).scripts[-1])
    assert 0 < text.index("Content-Security-Policy") < text.index("<style>") < text.index("data-id=")


def test_the_scripts_never_read_text_as_markup():
    dangerous = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(|setAttribute\(\"on"
    for name in ("folding.js", "page.js", "index.js"):
        script = files("legal_rag.extraction").joinpath("templates", name).read_text("utf-8")
        assert re.findall(dangerous, script) == []


@pytest.mark.parametrize("names", CLASSES.values(), ids=CLASSES)
def test_every_class_has_a_french_label_and_a_colour_of_its_own_in_its_schema(names):
    assert set(LABELS) == set(colours()) == {name for of in CLASSES.values() for name in of}
    numbers = [colours()[name] for name in names]
    assert len(set(numbers)) == len(names)
    assert max(numbers) < 24


@cache
def palette():
    """Return the colours in light and in dark mode."""
    style = style_of("".join(page_parts([])))
    blocks = re.findall(r"(@media[^{}]*dark\) \{\s*)?:root \{(.*?)\}", style, re.DOTALL)
    return [
        dict(re.findall(r"--([\w-]+): (#\w{6});", "".join(block for mode, block in blocks if bool(mode) is dark)))
        for dark in (False, True)
    ]


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_text_is_readable_on_every_colour_and_colours_of_one_schema_can_be_told_apart(contrast, mode):
    named = palette()[mode]
    assert len(named) == 8 + 48
    for number in range(24):
        assert contrast(named["ink"], named[f"fill-{number}"]) >= 7
        assert contrast(named["paper"], named[f"line-{number}"]) >= 4.5
    assert min(contrast(named["ink"], named["paper"]), contrast(named["on-chosen"], named["chosen"])) >= 7
    assert min(contrast(named["quiet"], named["panel"]), contrast(named["accent"], named["panel"])) >= 4.5
    named = palette()[mode]
    for one, other in combinations(range(15), 2):  # the largest schema
        channels = [
            abs(int(named[f"{of}-{one}"][at : at + 2], 16) - int(named[f"{of}-{other}"][at : at + 2], 16))
            for of in ("fill", "line")
            for at in (1, 3, 5)
        ]
        assert sum(channels) >= 60


def test_a_folder_is_opened_at_a_document(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(outputs.webbrowser, "open", opened.append)
    write_outputs(tmp_path, [NESTED_ITEM])
    assert view_entities(tmp_path, "a b/é#") == tmp_path / "entities.html"
    assert opened == [f"{(tmp_path / 'entities.html').as_uri()}#a%20b%2F%C3%A9%23"]


@pytest.fixture
def notebook(monkeypatch):
    monkeypatch.setattr(outputs, "in_notebook", lambda: True)


def framed(html):
    """Return the page in the frame that a notebook shows."""
    ((_, attributes),) = [(tag, attrs) for tag, attrs in Page(html._repr_html_()).tags if tag == "iframe"]
    assert attributes["sandbox"] == "allow-scripts"
    return Page(attributes["srcdoc"])


@pytest.mark.usefixtures("notebook")
def test_a_notebook_shows_one_document_of_a_folder(tmp_path):
    write_outputs(tmp_path, [NESTED_ITEM, OTHER_ITEM])
    ((attributes, data),) = framed(view_entities(tmp_path, "JURI-1")).blocks()
    assert (attributes["data-id"], data["text"]) == ("JURI-1", NESTED)
    assert data["entities"][1] == ["solution", 8, 16, [], "exact"]


@pytest.mark.usefixtures("notebook")
def test_a_notebook_shows_what_is_held_of_a_librarys_document(tiny_library, tmp_path):
    shutil.copytree(tiny_library.path, tmp_path / "library")
    library = Library(tmp_path / "library")
    with pytest.raises(FileNotFoundError, match="no entities.sqlite in .*library: 'legal-rag extract'"):
        view_entities(library)
    document = next(library.documents())
    found = entity(document.content, 0, 8, "partie")
    with ExtractionStore(library.path / "entities.sqlite") as store:
        result = ExtractionResult(doc_name=document.id, extractions=[found])
        store.hold_many([(document.id, document.content_hash, document.content, RECIPE, result, [])])
    ((attributes, data),) = framed(view_entities(library, document.id)).blocks()
    assert (attributes["data-title"], data["text"]) == (legal_citation(document).with_name, document.content)
    assert data["entities"] == [["partie", 0, 8, [], "rules"]]
    assert len(framed(view_entities(library)).blocks()) == min(library.n_documents, 50)


@pytest.mark.usefixtures("notebook")
def test_a_notebook_shows_the_first_documents_and_says_so(tmp_path):
    write_outputs(tmp_path, (ExtractedDocument(f"D{number}", "", "x", []) for number in range(60)))
    html = view_entities(tmp_path)
    assert len(framed(html).blocks()) == 50
    assert "Les 50 premiers documents ; tous sont dans le fichier entities.html." in html._repr_html_()


@pytest.mark.parametrize(
    ("shown", "in_notebook", "error", "message"),
    [
        ("empty", False, FileNotFoundError, r"no entities\.html in .*: 'legal-rag extract' writes it"),
        ("empty", True, FileNotFoundError, r"no entities\.jsonl in"),
        ("one", True, LookupError, "no document 'JURI-9' among those extracted"),
    ],
)
def test_what_cannot_be_shown_is_named(shown, in_notebook, error, message, tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "in_notebook", lambda: in_notebook)
    write_outputs(tmp_path / "one", [NESTED_ITEM])
    with pytest.raises(error, match=message):
        view_entities(tmp_path / shown, "JURI-9" if shown == "one" else None)


@pytest.fixture
def opened(browser, tmp_path):
    """Open the page of three documents at a desk, in light colours."""
    write_outputs(tmp_path, [NESTED_ITEM, OTHER_ITEM, EMPTY_ITEM])
    browser.resize(1300, 900)
    browser.scheme("light")
    browser.open((tmp_path / "entities.html").as_uri())
    return browser


def quiet(browser, *addresses):
    """Tell whether nothing went wrong or was asked for since the browser was last told to forget."""
    said = (
        browser.messages,
        browser.alerts,
        [one for one in browser.requests if one not in ("about:blank", *addresses)],
    )
    return said == ([], [], [])


def test_nothing_of_a_hostile_document_runs(browser, tmp_path):
    write_outputs(tmp_path, hostile_items())
    browser.forget()
    address = (tmp_path / "entities.html").as_uri()
    browser.open(address)
    count = browser.run("document.querySelectorAll('#document-list button').length")
    assert count == len(hostile_items())
    for number, item in enumerate(hostile_items()):
        browser.run(f"document.querySelectorAll('#document-list button')[{number}].click()")
        assert browser.run("document.getElementById('text').textContent") == printable(item.content)
        assert browser.run("document.getElementById('title').textContent") == printable(item.title or item.doc_id)
        browser.run("document.querySelector('#entity-list li:last-child button').click()")
        assert browser.run("document.getElementById('detail').querySelector('blockquote').textContent") == printable(
            item.entities[0]["extraction_text"]
        )
        browser.run("document.getElementById('labels').click()")
    assert browser.run("document.querySelectorAll('img, svg, iframe').length") == 0
    assert quiet(browser, address)


def test_hostile_titles_run_nothing_on_the_index_page(browser, tmp_path):
    write_outputs(tmp_path, hostile_items() * 25)
    browser.forget()
    browser.open((tmp_path / "entities.html").as_uri())
    browser.type_into("#document-query", "alert")
    browser.wait_for("document.querySelectorAll('#document-list a').length > 0")
    assert browser.texts("#document-list bdi")[0] == ATTACKS[0]
    assert (browser.messages, browser.alerts) == ([], [])


def test_a_script_that_got_into_the_page_would_not_run(browser, tmp_path):
    write_outputs(tmp_path, [NESTED_ITEM])
    page = tmp_path / "entities.html"
    injected = "<script>alert('in')</script><img src=x onerror=alert('on')><style>body{display:none}</style>"
    page.write_text(page.read_text("utf-8").replace("<main>", f"<main>{injected}"), "utf-8")
    browser.forget()
    browser.open(page.as_uri())
    browser.wait_for("document.querySelectorAll('.mark').length > 0")
    assert browser.alerts == []
    assert browser.run("getComputedStyle(document.body).display") == "flex"
    assert len([one for one in browser.messages if "Content Security Policy" in one]) >= 3


def test_a_document_is_shown_with_its_entities_at_their_places_overlapping_ones_too(opened):
    assert opened.text("#summary") == "3 documents, 6 entités"
    assert opened.text("#title") == "Cour de cassation, 19-60.222"
    assert opened.run("document.getElementById('text').textContent") == NESTED
    assert opened.texts("#entity-list bdi") == [
        "La Cour condamne la société à payer 😀 3 000 euros à M. X",
        "condamne",
        "3 000 euros",
        "à M. X le 3 mars 2021",
        "3 mars 2021",
    ]
    assert opened.texts("#document-list .count") == ["5", "1", "0"]
    lines = "one.style.boxShadow.split('--line').length - 1"
    marks = f"[...document.querySelectorAll('.mark')].map((one) => [one.textContent, one.title, {lines}])"
    assert opened.run(marks) == [
        ["La Cour ", "Dispositif", 1],
        ["condamne", "Solution · Dispositif", 2],
        [" la société à payer 😀 ", "Dispositif", 1],
        ["3 000 euros", "Montant · Dispositif", 2],
        [" ", "Dispositif", 1],
        ["à M. X", "inconnue · Dispositif", 2],
        [" le ", "inconnue", 1],
        ["3 mars 2021", "Date · inconnue", 2],
    ]


def test_a_click_tells_an_entity_and_what_lies_across_it(opened):
    opened.click("[title='Montant · Dispositif']")
    assert opened.text("#detail h3") == "Montant"
    assert opened.texts("#detail dt") == ["valeur", "devise", "caractères", "repérage"]
    assert opened.texts("#detail dd") == ["3000", "EUR", "38 à 49", "trouvée par règle"]
    assert opened.texts(".chosen") == ["3 000 euros"]
    opened.click("#detail .choices button")
    assert opened.text("#detail h3") == "Dispositif"
    assert "".join(opened.run("[...document.querySelectorAll('.chosen')].map((one) => one.textContent)")) == NESTED[:56]


def test_a_class_is_hidden_by_its_box(opened):
    assert opened.run("[...document.querySelectorAll('.swatch')].map((one) => one.textContent)") == [
        "Date",
        "Solution",
        "Montant",
        "Dispositif",
        "inconnue",
    ]
    opened.click("#classes label:nth-child(2) input")
    assert opened.texts("#document-list .count") == ["4", "0", "0"]
    assert opened.text("#entity-count") == "4 sur 5 entités"
    opened.click("#no-class")
    assert opened.texts(".mark") == []
    assert opened.run("document.getElementById('text').textContent") == NESTED
    opened.click("#all-classes")
    assert opened.texts("#document-list .count") == ["5", "1", "0"]


def test_entities_are_filtered_by_what_they_say(opened):
    opened.type_into("#entity-query", "REJET")
    opened.wait_for("document.getElementById('title').textContent === 'JURI-2'")
    assert opened.texts("#document-list bdi") == ["JURI-2"]
    assert opened.text("#document-count") == "1 sur 3 documents"
    opened.type_into("#entity-query", "2021-03-03")
    opened.wait_for("document.getElementById('title').textContent !== 'JURI-2'")
    assert opened.texts("#entity-list bdi") == ["3 mars 2021"]


@pytest.mark.parametrize(
    ("query", "found"),
    [("orleans", ["JURI-2"]), ("sans ENTITE", ["Sans entité"]), ("juri-1", ["Cour de cassation, 19-60.222"])],
)
def test_documents_are_found_by_title_id_and_text(opened, query, found):
    opened.type_into("#document-query", query)
    opened.wait_for("document.getElementById('document-count').textContent.startsWith('1 ')")
    assert opened.texts("#document-list bdi") == found
    assert opened.text("#title") == found[0]


def test_keys_are_enough(opened):
    opened.run("document.getElementById('document-query').focus()")
    opened.press("Tab", "Tab", "ArrowDown", "Enter")
    assert opened.text("#title") == "JURI-2"
    opened.press("ArrowUp", "Enter", "Tab")
    assert opened.run("document.activeElement.id") == "text"
    opened.press("ArrowRight", "ArrowRight")
    assert opened.text("#detail blockquote") == "condamne"
    opened.press("ArrowLeft", "ArrowLeft")
    assert opened.text("#detail blockquote") == "3 mars 2021"
    opened.press("Escape")
    assert opened.run("document.getElementById('detail').hidden")
    opened.run("document.getElementById('entity-query').focus()")
    opened.press("Tab", "ArrowUp", "Enter")
    assert opened.text("#detail h3") == "inconnue"


def test_an_address_opens_its_document(browser, tmp_path):
    items = [ExtractedDocument(f"D {number}", "", f"Texte {number}.", []) for number in range(502)]
    write_outputs(tmp_path, items)
    browser.open((tmp_path / "entities.html").as_uri() + "#D%20501")
    browser.wait_for("location.href.includes('0002.html') && document.readyState === 'complete'")
    assert browser.text("#title") == "D 501"
    assert browser.texts("#pages a") == ["Toutes les pages", "Page précédente"]
    browser.click("#pages a")
    browser.wait_for("location.href.endsWith('entities.html') && document.readyState === 'complete'")
    assert browser.texts("td:nth-child(2)") == ["D 0", "D 500"]


def test_a_phone_shows_all_in_one_column(browser, tmp_path):
    long = "x" * 300
    write_outputs(tmp_path, [NESTED_ITEM, ExtractedDocument(long, long, long, [entity(long, 0, 300, long, a=long)])])
    browser.resize(360, 740)
    browser.open((tmp_path / "entities.html").as_uri())
    for number in range(2):
        browser.run(f"document.querySelectorAll('#document-list button')[{number}].click()")
        browser.run("document.querySelector('#entity-list button').click()")
        assert browser.run("document.documentElement.scrollWidth <= 360")
    assert browser.run("document.getElementById('detail').getBoundingClientRect().bottom <= innerHeight")
    assert browser.run("document.getElementById('reading').getBoundingClientRect().width >= 340")


def test_dark_mode_has_the_dark_colours(opened):
    opened.scheme("dark")
    assert opened.run("getComputedStyle(document.body).backgroundColor") == "rgb(23, 23, 27)"


def test_a_notebooks_frame_shows_the_page(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "in_notebook", lambda: True)
    write_outputs(tmp_path, [NESTED_ITEM, *hostile_items()])
    host = tmp_path / "host.html"
    host.write_text(f"<!DOCTYPE html><meta charset=utf-8>{view_entities(tmp_path)._repr_html_()}", "utf-8")
    browser.resize(1300, 900)
    browser.forget()
    browser.open(host.as_uri())
    assert NESTED in browser.frame_text()
    assert (browser.messages, browser.alerts) == ([], [])


def test_a_page_of_five_hundred_decisions_opens_at_once_and_one_of_many_entities_within_each_other(browser, tmp_path):
    text = "La cour d’appel de Lyon, le 3 mars 2021, a rejeté la demande de 1 000 euros. " * 65
    spans = [entity(text, at.start(), at.end()) for at in re.finditer("3 mars 2021", text)]
    write_outputs(tmp_path, [ExtractedDocument(f"D{number}", "", text, spans) for number in range(500)])
    browser.open((tmp_path / "entities.html").as_uri())
    assert len(browser.texts("#document-list li")) == 500
    assert browser.run("performance.getEntriesByType('navigation')[0].domComplete") < 3000
    assert browser.run("document.querySelectorAll('script.document').length") == 499
    text = "x" * 3000
    write_outputs(tmp_path, [ExtractedDocument("D", "", text, [entity(text, at, 3000 - at) for at in range(1000)])])
    browser.forget()
    browser.open((tmp_path / "entities.html").as_uri())
    assert browser.run("document.getElementById('text').textContent.length") == 3000
    assert browser.run("document.querySelectorAll('.mark').length") == 1999
    assert browser.messages == []


REPEATED = "Lyon, le 3 mars 2021. Vu l'article L. 1152-1 et l'article L. 1152-10 ; le 3 MARS 2021, Lyon."


def filed(doc_id, content, entities, **columns):
    return ExtractedDocument.of(Document(id=doc_id, content=content, **columns), entities)


REPEATED_ITEM = filed(
    "JURI-4",
    REPEATED,
    [
        passage(REPEATED, "3 mars 2021", "date"),
        passage(REPEATED, "3 MARS 2021", "date"),
        passage(REPEATED, "article L. 1152-1", "article_cite"),
        passage(REPEATED, "article L. 1152-10", "article_cite"),
    ],
    juridiction="Cour de cassation",
    formation="Chambre sociale",
    decision_date="2021-03-03",
    solution="Rejet",
)
APPEAL_ITEM = filed(
    "JURI-5",
    "Vu l'article L. 1152-10, le 3 mars 2021 ; -cmd",
    [
        passage("Vu l'article L. 1152-10, le 3 mars 2021 ; -cmd", found, name)
        for found, name in (("article L. 1152-10", "article_cite"), ("3 mars 2021", "date"), ("-cmd", "partie"))
    ],
    juridiction="Cour d'appel de Lyon",
    decision_date="2019-05-06",
    solution="Confirmation",
)
UNKNOWN_ITEM = filed("JURI-6", 'Rien ; "rien".', [entity('Rien ; "rien".', 0, 14, "partie")])


@pytest.fixture
def filtered(browser, tmp_path):
    """Open the page of three documents that have columns."""
    write_outputs(tmp_path, [REPEATED_ITEM, APPEAL_ITEM, UNKNOWN_ITEM])
    browser.resize(1300, 900)
    browser.scheme("light")
    browser.open((tmp_path / "entities.html").as_uri())
    return browser


def choose(browser, selector, value):
    browser.run(
        f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.value = {json.dumps(value)};"
        "one.dispatchEvent(new Event('change')); })()"
    )


def listed_ids(browser):
    return browser.texts("#document-list li:not([hidden]) small")


def test_a_page_names_documents_by_their_citation_and_knows_what_they_are_filtered_by():
    attributes = [one for one, _ in Page("".join(page_parts([REPEATED_ITEM, UNKNOWN_ITEM, OTHER_ITEM]))).blocks()]
    assert [one["data-title"] for one in attributes] == ["Cass.\u00a0soc., 3\u00a0mars\u00a02021", "", ""]
    assert [json.loads(one["data-facets"]) for one in attributes] == [
        ["Cass.", "2021-03-03", "Rejet"],
        ["", "", ""],
        ["", "", ""],
    ]


@pytest.mark.parametrize(
    ("selector", "value", "ids"),
    [
        ("#court", "Cass.", ["JURI-4"]),
        ("#court", "Non précisée", []),
        ("#outcome", "Confirmation", ["JURI-5"]),
        ("#date-from", "2020-01-01", ["JURI-4"]),
        ("#date-to", "2020-01-01", ["JURI-5"]),
        ("#date-to", "1900-01-01", []),
    ],
)
def test_documents_are_filtered_by_court_outcome_and_date(filtered, selector, value, ids):
    choose(filtered, selector, value)
    assert [one for one in listed_ids(filtered) if one] == ids
    filtered.run("document.getElementById('facets').open = true")
    filtered.click("#no-facet")
    assert filtered.text("#document-count") == "3 documents"


@pytest.mark.parametrize(
    ("article", "ids"),
    [
        ("L1152-1", ["JURI-4"]),
        ("l. 1152‑10", ["JURI-4", "JURI-5"]),
        ("1152", []),
        ("1152-1", []),
        ("152-1", []),
        ("(?", []),
    ],
)
def test_documents_are_filtered_by_the_article_they_cite_and_by_no_other(filtered, article, ids):
    filtered.run("document.getElementById('facets').open = true")
    filtered.type_into("#article", article)
    filtered.wait_for(f"document.getElementById('document-count').textContent.startsWith('{len(ids)} sur')")
    assert listed_ids(filtered) == ids


def test_equal_values_are_one_row_with_their_count_and_places(filtered):
    assert filtered.texts("#entity-list li") == [
        "3 mars 2021\n× 2\nDate · aux caractères 9, 74",
        "article L. 1152-1\nArticle cité",
        "article L. 1152-10\nArticle cité",
    ]
    assert filtered.text("#entity-count") == "4 entités : 3 valeurs"
    filtered.click("#entity-list li:first-child button")
    assert filtered.texts(".chosen") == ["3 mars 2021"]
    filtered.click("#entity-list li:first-child button")
    assert filtered.texts(".chosen") == ["3 MARS 2021"]
    assert filtered.texts(".places button") == ["9", "74"]
    filtered.click(".places button")
    assert filtered.texts(".chosen") == ["3 mars 2021"]


def test_values_of_all_documents_are_one_list_whose_rows_open_theirs(filtered):
    filtered.click("#scope-all")
    assert filtered.texts("#entity-list li")[:2] == [
        "3 mars 2021\n× 3\nDate · 2 documents",
        "article L. 1152-10\n× 2\nArticle cité · 2 documents",
    ]
    for _ in range(2):
        filtered.click("#entity-list li:nth-child(2) button")
    assert filtered.text("#identifier") == "JURI-5"
    assert filtered.texts(".chosen") == ["article L. 1152-10"]
    choose(filtered, "#court", "Cass.")
    assert filtered.texts("#entity-list li")[0] == "3 mars 2021\n× 2\nDate · 1 document"


def test_the_table_is_what_the_list_shows_and_holds_no_formula(filtered):
    filtered.click("#scope-all")
    filtered.run(
        "URL.createObjectURL = (blob) => { window.saved = blob; return '#'; };"
        "HTMLAnchorElement.prototype.click = function () { window.name = this.download; };"
    )
    filtered.click("#csv")
    text = filtered.run("window.saved.text()").removeprefix("\ufeff")
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=";"))
    assert filtered.run("window.name") == "entites.csv"
    assert rows[0][:5] == ["document", "titre", "juridiction", "date", "issue"]
    assert rows[1] == [
        *("JURI-4", "Cass.\u00a0soc., 3\u00a0mars\u00a02021", "Cass.", "2021-03-03", "Rejet"),
        *("Date", "3 mars 2021", "9", "20", "3", ""),
    ]
    assert [row[6] for row in rows if row[5] == "Partie"] == ["'-cmd", 'Rien ; "rien".']
    assert len(rows) == 9


def test_a_page_is_printed_on_white_with_its_text_and_values_alone(filtered):
    filtered.scheme("dark")
    filtered.medium("print")
    hidden = "[...document.querySelectorAll('nav, .field, #filters')].every((one) => !one.offsetHeight)"
    assert filtered.run(hidden)
    assert filtered.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert filtered.run("getComputedStyle(document.querySelector('.mark')).backgroundColor") == "rgb(245, 206, 254)"
    filtered.medium("")


def test_on_a_phone_what_is_tapped_is_44_pixels_high(filtered):
    filtered.resize(390, 844)
    filtered.run("document.getElementById('facets').open = true")
    filtered.run("document.querySelector('#entity-list button').click()")
    low = "[...document.querySelectorAll('button, select, input[type=search], input[type=date], summary')]"
    assert filtered.run(f"{low}.filter((one) => one.offsetHeight && one.offsetHeight < 44).map((one) => one.id)") == []
    assert filtered.run("document.documentElement.scrollWidth <= 390")


@pytest.mark.shared
def test_real_decisions_are_shown_as_they_are(browser, tmp_path, shared_data):
    documents = list(islice(read_documents(shared_data / "decisions.jsonl.gz"), 20))
    write_outputs(
        tmp_path, [ExtractedDocument(one.id, one.title, one.content, find_entities(one.content)) for one in documents]
    )
    browser.forget()
    address = (tmp_path / "entities.html").as_uri()
    browser.open(address)
    for number, document in enumerate(documents):
        browser.run(f"document.querySelectorAll('#document-list button')[{number}].click()")
        assert browser.run("document.getElementById('text').textContent") == printable(document.content)
    assert quiet(browser, address)
