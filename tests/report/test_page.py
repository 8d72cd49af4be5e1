"""The report says all that a prediction holds, runs nothing of it, and is usable by mouse, keys, thumb and on paper."""

import json
import re
from dataclasses import replace
from importlib.resources import files

import pytest
from markupsafe import escape
from support.html_pages import ATTACKS, Page

import legal_rag as lr
from legal_rag.agent import Prediction, Usage
from legal_rag.agent.prediction import CitedDocument, Event, Passage, TokenMatch
from legal_rag.base.text import printable
from legal_rag.citations import Citation, format_marker
from legal_rag.citations.checks import OTHER_FACT, REWORDED
from legal_rag.report import render_answer, show_answer

LIGHT = ("strong", "em", "br", "span")  # what Markdown may make of an attack
QUESTION = "Quel est le délai de dépôt du compte ?"
CONTENT = (
    "Vu le code électoral. " * 10
    + "Le compte de campagne est déposé dans les deux mois du scrutin. "
    + "Le juge peut relever le candidat de bonne foi. " * 8
)
STATUSES = ("verified", "supported", "relocated", "unverified")
WORDS = {
    "verified": "texte conforme",
    "supported": "mêmes faits, mêmes mots",
    "relocated": "texte conforme, place rectifiée",
    "unverified": "non confirmée",
}


def citation(start=220, end=283, status="verified", doc_id="JURI-1"):
    return Citation(doc_id, start, end, CONTENT[start:end], status)


def marker(one):
    return format_marker(one.doc_id, one.char_start, one.char_end, verified=one.status != "unverified")


def passage(start=220, end=400, score=2.5, **changed):
    around = (CONTENT[max(0, start - 200) : start], CONTENT[end : end + 200])
    matches = (
        TokenMatch(*span_of(QUESTION, "délai"), *span_of(CONTENT, "mois"), 0.82),
        TokenMatch(*span_of(QUESTION, "compte"), *span_of(CONTENT, "compte"), 0.95),
    )
    one = Passage(
        "JURI-1", "JURI-1-0", start, end, CONTENT[start:end], score, "CC, 3 mars 2021", "2021-03-03", *around, matches
    )
    return one._replace(**changed)


def span_of(text, word):
    return text.index(word), text.index(word) + len(word)


def prediction(answer="", citations=(), **changed):
    values = {"mode": "agent", "status": "answered", "evidence": [passage()], "citations": list(citations)}
    return Prediction(question=QUESTION, answer=answer, **{**values, **changed})


THOUGHT = {"thought": "Je cherche.", "arguments": {"query": "délai", "k": 5}}
ONE_OF_EACH = [citation(220 + number, 283, status) for number, status in enumerate(STATUSES)]
FULL = prediction(
    "**Deux mois.** Le compte « est déposé dans les deux mois » " + "".join(map(marker, ONE_OF_EACH)) + ".\n\n"
    "[Analyse] Le délai est bref. La bonne foi compte.\n\n1. Un point " + marker(ONE_OF_EACH[0]) + "\n2. Un autre",
    [*ONE_OF_EACH, ONE_OF_EACH[0]],
    notice="Une citation a été retirée.",
    documents=[CitedDocument("JURI-1", "CC, 3 mars 2021", "2021-03-03"), CitedDocument("JURI-2", "", "")],
    ungrounded_claims=["Le juge statue en 1950."],
    grounding_rate=0.75,
    events=[
        Event("think", "search_legal_docs", THOUGHT, [], 1.25, Usage(1, 0, 900, 100, 0.002)),
        Event("search", "search_legal_docs", {"query": "délai", "k": 5}, ["JURI-1-0"], 0.5),
        Event("cite", "citations", {"verified": 1, "removed": 2}, ["JURI-1"], 0.01),
        Event("answer", "react", {}, [], 2.0, Usage(1, 0, 100, 50, None)),
    ],
    usage=Usage(2, 1, 1000, 150, None),
    seconds=3.76,
)  # fmt: skip


def page_of(one):
    return Page(render_answer(one))


def answer_of(one):
    """Return the HTML of the answer, without the line ends between its blocks."""
    html = re.search(r'<article id="answer"[^>]*>\n(.*)\n</article>', render_answer(one), re.DOTALL)[1]
    return re.sub(r"(?<!<br>)\n(?=<|$)", "", html)


def without_links(html):
    return re.sub(r"<a class=\"place cite[^>]*>(\d+)<span[^>]*>(.⚠?)</span></a>", r"{\1\2}", html)


def hostile(attack):
    one = Citation(attack, 0, len(attack), attack, "verified")
    found = Passage(attack, attack, 0, len(attack), attack, 1.0, f"Titre {attack}", attack, attack, attack)
    return Prediction(
        question=attack,
        answer=f"{attack} {marker(one)}\n\n- {attack}\n\n[Analyse] {attack}",
        mode="agent",
        status="answered",
        notice=attack,
        documents=[
            CitedDocument(attack, f"Titre {attack}", attack),
            CitedDocument(f"{attack} 2", f"Titre {attack}", attack),
        ],
        citations=[one],
        ungrounded_claims=[attack],
        evidence=[found._replace(matches=(TokenMatch(0, 3, 0, 3, 0.5), TokenMatch(2, 5, 2, 5, 0.9)))],
        events=[
            Event("read", attack, {attack: attack, "thought": attack, "arguments": {attack: [attack]}}, [attack], 1.0)
        ],
    )


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("mode", ["agent", "evidence"])
def test_what_a_prediction_says_adds_no_tag(attack, mode):
    def tags(of):
        return [
            tag for tag, _ in page_of(replace(hostile(of), mode=mode)).tags if tag not in ("strong", "em", "br", "span")
        ]

    # A text that no page can hold is written otherwise than it is named.
    assert tags(attack) == tags("Rien que du \ud800 texte." if "\ud800" in attack else "Rien que du texte.")


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_texts_are_shown_as_they_are_and_no_tag_has_a_handler_or_an_address(attack):
    page = render_answer(hostile(attack))
    for _, attributes in Page(page).tags:
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "style", "srcdoc")}
        assert attributes.get("href", "#").startswith("#")
    assert Page(page).text().count(attack) >= 9 or attack in ATTACKS[9:]
    assert ("\ufffd" in page.encode().decode()) == ("\ud800" in attack)  # what UTF-8 cannot hold is replaced


def test_only_the_reports_own_script_and_style_may_run(lets_through):
    text = render_answer(FULL)
    lets_through(text, "".join(Page(text).scripts))
    assert text.index("Content-Security-Policy") < text.index("<style>") < text.index("<body>")


def test_the_script_never_reads_text_as_markup_and_a_report_names_no_address_elsewhere():
    templates = files("legal_rag.report").joinpath("templates").iterdir()
    script = "".join(one.read_text("utf-8") for one in templates if one.name.endswith(".js"))
    assert len(script) > 1000
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(", script) == []
    assert re.findall(r"https?:|//[a-z]|url\(|@import", render_answer(FULL)) == []


def test_each_marker_is_a_numbered_link_and_every_status_is_told_in_words():
    page = Page(answer_of(FULL))
    links = [attrs for tag, attrs in page.tags if tag == "a"]
    assert [one["class"] for one in links] == [*(f"place cite {status}" for status in STATUSES), "place cite verified"]
    assert [one["href"] for one in links] == [f"#place-{number}" for number in (1, 2, 3, 4, 1)]
    assert [one.get("id") for one in links] == ["ref-1", "ref-2", "ref-3", "ref-4", None]
    assert [one["aria-label"] for one in links[:4]] == [
        f"Source {number}, {WORDS[status]} — CC, 3 mars 2021" for number, status in enumerate(STATUSES, start=1)
    ]
    assert without_links(answer_of(FULL)).startswith(
        "<p><strong>Deux mois.</strong> Le compte « est déposé dans les deux mois » {1✓}{2≈}{3↷}{4?}.</p>"
    )
    text = page_of(FULL).text()
    for told in (
        "✓ 2 textes conformes", "≈ 1 mêmes faits, mêmes mots", "↷ 1 texte conforme, place rectifiée",
        "? 1 non confirmée", "se trouve mot pour mot dans le passage",
        "qu’elle dise la même chose reste à lire",
    ):  # fmt: skip
        assert told in text
    assert "75\u00a0% des phrases qui énoncent un fait citent un passage au texte conforme." in text
    assert "Phrases sans source" in text
    assert "Le juge statue en 1950." in text


def test_a_european_text_or_case_of_an_answer_leads_to_its_page_and_a_quotation_stays_as_it_is():
    one = Citation("JURI-1", 0, 22, "la directive 93/13/CEE", "verified")
    said = f"Selon la directive 2003/88/CE (CEDH, n° 12345/16), « {one.quote} » {marker(one)}"
    links = [attrs["href"] for tag, attrs in Page(answer_of(prediction(said, [one]))).tags if tag == "a"]
    assert links == [
        "https://eur-lex.europa.eu/legal-content/FR/TXT/?uri=CELEX:32003L0088",
        "https://hudoc.echr.coe.int/fre#%7B%22appno%22:[%2212345/16%22]%7D",
        "#place-1",
    ]


def test_no_page_says_that_a_citation_is_verified_and_a_saved_run_has_the_same_report():
    assert not re.search(r"(?<!non )vérifiée", render_answer(replace(FULL, notice=None)))
    record = json.loads(json.dumps(FULL.to_record()))
    assert render_answer(Prediction.from_record(record)) == render_answer(FULL)


@pytest.mark.parametrize("mode", ["evidence", "fallback"])
def test_passages_that_cannot_but_stand_there_are_not_counted(mode):
    text = page_of(replace(FULL, mode=mode, grounding_rate=1.0, ungrounded_claims=[])).text()
    assert "Les passages sont cités tels qu’ils figurent dans les décisions" in text
    assert "100\u00a0%" not in text
    assert "2 textes conformes" not in text


@pytest.mark.parametrize(
    ("changed", "label"),
    [
        ({"speaker": "party"}, "argument d'une partie"),
        ({"speaker": "lower_court"}, "décision attaquée"),
        ({"speaker": "court", "censured": True}, "décision attaquée, censurée sur ce point"),
    ],
)
def test_what_another_than_the_court_says_carries_its_label_in_the_answer_and_beside_the_passage(changed, label):
    one = citation()._replace(**changed)
    shown = prediction(f"Oui {marker(one)}.", [one])
    assert Page(answer_of(shown)).text() == f"\nOui 1✓{label}."
    assert page_of(shown).text().count(label) >= 2
    court = citation()._replace(speaker="court")
    assert Page(answer_of(prediction(f"Oui {marker(court)}.", [court]))).text() == "\nOui 1✓."


def test_a_warning_stands_beside_its_citation_with_a_sign_and_in_words():
    told = "La juridiction « citée » n’a <b>pas</b> pu être déterminée."
    one = citation()._replace(warnings=(told,))
    shown = prediction(f"Oui {marker(one)}.", [one])
    assert without_links(answer_of(shown)) == "<p>Oui {1✓⚠}.</p>"
    assert told in next(attrs["aria-label"] for tag, attrs in Page(answer_of(shown)).tags if tag == "a")
    assert f"⚠ Attention\u00a0: {told}" in page_of(shown).text()
    assert "⚠" not in page_of(prediction(f"Oui {marker(citation())}.", [citation()])).text()


def test_a_sentence_in_other_words_than_its_passage_is_said_to_be_one_to_compare():
    reworded = citation(status="unverified")._replace(reason=REWORDED)
    contradicted = reworded._replace(reason=OTHER_FACT)
    for one, words in ((reworded, "reformulée, à comparer"), (contradicted, "non confirmée")):
        page = render_answer(prediction(f"Le compte est remis {marker(one)}.", [one]))
        assert f"Source 1, {words} — {escape(one.reason)} — " in page
        assert f">{words} : {escape(one.reason)}</span>" in page


def test_a_notice_and_a_claim_name_decisions_and_not_markers():
    one = citation()
    other = "[Source: JURI-1, chars 5-9]"
    shown = prediction(
        f"Oui {marker(one)}.", [one], notice=f"Voir {marker(one)} et {other}, non [Source: X].",
        ungrounded_claims=["**Deux** mois."],
    )  # fmt: skip
    text = page_of(shown).text()
    assert "Voir 1✓ et CC, 3 mars 2021, non [Source: X]." in text
    assert "\nDeux mois." in text


@pytest.mark.parametrize(
    ("answer", "html"),
    [
        ("Un.\n\nDeux.", "<p>Un.</p><p>Deux.</p>"),
        ("Un\ndeux", "<p>Un<br>\ndeux</p>"),
        ("# Titre\n\n### Autre", "<h3>Titre</h3><h5>Autre</h5>"),
        ("- a\n- b\n  1. c", "<ul><li>a</li><li>b<ol><li>c</li></ol></li></ul>"),
        ("3. c\n4. d", '<ol start="3"><li>c</li><li>d</li></ol>'),
        ("**a** *b* __c__", "<p><strong>a</strong> <em>b</em> <strong>c</strong></p>"),
        ("> cité", "<blockquote><p>cité</p></blockquote>"),
        (
            "| a |\n|---|\n| 1 |",
            "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>",
        ),
        ("[x](http://y) <b>z</b> `c`", "<p>[x](http://y) &lt;b&gt;z&lt;/b&gt; `c`</p>"),
        ("« un\n\n- deux\n# trois »", "<p>« un<br>\n- deux<br>\n# trois »</p>"),
        ("« ouvert\n\n- deux", "<p>« ouvert</p><ul><li>deux</li></ul>"),
        ("a\n---\nb", "<p>a</p><hr><p>b</p>"),
        ("", ""),
    ],
)  # fmt: skip
def test_markdown_is_read_in_small_part(answer, html):
    for mode in ("agent", "deep_read", "fallback", "evidence"):
        assert answer_of(prediction(answer, mode=mode)) == html


@pytest.mark.parametrize("mode", ["evidence", "fallback", "agent", "deep_read"])
def test_passages_quoted_word_for_word_are_no_markdown(mode):
    quote = "M. *A* **doit**\n\n1. Considérant _que_ [Analyse] [Source: D, chars 0-76] » ou"
    one = Citation("D", 0, len(quote), quote, "verified")
    answer = f"Passages :\n\n1. *Titre* (2020)\n« {quote} » {marker(one)} […]\n\nVoir **aussi** « {quote} »."
    assert without_links(answer_of(prediction(answer, [one], mode=mode))) == (
        "<p>Passages :</p><h3>1. *Titre* (2020)</h3>"
        "<blockquote>« M. *A* **doit**<br>\n1. Considérant _que_ [Analyse] [Source: D, chars 0-76] » ou » {1✓} […]"
        "</blockquote><p>Voir <strong>aussi</strong> « M. *A* **doit**<br>\n"
        "1. Considérant _que_ [Analyse] [Source: D, chars 0-76] » ou ».</p>"
    )


def test_analysis_is_marked_apart_to_the_end_of_its_sentence():
    html = answer_of(prediction("Fait. [Analyse] Il **semble** que non. Fait.\n\n- **[Analysis]** Seul"))
    assert html == (
        '<p>Fait. <span class="analysis"><span class="tag">Analyse</span> Il </span>'
        '<strong><span class="analysis">semble</span></strong><span class="analysis"> que non.</span> Fait.</p>'
        '<ul><li><strong><span class="analysis"><span class="tag">Analyse</span></span></strong>'
        '<span class="analysis"> Seul</span></li></ul>'
    )


def test_a_marker_of_no_citation_stays_text_and_one_without_a_place_leads_to_a_note_that_says_so():
    one = citation()
    answer = f"Oui [Source: AUTRE, chars 1-2] [Source non vérifiée: JURI-1, chars 220-283] {marker(one)}"
    html = without_links(answer_of(prediction(answer, [one])))
    assert html == f"<p>{answer.removesuffix(marker(one))}{{1✓}}</p>"
    one = Citation("JURI-9", 0, 0, "", "unverified")
    shown = prediction(f"Faux {marker(one)}.", [one])
    assert without_links(answer_of(shown)) == "<p>Faux {1?}.</p>"
    assert 'href="#note-1"' in answer_of(shown)
    assert "Ce marqueur n’indique aucun passage." in page_of(shown).text()


@pytest.mark.parametrize(
    "doc_id", ["CE, 2 mai 1996 [sect.]", "a*b*c_d_", "<br/>", "[Source: X, chars 1-2]", "]]]", "a | b"]
)
def test_a_document_may_be_called_anything(doc_id):
    one = Citation(doc_id, 0, 4, "Rien", "verified")
    assert without_links(answer_of(prediction(f"- Dit {marker(one)}{marker(one)}", [one, one]))) == (
        "<ul><li>Dit {1✓}{1✓}</li></ul>"
    )


def sources_of(one):
    page = render_answer(one)
    return page[page.index('<details id="sources"') : page.index('<details id="evidence"')]


def test_a_passage_stands_in_its_context_of_which_two_hundred_characters_are_printed():
    found = passage(0, len(CONTENT), matches=())._replace(before="", after="")
    text = re.sub(
        r'<span class="note".*?</button></span>',
        "",
        sources_of(prediction(marker(citation()), [citation()], evidence=[found])),
        flags=re.DOTALL,
    )
    far, before, mark, after, rest = re.findall(r'<span class="(?:near|far)">(.*?)</span>', text, re.DOTALL)
    assert mark.endswith(f"<mark>{CONTENT[220:283]}</mark>")
    plain = [re.sub("<[^>]*>", "", piece) for piece in (far, before, mark, after, rest)]
    assert "".join(plain).split() == CONTENT.split()
    assert 180 < len(plain[1]) <= 200
    assert 180 < len(plain[3]) <= 200


def test_a_passage_that_no_evidence_surrounds_stands_alone_and_beside_its_note_where_it_is_contradicted():
    for kept in ([], [passage(doc_id="JURI-2")], [passage(char_start=10**9)]):
        text = render_answer(prediction(marker(citation()), [citation()], evidence=kept))
        assert f"<mark>{CONTENT[220:283]}</mark>" in text
        assert 'href="#place-1"' in text
    text = render_answer(prediction(marker(citation()), [citation()], evidence=[passage(text="Un autre texte")]))
    assert Page(text).text().count(CONTENT[220:283]) == 1
    assert 'href="#note-1"' in text


def test_line_break_tags_of_a_decision_are_shown_as_text():
    one = Citation("D", 0, 17, "avant<br/>après !", "verified")
    text = render_answer(prediction(f"« {one.quote} » {marker(one)}", [one]))
    assert Page(text).text().count("avant<br/>après !") == 2  # in the answer and in the decision
    assert "avant<br/>" not in text


def test_the_question_and_the_passage_are_cut_at_the_words_that_match():
    text = render_answer(FULL)
    links = re.findall(r'<a class="place word ([^"]*)" href="#([^"]*)" title="([^"]*)">(.*?)</a>', text)
    assert links == [
        ("heat-1", "word-1-0", "« délai » → « mois » : 0,82", "délai"),
        ("heat-5", "word-1-1", "« compte » → « compte » : 0,95", "compte"),
    ]
    for anchor, heat, word in (("word-1-0", 1, "mois"), ("word-1-1", 5, "compte")):
        assert re.search(rf'<a id="{anchor}"></a>(<mark>)?<span class="word heat-{heat}">{word}</span>', text)
    assert QUESTION in Page(text).text()


def test_steps_tell_what_was_asked_found_and_spent_and_that_no_model_was_asked():
    text = page_of(FULL).text()
    for told in (
        "Je cherche.", "recherche : délai · nombre : 5", "1,25\u00a0s", "0,0020\u00a0$", "→ CC, 3 mars 2021",
        "prix inconnu", "texte conforme : 1 · retirées : 2",
        "1\u202f000", "3,76\u00a0s", "réponse(s) reprise(s) de la mémoire",
    ):  # fmt: skip
        assert told in text
    text = page_of(prediction("Oui", mode="evidence", evidence=[passage(score=None)])).text()
    assert "Aucun appel à un modèle de langage." in text
    for column in ("Jetons", "Coût", "Score"):
        assert column in page_of(FULL).text()
        assert column not in text


DECISION = CitedDocument(
    "JURI-1",
    "Arrêt",
    "2018-05-03",
    "Cour de cassation",
    "Chambre sociale",
    "REJET",
    publication="publié",
    ecli="ECLI:FR:CCASS:2018:SO00001",
    link="https://www.legifrance.gouv.fr/juri/id/JURITEXT000036900001",
)


def test_beside_a_decision_stand_court_date_outcome_publication_and_address():
    page = page_of(prediction(f"Oui {marker(citation())}.", [citation()], documents=[DECISION]))
    told = "Cour de cassation, chambre sociale · 3\u00a0mai\u00a02018 · rejet · publié · ECLI:FR:CCASS:2018:SO00001"
    assert told in page.text()
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a" and "https" in attrs.get("href", "")]
    assert links == [DECISION.link]
    copied = [attrs["data-copy"] for tag, attrs in page.tags if "data-copy" in attrs]
    assert copied[-1] == f"«\u00a0{citation().quote}\u00a0» (Cass.\u00a0soc., 3\u00a0mai\u00a02018)"


def test_a_party_s_words_are_copied_as_a_party_s():
    page = page_of(
        prediction(f"Oui {marker(citation())}.", [citation()._replace(speaker="party")], documents=[DECISION])
    )
    copied = [attrs["data-copy"] for tag, attrs in page.tags if "data-copy" in attrs]
    assert copied[-1].endswith("» (Cass.\u00a0soc., 3\u00a0mai\u00a02018, argument d'une partie)")


def test_a_calculated_answer_is_told_as_one_and_an_empty_input_of_a_step_is_left_out():
    receipts = [{"id": "r1", "asked": "nombre des décisions", "value": 14, "n": 14, "first": ["JURI-1"]}]
    event = Event("answer", "deep_read", {"receipts": receipts, "unverified": []}, [], 0.0)
    shown = prediction("- **nombre** : 14", mode="deep_read", evidence=[], events=[event])
    text = page_of(shown).text()
    assert "valeurs calculées sur les décisions" in text
    assert "des phrases qui énoncent un fait" not in text
    assert "[]" not in text


@pytest.mark.parametrize(
    ("mode", "status", "told"),
    [
        ("agent", "answered", "Rédigée par un modèle de langage"),
        ("fallback", "model_failed", "Modèle en échec"),
        ("evidence", "answered", "sans modèle de langage"),
        ("deep_read", "unverified", "Sorti d’un programme, non vérifié"),
    ],
)
def test_how_a_run_ended_is_told(mode, status, told):
    shown = prediction("Aucun passage pertinent.", mode=mode, status=status, evidence=[])
    page = page_of(shown)
    assert told in page.text()
    assert "Passages trouvés" not in page.text()


@pytest.mark.slow
def test_a_report_of_absurd_length_is_cut_and_says_so():
    long = prediction(
        "[Source" * 20_000 + "**" * 20_000 + "[Analyse]" * 20_000 + "« " * 20_000,
        [citation(start, 283) for start in range(220)] * 5,
        evidence=[passage(text="x" * 100_000, char_start=start) for start in range(600)],
        events=[Event("read", "x" * 9999, {"q": "y" * 100_000}, ["z" * 9999] * 20, 1.0)] * 700,
        ungrounded_claims=["Oui."] * 700,
    )
    page = render_answer(long)
    assert len(page) < 12_000_000
    text = Page(page).text()
    for told in ("600 autres citations", "100 autres passages", "200 autres étapes", "200 autres phrases"):
        assert f"{told} ne sont pas montrés." in text


def test_a_notebook_shows_the_report_in_a_closed_frame():
    html = show_answer(hostile(ATTACKS[0]), height=500)._repr_html_()
    ((tag, attributes),) = [(tag, attrs) for tag, attrs in Page(html).tags if tag != "div"]
    assert (tag, attributes["sandbox"], attributes["title"]) == ("iframe", "allow-scripts", "Réponse et sources")
    assert "height: 500px" in attributes["style"]
    assert attributes["srcdoc"] == render_answer(hostile(ATTACKS[0]))


def colours():
    """Return the colours in light and in dark mode."""
    blocks = re.findall(r"(@media[^{}]*dark\) \{\s*)?:root \{(.*?)\}", render_answer(FULL), re.DOTALL)
    of = {dark: "".join(block for mode, block in blocks if bool(mode) is dark) for dark in (False, True)}
    return [dict(re.findall(r"--([\w-]+): (#\w{6});", of[dark])) for dark in (False, True)]


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_text_is_readable_on_every_colour(contrast, mode):
    named = colours()[mode]
    for status in (*STATUSES, "party"):
        assert contrast(named[status], named[f"{status}-fill"]) >= 4.5
        assert contrast(named[status], named["paper"]) >= 4.5
    for fill in ("cited", "analysis", *(f"heat-{heat}" for heat in range(1, 5))):
        assert contrast(named["ink"], named[fill]) >= 7
    assert contrast(named["ink"], named["heat-5"]) >= 4.5
    assert contrast(named["quiet"], named["analysis"]) >= 4.5


@pytest.fixture
def opened(browser, tmp_path):
    """Open the report of a whole run on a desk's screen."""

    def opening(one=FULL, corpus=None):
        page = tmp_path / "report.html"
        page.write_text(render_answer(one, corpus), "utf-8")
        browser.medium("")
        browser.scheme("light")
        browser.resize(1300, 900)
        browser.forget()
        browser.open(page.as_uri())
        return page.as_uri()

    yield opening
    browser.medium("")


SECOND = "Le mandataire ouvre un compte bancaire unique."
TWO = prediction(
    f"Un {marker(citation())}. Deux « {SECOND} » "
    + marker(Citation("JURI-2", 900, 900 + len(SECOND), SECOND, "unverified")),
    [citation(), Citation("JURI-2", 900, 900 + len(SECOND), SECOND, "unverified")],
    evidence=[passage(), Passage("JURI-2", "JURI-2-0", 0, 1900, "Vu. " * 225 + SECOND + " Vu." * 238, 1.0, "Deux", "")],
)
IN_SIGHT = (
    "(({{top, bottom, left, right}}) => top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth)"
    "(document.querySelector('{}').getBoundingClientRect())"
)
FOCUSED = "document.activeElement.id"


def test_beside_the_answer_stands_the_first_passage_cited(browser, opened):
    opened(TWO)
    browser.wait_for(IN_SIGHT.format("#place-1"))
    assert browser.run(IN_SIGHT.format("#ref-1"))
    answer, decision = (
        browser.run(f"(({{left, right}}) => [left, right])(document.querySelector('{one}').getBoundingClientRect())")
        for one in ("#answer", "#d1")
    )
    assert answer[1] <= decision[0]
    assert (browser.run("scrollY"), browser.run("document.activeElement.tagName")) == (0, "BODY")


def test_a_page_opens_at_its_first_citation_far_into_a_long_decision(browser, opened, tmp_path):
    said = ("Attendu que la société soutient que le compte est tardif. ", "Mais le compte est à temps. ")
    parts = [sentence * 40 for sentence in said] * 100
    rows = [{"id": "LONG", "content": "\n\n".join([*parts, SECOND, *parts]), "title": "Un long arrêt"}]
    library = lr.build(rows, tmp_path / "long", n_bits=0, corpus_index=False, entities=False)
    start = rows[0]["content"].index(SECOND)
    cited = Citation("LONG", start, start + len(SECOND), SECOND, "verified")
    opened(prediction(f"Un « {SECOND} » {marker(cited)}.", [cited], evidence=[]), library)
    browser.wait_for(IN_SIGHT.format("#place-1"))
    assert browser.run("document.querySelector('mark').textContent") == SECOND


def test_a_click_leads_to_the_passage_in_its_decision_and_escape_goes_back(browser, opened):
    address = opened(TWO)
    assert browser.texts("#place-2") == []
    browser.click("#ref-2")
    browser.wait_for(IN_SIGHT.format("#place-2"))
    assert browser.run(IN_SIGHT.format("#ref-2"))
    assert browser.text(".reached").startswith("2?")
    assert browser.texts("#place-1") == []  # one decision is open at a time
    assert browser.run(FOCUSED) == "place-2"
    browser.press("Escape")
    assert browser.run(FOCUSED) == "ref-2"
    browser.click("#place-2 .cite")
    assert browser.run(FOCUSED) == "ref-2"
    assert (browser.messages, browser.alerts, set(browser.requests)) == ([], [], {address})


def test_keys_are_enough(browser, opened):
    opened(TWO)
    browser.press("Tab", "Tab", "Enter")
    browser.wait_for(f"{FOCUSED} === 'place-2'")
    browser.press("Escape")
    assert browser.run("document.activeElement.matches('#ref-2:focus-visible')")
    opened(TWO)
    browser.run("document.querySelector('#evidence > summary').focus()")
    browser.press("Enter", "Tab", "Tab", "Tab")
    assert browser.texts(".lit") == ["mois"]
    browser.press("Tab")
    assert browser.texts(".lit") == ["compte"]


def test_a_reference_and_a_passage_with_its_reference_are_copied(browser, opened):
    opened(TWO)
    browser.run("addEventListener('copy', (event) => { window.copied = event.clipboardData.getData('text/plain'); })")
    browser.click("button.copy")
    browser.wait_for("window.copied")
    assert browser.run("window.copied") == "CC, 3 mars 2021"
    assert browser.text("button.copy") == "Copié"
    browser.click("#place-1 button.copy")
    browser.wait_for("window.copied !== 'CC, 3 mars 2021'")
    assert browser.run("window.copied") == f"«\u00a0{citation().quote}\u00a0» (CC, 3 mars 2021)"


def test_hostile_predictions_run_nothing_and_ask_for_nothing(browser, opened):
    for attack in ATTACKS:
        address = opened(hostile(attack))
        browser.click("#answer .cite")
        browser.click("button.copy")
        assert browser.run("document.querySelectorAll('img, svg, iframe').length") == 0
        assert (browser.messages, browser.alerts, set(browser.requests)) == ([], [], {address})
        marked = browser.run("[...document.querySelectorAll('mark')].map((one) => one.textContent).join('')")
        assert marked == printable(attack)


def test_a_script_that_got_into_the_report_would_not_run(browser, opened, tmp_path):
    injected = "<script>alert('in')</script><img src=x onerror=alert('on')><style>body{display:none}</style>"
    page = tmp_path / "injected.html"
    page.write_text(render_answer(FULL).replace("<header>", f"<header>{injected}"), "utf-8")
    browser.forget()
    browser.open(page.as_uri())
    assert browser.alerts == []
    assert browser.run("getComputedStyle(document.body).display") == "block"
    assert len([one for one in browser.messages if "Content Security Policy" in one]) >= 3


def test_a_phone_shows_all_without_scrolling_sideways_and_within_reach_of_a_thumb(browser, opened):
    long = "x" * 300
    warned = replace(FULL, citations=[one._replace(warnings=("Attention.",)) for one in FULL.citations])
    for one in (warned, TWO, hostile(long), replace(FULL, question=long, notice=long)):
        opened(one)
        browser.resize(390, 844)
        browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
        assert browser.run("document.documentElement.scrollWidth <= 390")
        targets = "[...document.querySelectorAll('a[href], button, summary')].filter((one) => one.checkVisibility())"
        small = "({width, height}) => Math.round(width) < 44 || Math.round(height) < 44"
        assert (
            browser.run(
                f"{targets}.filter((one) => ({small})(one.getBoundingClientRect())).map((one) => one.outerHTML)"
            )
            == []
        )


def test_on_a_phone_the_passage_is_reached_and_left_again(browser, opened):
    opened(TWO)
    browser.resize(390, 844)
    browser.click("#ref-2")
    browser.wait_for(IN_SIGHT.format("#place-2"))
    browser.click("#place-2 .cite")
    browser.wait_for(IN_SIGHT.format("#ref-2"))


def test_paper_shows_the_answer_and_then_each_passage_once_in_its_context(browser, opened):
    opened(TWO)
    browser.medium("print")
    browser.wait_for("[...document.querySelectorAll('mark')].every((one) => one.checkVisibility())")
    text = browser.run("document.body.innerText")
    assert text.index("Deux « Le mandataire") < text.index("Sources") < text.index("1✓texte conforme")
    assert text.count(SECOND) == 2  # in the answer, and in the decision
    assert text.count(CONTENT[220:283]) == 1
    assert 200 < len(text[text.index("2?non confirmée") :]) < 700  # of the 1,900 characters of that passage
    assert browser.run("getComputedStyle(document.querySelector('#sources')).breakBefore") == "page"
    for hidden in ("button", "#steps", "#evidence", ".far"):
        assert browser.texts(hidden) == []


def test_dark_mode_has_the_dark_colours(browser, opened):
    opened()
    browser.scheme("dark")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(23, 23, 27)"
    assert browser.run("getComputedStyle(document.querySelector('.cite.verified')).color") == "rgb(146, 217, 170)"


def test_without_script_all_can_be_read_and_opened(browser, opened):
    browser.run_scripts(False)
    try:
        opened(TWO)
        browser.click("#ref-2")
        browser.wait_for(IN_SIGHT.format("#place-2"))
        browser.wait_for(f"document.querySelector('#d2 .words').innerText.includes({SECOND!r})")
        browser.click("#evidence > summary")
        assert "Deux" in browser.text("#evidence table")
    finally:
        browser.run_scripts(True)


def test_a_notebooks_frame_shows_the_report(browser, tmp_path):
    host = tmp_path / "host.html"
    host.write_text(f"<!DOCTYPE html><meta charset=utf-8>{show_answer(FULL)._repr_html_()}", "utf-8")
    browser.forget()
    browser.open(host.as_uri())
    assert QUESTION in browser.frame_text()
    assert (browser.messages, browser.alerts) == ([], [])
