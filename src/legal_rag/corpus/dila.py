"""Rows of DILA's XML archives: court decisions (CASS, INCA, CAPP, JADE, CONSTIT), versions of articles (LEGI)."""

import gzip
import re
import tarfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, cast

from legal_rag.base.text import read_toml
from legal_rag.corpus.files import clean_text, error_line
from legal_rag.corpus.sources import ARCHIVE_SUFFIXES, LINE_CHARS, BadRecord, Record, Records
from legal_rag.law import find_dates
from legal_rag.law.versions import NO_DAYS, day_of_version

if TYPE_CHECKING:
    from lxml.etree import _Element

_tables = cache(partial(read_toml, "legal_rag.corpus", "dila.toml"))
MEMBER_BYTES = LINE_CHARS  # of one XML file
HEADER_BYTES = 65_536  # of the names and attributes of a file of an archive
ROOT_BYTES = 1000  # of an XML file, in which its root is named
HEADER_TYPES = (b"L", b"K", b"x", b"g", b"X")  # with names and attributes, of GNU's and POSIX's form
DECISION_ROOTS = ("TEXTE_JURI_JUDI", "TEXTE_JURI_ADMIN", "TEXTE_JURI_CONSTIT")
STRUCTURE_ROOTS = (b"SECTION_TA", b"TEXTELR", b"TEXTE_STRUCT", b"TEXTE_VERSION", b"VERSIONS")  # files of no document
TEXT_HOLDERS = ("CONTENU", "SCT", "ANA", "LIEN", "TITRE_TXT", "TITRE_TM")  # whose elements are markup
_STAMP = re.compile(r"\d{8}-\d{6}")  # of an archive's name: LEGI_20260327-211545.tar.gz
_REMOVED = re.compile(r"liste_suppression_\w+\.dat", re.IGNORECASE)
_REMOVED_ID = re.compile(r"(?:^|/)([A-Z]{4}(?:ARTI|TEXT)\d{12})(?:\.xml)?\s*$", re.MULTILINE)
_ROOT = re.compile(rb"<([A-Z]\w*)")
_DECISION_ID = re.compile(r"(?:JURI|CETA|CONS)TEXT\d+")
_NEXT_NUMBER = re.compile(r"\s*[,;]\s*|\s+(?=\d{2}[-/]\d)")
_END_OF_TITLE = re.compile(r"(?:,\s*[A-Z][A-Z\d]+)?[\s.]*$")  # "Code général des impôts, CGI."

Found = Mapping[str, Sequence["_Element"]]  # elements by their parent's name and their own


def read_dila(sources: Sequence[Path]) -> Records:
    """Stream the decisions and articles of archives, XML files, or folders of XML files.

    Of several archives, a later one replaces and removes documents of earlier ones: they are read from the last to the
    first, by the time in their names. Elements of other kinds (sections, texts' tables of contents) are counted.
    """
    others: Counter[str] = Counter()
    known: set[str] = set()  # ids of later archives
    n_outdated = 0
    for source in sorted(sources, key=_time_of, reverse=True):
        ids: set[str] = set()
        for where, name, data in _members(source):
            if isinstance(data, BadRecord):
                yield data
            elif _REMOVED.fullmatch(name):
                ids |= _removed_in(data)
            elif not name.lower().endswith(".xml"):
                others[Path(name).suffix or name] += 1
            elif isinstance(row := _row_or_problem(data), str):
                yield BadRecord(where, row)
            elif "id" not in row:
                others[f"<{row['root']}>"] += 1
            elif row["id"] in known:
                n_outdated += 1
            else:
                if len(sources) > 1:
                    ids.add(row["id"])
                yield Record(where, row)
        known |= ids
    place = sources[0].name if len(sources) == 1 else sources[0].parent.name
    if n_outdated:
        yield BadRecord(place, f"{n_outdated:,} documents that a later archive replaces or removes")
    if others:
        listed = ", ".join(f"{n:,} {kind}" for kind, n in others.most_common(8))
        yield BadRecord(place, f"files of kinds that are not documents: {listed}")


def removed_ids(source: str | Path) -> list[str]:
    """Return the ids that an increment of DILA's archives withdraws, sorted.

    A text that its archive, or a later one, carries again was moved and is not withdrawn.

    Args:
        source: An archive, a folder of archives, or an archive unpacked; any other file withdraws nothing.

    Raises:
        FileNotFoundError: If there is no such file or folder.
        ValueError: If an archive is damaged.
    """
    path = Path(source).expanduser()
    if not path.exists():
        raise FileNotFoundError(
            f"no such file or folder: {path} (expected an archive of DILA, or a folder of archives)"
        )
    removed: set[str] = set()
    for part in sorted(_parts(path), key=_time_of):
        carried: set[str] = set()
        for where, name, data in _members(part):
            if isinstance(data, BadRecord) and where == part.name:
                raise ValueError(f"{where}: {data.problem}")
            if isinstance(data, bytes) and _REMOVED.fullmatch(name):
                removed |= _removed_in(data)
            else:
                carried.add(PurePosixPath(name).stem)
        removed -= carried
    return sorted(removed)


def is_structure(source: str | Path) -> bool:
    """Tell whether a source is of DILA's, all of it files of no document: sections, contents, suppression lists."""
    path, is_of_dila = Path(source).expanduser(), False
    if path.is_dir() and not all(map(_is_of_dila, filter(Path.is_file, path.rglob("[!.]*")))):
        return False
    for part in _parts(path):
        for _, name, data in _members(part):
            if isinstance(data, BadRecord):
                return False
            if name.lower().endswith(".xml"):
                root = _ROOT.search(data, 0, ROOT_BYTES)
                if root is None or root[1] not in STRUCTURE_ROOTS:
                    return False
                is_of_dila = True
            is_of_dila |= bool(_REMOVED.fullmatch(name))
    return is_of_dila


def _is_of_dila(path: Path) -> bool:
    return is_archive(path) or path.suffix.lower() == ".xml" or bool(_REMOVED.fullmatch(path.name))


def _parts(path: Path) -> list[Path]:
    if path.is_dir():
        return [path, *filter(is_archive, path.rglob("*"))]
    return [path] if path.is_file() and is_archive(path) else []


def is_archive(path: Path) -> bool:
    """Is this an archive, judging by its name?"""
    return path.name.lower().endswith(ARCHIVE_SUFFIXES)


def _time_of(path: Path) -> tuple[str, str]:
    stamp = _STAMP.search(path.name)
    return stamp.group() if stamp else "", path.name


def _removed_in(data: bytes) -> set[str]:
    return set(_REMOVED_ID.findall(data.decode("utf-8", "replace")))


def _members(source: Path) -> Iterator[tuple[str, str, bytes | BadRecord]]:
    """Yield the files of an archive or a folder, one at a time: place, name, content or what is wrong with it."""
    if is_archive(source):
        yield from _members_of_archive(source)
    elif source.is_dir():
        for path in sorted(source.rglob("*")):
            is_read = path.suffix.lower() == ".xml" or _REMOVED.fullmatch(path.name)
            if is_read and path.is_file() and not path.is_symlink():
                yield _read_plain(path, path.relative_to(source).as_posix())
    else:
        yield _read_plain(source, source.name)


def _read_plain(path: Path, where: str) -> tuple[str, str, bytes | BadRecord]:
    try:
        if (size := path.stat().st_size) > MEMBER_BYTES:
            return where, path.name, BadRecord(where, _too_large(size))
        return where, path.name, path.read_bytes()
    except OSError as error:
        return where, path.name, BadRecord(where, f"cannot be read ({error.strerror})")


def _members_of_archive(path: Path) -> Iterator[tuple[str, str, bytes | BadRecord]]:
    """Stream an archive's regular files, gzipped or not; links and devices are not followed."""
    try:
        with _open(path) as file, tarfile.open(fileobj=file, mode="r|", tarinfo=_Header) as archive:
            while (member := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # else all headers are held
                name = PurePosixPath(member.name).name
                where = f"{path.name}, {name}"
                if member.isdir():
                    continue
                if not member.isreg():
                    yield where, name, BadRecord(where, "a link or a device, not a file")
                elif member.size > MEMBER_BYTES:
                    yield where, name, BadRecord(where, _too_large(member.size))
                else:
                    content = archive.extractfile(member)
                    assert content is not None  # noqa: S101 - a regular file
                    yield where, name, content.read()
    except (tarfile.TarError, EOFError, OSError, ValueError, RecursionError, zlib.error) as error:
        yield path.name, path.name, BadRecord(path.name, f"the archive breaks off ({error_line(error)})")


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:  # tarfile's own gzip streams copy all that a block unpacks to for each file
        is_gzipped = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path)) if is_gzipped else path.open("rb")


class _Header(tarfile.TarInfo):
    """A member's header; a damaged one, or an archive without its closing blocks, is an error and no silent end.

    So is one with more than `HEADER_BYTES` of names and attributes: they are read whole, in quadratic time.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Header":
        header = super().frombuf(buf, encoding, errors)
        if header.type not in HEADER_TYPES or header.size <= HEADER_BYTES:
            return header
        raise tarfile.SubsequentHeaderError(f"a header of {header.size:,} bytes")  # type: ignore[attr-defined]

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> "_Header":
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.SubsequentHeaderError(str(error)) from error  # type: ignore[attr-defined]


def _too_large(size: int) -> str:
    return f"{size:,} bytes (at most {MEMBER_BYTES:,})"


def _row_or_problem(data: bytes) -> dict[str, Any] | str:
    """Parse an XML file: a row; `{"root": NAME}` if it is no document; what is wrong with it."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        return f"damaged XML ({error_line(error)})"
    if next(root.iter(etree.Entity), None) is not None:
        return "XML that refers to an entity (expected none)"
    if root.tag not in (*DECISION_ROOTS, "ARTICLE"):
        return {"root": str(root.tag)[:50]}
    row = _read_article(root) if root.tag == "ARTICLE" else _read_decision(root)
    return row if row.get("id") else f"<{root.tag}> without an id (expected one in META_COMMUN/ID)"


def _find_all(root: "_Element") -> Found:
    found: dict[str, list[_Element]] = defaultdict(list)
    waiting = [root]
    while waiting:
        element = waiting.pop()
        for child in element:
            found[f"{element.tag}/{child.tag}"].append(child)
        waiting.extend(child for child in reversed(element) if child.tag not in TEXT_HOLDERS)
    return found


def _columns(found: Found, kind: str) -> dict[str, Any]:
    """Return the columns of a row: of CONTENU all that there is, of other elements the first."""
    row: dict[str, Any] = {}
    for field, column in _tables()[kind]["columns"].items():
        path, _, attribute = field.partition("@")
        if not (elements := found.get(path)):
            continue
        if attribute:
            value = _line(elements[0].get(attribute))
        elif path.endswith("/CONTENU"):
            value = "\n".join(map(_html if column == "content" else _lines, elements))
        else:
            value = _text(elements[0])
        if value not in ("", *NO_DAYS, "SUPPRIME"):
            row[column] = value
    return row


def _line(text: str | None) -> str:
    return " ".join((text or "").split())


def _text(element: "_Element") -> str:
    return _line("".join(element.itertext()))


def _html(element: "_Element") -> str:
    """Return what an element holds as HTML."""
    from lxml import etree

    text = etree.tostring(element, encoding="unicode", with_tail=False)
    return text[text.index(">") + 1 : max(text.rfind("</"), 0)]


def _lines(element: "_Element") -> str:
    return clean_text(_html(element), is_html=True).strip()


def _day(text: str | None) -> str:
    """Return a date in ISO 8601, '' for any other text."""
    day = day_of_version(text)
    return day.isoformat() if day else ""


def _links(found: Found) -> list[dict[str, str]]:
    links = []
    for element in found.get("LIENS/LIEN", ()):
        link = {name: _line(element.get(attribute)) for attribute, name in _tables()["link"].items()}
        link |= {"title": _text(element), "date": _day(link["date"])}
        links.append({name: value for name, value in link.items() if value})
    return links


def _read_decision(root: "_Element") -> dict[str, Any]:
    found, tables = _find_all(root), _tables()
    row = _columns(found, "decision")
    if row.get("nature") == "Texte":
        del row["nature"]
    for column in ("formation", "publication"):
        row[column] = tables[f"{column}s"].get(row.get(column), row.get(column, ""))
    if row["formation"] == row.get("juridiction"):  # Tribunal des conflits
        row["formation"] = ""
    given, numbers = (_numbers(found, path) for path in ("META_JURI/NUMERO", "NUMEROS_AFFAIRES/NUMERO_AFFAIRE"))
    numbers = numbers or given
    row["number"], row["numbers"] = next(iter(numbers), ""), numbers if len(numbers) > 1 else []
    row["decision_number"] = ", ".join(number for number in given if number not in numbers)
    row["lower_court"], row["lower_date"] = _lower_decision(row.get("lower_court", ""), row.get("lower_date", ""))
    row["headnotes"] = list(filter(None, map(_lines, found.get("SOMMAIRE/SCT", ()))))
    row["summary"] = "\n\n".join(filter(None, map(_lines, found.get("SOMMAIRE/ANA", ()))))
    row["related_decisions"] = [line for line in row.get("related_decisions", "").split("\n") if line.strip()]
    row["links"] = links = _links(found)
    row["applied_laws"] = [
        link["title"]
        for link in links
        if link.get("direction") != "cible" and "title" in link and not _DECISION_ID.match(link.get("id", ""))
    ]
    return row


def _numbers(found: Found, path: str) -> list[str]:
    numbers = (number for element in found.get(path, ()) for number in _NEXT_NUMBER.split(_text(element)))
    return list(dict.fromkeys(filter(None, numbers)))


def _lower_decision(court: str, day: str) -> tuple[str, str]:
    """Split the date off "Cour d'appel de Paris, du 12 mars 2008", unless the decision's own column gives another."""
    for stated in find_dates(court)[-1:]:
        if stated.end == len(court) and day in ("", stated.value.isoformat()):
            return re.sub(r"[\s,]*(?:\bdu)?\s*$", "", court[: stated.start]), stated.value.isoformat()
    return court, day


def _read_article(root: "_Element") -> dict[str, Any]:
    found = _find_all(root)
    row = _columns(found, "article")
    for column in ("text_published", "text_signed"):
        row[column] = _day(row.get(column))
    valid_from = _day(row.get("valid_from"))
    title = _of_day(found.get("TEXTE/TITRE_TXT", ()), valid_from)
    row["text_title"] = _title(title)
    sections = [row["text_title"]]
    part = next(iter(found.get("CONTEXTE/TEXTE", ())), None)
    while part is not None and (heading := _of_day(part.findall("TM/TITRE_TM"), valid_from)) is not None:
        sections.append(_text(heading))
        row["section_id"] = heading.get("id", "")
        part = heading.getparent()
    row["section"] = " > ".join(filter(None, sections))
    name = f"article {row['number']}" if "number" in row else sections[-1] if len(sections) > 1 else ""
    row["title"] = ", ".join(filter(None, (_title(title, "c_titre_court") or row["text_title"], name)))
    versions = (version.get("id", "") for version in found.get("VERSION/LIEN_ART", ()))
    doc_id = row.get("id", "")
    row["article_id"] = min([doc_id, *(version for version in versions if version[:8] == doc_id[:8])])
    row["links"] = _links(found)
    return row


def _title(element: "_Element | None", attribute: str = "") -> str:
    if element is None:
        return ""
    return _END_OF_TITLE.sub("", _line(element.get(attribute)) if attribute else _text(element))


def _of_day(titles: Sequence["_Element"], day: str) -> "_Element | None":
    """Return the title that is valid on a day, else the first."""
    valid = (one for one in titles if one.get("debut", "") <= day < one.get("fin", "9999"))
    return next(valid, next(iter(titles), None))
