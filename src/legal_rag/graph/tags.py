"""Read the tags that a model writes into its answer, and take them out.

Tags are `<vm:entity name type confidence>description</vm:entity>`, `<vm:relationship from to type confidence/>` and
`<vm:episode decision context status>` with `<lesson>` and `<entity>` inside, paired or self-closing. Models write them
loosely: attributes in any order and case, quotes bare inside a value or left open, tags cut off or never closed.

- A tag is `<vm:` up to its `>`, which may stand inside a quoted value. Without a `>` it is its name and the whole
  attributes that follow; the prose behind it stays. One that the text's end cuts off goes to the end.
- A quote ends a value if a tag goes on behind it as tags do; if none does, the next known attribute or the `>` ends it.
- An opening tag owns the text up to its closing tag, if that comes soon: its description. Otherwise both tags go and
  the text between them stays.
- In a fenced block of code (CommonMark 0.31, section 4.5) tags are text.
- Nothing else changes, but that a run of three or more line breaks around a tag becomes two, and that a colon goes
  where what stands before and behind a tag would make another one.

A text is cut into prose and blocks of code, prose into text and tags, and what is kept is put together again. Regular
expressions do the walking. They find the tags written as they should be at once (`_STRICT`); the few others are read
one by one, each within a window that ends before the next tag, a blank line or `TAG_CHARS`.

Source: the tag protocol of "single-pass extraction via inline XML tags" (VaultMind, pull request 39).
"""

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from legal_rag.corpus.cleaning import normalized
from legal_rag.extraction.terms import words_of
from legal_rag.graph.types import (
    DEFAULT_STATUS,
    EDGE_TYPES,
    EPISODE_STATUSES,
    NODE_TYPES,
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
)

logger = logging.getLogger(__name__)

MOST_TAGS = 1000  # of one answer, of any name, that are read; those beyond are only taken out, and own nothing
NAME_CHARS = 300  # of a name; longer ones are skipped
TEXT_CHARS = 1000  # of a description, a context, a lesson; longer ones are cut
TAG_CHARS = 3000  # of one tag: a longer one is taken for one without an end
MOST_ATTRIBUTES = 8  # of one tag
MOST_CHILDREN = 50  # lessons and names of one episode
# Between an opening tag and its closing one, at most; a blank line ends what all but episodes own.
OWNED_CHARS = {"entity": 1000, "relationship": 1000, "episode": 5000}
LINE_BREAKS = 1000  # in a run of more, those before a tag stay
HELD_CHARS = TAG_CHARS + max(OWNED_CHARS.values()) + LINE_BREAKS + 300  # that a stream holds back at most
INFO_CHARS = 200  # behind the backticks that open a block of code, at most

_B = r"[ \t]{0,3}"
_SPACE = r"[ \t\r]*+(?:\n[ \t\r]*+)?+"  # within a tag: no blank line
_BEGIN = rf"<{_B}(?:/{_B})?[vV][mM]{_B}:"
_TAG = re.compile(_BEGIN)
_HEAD = rf"<{_B}(?P<close>/?){_B}[vV][mM]{_B}:(?:{_B}(?=(?i:entity|relationship|episode)\b))?+(?P<name>[\w.-]{{0,64}}+)"
_KEY = r"[A-Za-z][\w:.-]{0,40}+"
_QUOTE = "[\"'“”„«‘’]"
_VALUE = r'"[^"<>\\\n]*+"|' + r"'[^'<>\\\n]*+'|“[^“”<>\n]*+”|«[^«»<>\n]*+»|[^\s\"'“”„«»‘’<>/=,;]++(?=[\s,;/>])"
_ASSIGN = rf"{_SPACE}={_SPACE}"
_GIVEN = rf"(?:[,;]?+{_SPACE}{_KEY}{_ASSIGN}(?:{_VALUE})){{0,{MOST_ATTRIBUTES}}}+"
_WHOLE = rf"(?=[^<>]{{0,{TAG_CHARS - 80}}}+>)"  # the `>` is near
_STRICT = re.compile(rf"{_HEAD}{_WHOLE}(?P<given>{_GIVEN}){_SPACE}(?P<void>/?)[ \t]*+>")
_PAIR = re.compile(rf"(?P<key>{_KEY}){_ASSIGN}(?P<value>{_VALUE})")
# A tag that is not read, with its `>` if it is written as it should be, or on its line.
_UNREAD = re.compile(
    re.sub(r"\?P<\w+>", "?:", _HEAD) + rf"(?:{_WHOLE}{_GIVEN}{_SPACE}/?[ \t]*+>|[^<>\n]{{0,{TAG_CHARS - 80}}}+>)?+"
)
_UNDECIDED = re.compile(rf"<{_B}(?:/{_B})?(?:[vV](?:[mM](?:{_B}:[^<>]{{0,{TAG_CHARS}}}+|{_B}))?)?\Z")

# Tags written loosely: the known attributes are landmarks.
_NAMES = "name type confidence from to decision context status description".split()
_KNOWN = rf"(?i:{'|'.join(_NAMES)})\s*+="
_ATTRIBUTE = re.compile(rf"[,;]?+{_SPACE}(?P<key>{_KEY}){_ASSIGN}(?P<quote>{_QUOTE}?)")
_NEXT_KNOWN = re.compile(rf"[\s,;](?=[c-tC-T]){_KNOWN}")
_NEXT_QUOTED = re.compile(rf"{_NEXT_KNOWN.pattern}\s*+{_QUOTE}")
_ENDS = {'"': '"“”', "'": "'‘’", "“": '"“”', "”": '"“”', "„": '"“”', "‘": "'‘’", "’": "'‘’", "«": "»"}
_BEHIND = rf"(?=[\s,;]*+(?:/?[ \t]*+>|{_KNOWN}|{_KEY}\s*+=\s*+{_QUOTE}))"
_CLOSING = {first: re.compile(rf"[{last}](?=[\s,;/>A-Za-z])(?<!\\[{last}]){_BEHIND}") for first, last in _ENDS.items()}
_ANY_END = {first: re.compile(rf"[{last}](?<!\\[{last}])|/[ \t]*+>|[>\n]") for first, last in _ENDS.items()}
_BARE = re.compile(rf"[^<>\n]{{0,{NAME_CHARS}}}?(?={_NEXT_KNOWN.pattern}|/[ \t]*+>|>)")
_WORD = re.compile(r"[^\s<>\"“«]*+")
_JUNK = r"[^<>\n.!?;]{0,80}"  # what may stand between attributes; a sentence is prose
_SKIPPED = re.compile(rf"{_JUNK}?[\s,;/](?={_KNOWN})")
_END = re.compile(rf"(?:{_SPACE}/?[ \t]*+|{_JUNK}+)>")
_PARTS = "|".join(sorted({name[:n] for name in _NAMES for n in range(1, len(name) + 1)}, reverse=True))
_CUT_OFF = re.compile(
    rf"(?:[,;]?+{_SPACE}(?:/|(?i:{_PARTS})|{_KEY}{_ASSIGN}(?:{_QUOTE}[^<>\n]*+|[^\s<>]*+)))?[ \t]*+\Z"
)
_CUT_NAME = re.compile(rf"<(?:{_B}/{_B})?[vV][mM]\Z")

# The end of a text may be the beginning of a tag, or of a line that opens or closes a block of code.
_BEGUN = re.compile(rf"<{_B}(?:/{_B})?(?:[vV](?:[mM]{_B})?)?\Z")
_BEGUN_CHARS = 13  # of `_BEGUN` at most
_MADE = re.compile(rf"(<{_B}(?:/{_B})?[vV][mM])(?:{_B}:)++")
_SPLIT = re.compile(_BEGUN.pattern.removesuffix(r"\Z") + "<")
_BEGUN_FENCE = re.compile(rf"\n( {{0,3}}(?:`{{1,2}}|~{{1,2}}|(?:```|~~~)[^\n]{{0,{INFO_CHARS + 62}}})?)\Z")
_FENCE = re.compile(rf"\n {{0,3}}(`{{3,64}}+(?!`)|~{{3,64}}+(?!~))([^\n]{{0,{INFO_CHARS}}}+)")
_BLANK_LINE = re.compile(r"\n[ \t\r]*+\n")

_CHILD = re.compile(rf"<{_B}(/?){_B}(lesson|entity)\b[^<>/]{{0,100}}+(/?)>", re.IGNORECASE)
_ANY_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,200}+>")
_UNSEEN = re.compile(
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_ESCAPED = {"&amp;": "&", "&quot;": '"', "&#39;": "'", "&apos;": "'", "&lt;": "<", "&gt;": ">"}
_ESCAPE = re.compile("|".join(_ESCAPED))
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]{1,20}(?:[.,][0-9]{0,20})?|[.,][0-9]{1,20})(?:e[+-]?[0-9]{1,3})?|inf(?:inity)?)", re.IGNORECASE
)


def parse_extraction_tags(text: str) -> tuple[ExtractionResult, str]:
    """Return what the tags of an answer say, and the answer without them; linear in its length, for any text."""
    scanner = TagScanner()
    clean = scanner.feed(text) + scanner.close()
    return scanner.result, clean


@dataclass(slots=True)
class _Tag:
    """A tag, and what it owns."""

    name: str  # in small letters: 'entity', 'relationship', 'episode', or unknown
    kind: str  # 'open', 'close', or 'alone': self-closing, or without an end of its own
    end: int  # in the text it was read from
    values: dict[str, str] = field(default_factory=dict)  # as written, by attribute in small letters
    content: str = ""


class _Opened(NamedTuple):
    """An opening tag whose closing tag may still come."""

    tag: _Tag
    end: int  # of the tag, in the whole text
    piece: int  # the first of the pieces kept behind it, counted from the text's start


class TagScanner:
    """Takes the tags out of an answer that comes in pieces; what it finds is the same for any pieces.

    What may be part of a tag is held back until it is decided, `HELD_CHARS` at most: prose comes at once, text behind
    an opening tag when it is known whether the tag owns it.
    """

    def __init__(self) -> None:
        self.result = ExtractionResult()  # what the tags say; filled when the text is closed
        self._buffer, self._at = "\n", 1  # what stands before `_at` is done; one character of it is kept
        self._base = -1  # place of the buffer in the whole text
        self._fence = ""  # what opened the block of code that is being read
        self._pieces: list[str] = []  # text that is kept; an empty one stands for a tag taken out
        self._n_given = 0  # pieces that were given out
        self._opened: list[_Opened] = []
        self._is_line_blank = False  # whether only blanks stand before `_at` in its line; only kept for opened tags
        self._n_tags = 0
        self._tags: list[_Tag] = []
        self._joiner = _Joiner()

    def feed(self, piece: str) -> str:
        """Read a piece; return the text without tags, as far as it is certain."""
        self._buffer += piece
        return self._read(is_last=False)

    def close(self) -> str:
        """End the text; return what was held back of it."""
        rest = self._read(is_last=True) + self._joiner.close()
        _collect(self._tags, self.result)
        self._tags.clear()
        return rest

    def _read(self, *, is_last: bool) -> str:
        """Read the buffer, block of code by block of code."""
        begun = None if is_last else _BEGUN_FENCE.search(self._buffer, max(self._at - 1, len(self._buffer) - 300))
        stop = begun.start(1) if begun else len(self._buffer)
        start, fence = self._at, self._fence  # of the prose or the block that is being read
        tag_at = self._next_tag(start)
        for line in _FENCE.finditer(self._buffer, start - 1, stop):
            run, info = line.groups()
            if not fence and (run[0] == "~" or ("`" not in info and self._is_line_end(line.end()))):
                if tag_at < line.start():
                    self._keep(start)
                    self._read_prose(line.start() + 1, is_whole=True)
                fence = run
            elif fence and run.startswith(fence) and not info.strip(" \t\r") and self._is_line_end(line.end()):
                fence, start = "", line.end()
                tag_at = tag_at if tag_at >= start else self._next_tag(start)
        self._keep(stop if fence else start)
        if not fence:
            self._read_prose(stop, is_whole=is_last)
        self._fence = fence
        return self._give(is_last=is_last)

    def _is_line_end(self, at: int) -> bool:
        return at == len(self._buffer) or self._buffer[at] == "\n"

    def _next_tag(self, start: int) -> int:
        found = _TAG.search(self._buffer, start)
        return found.start() if found else len(self._buffer)

    def _read_prose(self, end: int, *, is_whole: bool) -> None:
        """Read up to an offset, or as far as is certain if more prose may follow."""
        while self._n_tags < MOST_TAGS:
            found = _TAG.search(self._buffer, self._at, end)
            if found is None:
                break
            self._keep(found.start())
            tag = self._tag(end, is_whole=is_whole)
            if tag is None:
                return
            self._take(tag)
        if self._n_tags >= MOST_TAGS:
            self._strip(end, is_whole=is_whole)
            return
        begun = (_CUT_NAME if is_whole else _BEGUN).search(self._buffer, max(self._at, end - _BEGUN_CHARS), end)
        self._keep(begun.start() if begun else end)
        if begun and is_whole:
            self._pieces.append("")
            self._at = end

    def _tag(self, end: int, *, is_whole: bool) -> _Tag | None:
        """Read the tag at the current offset; None if more text may decide what it is."""
        start, limit = self._at, self._at + TAG_CHARS
        if strict := _STRICT.match(self._buffer, start, min(limit, end)):
            return _strict_tag(strict)
        stop = min(limit, end)
        breaks = [find.search(self._buffer, start + 1, stop) for find in (_TAG, _BLANK_LINE)]
        found = min((one.start() for one in breaks if one), default=None)
        if found is None and not is_whole and limit > end:
            return None
        window = self._buffer[start : stop if found is None else found]
        tag = _loose_tag(window, is_last=is_whole and start + len(window) == end)
        tag.end += start
        return tag

    def _take(self, tag: _Tag) -> None:
        self._n_tags += 1
        if tag.kind == "close":
            self._close_tag(tag.name)
        self._pieces.append("")
        self._at = tag.end
        self._is_line_blank = False
        if tag.kind != "close" and tag.name in OWNED_CHARS:
            self._tags.append(tag)
            if tag.kind == "open":
                self._opened.append(_Opened(tag, self._base + self._at, self._n_given + len(self._pieces)))

    def _close_tag(self, name: str) -> None:
        """Give the innermost tag of a name that is open what stands behind it; those inside it stay without."""
        self._let_go()
        for place in range(len(self._opened) - 1, -1, -1):
            tag, _, piece = self._opened[place]
            if tag.name == name:
                tag.content = "".join(self._pieces[piece - self._n_given :])
                if not _is_name_itself(tag):
                    del self._pieces[piece - self._n_given :]
                del self._opened[place:]
                return

    def _keep(self, end: int) -> None:
        """Keep the text up to an offset."""
        if end > self._at:
            text = self._buffer[self._at : end]
            self._pieces.append(text)
            self._at = end
            if self._opened:
                self._let_go(owning="episode" if self._meets_blank_line(text) else "")

    def _meets_blank_line(self, text: str) -> bool:
        line = ("\n" if self._is_line_blank else "x") + text
        self._is_line_blank = "\n" in line and not line[line.rfind("\n") :].strip("\n \t\r")
        return _BLANK_LINE.search(line) is not None

    def _let_go(self, owning: str = "") -> None:
        """Close the open tags whose closing tag would come too late, or all but those of a name."""
        now = self._base + self._at
        self._opened = [
            one
            for one in self._opened
            if now - one.end <= OWNED_CHARS[one.tag.name] and (not owning or one.tag.name == owning)
        ]

    def _strip(self, end: int, *, is_whole: bool) -> None:
        """Take tags out without reading them."""
        self._opened.clear()
        last = self._buffer.rfind("<", self._at, end)
        if last >= 0 and not is_whole and _UNDECIDED.match(self._buffer, last, end):
            end = last
        text, self._at = self._buffer[self._at : end], end
        parts = _UNREAD.split(text)
        if is_whole and (cut := _CUT_NAME.search(parts[-1])):
            parts[-1:] = [parts[-1][: cut.start()], ""]
        if "\n<" in text or _SPLIT.search(text):
            pieces = [""] * (2 * len(parts) - 1)
            pieces[::2] = parts
        else:  # nothing to mend between the parts
            pieces = parts if len(parts) < 3 else [parts[0], "", "".join(parts[1:-1]), "", parts[-1]]
            pieces = pieces if len(parts) != 2 else [parts[0], "", parts[1]]
        self._pieces += pieces

    def _give(self, *, is_last: bool) -> str:
        """Give out what no open tag may own, and drop what is done from the buffer."""
        self._let_go()
        if is_last:
            self._opened.clear()
        n_ready = self._opened[0].piece - self._n_given if self._opened else len(self._pieces)
        clean = self._joiner.join(self._pieces[:n_ready])
        del self._pieces[:n_ready]
        self._n_given += n_ready
        self._buffer, self._base, self._at = self._buffer[self._at - 1 :], self._base + self._at - 1, 1
        return clean


def _is_name_itself(tag: "_Tag") -> bool:
    """Tell whether a tag is put around its own name in a sentence: then that is no description, and stays."""
    name = words_of(tag.values.get("name", ""))
    return tag.name == "entity" and bool(name) and words_of(tag.content) == name


class _Joiner:
    """Puts kept pieces together, and mends what taking out the tags between them would make.

    A run of three or more line breaks with a tag in it becomes two. Where a `<` before a tag would make another one
    with the text behind it, the colon goes.
    """

    def __init__(self) -> None:
        self._before = self._after = 0  # line breaks of the current run, before and after the first tag in it
        self._n_given = 0  # of these
        self._is_cut = False  # whether a tag was taken out of the run
        self._begun = ""  # what may begin a tag
        self._is_begun_cut = False  # whether a tag was taken out behind it

    def join(self, pieces: Iterable[str]) -> str:
        """Return what is certain of the text so far."""
        out: list[str] = []
        for piece in pieces:
            if piece:
                self._add(piece, out)
            else:
                self._is_cut = self._before > 0
                self._is_begun_cut = self._begun != ""
        return "".join(out)

    def close(self) -> str:
        """Return the rest."""
        out: list[str] = []
        self._end_run(out)
        out.append(self._begun)
        self._begun = ""
        return "".join(out)

    def _add(self, text: str, out: list[str]) -> None:
        if self._begun:
            text = self._resolve(text)
        if text[:1] == "\n":
            body = text.lstrip("\n")
            self._count(len(text) - len(body), out)
            text = body
        if not text:
            return
        self._end_run(out)
        if "<" in text[-_BEGUN_CHARS:] and (begun := _BEGUN.search(text, max(0, len(text) - _BEGUN_CHARS))):
            self._begun = begun.group()
            text = text[: begun.start()]
        whole = text.rstrip("\n") if text[-1:] == "\n" else text
        out.append(whole)
        if not self._begun:
            self._count(len(text) - len(whole), out)
        else:
            out.append(text[len(whole) :])

    def _resolve(self, text: str) -> str:
        """Return a text behind what was held back; no tag comes of the two."""
        joined, is_cut = self._begun + text, self._is_begun_cut
        self._begun, self._is_begun_cut = "", False
        if is_cut:
            if made := _MADE.match(joined):
                joined = made[1] + joined[made.end() :]
            if len(joined) <= _BEGUN_CHARS and _BEGUN.fullmatch(joined):
                self._begun, self._is_begun_cut = joined, True
                return ""
        return joined

    def _count(self, n: int, out: list[str]) -> None:
        """Add line breaks to the run; give out those that stay whatever follows."""
        if self._is_cut:
            self._after += n
        else:
            self._before += n
        self._give(self._before if self._before > LINE_BREAKS else min(self._before + self._after, 2), out)

    def _end_run(self, out: list[str]) -> None:
        run = self._before + self._after
        if self._after and run > 2:
            run = self._before if self._before > LINE_BREAKS else 2
        self._give(run, out)
        self._before = self._after = self._n_given = 0
        self._is_cut = False

    def _give(self, n: int, out: list[str]) -> None:
        if n > self._n_given:
            out.append("\n" * (n - self._n_given))
            self._n_given = n


def _strict_tag(found: re.Match[str]) -> _Tag:
    """Read a tag that is written as it should be."""
    values: dict[str, str] = {}
    for pair in _PAIR.finditer(found["given"] + " "):
        value = pair["value"]
        values.setdefault(pair["key"].lower(), value[1:-1] if value[0] in _ENDS else value)
    return _Tag(found["name"].lower(), _kind(found["close"], found["void"]), found.end(), values)


def _kind(close: str, void: str) -> str:
    return "close" if close else "alone" if void else "open"


_LOOSE_HEAD = re.compile(_HEAD)


def _loose_tag(window: str, *, is_last: bool) -> _Tag:
    """Read a tag from its `<`; `window` ends where it must end, which is the text's end if `is_last`."""
    head = _LOOSE_HEAD.match(window)
    assert head is not None  # noqa: S101 - the caller found it
    at = after = head.end()
    values: dict[str, str] = {}
    marks = _Marks(window)
    for _ in range(MOST_ATTRIBUTES):
        attribute = _ATTRIBUTE.match(window, at)
        if not attribute and (skipped := _SKIPPED.match(window, at)):
            attribute = _ATTRIBUTE.match(window, skipped.end())
        if not attribute:
            break
        found = _value(marks, attribute, is_last=is_last)
        if not found:
            after = attribute.end()
            break
        value, at = found
        values.setdefault(attribute["key"].lower(), value)
    name, alone = head["name"].lower(), _kind(head["close"], "/")
    if end := _END.match(window, at):
        void = "/" if end.group().removesuffix(">").rstrip().endswith("/") else ""
        return _Tag(name, _kind(head["close"], void), end.end(), values)
    if is_last and _CUT_OFF.match(window, at):
        return _Tag(name, alone, len(window), values)
    return _Tag(name, alone, max(at, after), values)


class _Marks:
    """Finds patterns in a window from ascending offsets, each in one pass."""

    def __init__(self, window: str) -> None:
        self.window = window
        self._found: dict[re.Pattern[str], re.Match[str] | None] = {}

    def next(self, pattern: re.Pattern[str], start: int) -> re.Match[str] | None:
        """Return the first match at or behind an offset."""
        found = self._found.get(pattern)
        if pattern not in self._found or (found and found.start() < start):
            found = self._found[pattern] = pattern.search(self.window, start)
        return found


def _value(marks: _Marks, attribute: re.Match[str], *, is_last: bool) -> tuple[str, int] | None:
    """Read a value; return it with the offset behind it, or None if it has no end."""
    window, start, quote = marks.window, attribute.end(), attribute["quote"]
    if not quote:
        return _bare_value(window, start, is_last=is_last)
    closing, quoted = marks.next(_CLOSING[quote], start), marks.next(_NEXT_QUOTED, start)
    if closing and not (quoted and quoted.start() < closing.start()):
        return window[start : closing.start()], closing.end()
    if known := marks.next(_NEXT_KNOWN, start):
        return window[start : known.start()], known.start()
    end = marks.next(_ANY_END[quote], start)
    if not end or end.group() == "\n":
        return None
    return window[start : end.start()], end.start() if end.group().endswith(">") else end.end()


def _bare_value(window: str, start: int, *, is_last: bool) -> tuple[str, int] | None:
    found = _BARE.match(window, start) or _WORD.match(window, start)
    if not found or (is_last and found.end() == len(window)):  # cut off
        return None
    return found.group(), found.end()


def _collect(tags: Iterable[_Tag], result: ExtractionResult) -> None:
    """Validate what tags say, and add it to a result."""
    entities: dict[tuple[str, ...], ExtractedEntity] = {}
    relationships: dict[tuple[str, ...], ExtractedRelationship] = {}
    episodes: dict[ExtractedEpisode, None] = {}
    for tag in tags:
        try:
            if tag.name == "entity":
                _add_entity(entities, _entity(tag))
            elif tag.name == "relationship":
                edge = _relationship(tag)
                key = (edge.source, edge.target, edge.type)
                relationships[key] = max(relationships.get(key, edge), edge, key=lambda one: one.confidence)
            else:
                episodes.setdefault(_episode(tag))
        except ValueError as problem:
            logger.debug("tag <vm:%s> left out: %s", tag.name, problem)
    result.entities.extend(entities.values())
    result.relationships.extend(relationships.values())
    result.episodes.extend(episodes)


def _add_entity(entities: dict[tuple[str, ...], ExtractedEntity], new: ExtractedEntity) -> None:
    """Add an entity, or what it tells beyond an equal one: a higher confidence, a description where there is none."""
    old = entities.setdefault((new.name, new.type), new)
    if new.confidence > old.confidence:
        old, new = new, old
    entities[new.name, new.type] = replace(old, description=old.description or new.description)


def _entity(tag: _Tag) -> ExtractedEntity:
    name, node_type = _name(tag, "name"), _one_of(tag, NODE_TYPES, "type")
    content = _ANY_TAG.sub(" ", tag.content)
    description = _text(content) or _text(tag.values.get("description", ""))
    return ExtractedEntity(name, node_type, _confidence(tag), description)


def _relationship(tag: _Tag) -> ExtractedRelationship:
    source, target = _name(tag, "from"), _name(tag, "to")
    if source == target or [] != _folded(source) == _folded(target):
        raise ValueError("from and to are the same")
    return ExtractedRelationship(source, target, _one_of(tag, EDGE_TYPES, "type"), _confidence(tag))


def _folded(name: str) -> list[str]:
    """Return the words of a name; ligatures that stand for a sentence are not taken apart."""
    return words_of(name) if len(normalized(name, "NFKD")) <= 2 * NAME_CHARS else [name]


def _episode(tag: _Tag) -> ExtractedEpisode:
    decision = _text(_written(tag, "decision"))
    if not decision:
        raise ValueError("no usable decision")
    children = list(_children(tag.content))
    lessons = filter(None, (_text(text) for name, text in children if name == "lesson"))
    named = (_text(text, NAME_CHARS + 1) for name, text in children if name == "entity")
    names = (name for name in named if 0 < len(name) <= NAME_CHARS)
    return ExtractedEpisode(decision, _text(_written(tag, "context")), _status(tag), tuple(lessons), tuple(names))


def _children(content: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each part of an episode; one that is not closed ends before the next."""
    parts = _CHILD.split(content, 2 * MOST_CHILDREN)
    for close, name, void, text in zip(*(parts[n::4] for n in range(1, 5)), strict=True):
        if not close and not void:
            yield name.lower(), _ANY_TAG.sub(" ", text)


def _status(tag: _Tag) -> str:
    try:
        return _one_of(tag, EPISODE_STATUSES, "status")
    except ValueError:
        logger.debug("episode of unknown status %r: taken for %s", tag.values.get("status"), DEFAULT_STATUS)
        return DEFAULT_STATUS


def _written(tag: _Tag, attribute: str) -> str:
    return tag.values.get(attribute, "").replace('\\"', '"').replace("\\'", "'")


def _text(written: str, limit: int = TEXT_CHARS) -> str:
    """Return a text on one line, unescaped, without what cannot be seen, of `limit` characters at most."""
    text = _ESCAPE.sub(lambda match: _ESCAPED[match.group()], written)
    return " ".join(_UNSEEN.sub("", text).split())[:limit].strip()


def _name(tag: _Tag, attribute: str) -> str:
    name = _text(_written(tag, attribute), NAME_CHARS + 1)
    if not 0 < len(name) <= NAME_CHARS:
        raise ValueError(f"no usable {attribute}")
    return name


def _one_of(tag: _Tag, known: Iterable[str], attribute: str) -> str:
    value = "_".join(re.split(r"[\s_-]+", _text(_written(tag, attribute)).lower()))
    if value not in known:
        raise ValueError(f"no usable {attribute}")
    return value


def _confidence(tag: _Tag) -> float:
    """Return a confidence from 0 to 1, written as a number or in percent."""
    written = _text(tag.values.get("confidence", "1.0"))
    number = written.removesuffix("%").rstrip()
    if not _NUMBER.fullmatch(number):
        raise ValueError("no usable confidence")
    value = float(number.replace(",", ".")) / (100 if written.endswith("%") else 1)
    return min(1.0, max(0.0, value))
