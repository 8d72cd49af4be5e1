"""Parse the tags that a model writes into its answer, and strip them.

Tags are `<vm:entity name type confidence>description</vm:entity>`, `<vm:relationship from to type confidence/>` and
`<vm:episode decision context status>` with `<lesson>` and `<entity>` inside, paired or self-closing, loosely written.

- A tag is `<vm:` up to its `>`; without one, its name and the complete attributes that follow: prose after it is kept.
- A quote ends a value if valid tag syntax follows it; if no quote does, the next known attribute or the `>` ends it.
- An opening tag owns the text up to its closing tag, if that is near and, except for an episode, before a blank line.
- In a fenced code block (CommonMark 0.31, section 4.5) tags are text. Nothing else of the answer changes, except blank
  lines around a tag, and a colon where joining the text around a tag would form another.

Each tag is read within a window that ends before the next tag, a blank line or `TAG_CHARS`: time is linear.
Source: the tag protocol of "single-pass extraction via inline XML tags" (VaultMind, pull request 39).
"""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from legal_rag.base.text import Span, normalized, words_of
from legal_rag.graph.types import (
    DEFAULT_STATUS,
    EDGE_TYPES,
    EPISODE_STATUSES,
    NODE_TYPES,
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
    ParsedTags,
)

logger = logging.getLogger(__name__)

MOST_TAGS = 1000  # parsed per answer, of any name; later ones are only removed, and own no text
NAME_CHARS = 300  # of a name; longer ones are skipped
TEXT_CHARS = 1000  # of a description, a context, a lesson; longer ones are cut
TAG_CHARS = 3000  # longer tags are treated as unterminated
MOST_ATTRIBUTES = 8  # of one tag
OWNED_CHARS = {"entity": 1000, "relationship": 1000, "episode": 5000}  # characters before the closing tag
MARK = "\ufdd1"  # placeholder for a removed tag, a noncharacter; removed from the input

_CODE = re.compile(
    r"(?m)^ {0,3}(?P<fence>(?P<sign>[`~])(?P=sign){2,}+)(?:(?<=~)|(?=[^`\n]{0,200}+$))[^\n]*+"  # info: 200 at most
    r"(?:\n(?! {0,3}(?P=fence)(?P=sign)*+[ \t\r]*+$)[^\n]*+)*+(?:\n[^\n]*+)?"
)
_B = r"[ \t]{0,3}"
_TAG = re.compile(
    rf"<(?=[ \t/vV])(?:{_B}(?P<close>/?){_B}[vV][mM]{_B}:(?:{_B}(?=(?i:entity|relationship|episode)\b))?+"
    rf"(?P<name>[\w.-]{{0,64}}+)|(?:{_B}/{_B})?[vV][mM]\Z)"  # the second: cut off within its first word
)
_BLANK_LINE = re.compile(r"\n[ \t\r]*+\n")
_NEXT = re.compile(rf"{_TAG.pattern}|{_BLANK_LINE.pattern}")

_SPACE = r"[ \t\r]*+(?:\n[ \t\r]*+)?+"  # within a tag: no blank line
_KEY = r"[A-Za-z][\w:.-]{0,40}+"
_ASSIGN = rf"{_SPACE}={_SPACE}"
_QUOTE = "[\"'“”„«‘’]"
_UNREAD = re.compile(rf"{_TAG.pattern}(?:(?:[^<>\n]|\n(?![ \t\r]*+\n)){{0,{TAG_CHARS - 80}}}+>)?+")

# In malformed tags, the known attributes are landmarks.
_NAMES = "name type confidence from to decision context status description".split()
_PARTS = "|".join(sorted({name[:n] for name in _NAMES for n in range(1, len(name) + 1)}, reverse=True))
_KNOWN = rf"(?i:{'|'.join(_NAMES)})\s*+="
_NEXT_KNOWN = re.compile(rf"[\s,;](?=[c-tC-T]){_KNOWN}")
_BEHIND = rf"(?=[\s,;]*+(?:/?[ \t]*+>|{_KNOWN}|{_KEY}\s*+=))"
_ENDS = {'"': '"“”', "'": "'‘’", "“": '"“”', "”": '"“”', "„": '"“”', "‘": "'‘’", "’": "'‘’", "«": "»"}
# The quote that ends a value, or the next quoted attribute if that comes first.
_CLOSING = {
    quote: re.compile(rf"(?P<quote>[{ends}])(?=[\s,;/>A-Za-z])(?<!\\.){_BEHIND}|{_NEXT_KNOWN.pattern}\s*+{_QUOTE}")
    for quote, ends in _ENDS.items()
}
_ANY_END = {quote: re.compile(rf"[{ends}](?<!\\.)|(?=/[ \t]*+>|>)|\n") for quote, ends in _ENDS.items()}
_BARE = re.compile(rf"[^<>\n]{{0,{NAME_CHARS}}}?(?={_NEXT_KNOWN.pattern}|/[ \t]*+>|>)|[^\s<>\"“«]*+(?!\Z)")
_JUNK = r"[^<>\n.!?;]{0,80}"  # tolerated between attributes; a sentence is prose
_ATTRIBUTE = re.compile(
    rf"(?:|(?>{_JUNK}?[\s,;/](?={_KNOWN})))[,;]?+{_SPACE}(?P<key>{_KEY}){_ASSIGN}(?P<quote>{_QUOTE}?)"
)
_END = re.compile(rf"(?:{_SPACE}/?[ \t]*+|{_JUNK}+)>")
_CUT = re.compile(rf"(?:[,;]?+{_SPACE}(?:/|(?i:{_PARTS})|{_KEY}{_ASSIGN}(?:{_QUOTE}[^<>\n]*+|[^\s<>]*+)))?[ \t]*+\Z")

_RUN = re.compile(rf"\n(?<!\n\n)\n*+{MARK}[\n{MARK}]*\n")
_GAP = rf"(?:{MARK}*+[ \t]){{0,3}}+{MARK}*+"
_MADE = re.compile(rf"(<(?=[ \t/vVmM]*+{MARK}){_GAP}(?:/{_GAP})?[vV]{MARK}*+[mM])(?:{_GAP}:)++")
_CHILD = re.compile(
    rf"(?i)<(?=[ \t/le]){_B}(?:{_B}(lesson|entity)(?=[^<>/]*+>)|/?{_B}(?:lesson|entity))\b[^<>/]{{0,100}}+/?>"
)
_ANY_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,200}+>")
_UNSEEN = re.compile(
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_ESCAPED = {"&amp;": "&", "&quot;": '"', "&#39;": "'", "&apos;": "'", "&lt;": "<", "&gt;": ">"}
_ESCAPE = re.compile("|".join(_ESCAPED))
_NUMBER = re.compile(r"(?ai)([+-]?(?:(?=[.,]?\d)\d{0,20}(?:[.,]\d{0,20})?(?:e[+-]?\d{1,3})?|inf(?:inity)?)) ?(%?)")


def parse_extraction_tags(text: str) -> ParsedTags:
    """Return the parsed tags of an answer and the answer without them, in linear time for any text."""
    if not _TAG.search(text):
        return ParsedTags(ExtractionResult(), text)
    reader = _TagReader(text.replace(MARK, ""))
    # Around a mark, three or more line breaks become two, and joining must not form another tag.
    clean = _RUN.sub(lambda run: "\n\n" if run[0].count("\n") > 2 else run[0], "".join(reader.kept))
    return ParsedTags(_validate_tags(reader.tags), _MADE.sub(r"\1", clean).replace(MARK, ""))


@dataclass(slots=True)
class _Tag:
    name: str  # lower case: 'entity', 'relationship', 'episode', or unknown
    end: int  # in the text
    is_open: bool  # neither self-closing nor unterminated
    values: dict[str, str]  # unparsed, by attribute in lower case
    content: str = ""


class _TagReader:
    def __init__(self, text: str) -> None:
        self._text, self._n_tags = text, 0
        # Open tags by name, each with the number of pieces before its text.
        self._opened: dict[str, list[tuple[_Tag, int]]] = {name: [] for name in OWNED_CHARS}
        self.tags: list[_Tag] = []
        self.kept: list[str] = []  # pieces of text, with a mark for each tag
        at = 0
        for block in _CODE.finditer(text):
            self._read_prose(at, block.start())
            self._keep_text(block[0])
            at = block.end()
        self._read_prose(at, len(text))

    def _read_prose(self, at: int, end: int) -> None:
        while self._n_tags < MOST_TAGS and (head := _TAG.search(self._text, at, end)):
            self._keep_text(self._text[at : head.start()])
            self._n_tags += 1
            limit = min(end, head.start() + TAG_CHARS)
            following = _NEXT.search(self._text, head.end(), limit)
            stop = following.start() if following else limit
            # A `<`, which no tag contains, marks a window that ends before the prose does.
            tag = _read_tag(head, self._text[head.end() : stop] + "<" * (stop < end))
            at = tag.end
            if head["close"]:
                self._close_tag(tag.name, head.start())
            elif tag.name in OWNED_CHARS:
                self.tags.append(tag)
                if tag.is_open:
                    self._opened[tag.name].append((tag, len(self.kept) + 1))
            self.kept.append(MARK)
        self._keep_text(_UNREAD.sub(MARK, self._text[at:end]))

    def _keep_text(self, text: str) -> None:
        self.kept.append(text)
        if _BLANK_LINE.search(text):
            self._opened |= {"entity": [], "relationship": []}

    def _close_tag(self, name: str, at: int) -> None:
        """Give the innermost open tag of that name the text after it; tags opened inside it get none."""
        opened = self._opened.get(name)
        if not opened or at - opened[-1][0].end > OWNED_CHARS[name]:
            return
        tag, n_before = opened[-1]
        for stack in self._opened.values():
            while stack and stack[-1][1] >= n_before:
                stack.pop()
        tag.content = "".join(self.kept[n_before:]).replace(MARK, "")
        # A tag around its own name in a sentence has no description, and the name is kept.
        words = words_of(tag.values.get("name", ""))
        if name != "entity" or not words or words != words_of(tag.content):
            del self.kept[n_before:]


def _read_tag(head: re.Match[str], window: str) -> _Tag:
    """Parse a tag from its name on; `window` is the text after the name in which it must end."""
    name, start, values = (head["name"] or "").lower(), head.end(), dict[str, str]()
    at = least = 0  # where parsing continues, and the least end of the tag
    for _ in range(MOST_ATTRIBUTES):
        if not (attribute := _ATTRIBUTE.match(window, at)):
            break
        least = attribute.end()
        if not (span := _value_span(window, least, attribute["quote"])):
            break
        values.setdefault(attribute["key"].lower(), window[least : span[0]])
        at = span[1]
    end = _END.match(window, at)
    if end:
        return _Tag(name, start + end.end(), not end[0][:-1].rstrip().endswith("/"), values)
    return _Tag(name, start + (len(window) if _CUT.match(window, at) else max(at, least)), False, values)


def _value_span(window: str, start: int, quote: str) -> Span | None:
    """Return where a value ends and where the tag continues; None if the value has no end."""
    if not quote:
        bare = _BARE.match(window, start)
        return bare and (bare.end(), bare.end())
    end = _CLOSING[quote].search(window, start)
    if not end or not end["quote"]:
        if known := _NEXT_KNOWN.search(window, start):
            return known.start(), known.start()
        end = _ANY_END[quote].search(window, start)
    return end.span() if end and end[0] != "\n" else None


def _validate_tags(tags: Iterable[_Tag]) -> ExtractionResult:
    """Validate tags; repeated ones are merged, with the highest confidence and the description."""
    entities: dict[tuple[str, str], ExtractedEntity] = {}
    relationships: dict[tuple[str, str, str], ExtractedRelationship] = {}
    episodes: dict[ExtractedEpisode, None] = {}
    for tag in tags:
        try:
            if tag.name == "entity":
                new = _parse_entity(tag)
                old = entities.get((new.name, new.type), new)
                best = max(old, new, key=lambda entity: entity.confidence)
                description = best.description or old.description or new.description
                entities[new.name, new.type] = replace(best, description=description)
            elif tag.name == "relationship":
                edge = _parse_relationship(tag)
                key = (edge.source, edge.target, edge.type)
                relationships[key] = max(relationships.get(key, edge), edge, key=lambda edge: edge.confidence)
            else:
                episodes.setdefault(_parse_episode(tag))
        except ValueError as problem:
            logger.debug("tag <vm:%s> left out: %s", tag.name, problem)
    return ExtractionResult(list(entities.values()), list(relationships.values()), list(episodes))


def _parse_entity(tag: _Tag) -> ExtractedEntity:
    name, node_type = _read_name(tag, "name"), _read_choice(tag, NODE_TYPES, "type")
    description = _to_text(_ANY_TAG.sub(" ", tag.content)) or _to_text(tag.values.get("description", ""))
    return ExtractedEntity(name, node_type, _read_confidence(tag), description)


def _parse_relationship(tag: _Tag) -> ExtractedRelationship:
    source, target = _read_name(tag, "from"), _read_name(tag, "to")
    # A ligature may decompose into a whole sentence.
    is_short = all(len(normalized(name, "NFKD")) <= 2 * NAME_CHARS for name in (source, target))
    if source == target or (is_short and [] != words_of(source) == words_of(target)):
        raise ValueError("from and to are the same")
    return ExtractedRelationship(source, target, _read_choice(tag, EDGE_TYPES, "type"), _read_confidence(tag))


def _parse_episode(tag: _Tag) -> ExtractedEpisode:
    decision = _to_text(_unescaped_value(tag, "decision"))
    if not decision:
        raise ValueError("no usable decision")
    try:
        status = _read_choice(tag, EPISODE_STATUSES, "status")
    except ValueError:
        logger.debug("episode of unknown status %r: taken for %s", tag.values.get("status"), DEFAULT_STATUS)
        status = DEFAULT_STATUS
    parts = iter(_CHILD.split(tag.content)[1:])  # an unclosed child ends before the next
    inner = [(name.lower(), _to_text(_ANY_TAG.sub(" ", text))) for name, text in zip(parts, parts, strict=True) if name]
    lessons = tuple(text for name, text in inner if text and name == "lesson")
    names = tuple(text for name, text in inner if name == "entity" and 0 < len(text) <= NAME_CHARS)
    return ExtractedEpisode(decision, _to_text(_unescaped_value(tag, "context")), status, lessons, names)


def _unescaped_value(tag: _Tag, attribute: str) -> str:
    return tag.values.get(attribute, "").replace('\\"', '"').replace("\\'", "'")


def _to_text(written: str) -> str:
    text = _ESCAPE.sub(lambda match: _ESCAPED[match[0]], written)
    return " ".join(_UNSEEN.sub("", text).split())[:TEXT_CHARS].strip()


def _read_name(tag: _Tag, attribute: str) -> str:
    name = _to_text(_unescaped_value(tag, attribute))
    if not 0 < len(name) <= NAME_CHARS:
        raise ValueError(f"no usable {attribute}")
    return name


def _read_choice(tag: _Tag, known: Iterable[str], attribute: str) -> str:
    value = "_".join(re.split(r"[\s_-]+", _to_text(_unescaped_value(tag, attribute)).lower()))
    if value not in known:
        raise ValueError(f"no usable {attribute}")
    return value


def _read_confidence(tag: _Tag) -> float:
    if not (number := _NUMBER.fullmatch(_to_text(tag.values.get("confidence", "1.0")))):
        raise ValueError("no usable confidence")
    return min(1.0, max(0.0, float(number[1].replace(",", ".")) / (100 if number[2] else 1)))
