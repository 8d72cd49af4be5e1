"""Tags in an answer: what they say, and the answer without them."""

import logging
import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legal_rag.graph import (
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
    parse_extraction_tags,
)
from legal_rag.graph.tags import MOST_TAGS, NAME_CHARS, TEXT_CHARS

LEVER = ExtractedEntity("Société Lever", "party")
NO_NUMBERS = ["nan", "NaN", "", "haute", "0.9.1", "٠.٩", "0x1", "1_0", "--1", "5 %%"]
NO_CODE = ["Oui ```\n{}", "    ```\n{}", "``\n{}", "```a`b\n{}", "```\n```\n{}", "``` {}`\n"]


def entities(text):
    return parse_extraction_tags(text)[0].entities


def clean(text):
    return parse_extraction_tags(text)[1]


def test_tags_are_read_with_what_they_own():
    result, text = parse_extraction_tags(
        'Oui. <vm:entity name="Société Lever" type="party" confidence="0.95">demanderesse</vm:entity> Non.\n'
        '<vm:relationship from="A" to="B" type="cites" confidence="0.8" />\n'
        '<vm:episode decision="Lire l’arrêt" context="moyen obscur" status="success">\n  <entity>Soc.</entity>\n\n'
        "  <lesson>Le visa suffit &amp; guide</lesson>\n  <lesson>Lire le moyen</lesson>\n</vm:episode>\nFin."
    )
    lessons = ("Le visa suffit & guide", "Lire le moyen")
    assert result == ExtractionResult(
        [ExtractedEntity("Société Lever", "party", 0.95, "demanderesse")],
        [ExtractedRelationship("A", "B", "cites", 0.8)],
        [ExtractedEpisode("Lire l’arrêt", "moyen obscur", "success", lessons, ("Soc.",))],
    )
    assert text == "Oui.  Non.\n\nFin."


@pytest.mark.parametrize(
    ("written", "read"),
    [("0.5", 0.5), ("0,5", 0.5), ("50 %", 0.5), ("1.7", 1.0), ("-3", 0.0), (".5", 0.5), ("1e-1", 0.1), ("9" * 15, 1.0)],
)
def test_a_confidence_is_clamped_to_0_and_1(written, read):
    assert entities(f'<vm:entity name="x" type="tool" confidence="{written}"/>')[0].confidence == pytest.approx(read)
    assert entities('<vm:entity name="x" type="tool"/>')[0].confidence == 1.0


@pytest.mark.parametrize(
    ("missing", "tag"),
    [
        *(("name", f'entity {name} type="tool"') for name in ("", 'name="  "', 'name="\u202e\u200b"')),
        ("name", f'entity name="{"x" * (NAME_CHARS + 1)}" type="tool"'),
        *(("type", f'entity name="x" {type_}') for type_ in ("", 'type="dragon"')),
        *(("type", f'relationship from="a" to="b" {type_}') for type_ in ("", 'type="party"')),
        ("from", 'relationship to="b" type="cites"'), ("to", 'relationship from="a" type="cites"'),
        ("decision", 'episode context="x" status="success"'),
        *(("confidence", f'entity name="x" type="tool" confidence="{one}"') for one in NO_NUMBERS),
    ],
)  # fmt: skip
def test_a_tag_without_what_it_must_have_is_left_out_with_a_debug_line(missing, tag, caplog):
    caplog.set_level(logging.DEBUG)
    result, text = parse_extraction_tags(f"Oui <vm:{tag}/>non.")
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


def test_what_is_repeated_counts_once_with_the_highest_confidence_and_any_description():
    tags = [f'<vm:entity name="Société Lever" type="party" confidence="{one}"/>' for one in (0.5, 0.9, 0.7)]
    assert entities("".join(tags)) == [ExtractedEntity("Société Lever", "party", 0.9)]
    described = '<vm:entity name="Société Lever" type="party" confidence=0.5>sert</vm:entity>'
    assert entities(described + tags[1]) == [ExtractedEntity("Société Lever", "party", 0.9, "sert")]


def test_confident_keeps_what_reaches_the_threshold():
    tags = [
        f'<vm:entity name="a" type="{kind}" confidence="{sure}"/>' for kind, sure in (("tool", 0.69), ("party", 0.7))
    ]
    result, _ = parse_extraction_tags("".join([*tags, '<vm:relationship from="a" to="b" type="uses" confidence=0.2/>']))
    assert result.confident(0.7) == ExtractionResult([ExtractedEntity("a", "party", 0.7)])


@pytest.mark.parametrize(
    "tag",
    [
        '<vm:entity name="Société Lever" type="party"/>', '<vm:entity name="Société Lever" type="party"',
        "<vm:entity type='party' name='Société Lever'></vm:entity>", '<VM:ENTITY TYPE="Party" NAME="Société Lever" />',
        '< vm : entity name = "Société  Lever"\n  type = party />', "<vm:entity name=“Société Lever” type=«party»/>",
        '<vm:entity name="Société Lever type="party"/>', '<vm:entity name="Société Lever" type="party>',
        '<vm:entity name="Société Lever" type="party"><vm:foo/></vm:entity>',
        '<vm:entity id name="Société Lever" type="party"/>', '<vm:entity "Lever" name="Société Lever" type="party"/>',
        '<vm:entity name="Société Lever" name="autre" type="party"/>', "<vm:entity name=Société Lever type=party/>",
        '</vm:entity><vm:entity name="Société Lever" type="party"/>', '<vm:entity/name="Société Lever" type="party"/>',
        '<vm:entity name="Soci\u200bété Lever" type="party"/>', '<vm:entity name="Société Lever", type="party"/>',
        '<vm:entity name="Société Lever" type="party" confidence=1.0/>',
        "<vm:entity name=Société Lever\ntype=party/>", '<vm:entity name="Société Lever" id=3 type="party"/>',
        '<vm:entity name="Société Lever type=party confidence=1.0>', '<vm:entity name="Société Lever" type=party / >',
        "<vm:entity type=‘party’ name=„Société Lever“/>", '<vm:entity name="Société\nLever"\ntype="party"\n/>',
    ],
)  # fmt: skip
def test_a_loosely_written_tag_is_read(tag):
    assert parse_extraction_tags(f"Oui. {tag}") == (ExtractionResult([LEVER]), "Oui. ")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        *((one, one) for one in ('L\'affaire "Perruche" de 2000', "&nbsp;&eacute;", "a > b", "a < b", "type = rien")),
        ("il dit « a » et “b”", "il dit « a » et “b”"), ("Dupont & fils &amp; filles", "Dupont & fils & filles"),
        ("&lt;b&gt; &quot;x&quot; &#39;y&#39;", "<b> \"x\" 'y'"), (r"l\"État", 'l"État'), ("&amp;quot;", "&quot;"),
    ],
)  # fmt: skip
def test_signs_inside_a_value_belong_to_it(written, name):
    assert entities(f'<vm:entity name="{written}" type="concept"/>x') == [ExtractedEntity(name, "concept")]


@pytest.mark.parametrize(
    ("text", "said", "left"),
    [
        ('{a}sert <vm:entity name="b" type="tool">d’abord</vm:entity> ici</vm:entity>!', ["sert ici", "d’abord"], "!"),
        ('{a} reste <vm:entity name="b" type="tool">sert</vm:entity>, <vm:entity>ici', ["", "sert"], " reste , ici"),
        ("{a} d’un\n <b>coup</b> &amp;\t fin</vm:entity>", ["d’un coup & fin"], ""),
        ("Le {a}A</vm:entity> sert.", ["A"], "Le A sert."),
        ("{a}" + "x" * 1001 + "</vm:entity>", [""], "x" * 1001),
        ("{a}Une réponse.\n\nDeux.</vm:entity>", [""], "Une réponse.\n\nDeux."),
        ("{a}Oui\n```\n</vm:entity>\n```\nnon", [""], "Oui\n```\n</vm:entity>\n```\nnon"),
        (f'<vm:entity name="a" type="tool" description="{"x" * (TEXT_CHARS + 1)}"/>', ["x" * TEXT_CHARS], ""),
    ],
)
def test_what_stands_between_two_tags_is_a_description_if_it_is_short(text, said, left):
    result, found = parse_extraction_tags(text.replace("{a}", '<vm:entity name="a" type="tool">'))
    assert ([one.description for one in result.entities], found) == (said, left)


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


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Oui <vm:entity name=“x”/> non", "Oui  non"), ("Oui < /vm:episode >non", "Oui non"),
        ("Oui</vm:entity> <vm:foo a='1'>reste</vm:foo> non", "Oui reste non"),
        *((f"fin {cut}", "fin ") for cut in ("<vm:enti", '<vm:entity name="Le', "<vm", "</ vm")),
        *((f'fin <vm:entity name="a" {cut}', "fin ") for cut in ('type="to', "con")),
        ('fin <vm:entity name="a" Suite', "fin  Suite"), ("Oui <vm: non", "Oui  non"),
        ("a < b, <v et </v, si x < vm", "a < b, <v et </v, si x < vm"),
        ('Oui <vm:entity name="a" type="tool" La suite reste ici.', "Oui  La suite reste ici."),
        ('Oui <vm:entity name="a> La suite "ici" reste, "là" aussi.', 'Oui  La suite "ici" reste, "là" aussi.'),
        ("Oui <vm:entity name=a La suite x = 3.", "Oui  La suite x = 3."),
        ("<lesson>hors d’un épisode</lesson>&lt;vm:x/&gt;", "<lesson>hors d’un épisode</lesson>&lt;vm:x/&gt;"),
        ("Oui <vm:foo bar baz> <vm:entity Le Monde/>non", "Oui  non"),
        ('Oui <vm:entity name="a" type="tool"\n\n> citation', "Oui \n\n> citation"),
        ('Oui <vm:entity name="a" type="tool"\nSuite > fin', "Oui \nSuite > fin"),
        ("Oui <vm:entity name=\n\nSuite", "Oui \n\nSuite"),
        ('Oui <vm:entity name="Le moyen.\n\nSuite "x" > y', 'Oui Le moyen.\n\nSuite "x" > y'),
        ("A\n\n<vm:x/>\n\nB", "A\n\nB"), ("A\n<vm:x/>\nB", "A\n\nB"), ("A\n<vm:x/>\n<vm:y/>\nB", "A\n\nB"),
        ("A<vm:x/>\n\n\n\nB", "A\n\n\n\nB"), ("A\n\n\n\nB<vm:x/>", "A\n\n\n\nB"), ("A\n\n<vm:x/>", "A\n\n"),
        ("\n\n\n<vm:x/>A", "\n\n\nA"), ("A \n\n <vm:x/> \n\n B", "A \n\n  \n\n B"),
        ("\n" * 5_000 + "<vm:x/>" + "\n" * 5_000 + "B", "\n\nB"),
        *((one.format("<vm:x/>"), one.format("")) for one in NO_CODE),
    ],
)  # fmt: skip
def test_no_tag_is_left_and_nothing_else_is_lost(text, left):
    assert clean(text) == left


@pytest.mark.parametrize("more", ["<vm:x\n a='1'\n/>", '<vm:x a="1 b="2">', "<vm:x", "</vm:x>", "<vm"])
def test_tags_beyond_the_limit_are_taken_out_unread(more):
    block = "````xml\n<vm:x/>\n````\n"
    text = "".join(f'{n}<vm:entity name="e{n}" type="tool"/>\n' for n in range(MOST_TAGS + 50))
    result, left = parse_extraction_tags(f"{text}{block}fin {more}")
    assert len(result.entities) == MOST_TAGS
    assert left == "".join(f"{n}\n" for n in range(MOST_TAGS + 50)) + block + "fin "


@pytest.mark.parametrize(
    "text",
    ["<<vm:x/>vm:y/>", "<v<vm:x/>m:y>", "</<vm:x/><vm:x/>vm:y", "<<<vm:x/>vm::vm:y", "<<vm:x/>vm: :<vm:x/>:y",
     "<vm<vm:>:y", "<vm:x/>" * MOST_TAGS + "<<vm:x/>vm:y"],
)  # fmt: skip
def test_taking_a_tag_out_makes_no_other_tag(text):
    assert "vm:" not in clean(text)[: -len("vm:y")]
    assert not re.search(r"<\s*/?\s*vm\s*:", clean(text))


@pytest.mark.parametrize(
    "text",
    ["", "Oui.", "a\n\n\n\n\nb", "1 < 2 > 0", "```\ncode\n", "\r\n\r\n\x00\ud800é\ufdd1", " \n" * 9,
     " name=\"x\" type='y' />", "<v m:x>"],
)  # fmt: skip
def test_a_text_without_tags_is_unchanged(text):
    assert parse_extraction_tags(text) == (ExtractionResult(), text)


@pytest.mark.parametrize(
    "code",
    [
        '```xml\n<vm:entity name="a" type="tool"/>\n```\n', '~~~\n<vm:entity name="a" type="tool"/>\n```\n~~~\n',
        '   ````\n```\n<vm:entity name="a" type="tool"/>\n`````  \n', "```\n<vm:x/>\n```\n" * 3_000,
        '```\n<vm:entity name="a" type="tool"/>', '```\n\n\n<vm:entity name="a" type="tool"/>\n\n\n',
    ],
)  # fmt: skip
def test_a_tag_in_a_block_of_code_is_text(code):
    assert parse_extraction_tags(f"<vm:x/>Oui.\n{code}") == (ExtractionResult(), f"Oui.\n{code}")


ADVERSARIAL = {
    "begun": "<vm:" * 60_000,
    "quotes": '<vm:entity name="' + '"' * 250_000,
    "values": ('<vm:entity name="' + '" ' * 950) * 130,
    "values of blanks": ('<vm:entity name="' + " " * 1_900) * 130,
    "forgotten quotes": ("<vm:entity " + 'name="b ' * 240) * 130,
    "nested": '<vm:episode decision="d">' * 6_000 + "</vm:episode>" * 6_000,
    "nested in episodes": ('<vm:episode decision="d">' + "<vm:entity name=a>" * 200 + "</vm:episode>") * 60,
    "fences": "```\n" * 60_000 + "<vm",
    "code in episodes": '<vm:episode decision="d">' * 900 + "```\n\n```\n" * 25_000,
    "less-than": "<vm:x/>" + "<" * 250_000,
    "line breaks": ("\n" * 10 + "<vm:x/>") * 15_000,
    "names to fold": (f'<vm:relationship from="{"ﷺ" * 290}" to="b" type="cites"/>') * 700,
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_hostile_text_takes_linear_time(name):
    started = time.process_time()
    assert "<vm:" not in clean(ADVERSARIAL[name])
    assert time.process_time() - started < 5  # some 10 to 30 ms


FRAGMENTS = r"""
<vm:entity|</vm:entity>|<vm:entity name="a" type="tool">|<vm:entity name="a" type="tool"/>|<vm:episode decision="d">
</vm:episode>|<vm:relationship from="a" to="b" type="cites"|<vm|<|</|/|>|"|'| name="| type=| x="|a|mot | |`|```|~~~|=
</vm:|vm:|v|m|:|:vm|"q" |«|»|“|”|&amp;|\"|< /vm:entity >|<lesson>l</lesson>|<vm:foo>| confidence="0.9>|é.
"""
FRAGMENTS = FRAGMENTS.strip().replace("\n", "|").split("|")
FRAGMENTS += ["\n", "\n\n", "\n```\n", "\n~~~\n", "\n   ", "\r\n", "x" * 300, "\n" * 400]
BEGINNING = re.compile(r"<[ \t]{0,3}/?[ \t]{0,3}vm[ \t]{0,3}:", re.IGNORECASE)


def fenced(text):
    """Return the blocks of code of a text, read line by line."""
    mark, inside = "", []
    for line in text.split("\n"):
        found = re.match(r" {0,3}(`{3,}|~{3,})(.*)", line, re.DOTALL)
        if mark:
            inside.append(line)
            mark = "" if found and found[1].startswith(mark) and not found[2].strip(" \t\r") else mark
        elif found and (found[1][0] == "~" or ("`" not in found[2] and len(found[2]) <= 200)):
            mark = found[1]
            inside.append(line)
    return "\n".join(inside)


@pytest.mark.parametrize("before", ["", "<vm:x/>" * MOST_TAGS])
def test_of_any_fragments_only_tags_in_code_are_left_and_nothing_is_added(before):
    generator = random.Random(11)
    for _ in range(100 if before else 1_000):
        text = before + "".join(generator.choice(FRAGMENTS) for _ in range(generator.randrange(25)))
        left = parse_extraction_tags(text)[1]
        assert len(BEGINNING.findall(left)) <= len(BEGINNING.findall(fenced(text))), text
        rest = iter(text)
        assert all(letter in rest for letter in left), text


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("<>/vm:entity \n\t\"'=&;xépisodRELATIONSHIP\ud800\x00\ufdd1")) | st.text())
def test_any_text_is_read_and_no_tag_of_it_is_left(text):
    assert not BEGINNING.search(parse_extraction_tags(text)[1])


def test_what_is_parsed_has_names_and_unpacks_as_a_pair():
    text = 'Oui.<vm:entity name="Lever" type="party"/><vm:relationship from="A" to="B" type="cites"/>'
    parsed = parse_extraction_tags(f'{text}<vm:episode decision="Lire"/>')
    extraction, clean = parsed
    assert parsed.clean_response == clean == "Oui."
    assert (parsed.entities, parsed.relationships, parsed.episodes) == (
        extraction.entities,
        extraction.relationships,
        extraction.episodes,
    )
    assert [len(parsed.entities), len(parsed.relationships), len(parsed.episodes)] == [1, 1, 1]
