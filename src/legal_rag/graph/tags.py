"""Read the tags that a model writes into its answer, and take them out.

Tags are `<vm:entity name type confidence>description</vm:entity>`, `<vm:relationship from to type confidence/>` and
`<vm:episode decision context status>` with `<lesson>` and `<entity>` inside, paired or self-closing. Models write them
loosely: attributes in any order and case, quotes bare inside a value or left open, tags cut off or never closed.

- A tag is `<vm:` up to its `>`, which may stand inside a quoted value. Without a `>`, it is its name and the whole
  attributes that follow; the prose behind it stays.
- An opening tag owns the text up to its closing tag, if that comes soon: its description. Otherwise both tags go and
  the text between them stays.
- In a fenced block of code (CommonMark 0.31, section 4.5) tags are text.
- Nothing else changes, but that a run of three or more line breaks around a tag becomes two.

Source: the tag protocol of "single-pass extraction via inline XML tags" (VaultMind, pull request 39).
"""

import logging
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

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

MOST_TAGS = 500  # of one answer that are read; those beyond are only taken out
MOST_FENCES = 500  # of one answer that are respected
NAME_CHARS = 300  # of a name; longer ones are skipped
TEXT_CHARS = 1000  # of a description, a context, a lesson; longer ones are cut
TAG_CHARS = 4000  # of one tag: a longer one is taken for one without an end
# Between an opening tag and its closing one, at most; a blank line ends what all but episodes own.
OWNED_CHARS = {"entity": 1000, "relationship": 1000, "episode": 5000}
HELD_CHARS = TAG_CHARS + max(OWNED_CHARS.values())  # that a stream holds back at most, line breaks aside
UNENDED_CHARS = 600  # taken out with a tag that is not read

_NAME = r"[A-Za-z_][\w.-]{0,30}+"
_TAG = re.compile(r"<\s{0,3}(?P<end>/?)\s{0,3}vm\s{0,3}:\s{0,3}(?P<name>[\w-]{0,40}+)", re.IGNORECASE)
_NEXT = re.compile(r"(?P<tag><\s{0,3}/?\s{0,3}vm\s{0,3}:)|^ {0,3}(?P<mark>`{3,}+|~{3,}+)", re.IGNORECASE | re.MULTILINE)
# What the end of a text may be the beginning of: a tag, a fence.
_BEGUN_TAG = re.compile(r"<\s{0,3}(?:/\s{0,3})?(?:v(?:m\s{0,3})?)?\Z", re.IGNORECASE)
_CUT_TAG = re.compile(r"<\s{0,3}(?:/\s{0,3})?vm\s{0,3}\Z", re.IGNORECASE)
_BEGUN_FENCE = re.compile(r" {0,3}(?:`{0,2}|~{0,2})\Z")
_ATTRIBUTE = re.compile(rf"\s*+(?P<name>{_NAME})\s*+=\s*+")
_LOOSE_WORD = re.compile(rf"\s*+{_NAME}(?=\s*+(?:/?\s*+>|{_NAME}\s*+=))")
_END = re.compile(r"\s*+(?P<empty>/?)\s*+>")
_BEGUN_PART = re.compile(rf"\s*+(?:/\s*+|{_NAME}\s*+)?\Z")
_QUOTES = {'"': '"“”', "'": "'‘’", "“": '"“”', "”": '"“”', "„": '"“”', "‘": "'‘’", "’": "'‘’", "«": "»"}
# A quote closes a value if the tag goes on behind it as tags do; others stand inside the value.
_CLOSING = {first: re.compile(rf"(?<!\\)[{last}](?=\s*+(?:/?\s*+>|{_NAME}\s*+=))") for first, last in _QUOTES.items()}
_ANY_CLOSING = {first: re.compile(rf"(?<!\\)[{last}>\n]") for first, last in _QUOTES.items()}
_KNOWN = re.compile(r"\s++(?:name|type|confidence|from|to|decision|context|status)\s*+=\s*+[\"'“«]", re.IGNORECASE)
_BARE = re.compile(r"[^\s<>\"'«»“”]++")
_CHILD = re.compile(r"<\s{0,3}(lesson|entity)\s{0,3}>([^<]*+)<\s{0,3}/\s{0,3}\1\s{0,3}>", re.IGNORECASE)
_ANY_TAG = re.compile(r"<[^<>\n]{0,500}+>")
_BLANK_LINE = re.compile(r"\n[ \t]*+\n")
_UNREAD = re.compile(rf"<\s{{0,3}}/?\s{{0,3}}vm\s{{0,3}}:[^<>\n]{{0,{UNENDED_CHARS}}}+>?", re.IGNORECASE)
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_ESCAPED = {"&amp;": "&", "&quot;": '"', "&#39;": "'", "&apos;": "'", "&lt;": "<", "&gt;": ">", '\\"': '"', "\\'": "'"}
_ESCAPE = re.compile("|".join(map(re.escape, _ESCAPED)))
_DIGITS = "(?:[0-9]{1,20}(?:[.,][0-9]{0,20})?|[.,][0-9]{1,20})"
_NUMBER = re.compile(rf"[+-]?{_DIGITS}(?:e[+-]?[0-9]{{1,3}})?|[+-]?inf(?:inity)?", re.IGNORECASE)


def parse_extraction_tags(text: str) -> tuple[ExtractionResult, str]:
    """Return what the tags of an answer say, and the answer without them; linear in its length, for any text."""
    scanner = TagScanner()
    clean = scanner.feed(text) + scanner.close()
    return scanner.result, clean


class _Tag(NamedTuple):
    """A tag, as it stands in the buffer."""

    name: str  # in small letters: 'entity', 'relationship', 'episode', or unknown
    kind: str  # 'open', 'close', or 'alone': self-closing, or without an end of its own
    attributes: dict[str, str]  # as written, by name in small letters
    end: int  # in the buffer


class _Owned(NamedTuple):
    """What stands between an opening tag and its closing one."""

    start: int  # in the buffer
    end: int
    after: int  # the end of the closing tag


class _UndecidedError(Exception):
    """More text may decide what this is."""


class TagScanner:
    """Takes the tags out of an answer that comes in pieces; the same for any pieces.

    What may be part of a tag is held back until it is decided: `HELD_CHARS` at most, and line breaks.
    """

    def __init__(self) -> None:
        self._found = _Findings()
        self._output = _Output()
        self._buffer, self._at = "", 0  # what stands before `_at` is done; one character of it is kept
        self._tags_at: dict[int, _Tag] = {}  # read already, by their place in the buffer
        self._fence: re.Pattern[str] | None = None  # what closes the block of code that is being read
        self._n_fences = 0
        self._is_waiting = self._is_last = False

    @property
    def result(self) -> ExtractionResult:
        """What the tags read so far say."""
        return self._found.result

    def feed(self, piece: str) -> str:
        """Read a piece; return the text without tags, as far as it is certain."""
        self._buffer += piece
        held = len(self._buffer) - self._at
        if self._is_waiting and not self._is_last and held < HELD_CHARS and not any(one in piece for one in ">\n"):
            return ""
        self._tags_at.clear()
        try:
            self._is_waiting = False
            while self._at < len(self._buffer) and self._step():
                pass
        except _UndecidedError:
            self._is_waiting = True
        kept = max(self._at - 1, 0)
        self._buffer, self._at = self._buffer[kept:], self._at - kept
        return self._output.take()

    def close(self) -> str:
        """End the text; return what was held back of it."""
        self._is_last = True
        return self.feed("") + self._output.close()

    def _step(self) -> bool:
        """Read on; return whether more can be read."""
        if self._found.n_tags >= MOST_TAGS or self._n_fences >= MOST_FENCES:
            return self._strip()
        if self._fence is not None:
            return self._read_fenced(self._fence)
        found = _NEXT.search(self._buffer, self._at)
        if found is None:
            return self._pass_rest()
        self._pass(found.start())
        return self._read_tag() if found["tag"] else self._open_fence(found)

    def _pass(self, end: int) -> None:
        self._output.write(self._buffer[self._at : end])
        self._at = end

    def _pass_rest(self) -> bool:
        """Pass text without tags; what may be the beginning of one waits, or is left out at the text's end."""
        buffer, last = self._buffer, max(self._buffer.rfind("<"), self._at)
        if self._is_last:
            cut = _CUT_TAG.search(buffer, last)
            self._pass(cut.start() if cut else len(buffer))
            if cut:
                self._remove(len(buffer))
            return False
        begun, line = _BEGUN_TAG.search(buffer, last), buffer.rfind("\n") + 1
        end = begun.start() if begun else len(buffer)
        if line >= self._at and (line or not self._output.has_begun) and _BEGUN_FENCE.match(buffer, line):
            end = min(end, line)
        self._pass(max(end, self._at))
        return False

    def _remove(self, end: int) -> None:
        self._output.removed()
        self._at = end

    def _open_fence(self, found: re.Match[str]) -> bool:
        line_end = self._buffer.find("\n", found.end())
        if line_end < 0 and not self._is_last and len(self._buffer) - self._at < TAG_CHARS:
            raise _UndecidedError
        info = self._buffer[found.end() : line_end if line_end >= 0 else len(self._buffer)]
        mark = found["mark"]
        if mark[0] == "`" and "`" in info:  # a span of code in a line
            self._pass(found.end())
        else:
            self._fence = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}+[ \t]*+(?:\n|\Z)", re.MULTILINE)
            self._n_fences += 1
            self._pass(line_end + 1 if line_end >= 0 else len(self._buffer))
        return True

    def _read_fenced(self, closing: re.Pattern[str]) -> bool:
        """Pass a block of code, up to the end of the line that closes it; in a stream, whole lines."""
        found = closing.search(self._buffer, self._at)
        if found and (found.group().endswith("\n") or self._is_last):
            self._fence = None
            self._pass(found.end())
            return True
        line = len(self._buffer) if self._is_last else self._buffer.rfind("\n") + 1
        if len(self._buffer) - line > TAG_CHARS:  # no line that closes a block is that long
            line = len(self._buffer) - 1
        self._pass(max(line, self._at))
        return False

    def _read_tag(self) -> bool:
        tag = self._tag_at(self._at)
        owned = self._owned(tag) if tag.kind == "open" and tag.name in OWNED_CHARS else None
        if tag.kind != "close":
            self._found.read(tag, self._buffer[owned.start : owned.end] if owned else "")
        self._remove(owned.after if owned else tag.end)
        return True

    def _tag_at(self, start: int) -> _Tag:
        if start not in self._tags_at:
            self._tags_at[start] = _tag_at(self._buffer, start, is_last=self._is_last)
        return self._tags_at[start]

    def _owned(self, tag: _Tag) -> _Owned | None:
        """Return what a tag owns; None if its closing tag does not come soon."""
        most = OWNED_CHARS[tag.name]
        end = min(tag.end + most, len(self._buffer))
        if tag.name != "episode" and (blank := _BLANK_LINE.search(self._buffer, tag.end, end)):
            end = blank.start()
        depth = 1
        for found in _TAG.finditer(self._buffer, tag.end, end):
            if found["name"].lower() == tag.name:
                other = self._tag_at(found.start())
                depth += {"open": 1, "close": -1}.get(other.kind, 0)
                if not depth:
                    return _Owned(tag.end, found.start(), other.end)
        if not self._is_last and end == len(self._buffer) and end < tag.end + most:
            raise _UndecidedError
        return None

    def _strip(self) -> bool:
        """Take out tags without reading them, wherever they stand."""
        buffer, end = self._buffer, len(self._buffer)
        last = buffer.rfind("<", max(self._at, end - UNENDED_CHARS - 20))
        if last >= 0 and not self._is_last and not any(one in buffer[last:] for one in ">\n"):
            end = last
        parts = _UNREAD.split(buffer[self._at : end])
        if self._is_last:
            parts[-1:] = _CUT_TAG.split(parts[-1])
        for number, part in enumerate(parts):
            if number:
                self._output.removed()
            self._output.write(part)
        self._at = end
        return False


class _Output:
    """Text on its way out; a run of line breaks is held until it is known what surrounds it."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._before = self._after = 0  # line breaks that are held, before and after a tag taken out
        self._was_removed = self.has_begun = False

    def write(self, text: str) -> None:
        """Add text."""
        self.has_begun = self.has_begun or bool(text)
        body = text.lstrip("\n")
        if self._was_removed:
            self._after += len(text) - len(body)
        else:
            self._before += len(text) - len(body)
        if body:
            self._flush()
            whole = body.rstrip("\n")
            self._parts.append(whole)
            self._before = len(body) - len(whole)

    def removed(self) -> None:
        """Note that a tag was taken out here."""
        self.has_begun = True
        self._was_removed = self._was_removed or self._before > 0

    def take(self) -> str:
        """Return what is certain."""
        text = "".join(self._parts)
        self._parts.clear()
        return text

    def close(self) -> str:
        """Return the rest."""
        self._flush()
        return self.take()

    def _flush(self) -> None:
        run = self._before + self._after
        self._parts.append("\n" * (2 if self._before and self._after and run > 2 else run))
        self._before = self._after = 0
        self._was_removed = False


class _Findings:
    """Validates what tags say, and collects it."""

    def __init__(self) -> None:
        self.result = ExtractionResult()
        self.n_tags = 0
        self._places: dict[tuple[str, ...], int] = {}  # of equal entities and relationships in their lists

    def read(self, tag: _Tag, content: str) -> None:
        """Take a tag with what it owns, and the tags in that."""
        self._take(tag, content)
        for nested, text in _nested(content):
            self._take(nested, text)

    def _take(self, tag: _Tag, content: str) -> None:
        self.n_tags += 1
        readers = {"entity": self._entity, "relationship": self._relationship, "episode": self._episode}
        if reader := readers.get(tag.name):
            problem = reader(tag.attributes, content)
            if problem:
                logger.debug("tag <vm:%s> left out: %s", tag.name, problem)

    def _entity(self, given: dict[str, str], content: str) -> str:
        name, node_type, confidence = _name(given, "name"), _one_of(given, NODE_TYPES), _confidence(given)
        if not name or not node_type or confidence is None:
            return _problem(name=name, type=node_type, confidence=confidence)
        one = ExtractedEntity(name, node_type, confidence, _text(_plain(content)))
        self._keep(self.result.entities, ("entity", name, node_type), one)
        return ""

    def _relationship(self, given: dict[str, str], _: str) -> str:
        source, target = _name(given, "from"), _name(given, "to")
        edge_type, confidence = _one_of(given, EDGE_TYPES), _confidence(given)
        if not source or not target or not edge_type or confidence is None:
            return _problem(**{"from": source, "to": target}, type=edge_type, confidence=confidence)
        if source == target or (words_of(source) and words_of(source) == words_of(target)):
            return "from and to are the same"
        one = ExtractedRelationship(source, target, edge_type, confidence)
        self._keep(self.result.relationships, ("relationship", source, target, edge_type), one)
        return ""

    def _episode(self, given: dict[str, str], content: str) -> str:
        decision = _text(given.get("decision", ""))
        if not decision:
            return _problem(decision=decision)
        status = _one_of(given, EPISODE_STATUSES, "status")
        if not status:
            logger.debug("episode of unknown status %r: taken for %s", given.get("status"), DEFAULT_STATUS)
        children = [(name.lower(), text) for name, text in _CHILD.findall(content)]
        lessons = tuple(_text(text) for name, text in children if name == "lesson" and text.strip())
        named = (_name({"name": text}, "name") for name, text in children if name == "entity")
        one = ExtractedEpisode(
            decision, _text(given.get("context", "")), status or DEFAULT_STATUS, lessons, tuple(filter(None, named))
        )
        if one not in self.result.episodes:
            self.result.episodes.append(one)
        return ""

    def _keep(self, kept: list[Any], key: tuple[str, ...], one: ExtractedEntity | ExtractedRelationship) -> None:
        """Add something, or raise the confidence of what is there already."""
        place = self._places.setdefault(key, len(kept))
        if place == len(kept):
            kept.append(one)
        elif kept[place].confidence < one.confidence:
            kept[place] = one


def _tag_at(buffer: str, start: int, *, is_last: bool) -> _Tag:
    """Read the tag that begins at a place."""
    head = _TAG.match(buffer, start)
    assert head is not None  # noqa: S101 - the caller found it
    reader = _Reader(buffer, start, is_last=is_last)
    reader.at = reader.end = head.end()
    if reader.at == len(buffer) and not reader.is_whole:
        raise _UndecidedError
    kind = reader.read()
    return _Tag(head["name"].lower(), "close" if head["end"] else kind, reader.attributes, reader.end)


class _Reader:
    """Reads the attributes of one tag, up to its end."""

    def __init__(self, buffer: str, start: int, *, is_last: bool) -> None:
        self.buffer = buffer
        self.limit = min(len(buffer), start + TAG_CHARS)
        self.is_last = is_last
        self.is_whole = is_last or self.limit < len(buffer) or len(buffer) - start >= TAG_CHARS
        self.at = self.end = start
        self.attributes: dict[str, str] = {}

    def read(self) -> str:
        """Read to the end of the tag, or of what is whole of it; return its kind."""
        while True:
            if end := _END.match(self.buffer, self.at, self.limit):
                self.end = end.end()
                return "alone" if end["empty"] else "open"
            if attribute := _ATTRIBUTE.match(self.buffer, self.at, self.limit):
                if not self._read_value(attribute):
                    return "alone"
            elif word := _LOOSE_WORD.match(self.buffer, self.at, self.limit):
                self.at = word.end()
            else:
                if _BEGUN_PART.match(self.buffer, self.at) and self.limit == len(self.buffer):
                    self._require_whole()
                    self.end = len(self.buffer)  # cut off
                return "alone"

    def _require_whole(self) -> None:
        if not self.is_whole:
            raise _UndecidedError

    def _read_value(self, attribute: re.Match[str]) -> bool:
        """Read a value; return whether the tag may go on behind it."""
        start = attribute.end()
        quote = self.buffer[start : start + 1]
        if start >= self.limit:
            self._require_whole()
            self.end = self.limit
            return False
        if quote not in _QUOTES:
            return self._keep(attribute, *self._bare(start))
        other = _TAG.search(self.buffer, start, self.limit)
        stop = other.start() if other else self.limit
        closing = _CLOSING[quote].search(self.buffer, start + 1, self.limit)
        if closing and closing.start() >= stop:
            closing = None
        if closing is None and stop == len(self.buffer):
            self._require_whole()
        if known := _KNOWN.search(self.buffer, start + 1, closing.start() if closing else stop):
            return self._keep(attribute, start + 1, known.start(), known.start())
        if closing:
            return self._keep(attribute, start + 1, closing.start(), closing.end())
        return self._read_open_value(attribute, start + 1, stop)

    def _bare(self, start: int) -> tuple[int, int, int]:
        found = _BARE.match(self.buffer, start, self.limit)
        end = found.end() if found else start
        if end == len(self.buffer):
            self._require_whole()
        if end > start and self.buffer[end - 1] == "/" and self.buffer[end : end + 1] == ">":
            end -= 1
        return start, end, end

    def _read_open_value(self, attribute: re.Match[str], start: int, stop: int) -> bool:
        """Read a value whose quote does not close it as it should."""
        found = _ANY_CLOSING[self.buffer[start - 1]].search(self.buffer, start, stop)
        if found and found.group() == ">":  # the quote was forgotten
            end = found.start() - (self.buffer[found.start() - 1] == "/")
            return self._keep(attribute, start, max(start, end), max(start, end))
        if found and found.group() != "\n":
            return self._keep(attribute, start, found.start(), found.end())
        end = found.start() if found else stop
        if end - start <= NAME_CHARS:  # cut off, or broken off at the end of its line
            self.end = end
        return False

    def _keep(self, attribute: re.Match[str], start: int, end: int, after: int) -> bool:
        self.attributes.setdefault(attribute["name"].lower(), self.buffer[start:end])
        self.at = self.end = after
        return True


def _nested(content: str) -> list[tuple[_Tag, str]]:
    """Return the tags in what another owns, with what they own themselves."""
    found: list[tuple[_Tag, str]] = []
    opened: dict[str, list[int]] = {}  # by name, the places in `found` of the tags that are not closed yet
    at = 0
    while head := _TAG.search(content, at):
        tag = _tag_at(content, head.start(), is_last=True)
        at = tag.end
        if tag.kind == "close":
            if waiting := opened.get(tag.name):
                place = waiting.pop()
                found[place] = (found[place][0], content[found[place][0].end : head.start()])
            continue
        if tag.kind == "open":
            opened.setdefault(tag.name, []).append(len(found))
        found.append((tag, ""))
    return found


def _plain(content: str) -> str:
    """Return a description without the tags in it."""
    return _ANY_TAG.sub(" ", _CHILD.sub(" ", content))


def _unescaped(value: str) -> str:
    value = _ESCAPE.sub(lambda match: _ESCAPED[match.group()], value)
    return " ".join(_UNSEEN.sub("", value).split())


def _text(value: str) -> str:
    return _unescaped(value)[:TEXT_CHARS].strip()


def _name(given: dict[str, str], attribute: str) -> str:
    """Return a name; '' for none, or one that is too long."""
    name = _unescaped(given.get(attribute, ""))
    return name if len(name) <= NAME_CHARS else ""


def _one_of(given: dict[str, str], known: Iterable[str], attribute: str = "type") -> str:
    """Return which of some types is given; '' for none of them."""
    value = re.sub(r"[\s-]+", "_", _unescaped(given.get(attribute, "")).lower())
    return value if value in known else ""


def _confidence(given: dict[str, str]) -> float | None:
    """Return a confidence from 0 to 1, as a number or in percent; None if it is no number."""
    written = _unescaped(given.get("confidence", "1.0"))
    number = written.removesuffix("%").rstrip()
    if not _NUMBER.fullmatch(number):
        return None
    value = float(number.replace(",", ".")) / (100 if written.endswith("%") else 1)
    return min(1.0, max(0.0, value))


def _problem(**found: object) -> str:
    """Name the first attribute that is missing or unusable."""
    return next((f"no usable {name}" for name, value in found.items() if not value and value != 0), "")
