"""Cleaning: what is markup goes, what is text stays character for character, and no text takes long."""

import datetime
import math
import time
import unicodedata
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from legal_rag.base.text import json_safe
from legal_rag.corpus.files import clean_text

# Letters that meet each other as tags, references, comments and decomposed letters more often than chance has it.
MARKUP = st.text(st.sampled_from("<>/&;#!-=\"' \n\t\x00\ud800bpxilt\u0301é…")) | st.lists(
    st.sampled_from(
        ["<p>", "</p>", "<br/>", "<b", "<", "&", "amp;", "lt;", "&#38;", "<!--", "-->", "<script>", "a\u0301"]
    )
).map("".join)


@settings(deadline=None)
@given(st.text() | MARKUP, st.booleans())
@example("<<b>b>texte", False)
@example("&amp;" * 3 + "lt;p&gt;", False)
@example("&&#97;mp;lt;b>", True)
def test_a_clean_text_stays_the_same_when_cleaned_again(text, is_html):
    cleaned = clean_text(text, is_html=is_html)
    assert clean_text(cleaned) == cleaned
    assert unicodedata.is_normalized("NFC", cleaned)
    cleaned.encode()


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<&\x00")))
def test_text_without_markup_is_kept_character_for_character_but_for_an_ellipsis_misread(text):
    assert clean_text(text) == unicodedata.normalize("NFC", text).replace("\x85", "…")


@pytest.mark.parametrize(
    "text",
    [
        "  L’œuvre  de M. X...,\n\n\n\n art. L. 1152-1 \t du code ;\u00a0soit 3 000 €.  \n",
        "si a < b et b > c, ou a<b",
        "M. <X...> et Mme <Y>, société <bidule>",
        "R&D, AT&T, Dupont & Fils; Durand &co",
        "&eacute sans point-virgule, &amp sans point-virgule",
        "&inconnu; &notit; &copier; &; &#; &#x;",
        "un <!-- jamais fermé, <p jamais fermé",
    ],
)
def test_what_is_no_markup_stays(text):
    assert clean_text(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l&#39;arr&ecirc;t &amp; le pourvoi", "l'arrêt & le pourvoi"),
        ("&#233;t&#xE9; &laquo;&nbsp;oui&nbsp;&raquo;", "été «\u00a0oui\u00a0»"),
        ("cafe\u0301", "café"),
        ("&amp;eacute;", "é"),
        ("&amp;amp;lt;b&amp;amp;gt;gras", "gras"),
        ("&lt;p&gt;un&lt;/p&gt;", "un"),
        ("a < b &lt;X&gt;", "a < b <X>"),
    ],
)
def test_references_are_decoded_as_often_as_they_were_escaped(text, expected):
    assert clean_text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Vu la loi ;<br/>Vu le code ;<BR >Vu<br>", "Vu la loi ;\nVu le code ;\nVu"),
        ("<p>Un</p><p>Deux</p>", "Un\n\nDeux"),
        ("<div><div><p>Un</p></div></div><hr/><p>Deux", "Un\n\nDeux"),
        ("<ul><li>un<li>deux</ul>", "un\ndeux"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><th>c<td>d</table>", "a b\n\nc d"),
        ("<em>art</em>icle <a href='x' title=\"a > b\">L. 1</a>", "article L. 1"),
        ("<p>M. <X...> & Cie, a<b, &foo; &copier;</p>", "M. <X...> & Cie, a<b, &foo; &copier;"),
        ("un<!-- deux\n<p>trois</p> -->quatre", "unquatre"),
        ("<style>p { color: red }</style>un<SCRIPT>if (a<b && c>d) {}</SCRIPT >deux", "undeux"),
        ("<!DOCTYPE html><head><title>Titre</title><body><p>Texte", "Texte"),
        ("<script>un texte que rien ne ferme", "un texte que rien ne ferme"),
        ("<script><p></script>", ""),
    ],
)
def test_tags_become_the_breaks_that_they_stand_for(text, expected):
    assert clean_text(text) == expected


def test_html_without_a_tag_is_trimmed_only_on_request_and_a_text_that_stays_markup_ends_as_text():
    assert clean_text("\n un \n\n\n\n deux ", is_html=True) == "un\n\ndeux"
    assert clean_text("\n un \n\n\n\n deux ") == "\n un \n\n\n\n deux "
    assert clean_text("<" * 50 + "b>" * 50) == "\ufffd" * 40 + "b>" * 40
    assert clean_text("<div>" * 100_000 + "x" + "</div>" * 100_000) == "x"


@pytest.mark.parametrize("text", ["a\x00b", "a\ud83db", "<b>a\udfffb</b>", "<p>a\x00b</p>", "a&#0;b", "a&#xD800;b"])
def test_characters_that_cannot_be_stored_become_replacement_characters(text):
    assert clean_text(text) == "a\ufffdb"


@pytest.mark.parametrize(
    "unit",
    ["<", "&", "<br ", "mot<br/>", "<!--", "<!-- x -->", "<p>mot</p>", "<script>", "<script><style>", '<a b="', "\n "],
)
def test_a_hostile_text_takes_linear_time(unit):
    started = time.process_time()
    for text in ("<p>" + unit * 25_000, "<a " + unit * 25_000 + "'"):
        clean_text(text)
    assert time.process_time() - started < 4  # a quadratic pattern takes many


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Holder:
    pair: Pair


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ("a\ud800\x00b", "a\ufffd\ufffdb"),
        (True, True),
        (2**70, 2**70),
        (math.nan, None),
        (-math.inf, None),
        ({1: "x", "\udfff": None}, {"1": "x", "\ufffd": None}),
        ((1, [2, ("3",)]), [1, [2, ["3"]]]),
        ({3, 1, 2}, [1, 2, 3]),
        (Pair(1, Pair("\ud800", 0.5)), {"left": 1, "right": {"left": "\ufffd", "right": 0.5}}),
        (Holder(Pair((), {})), {"pair": {"left": [], "right": {}}}),
        (datetime.date(2020, 1, 2), "2020-01-02"),
    ],
)
def test_any_value_has_a_form_that_json_and_text_stores_can_hold(value, plain):
    assert json_safe(value) == plain


def test_what_json_has_no_form_for_is_written_as_the_caller_wishes():
    assert json_safe([math.nan, b"x"], text_of=lambda value: f"<{len(value)}>", keep_nan=True) == ["nan", "<1>"]
