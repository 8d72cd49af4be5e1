"""Tags in made answers: an oracle that put the answer together knows what is left of it, and what its tags say."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legal_rag.graph import ExtractionResult, TagScanner, parse_extraction_tags
from legal_rag.graph.tags import HELD_CHARS, INFO_CHARS, MOST_TAGS

# Pieces of known meaning. The oracle joins what is left of each; it knows no scanner.
PROSE = [
    "La Cour rejette. ",
    "L’article 1240 < 3 ? ",
    "« Oui », dit-elle",
    "\n",
    "\n\n",
    "\n\n\n",
    " & > \" ' ",
    "é\u202e\ud800\x00",
    "`x` ~~ ",
    "1 <",
    "</p> <lesson>l</lesson> vm : ",
    "\r\n\r\n",
    "> le moyen\n",
]
CODE = [
    '\n```\n<vm:entity name="f" type="tool"/>\n```\n',
    "\n  ~~~~xml\n```\n</vm:entity>\n~~~\n<vm:x>\n~~~~~ \n",
    "\n```a\n\n\n\n<vm:\n```\n",
]
# Tags with what they say: "name|description" of entities, "from>to" of relationships, "!decision|lessons" of episodes.
TAGS = [
    ('<vm:entity name="e{n}" type="tool"/>', ["e{n}|"]),
    ("<VM:Entity type=tool name=e{n} confidence=0.5 />", ["e{n}|"]),
    ('<vm:entity name="e{n}" type="tool">un "mot" > un autre</vm:entity>', ['e{n}|un "mot" > un autre']),
    ('<vm:entity name="e{n} type="tool"/>', ["e{n}|"]),
    ('<vm:entity name="e{n}" type="tool>', ["e{n}|"]),
    ("<vm:entity name=“e{n}” , type=« tool »/>", ["e{n}|"]),
    ("<vm:entity\n  name='l'un \"{n}\" > deux'\n  type='tool'\n/>", ["l'un \"{n}\" > deux|"]),
    ('< vm:entity  NAME = "e{n} &amp; &lt;fils&gt;" type="tool" / >', ["e{n} & <fils>|"]),
    ("<vm:entity name=e{n} et fils type=tool/>", ["e{n} et fils|"]),
    ('<vm:entity name="e{n}" type="tool">a <vm:entity name="i{n}" type="tool">b</vm:entity> c</vm:entity>',
     ["e{n}|a c", "i{n}|b"]),
    ('<vm:relationship from="a{n}" to="b{n}" type="cites"/>', ["a{n}>b{n}"]),
    ('<vm:relationship to="b{n}" type="party to" from="a{n}">', ["a{n}>b{n}"]),
    ('<vm:episode decision="d{n}"><lesson>l</lesson>\n\n<vm:entity name="i{n}" type="tool"/></vm:episode>',
     ["i{n}|", "!d{n}|l"]),
    ("<vm:episode context='c' decision='d{n}'>\n<lesson>l\n<lesson>m</lesson></vm:episode >", ["!d{n}|lm"]),
    ('<vm:entity name="e{n}" type="dragon">non</vm:entity>', []),
    ('<vm:entity name="e{n}" type="tool" confidence="nan"/>', []),
    ("<vm:entity name='' type='tool'></vm:entity>", []),
    ("<vm:other x='{n}'/>", []),
    ("<vm:other oui non>", []),
    ("</vm:other>", []),
    ("< / vm:other >", []),
    ("</vm:other x='1'>", []),
]  # fmt: skip
# A tag with the text behind it that stays.
CUT = [
    ('<vm:entity name="e{n}" type="tool"', " et la suite, reste. ", ["e{n}|"]),
    ('<vm:entity name="e{n}" type="tool">', "La suite\n\nreste. ", ["e{n}|"]),
    ('<vm:entity name="e{n}"', " \n\n> La suite reste. ", []),
    ('<vm:entity name="', "Le moyen.\n\nLa suite reste. ", []),
    ("<vm:entity", " puis la fin reste. ", []),
]
ENDS = ["", "", "<vm:enti", '<vm:entity name="Le', "<vm", "</vm:ent", "<vm:entity name='a' ty", "<vm:entity name=L"]
REMOVED = "\ue000"


def some_answer(generator):
    """Return an answer, what must be left of it, and what its tags say, sorted."""
    text, left, said = "", "", []
    for n in range(generator.randrange(8)):
        kind = generator.random()
        if kind < 0.4:
            piece, rest, words = "", generator.choice(PROSE), []
        elif kind < 0.47:
            piece, rest, words = "", generator.choice(CODE), []
        elif kind < 0.55:
            piece, rest, words = generator.choice(CUT)
        else:
            (piece, words), rest = generator.choice(TAGS), ""
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
BEGINNING = re.compile(r"<[ \t]{0,3}/?[ \t]{0,3}vm:", re.IGNORECASE)


def fragments(generator):
    return "".join(generator.choice(FRAGMENTS) for _ in range(generator.randrange(25)))


def fenced(text):
    """Return the blocks of code of a text, read line by line."""
    mark, inside = "", []
    for line in text.split("\n"):
        found = re.match(r" {0,3}(`{3,}|~{3,})(.*)", line, re.DOTALL)
        if mark:
            inside.append(line)
            mark = "" if found and found[1].startswith(mark) and not found[2].strip(" \t\r") else mark
        elif found and (found[1][0] == "~" or ("`" not in found[2] and len(found[2]) <= INFO_CHARS)):
            mark = found[1]
            inside.append(line)
    return "\n".join(inside)


def in_pieces(text, generator, most):
    """Read a text in pieces of random lengths."""
    scanner, parts, at = TagScanner(), [], 0
    while at < len(text):
        size = generator.randint(1, most)
        parts.append(scanner.feed(text[at : at + size]))
        at += size
    parts.append(scanner.close())
    return scanner.result, "".join(parts)


def test_of_any_fragments_only_tags_in_code_are_left_and_nothing_is_added():
    generator = random.Random(11)
    for _ in range(2_500):
        text = fragments(generator)
        left = parse_extraction_tags(text)[1]
        assert len(BEGINNING.findall(left)) <= len(BEGINNING.findall(fenced(text))), text
        rest = iter(text)
        assert all(letter in rest for letter in left), text


@pytest.mark.parametrize(("make", "most"), [(fragments, 1), (fragments, 40), (lambda one: some_answer(one)[0], 12)])
def test_an_answer_in_pieces_is_the_same_as_whole(make, most):
    generator = random.Random(7)
    for _ in range(500):
        text = make(generator)
        assert in_pieces(text, generator, most) == parse_extraction_tags(text), text


def test_more_tags_than_are_read_are_the_same_in_pieces():
    generator = random.Random(3)
    for _ in range(20):
        text = "<vm:x/>" * MOST_TAGS + fragments(generator) + some_answer(generator)[0]
        assert in_pieces(text, generator, 400) == parse_extraction_tags(text), text


@settings(max_examples=200, deadline=None)
@given(st.data(), st.text(st.sampled_from("<>/vm:entity \n`~\"'=&;xépisodRELATIONSHIP\ud800\x00")) | st.text())
def test_any_text_is_read_whole_and_in_two_pieces(data, text):
    cut = data.draw(st.integers(0, len(text)))
    scanner = TagScanner()
    clean = scanner.feed(text[:cut]) + scanner.feed(text[cut:]) + scanner.close()
    assert (scanner.result, clean) == parse_extraction_tags(text)
    assert isinstance(scanner.result, ExtractionResult)


def test_a_stream_gives_out_prose_at_once():
    scanner = TagScanner()
    assert scanner.feed("La Cour ") == "La Cour "
    assert scanner.feed("rejette <vm:entity na") == "rejette "
    assert scanner.feed('me="a" type="tool"/> le') == " le"
    assert scanner.feed(" pourvoi, 1 <") == " pourvoi, 1 "
    assert scanner.feed(" 2.\n``") == "< 2.\n"
    assert scanner.feed("`\nx <vm:") == "```\nx <vm:"
    assert scanner.feed("\n```") == "\n"
    assert scanner.feed('\n<vm:entity name="b" type="tool">x</vm:entity>fin') == "```\nfin"
    assert scanner.close() == ""
    assert [one.name for one in scanner.result.entities] == ["a", "b"]


@pytest.mark.parametrize(
    "begun",
    [
        '<vm:episode decision="',
        '<vm:episode decision="d">',
        '<vm:episode decision="d">' + "a" * 4_999 + '<vm:entity name="',
        "<vm:entity name='a' type=",
        "```",
        "<vm:" + "x" * 5_000,
        "<vm:x/>" * MOST_TAGS + "<vm:x ",
    ],
)
@pytest.mark.parametrize("rest", ["x", "\n", " ", "x > '\" "])
def test_a_stream_holds_back_little(begun, rest):
    scanner = TagScanner()
    scanner.feed(begun)
    given_out = sum(len(scanner.feed(rest)) for _ in range(4 * HELD_CHARS // len(rest)))
    last = len(scanner.close())
    assert given_out > 2 * HELD_CHARS
    assert last <= HELD_CHARS
