"""Tags in an answer: what they say, and the answer without them."""

import logging
import re
import time

import pytest

from legal_rag.graph import (
    EDGE_TYPES,
    EPISODE_STATUSES,
    NODE_TYPES,
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
    parse_extraction_tags,
)
from legal_rag.graph.tags import LINE_BREAKS, MOST_TAGS, NAME_CHARS, TEXT_CHARS

LEVER = ExtractedEntity("Société Lever", "party")


def entities(text):
    return parse_extraction_tags(text)[0].entities


def clean(text):
    return parse_extraction_tags(text)[1]


def test_entities_relationships_and_episodes_are_read_with_what_they_say():
    result, text = parse_extraction_tags(
        'Oui. <vm:entity name="Société Lever" type="party" confidence="0.95">demanderesse</vm:entity> Non.'
    )
    assert result == ExtractionResult([ExtractedEntity("Société Lever", "party", 0.95, "demanderesse")])
    assert text == "Oui.  Non."
    result, text = parse_extraction_tags('<vm:relationship from="A" to="B" type="cites" confidence="0.8" />Oui.')
    assert result == ExtractionResult(relationships=[ExtractedRelationship("A", "B", "cites", 0.8)])
    assert text == "Oui."
    result, text = parse_extraction_tags(
        'Oui.\n<vm:episode decision="Lire l’arrêt" context="moyen obscur" status="success">\n'
        "  <lesson>Le visa suffit &amp; guide</lesson>\n\n  <lesson>Lire le moyen</lesson>\n  <entity>Soc.</entity>\n"
        "</vm:episode>\nNon."
    )
    lessons = ("Le visa suffit & guide", "Lire le moyen")
    assert result.episodes == [ExtractedEpisode("Lire l’arrêt", "moyen obscur", "success", lessons, ("Soc.",))]
    assert text == "Oui.\n\nNon."


def test_every_type_of_node_and_edge_is_accepted():
    for node_type in NODE_TYPES:
        assert entities(f'<vm:entity name="x" type="{node_type.upper()}"/>') == [ExtractedEntity("x", node_type)]
    for edge_type in EDGE_TYPES:
        text = f'<vm:relationship from="a" to="b" type="{edge_type.replace("_", " ")}"/>'
        assert parse_extraction_tags(text)[0].relationships == [ExtractedRelationship("a", "b", edge_type)]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("0.5", 0.5),
        ("0,5", 0.5),
        ("50 %", 0.5),
        ("1.7", 1.0),
        ("-3", 0.0),
        ("inf", 1.0),
        (".5", 0.5),
        ("1e-1", 0.1),
        ("9" * 15, 1.0),
    ],
)
def test_a_confidence_is_clamped_to_0_and_1(written, read):
    assert entities(f'<vm:entity name="x" type="tool" confidence="{written}"/>')[0].confidence == pytest.approx(read)


@pytest.mark.parametrize("confidence", ["nan", "NaN", "", "haute", "0.9.1", "٠.٩", "0x1", "1_0", "--1"])
def test_a_tag_whose_confidence_is_no_number_is_left_out(confidence, caplog):
    caplog.set_level(logging.DEBUG)
    assert entities(f'<vm:entity name="x" type="tool" confidence="{confidence}"/>') == []
    assert "no usable confidence" in caplog.text


@pytest.mark.parametrize(
    ("tag", "missing"),
    [
        ('<vm:entity type="tool"/>', "name"),
        ('<vm:entity name="  " type="tool"/>', "name"),
        ('<vm:entity name="\u202e\u200b" type="tool"/>', "name"),
        (f'<vm:entity name="{"x" * (NAME_CHARS + 1)}" type="tool"/>', "name"),
        ('<vm:entity name="x"/>', "type"),
        ('<vm:entity name="x" type="dragon"/>', "type"),
        ('<vm:relationship to="b" type="cites"/>', "from"),
        ('<vm:relationship from="a" type="cites"/>', "to"),
        ('<vm:relationship from="a" to="b"/>', "type"),
        ('<vm:relationship from="a" to="b" type="party"/>', "type"),
        ('<vm:episode context="x" status="success"/>', "decision"),
    ],
)
def test_a_tag_without_what_it_must_have_is_left_out_with_a_debug_line(tag, missing, caplog):
    caplog.set_level(logging.DEBUG)
    result, text = parse_extraction_tags(f"Oui {tag}non.")
    assert not result
    assert text == "Oui non."
    assert f"no usable {missing}" in caplog.text


@pytest.mark.parametrize("pair", [("A", "A"), ("Société", " societe "), ("L’État", "l'etat"), ("§", "§")])
def test_an_edge_from_a_name_to_itself_is_left_out(pair):
    assert not parse_extraction_tags(f'<vm:relationship from="{pair[0]}" to="{pair[1]}" type="cites"/>')[0]


def test_an_unknown_or_missing_status_is_pending(caplog):
    caplog.set_level(logging.DEBUG)
    result, _ = parse_extraction_tags('<vm:episode decision="a" status="gagné"/><vm:episode decision="b"/>')
    assert [one.status for one in result.episodes] == ["pending", "pending"]
    assert "unknown status 'gagné'" in caplog.text
    assert "pending" in EPISODE_STATUSES


def test_what_is_repeated_counts_once_with_the_highest_confidence_and_the_one_description():
    tags = [f'<vm:entity name="Société Lever" type="party" confidence="{one}"/>' for one in (0.5, 0.9, 0.7)]
    assert entities("".join(tags)) == [ExtractedEntity("Société Lever", "party", 0.9)]
    text = '<vm:entity name="a" type="tool" confidence=0.5>sert</vm:entity><vm:entity name="a" type="tool"/>'
    assert entities(text) == [ExtractedEntity("a", "tool", 1.0, "sert")]  # a confidence is 1 by default


def test_confident_keeps_what_reaches_the_threshold_and_an_empty_result_is_empty():
    result, _ = parse_extraction_tags(
        '<vm:entity name="a" type="tool" confidence="0.69"/><vm:entity name="b" type="tool" confidence="0.7"/>'
        '<vm:relationship from="a" to="b" type="uses" confidence="0.2"/>'
    )
    assert result.confident(0.7) == ExtractionResult([ExtractedEntity("b", "tool", 0.7)])
    assert not ExtractionResult()
    assert ExtractionResult() == ExtractionResult([], [], [])
    assert parse_extraction_tags("") == (ExtractionResult(), "")


@pytest.mark.parametrize(
    "tag",
    [
        '<vm:entity name="Société Lever" type="party"/>',
        "<vm:entity type='party' name='Société Lever'></vm:entity>",
        '<VM:ENTITY TYPE="Party" NAME="Société Lever" />',
        '< vm : entity name = "Société  Lever"\n  type = party />',
        "<vm:entity name=“Société Lever” type=«party»/>",
        '<vm:entity name="Société Lever type="party"/>',
        '<vm:entity name="Société Lever" type="party>',
        '<vm:entity name="Société Lever" type="party"><vm:foo/></vm:entity>',
        '<vm:entity name="Société Lever" type="party"',
        '<vm:entity id name="Société Lever" type="party"/>',
        '<vm:entity name="Société Lever" name="autre" type="party"/>',
        '</vm:entity><vm:entity name="Société Lever" type="party"/>',
        '<vm:entity name="Soci\u200bété Lever" type="party"/>',
        '<vm:entity name="Société Lever" type="party" confidence=1.0/>',
        "<vm:entity name=Société Lever type=party/>",
        '<vm:entity name="Société Lever", type="party"/>',
        '<vm:entity name="Société Lever type=party confidence=1.0>',
        '<vm:entity name="Société Lever" type="party" / >',
        '<vm:entity/name="Société Lever" type="party"/>',
        '<vm:entity "Lever" name="Société Lever" type="party"/>',
        "<vm:entity name=„Société Lever“ type=‘party’/>",
        '<vm:entity name="Société\nLever"\ntype="party"\n></vm:entity>',
    ],
)
def test_a_loosely_written_tag_is_read(tag):
    assert parse_extraction_tags(f"Oui. {tag}") == (ExtractionResult([LEVER]), "Oui. ")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ('L\'affaire "Perruche" de 2000', 'L\'affaire "Perruche" de 2000'),
        ("Dupont & fils", "Dupont & fils"),
        ("Dupont &amp; fils", "Dupont & fils"),
        ("&lt;b&gt; &quot;x&quot; &#39;y&#39;", "<b> \"x\" 'y'"),
        ("&nbsp;&eacute;", "&nbsp;&eacute;"),
        ("a > b", "a > b"),
        ("a < b", "a < b"),
        (r"l\"État", 'l"État'),
        ("type = rien", "type = rien"),
        ("il dit « a » et “b”", "il dit « a » et “b”"),
        ("&amp;quot;", "&quot;"),
    ],
)
def test_signs_inside_a_value_belong_to_it(written, name):
    assert entities(f'<vm:entity name="{written}" type="concept"/>x') == [ExtractedEntity(name, "concept")]


def test_tags_in_a_description_are_no_part_of_it_and_a_closing_tag_closes_the_last_that_is_open():
    result, text = parse_extraction_tags(
        '<vm:entity name="a" type="tool">sert <vm:entity name="b" type="tool">d’abord</vm:entity> ici</vm:entity>!'
    )
    assert [one.name for one in result.entities] == ["a", "b"]
    assert result.entities[1].description == "d’abord"
    assert text == "!"
    result, text = parse_extraction_tags(
        '<vm:entity name="a" type="tool"> reste <vm:entity name="b" type="tool">sert</vm:entity>, <vm:entity>ici'
    )
    assert [(one.name, one.description) for one in result.entities] == [("a", ""), ("b", "sert")]
    assert text == " reste , ici"


def test_a_description_may_stand_in_an_attribute_and_is_cut_and_on_one_line():
    assert entities('<vm:entity name="a" type="tool" description="sert"/>')[0].description == "sert"
    tag = f'<vm:entity name="a" type="tool" description="{"x" * (TEXT_CHARS + 1)}"/>'
    assert entities(tag)[0].description == "x" * TEXT_CHARS
    assert entities('<vm:entity name="a" type="tool"> d’un\n <b>coup</b> &amp;\t fin</vm:entity>')[0].description == (
        "d’un coup & fin"
    )


@pytest.mark.parametrize(
    ("inside", "lessons", "names"),
    [
        ("<lesson>a <b>gras</b></lesson><lesson>coupé", ("a gras", "coupé"), ()),
        ("<Lesson n='1'>a</Lesson> entre <ENTITY>e</ENTITY>", ("a",), ("e",)),
        ("<lesson/><entity></entity><lesson> </lesson>", (), ()),
        (f"<entity>{'x' * (NAME_CHARS + 1)}</entity><lesson>{'x' * (TEXT_CHARS + 1)}", ("x" * TEXT_CHARS,), ()),
        ("a</lesson><entity>e<entity>f", (), ("e", "f")),
    ],
)
def test_lessons_and_names_of_an_episode_may_be_written_loosely(inside, lessons, names):
    result, text = parse_extraction_tags(f'Oui<vm:episode decision="d">{inside}</vm:episode>.')
    assert result.episodes == [ExtractedEpisode("d", lessons=lessons, entities=names)]
    assert text == "Oui."


def test_tags_beyond_the_limit_are_taken_out_unread_also_behind_blocks_of_code_which_are_left():
    text = "".join(f'{n}<vm:entity name="e{n}" type="tool"/>\n' for n in range(MOST_TAGS + 50))
    result, left = parse_extraction_tags(text)
    assert len(result.entities) == MOST_TAGS
    assert left == "".join(f"{n}\n" for n in range(MOST_TAGS + 50))
    block = "```\n<vm:x/>\n```\n"
    assert clean(block * 3_000 + "<vm:x/>Oui") == block * 3_000 + "Oui"
    block = "\n````xml\n<vm:x/>\n````\n"
    assert clean("<vm:x/>" * (MOST_TAGS + 1) + block + "<vm:y/>") == block


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Oui <vm:entity name=“x”/> non", "Oui  non"),
        ("Oui</vm:entity> <vm:foo a='1'>reste</vm:foo> non", "Oui reste non"),
        ("Oui < /vm:episode >non", "Oui non"),
        ("fin <vm:enti", "fin "),
        ('fin <vm:entity name="Le', "fin "),
        ("fin <vm", "fin "),
        ("fin </ vm", "fin "),
        ("a < b, <v et </v", "a < b, <v et </v"),
        ('Oui <vm:entity name="a" type="tool" La suite reste ici.', "Oui  La suite reste ici."),
        ('Oui <vm:entity name="a> La suite "ici" reste, "là" aussi.', 'Oui  La suite "ici" reste, "là" aussi.'),
        ('<vm:entity name="a" type="tool">Une réponse.\n\nDeux paragraphes.', "Une réponse.\n\nDeux paragraphes."),
        ("<vm:entity name='a' type='tool'>" + "x" * 1001 + "</vm:entity>", "x" * 1001),
        ("<lesson>hors d’un épisode</lesson>", "<lesson>hors d’un épisode</lesson>"),
        ("&lt;vm:entity/&gt;", "&lt;vm:entity/&gt;"),
        ("Oui <vm:foo bar baz> <vm:entity Le Monde/>non", "Oui  non"),
        ("si x < vm", "si x < vm"),
        ("Oui <vm: non", "Oui  non"),
        ('fin <vm:entity name="a" type="to', "fin "),
        ('fin <vm:entity name="a" con', "fin "),
        ('fin <vm:entity name="a" Suite', "fin  Suite"),
        ('Oui <vm:entity name="a" type="tool"\n\n> citation', "Oui \n\n> citation"),
        ('Oui <vm:entity name="a" type="tool"\nSuite > fin', "Oui \nSuite > fin"),
        ('Oui <vm:entity name="Le moyen.\n\nSuite "x" > y', 'Oui Le moyen.\n\nSuite "x" > y'),
        ('<vm:entity name="a" type="tool">Oui\n```\n</vm:entity>\n```\nnon', "Oui\n```\n</vm:entity>\n```\nnon"),
    ],
)  # fmt: skip
def test_no_tag_is_left_and_nothing_else_is_lost(text, left):
    assert clean(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "<<vm:x/>vm:y/>",
        "<v<vm:x/>m:y>",
        "</<vm:x/><vm:x/>vm:y",
        "<<<vm:x/>vm::vm:y",
        "<<vm:x/>vm: :<vm:x/>:y",
        "<vm<vm:>:y",
    ],
)
def test_taking_a_tag_out_makes_no_other_tag(text):
    assert "vm:" not in clean(text)[: -len("vm:y")]
    assert not re.search(r"<\s*/?\s*vm\s*:", clean(text))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A\n\n<vm:x/>\n\nB", "A\n\nB"),
        ("A\n<vm:x/>\nB", "A\n\nB"),
        ("A\n<vm:x/>\n<vm:y/>\nB", "A\n\nB"),
        ("A<vm:x/>\n\n\n\nB", "A\n\n\n\nB"),
        ("A\n\n\n\nB<vm:x/>", "A\n\n\n\nB"),
        ("A\n\n<vm:x/>", "A\n\n"),
        ("\n\n\n<vm:x/>A", "\n\n\nA"),
        ("A \n\n <vm:x/> \n\n B", "A \n\n  \n\n B"),
        ("A\n\n\n\n<vm:x/>\nB", "A\n\nB"),
        ("A\n<vm:x/>" + "\n" * 5_000 + "B", "A\n\nB"),
        ("\n" * (LINE_BREAKS + 1) + "<vm:x/>\n", "\n" * (LINE_BREAKS + 1)),
    ],
)
def test_line_breaks_that_only_a_tag_kept_apart_become_two(text, left):
    assert clean(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Oui.",
        "a\n\n\n\n\nb",
        "1 < 2 > 0",
        "```\ncode\n",
        "\r\n\r\n\x00\ud800é",
        " \n" * 9,
        " name=\"x\" type='y' />",
        "<v m:x>",
    ],
)
def test_a_text_without_tags_is_unchanged(text):
    assert parse_extraction_tags(text) == (ExtractionResult(), text)


@pytest.mark.parametrize(
    "fence",
    [
        '```xml\n<vm:entity name="a" type="tool"/>\n```\n',
        '~~~\n<vm:entity name="a" type="tool"/>\n```\n~~~\n',
        '   ````\n```\n<vm:entity name="a" type="tool"/>\n`````  \n',
        '```\n<vm:entity name="a" type="tool"/>',
        '```\n\n\n<vm:entity name="a" type="tool"/>\n\n\n',
    ],
)
def test_a_tag_in_a_block_of_code_is_text(fence):
    assert parse_extraction_tags(f"Oui.\n{fence}") == (ExtractionResult(), f"Oui.\n{fence}")


@pytest.mark.parametrize("text", ["Oui ```\n{}", "    ```\n{}", "``\n{}", "```a`b\n{}", "```\n```\n{}", "``` {}`\n"])
def test_what_opens_no_block_of_code_protects_no_tag(text):
    assert clean(text.format("<vm:x/>")) == text.format("")


ADVERSARIAL = {
    "self-closing": '<vm:entity name="a" type="tool"/>' * 8_000,
    "begun": "<vm:" * 60_000,
    "open values": '<vm:entity name="' * 15_000,
    "quotes": '<vm:entity name="' + '"' * 250_000,
    "values of quotes": ('<vm:entity name="' + '" ' * 950) * 130,
    "values of blanks": ('<vm:entity name="' + " " * 1_900) * 130,
    "forgotten quotes": ("<vm:entity " + 'name="b ' * 240) * 130,
    "odd quotes": ("<vm:x " + "a='b \"x " * 240) * 110,
    "openers": '<vm:entity name="a" type="tool">' * 8_000,
    "nested": '<vm:episode decision="d">' * 6_000 + "</vm:episode>" * 6_000,
    "nested in episodes": ('<vm:episode decision="d">' + "<vm:entity name=a>" * 200 + "</vm:episode>") * 60,
    "lessons": ('<vm:episode decision="d">' + "<lesson>" * 500 + "</vm:episode>") * 60,
    "fences": "```\n" * 60_000,
    "fences of tildes": "~~~\n~~~\na\n" * 25_000,
    "less-than": "<" * 250_000,
    "escapes": '<vm:entity name="' + "&amp;" * 50_000,
    "line breaks": ("\n" * 10 + "<vm:x/>") * 15_000,
    "attributes": "<vm:entity " + "a=" * 120_000,
    "blanks": "<vm:entity" + " " * 250_000,
    "names to fold": (f'<vm:relationship from="{"ﷺ" * 290}" to="b" type="cites"/>') * 700,
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_hostile_text_takes_linear_time(name):
    started = time.perf_counter()
    assert "<vm:" not in clean(ADVERSARIAL[name])
    assert time.perf_counter() - started < 1  # some 10 to 30 ms
