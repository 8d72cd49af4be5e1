"""Tags in made answers: an oracle that put the answer together knows what is left of it, and what its tags say."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legal_rag.graph import parse_extraction_tags
from legal_rag.graph.tags import MOST_TAGS

# Pieces of known meaning. The oracle joins what is left of each; it knows no parser.
PROSE = [
    "La Cour rejette. ", "L’article 1240 < 3 ? ", "« Oui », dit-elle", "\n", "\n\n", "\n\n\n", " & > \" ' ",
    "é\u202e\ud800\x00", "`x` ~~ ", "1 <", "</p> <lesson>l</lesson> vm : ", "\r\n\r\n", "> le moyen\n",
]  # fmt: skip
CODE = [
    '\n```\n<vm:entity name="f" type="tool"/>\n```\n',
    "\n  ~~~~xml\n```\n</vm:entity>\n~~~\n<vm:x>\n~~~~~ \n",
    "\n```a\n\n\n\n<vm:\n```\n",
]
# Tags with what they say: "name|description" of entities, "from>to" of relationships, "!decision|lessons" of episodes.
TAGS = [
    ('<vm:entity name="e{n}" type="tool"/>', ["e{n}|"]), ("<VM:Entity type=tool name=e{n} confidence=1 />", ["e{n}|"]),
    ('<vm:entity name="e{n}" type="tool">un "mot" > un autre</vm:entity>', ['e{n}|un "mot" > un autre']),
    ('<vm:entity name="e{n} type="tool"/>', ["e{n}|"]), ('<vm:entity name="e{n}" type="tool>', ["e{n}|"]),
    ("<vm:entity\n  name='l'un \"{n}\" > deux'\n  type='tool'\n/>", ["l'un \"{n}\" > deux|"]),
    ('< vm:entity  NAME = "e{n} &amp; &lt;fils&gt;" type="tool" / >', ["e{n} & <fils>|"]),
    ("<vm:entity name=“e{n}” , type=« tool »/>", ["e{n}|"]), ("<vm:entity name=e{n} et A type=tool/>", ["e{n} et A|"]),
    ('<vm:entity name="e{n}" type="tool">a <vm:entity name="i{n}" type="tool">b</vm:entity> c</vm:entity>',
     ["e{n}|a c", "i{n}|b"]),
    ('<vm:relationship from="a{n}" to="b{n}" type="cites"/>', ["a{n}>b{n}"]),
    ('<vm:relationship to="b{n}" type="party to" from="a{n}">', ["a{n}>b{n}"]),
    ('<vm:episode decision="d{n}"><lesson>l</lesson>\n\n<vm:entity name="i{n}" type="tool"/></vm:episode>',
     ["i{n}|", "!d{n}|l"]),
    ("<vm:episode context='c' decision='d{n}'>\n<lesson>l\n<lesson>m</lesson></vm:episode >", ["!d{n}|lm"]),
    ('<vm:entity name="e{n}" type="dragon">non</vm:entity>', []), ("<vm:entity name='' type='tool'></vm:entity>", []),
    *((one, []) for one in ("<vm:other x='{n}'/>", "<vm:other oui non>", "</vm:other>", "< / vm:other >")),
]  # fmt: skip
# A tag with the text behind it that stays.
CUT = [
    ('<vm:entity name="e{n}" type="tool"', " et la suite, reste. ", ["e{n}|"]), ("<vm:entity", " puis reste. ", []),
    ('<vm:entity name="e{n}" type="tool">', "La suite\n\nreste. ", ["e{n}|"]), ("<vm:entity name=", "\n\nReste. ", []),
    ('<vm:entity name="e{n}"', " \n\n> La suite reste. ", []), ('<vm:entity name="', "Le moyen.\n\nLa suite. ", []),
]  # fmt: skip
ENDS = ["", "", "<vm:enti", '<vm:entity name="Le', "<vm", "</vm:ent", "<vm:entity name='a' ty", "<vm:entity name=L"]
REMOVED = "\ue000"


def some_answer(generator):
    """Return an answer, what must be left of it, and what its tags say, sorted."""
    text, left, said = "", "", []
    for n in range(generator.randrange(8)):
        kind, piece, rest, words = generator.random(), "", "", []
        if kind < 0.4:
            rest = generator.choice(PROSE)
        elif kind < 0.47:
            rest = generator.choice(CODE)
        elif kind < 0.55:
            piece, rest, words = generator.choice(CUT)
        else:
            piece, words = generator.choice(TAGS)
        text += piece.format(n=n) + rest
        left += REMOVED * bool(piece) + rest
        said += [one.format(n=n) for one in words]
    end = generator.choice(ENDS)
    left = re.sub(f"\n[\n{REMOVED}]*\n", _joined, left + REMOVED * bool(end))
    return text + end, left.replace(REMOVED, ""), sorted(said)


def _joined(run):
    is_split = re.search(f"\n{REMOVED}+\n", run.group())
    return "\n\n" if is_split and run.group().count("\n") > 2 else run.group().replace(REMOVED, "")


def said_by(result):
    said = [f"{one.name}|{one.description}" for one in result.entities]
    said += [f"{one.source}>{one.target}" for one in result.relationships]
    return sorted(said + [f"!{one.decision}|{''.join(one.lessons)}" for one in result.episodes])


@pytest.mark.parametrize("seed", range(20))
def test_an_answer_is_what_its_pieces_say(seed):
    generator = random.Random(seed)
    for _ in range(1_000):
        text, left, said = some_answer(generator)
        result, found = parse_extraction_tags(text)
        assert (found, said_by(result)) == (left, said), text


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
    for _ in range(250 if before else 2_500):
        text = before + "".join(generator.choice(FRAGMENTS) for _ in range(generator.randrange(25)))
        left = parse_extraction_tags(text)[1]
        assert len(BEGINNING.findall(left)) <= len(BEGINNING.findall(fenced(text))), text
        rest = iter(text)
        assert all(letter in rest for letter in left), text


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("<>/vm:entity \n\t\"'=&;xépisodRELATIONSHIP\ud800\x00\ufdd1")) | st.text())
def test_any_text_is_read_and_no_tag_of_it_is_left(text):
    assert not BEGINNING.search(parse_extraction_tags(text)[1])
