"""Tags in an answer: what they say, and the answer without them."""

import logging
import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legal_rag.graph import (
    EDGE_TYPES,
    EPISODE_STATUSES,
    NODE_TYPES,
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
    TagScanner,
    parse_extraction_tags,
)
from legal_rag.graph.tags import HELD_CHARS, MOST_TAGS, NAME_CHARS

LEVER = ExtractedEntity("Société Lever", "party")


def entities(text):
    return parse_extraction_tags(text)[0].entities


def clean(text):
    return parse_extraction_tags(text)[1]


# --- what tags say ----------------------------------------------------------------------------------------------------


def test_an_entity_is_read_with_its_description():
    result, text = parse_extraction_tags(
        'Oui. <vm:entity name="Société Lever" type="party" confidence="0.95">demanderesse</vm:entity> Non.'
    )
    assert result == ExtractionResult([ExtractedEntity("Société Lever", "party", 0.95, "demanderesse")])
    assert text == "Oui.  Non."


def test_a_relationship_is_read():
    result, text = parse_extraction_tags('<vm:relationship from="A" to="B" type="cites" confidence="0.8" />Oui.')
    assert result == ExtractionResult(relationships=[ExtractedRelationship("A", "B", "cites", 0.8)])
    assert text == "Oui."


def test_an_episode_is_read_with_its_lessons_and_entities():
    result, text = parse_extraction_tags(
        'Oui.\n<vm:episode decision="Lire l’arrêt" context="moyen obscur" status="success">\n'
        "  <lesson>Le visa suffit &amp; guide</lesson>\n\n  <lesson>Lire le moyen</lesson>\n  <entity>Soc.</entity>\n"
        "</vm:episode>\nNon."
    )
    lessons = ("Le visa suffit & guide", "Lire le moyen")
    assert result.episodes == [ExtractedEpisode("Lire l’arrêt", "moyen obscur", "success", lessons, ("Soc.",))]
    assert text == "Oui.\n\nNon."


@pytest.mark.parametrize("node_type", NODE_TYPES)
def test_every_type_of_node_is_accepted(node_type):
    assert entities(f'<vm:entity name="x" type="{node_type.upper()}"/>') == [ExtractedEntity("x", node_type)]


@pytest.mark.parametrize("edge_type", EDGE_TYPES)
def test_every_type_of_edge_is_accepted(edge_type):
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


def test_a_confidence_is_1_by_default():
    assert entities('<vm:entity name="x" type="tool"/>')[0].confidence == 1.0


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


def test_what_is_repeated_counts_once_with_the_highest_confidence():
    tags = [f'<vm:entity name="Société Lever" type="party" confidence="{one}"/>' for one in (0.5, 0.9, 0.7)]
    assert entities("".join(tags)) == [ExtractedEntity("Société Lever", "party", 0.9)]


def test_confident_keeps_what_reaches_the_threshold():
    result, _ = parse_extraction_tags(
        '<vm:entity name="a" type="tool" confidence="0.69"/><vm:entity name="b" type="tool" confidence="0.7"/>'
        '<vm:relationship from="a" to="b" type="uses" confidence="0.2"/>'
    )
    assert result.confident(0.7) == ExtractionResult([ExtractedEntity("b", "tool", 0.7)])


def test_an_empty_result_is_empty():
    assert not ExtractionResult()
    assert ExtractionResult() == ExtractionResult([], [], [])
    assert parse_extraction_tags("") == (ExtractionResult(), "")


# --- how loosely they may be written ----------------------------------------------------------------------------------


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
    ],
)
def test_signs_inside_a_value_belong_to_it(written, name):
    assert entities(f'<vm:entity name="{written}" type="concept"/>x') == [ExtractedEntity(name, "concept")]


def test_tags_in_a_description_are_read_and_are_no_part_of_it():
    result, text = parse_extraction_tags(
        '<vm:entity name="a" type="tool">sert <vm:entity name="b" type="tool">d’abord</vm:entity> ici</vm:entity>!'
    )
    assert [one.name for one in result.entities] == ["a", "b"]
    assert result.entities[1].description == "d’abord"
    assert text == "!"


def test_tags_beyond_the_limit_are_taken_out_unread():
    text = "".join(f'{n}<vm:entity name="e{n}" type="tool"/>\n' for n in range(MOST_TAGS + 50))
    result, left = parse_extraction_tags(text)
    assert len(result.entities) == MOST_TAGS
    assert left == "".join(f"{n}\n" for n in range(MOST_TAGS + 50))


# --- what is left -----------------------------------------------------------------------------------------------------


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
    ],
)  # fmt: skip
def test_no_tag_is_left_and_nothing_else_is_lost(text, left):
    assert clean(text) == left


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
    ],
)
def test_line_breaks_that_only_a_tag_kept_apart_become_two(text, left):
    assert clean(text) == left


@pytest.mark.parametrize(
    "text", ["", "Oui.", "a\n\n\n\n\nb", "1 < 2 > 0", "```\ncode\n", "\r\n\r\n\x00\ud800é", " \n" * 9]
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


# --- any text ---------------------------------------------------------------------------------------------------------

ADVERSARIAL = {
    "self-closing": '<vm:entity name="a" type="tool"/>' * 8_000,
    "begun": "<vm:" * 60_000,
    "open values": '<vm:entity name="' * 15_000,
    "quotes": '<vm:entity name="' + '"' * 250_000,
    "openers": '<vm:entity name="a" type="tool">' * 8_000,
    "nested": '<vm:episode decision="d">' * 6_000 + "</vm:episode>" * 6_000,
    "fences": "```\n" * 60_000,
    "less-than": "<" * 250_000,
    "escapes": '<vm:entity name="' + "&amp;" * 50_000,
    "line breaks": ("\n" * 10 + "<vm:x/>") * 15_000,
    "attributes": "<vm:entity " + "a=" * 120_000,
    "blanks": "<vm:entity" + " " * 250_000,
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_hostile_text_takes_linear_time(name):
    started = time.perf_counter()
    assert "<vm:" not in clean(ADVERSARIAL[name])
    assert time.perf_counter() - started < 1  # some 20 ms


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.sampled_from("<>/vm:entity \n`~\"'=&;xépisodRELATIONSHIP\ud800\x00"), max_size=80) | st.text(max_size=80)
)
def test_any_text_is_read(text):
    result, left = parse_extraction_tags(text)
    assert isinstance(result, ExtractionResult)
    assert len(left) <= len(text)


# Pieces with what is left of them and what they say; the oracle puts them together, and knows no scanner.
PROSE = [
    "La Cour rejette. ",
    "L’article 1240 < 3 ? ",
    "« Oui », dit-elle",
    "\n",
    "\n\n",
    "\n\n\n",
    " & > \" ' ",
    "é\u202e",
    "`x` ~~ ",
]
EPISODE = '<vm:episode decision="d{n}"><lesson>l</lesson>\n\n<vm:entity name="i{n}" type="tool"/></vm:episode>'
TAGS = [
    ('<vm:entity name="e{n}" type="tool"/>', ("e{n}",)),
    ("<VM:Entity type=tool name=e{n} confidence=0.5 />", ("e{n}",)),
    ('<vm:entity name="e{n}" type="tool">un "mot" > un autre</vm:entity>', ("e{n}",)),
    ('<vm:entity name="e{n} type="tool"/>', ("e{n}",)),
    ('<vm:relationship from="a{n}" to="b{n}" type="cites"/>', ("a{n}>b{n}",)),
    (EPISODE, ("i{n}", "!d{n}")),
    ('<vm:entity name="e{n}" type="dragon"/>', ()),
    ("<vm:entity name='' type='tool'></vm:entity>", ()),
    ("<vm:other x='{n}'/>", ()),
    ("</vm:other>", ()),
]  # fmt: skip
CUT = [
    ('<vm:entity name="e{n}" type="tool"', ("e{n}",), " et la suite, reste. "),
    ("<vm:entity", (), " puis la fin reste. "),
]
FENCE = '\n```\n<vm:entity name="f" type="tool"/>\n```\n'
ENDS = ["", "<vm:enti", '<vm:entity name="Le', "<vm"]
REMOVED = "\ue000"


def some_answer(generator):
    """Return an answer, what must be left of it, and what its tags say."""
    text, left, said = "", "", []
    for n in range(generator.randrange(7)):
        kind = generator.random()
        if kind < 0.45:
            piece = generator.choice(PROSE)
            text, left = text + piece, left + piece
        elif kind < 0.5:
            text, left = text + FENCE, left + FENCE
        elif kind < 0.57:
            tag, names, rest = generator.choice(CUT)
            text, left = text + tag.format(n=n) + rest, left + REMOVED + rest
            said += [one.format(n=n) for one in names]
        else:
            tag, names = generator.choice(TAGS)
            text, left = text + tag.format(n=n), left + REMOVED
            said += [one.format(n=n) for one in names]
    end = generator.choice(ENDS)
    left = re.sub(f"\n[\n{REMOVED}]*\n", _joined, left + REMOVED * bool(end))
    return text + end, left.replace(REMOVED, ""), sorted(said)


def _joined(run):
    is_split = re.search(f"\n{REMOVED}+\n", run.group())
    return "\n\n" if is_split and run.group().count("\n") > 2 else run.group()


def names_in(result):
    named = [one.name for one in result.entities] + [f"{one.source}>{one.target}" for one in result.relationships]
    return sorted(named + [f"!{one.decision}" for one in result.episodes])


@pytest.mark.parametrize("seed", range(20))
def test_an_answer_is_what_its_pieces_say(seed):
    generator = random.Random(seed)
    for _ in range(1_000):
        text, left, said = some_answer(generator)
        result, found = parse_extraction_tags(text)
        assert (found, names_in(result)) == (left, said), text


def test_an_answer_in_pieces_is_the_same_as_whole():
    generator = random.Random(7)
    for _ in range(1_500):
        text = some_answer(generator)[0]
        scanner, given_out, at = TagScanner(), "", 0
        while at < len(text):
            size = generator.randint(1, 12)
            given_out += scanner.feed(text[at : at + size])
            at += size
        assert (scanner.result, given_out + scanner.close()) == parse_extraction_tags(text), text


def test_a_stream_gives_out_prose_at_once_and_holds_back_little():
    scanner = TagScanner()
    assert scanner.feed("La Cour ") == "La Cour "
    assert scanner.feed("rejette <vm:entity na") == "rejette "
    assert scanner.feed('me="a" type="tool"/> le') == " le"
    assert scanner.feed(" pourvoi.") == " pourvoi."
    assert scanner.feed('<vm:episode decision="') == ""
    assert len(scanner.feed("x" * (HELD_CHARS + 10))) > 0
