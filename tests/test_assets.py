"""Fetching from a real server, unpacking real and hostile zips, finding encoder and index wherever they lie."""

import io
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from legal_rag.assets import (
    ZipLimits,
    extract_zip,
    fetch_zip,
    find_encoder_root,
    find_index_root,
    prepare_assets,
)
from legal_rag.corpus import read_documents
from legal_rag.downloads import file_name_of
from legal_rag.encoder import build_encoder
from legal_rag.retriever import build_retriever, open_corpus


class Server:
    """A web server for one file, which behaves as it is told to."""

    def __init__(self, body: bytes) -> None:
        self.body, self.etag, self.last_modified = body, '"v1"', ""
        self.content_type, self.encoding = "application/zip", ""
        self.redirections: list[str] = []  # where the next requests are sent
        self.statuses: list[int] = []  # for the next requests, in place of 200
        self.cuts: list[int] = []  # bytes of the body after which the next connections end
        self.announced: int | None = None  # a false Content-Length; -1: none
        self.ranges = self.if_range = True
        self.piece: int | None = None  # the longest range sent at once
        self.requests: list[dict[str, str]] = []
        self.sent = 0
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.handle_error = lambda *_: None  # a client that hangs up is what some tests are about
        self.address = f"http://127.0.0.1:{self._http.server_port}/files/index.zip"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def change(self, body: bytes, etag: str = "", last_modified: str = "") -> None:
        self.body, self.etag, self.last_modified = body, etag, last_modified

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests.append(dict(self.headers))
                status, start = server.answer_to(dict(self.headers))
                body = server.body[start:] if status in (200, 206) else b"no"
                body = body[: server.piece] if status == 206 else body
                length = server.announced if server.announced is not None else len(body)
                self.send_response(status)
                headers = {"ETag": server.etag, "Last-Modified": server.last_modified}
                headers |= {"Content-Type": server.content_type, "Content-Length": "" if length < 0 else str(length)}
                headers["Content-Encoding"] = server.encoding
                if status == 302:
                    headers["Location"] = server.redirections.pop(0)
                if status == 206:
                    headers["Content-Range"] = f"bytes {start}-{start + len(body) - 1}/{len(server.body)}"
                for name, value in headers.items():
                    if value:
                        self.send_header(name, value)
                self.end_headers()
                body = body[: server.cuts.pop(0)] if server.cuts else body
                server.sent += len(body)
                self.wfile.write(body)
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer_to(self, headers: dict[str, str]) -> tuple[int, int]:
        """Return the status, and where in the file the answer begins."""
        if self.redirections:
            return 302, 0
        if self.statuses:
            return self.statuses.pop(0), 0
        start = int(headers.get("Range", "bytes=0-")[6:-1])
        unchanged = headers.get("If-Range") in (None, self.etag, self.last_modified)
        if not start or not self.ranges or (self.if_range and not unchanged):
            return 200, 0
        return (206, start) if start < len(self.body) else (416, 0)


def _noise(size: int, seed: int = 1) -> bytes:
    return np.random.default_rng(seed).bytes(size)


def _zip_bytes(files=None, seed=1) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in (files or {"a.bin": _noise(400_000, seed=seed)}).items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture
def server():
    server = Server(_zip_bytes())
    yield server
    server.stop()


def _zip(path: Path, files: dict[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def _raw_zip(path: Path, name: str, mode: int = 0) -> Path:
    """Write a zip with one entry of exactly this name and Unix mode."""
    info = zipfile.ZipInfo("x" * len(name.encode()))
    info.external_attr = mode << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "target")
    path.write_bytes(path.read_bytes().replace(b"x" * len(name.encode()), name.encode()))
    return path


def _tree(folder: Path) -> dict[str, bytes]:
    """Return a folder's files; its record of the zip is hidden, as are locks."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


# Fetching from a server


def test_a_zip_is_fetched_whole_under_its_own_name(server, tmp_path, capsys):
    path = fetch_zip(server.address, tmp_path / "new")
    assert path == tmp_path / "new" / "index.zip"
    assert path.read_bytes() == server.body
    assert not list(path.parent.glob("*.part*"))
    assert capsys.readouterr().out == ""


def test_what_is_there_is_not_fetched_again(server, tmp_path):
    fetch_zip(server.address, tmp_path)
    fetch_zip(server.address, tmp_path)
    assert len(server.requests) == 1


def test_a_zip_put_there_by_hand_is_taken(server, tmp_path):
    (tmp_path / "index.zip").write_bytes(_zip_bytes({"mine": "text"}))
    assert fetch_zip(server.address, tmp_path).read_bytes() == _zip_bytes({"mine": "text"})
    assert server.requests == []


def test_another_address_of_the_same_name_replaces_the_file(server, tmp_path):
    fetch_zip(server.address, tmp_path)
    server.change(_zip_bytes(seed=2), '"v2"')
    path = fetch_zip(server.address + "?version=2", tmp_path)
    assert path.read_bytes() == _zip_bytes(seed=2)


def test_a_connection_that_breaks_is_taken_up_where_it_broke(server, tmp_path):
    server.cuts = [200_000, 100_000]
    assert fetch_zip(server.address, tmp_path).read_bytes() == server.body
    first, second, third = server.requests
    assert "Range" not in first
    assert 0 < int(second["Range"][6:-1]) < int(third["Range"][6:-1]) < len(server.body)
    assert second["If-Range"] == '"v1"'


def test_what_came_before_a_failure_is_kept_for_the_next_call(server, tmp_path):
    server.cuts = [200_000, 0]
    with pytest.raises(ConnectionError, match=r"cannot fetch http.*index\.zip: .* bytes are kept for the next attempt"):
        fetch_zip(server.address, tmp_path)
    assert not (tmp_path / "index.zip").exists()
    assert fetch_zip(server.address, tmp_path).read_bytes() == server.body
    assert server.sent < len(server.body) + 2 * 65_536


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (('"v1"', ""), ('"v2"', "")),
        (('W/"v1"', ""), ('W/"v2"', "")),
        (("", "Mon, 01 Jan 2024 00:00:00 GMT"), ("", "Tue, 02 Jan 2024 00:00:00 GMT")),
        (("", ""), ("", "")),  # only the size tells
    ],
)
@pytest.mark.parametrize("if_range", [True, False])  # not every server heeds If-Range
def test_a_file_that_changed_meanwhile_is_not_mixed(server, tmp_path, before, after, if_range):
    server.if_range = if_range
    server.change(_zip_bytes(), *before)
    server.cuts = [200_000, 0]
    with pytest.raises(ConnectionError, match="cannot fetch"):
        fetch_zip(server.address, tmp_path)
    changed = _zip_bytes({"b.bin": _noise(450_000, seed=2)})
    server.change(changed, *after)
    assert fetch_zip(server.address, tmp_path).read_bytes() == changed


def test_a_file_that_shrank_below_what_is_there_is_fetched_anew(server, tmp_path):
    server.cuts = [300_000, 0]
    with pytest.raises(ConnectionError, match="cannot fetch"):
        fetch_zip(server.address, tmp_path)
    server.change(_zip_bytes({"a": "short"}))
    assert fetch_zip(server.address, tmp_path).read_bytes() == _zip_bytes({"a": "short"})


def test_a_server_without_ranges_sends_all_of_it_again(server, tmp_path):
    server.ranges = False
    server.cuts = [200_000]
    assert fetch_zip(server.address, tmp_path).read_bytes() == server.body


def test_a_range_that_comes_in_pieces_is_put_together(server, tmp_path):
    server.cuts = [200_000]
    server.piece = 80_000
    assert fetch_zip(server.address, tmp_path).read_bytes() == server.body


def test_an_encoded_answer_is_refused(server, tmp_path):
    server.encoding = "gzip"
    with pytest.raises(ConnectionError, match=r"sent with Content-Encoding 'gzip' \(expected none\)"):
        fetch_zip(server.address, tmp_path)


def test_a_part_of_unknown_origin_is_not_continued(server, tmp_path):
    (tmp_path / "index.zip.part").write_bytes(b"PK, but not ours")
    (tmp_path / "index.zip.part.json").write_text("[]")
    assert fetch_zip(server.address, tmp_path).read_bytes() == server.body


def test_a_part_that_is_whole_is_finished_without_the_server(server, tmp_path):
    path = fetch_zip(server.address, tmp_path)
    path.rename(tmp_path / "index.zip.part")
    (tmp_path / "index.zip.json").rename(tmp_path / "index.zip.part.json")
    assert fetch_zip(server.address, tmp_path).read_bytes() == server.body
    assert len(server.requests) == 1


def test_a_body_shorter_than_announced_is_no_file(server, tmp_path):
    server.announced = len(server.body) + 1000
    with pytest.raises(ConnectionError, match="1000 more expected"):
        fetch_zip(server.address, tmp_path)
    assert not (tmp_path / "index.zip").exists()


def test_a_body_longer_than_announced_is_no_file(server, tmp_path):
    server.announced = 100_000
    with pytest.raises(ValueError, match=r"a zip that breaks off: http.*index\.zip \(100,000 bytes"):
        fetch_zip(server.address, tmp_path)
    server.announced = None
    assert fetch_zip(server.address, tmp_path).read_bytes() == server.body


def test_without_an_announced_length_the_zip_itself_says_whether_it_is_whole(server, tmp_path):
    server.announced = -1
    server.cuts = [200_000]
    with pytest.raises(ValueError, match=r"a zip that breaks off: .* \(200,000 bytes"):
        fetch_zip(server.address, tmp_path)
    assert fetch_zip(server.address, tmp_path).read_bytes() == server.body


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (404, FileNotFoundError, "no zip at .* 404 Not Found"),
        (410, FileNotFoundError, "no zip at .* 410 Gone"),
        (403, ConnectionError, r"403 Forbidden \(expected 200\)"),
        (204, ConnectionError, "204 No Content"),
    ],
)
def test_an_answer_without_a_file_is_reported(server, tmp_path, status, error, message):
    server.statuses = [status]
    with pytest.raises(error, match=message):
        fetch_zip(server.address, tmp_path)


def test_a_server_that_is_busy_is_asked_again(server, tmp_path):
    server.statuses = [503]
    assert fetch_zip(server.address, tmp_path).read_bytes() == server.body


def test_a_server_that_stays_broken_is_reported(server, tmp_path):
    server.statuses = [500] * 10
    with pytest.raises(ConnectionError, match="500 Internal Server Error"):
        fetch_zip(server.address, tmp_path)
    assert len(server.requests) == 3


def test_a_web_page_is_not_fetched_as_a_zip(server, tmp_path):
    server.change(b"<!DOCTYPE html>" + b" " * 5_000_000)
    server.content_type = "text/html"
    with pytest.raises(ValueError, match=r"not a zip: http.*index\.zip \(text/html, begins with b'<!DOCTYPE html"):
        fetch_zip(server.address, tmp_path)
    assert list(tmp_path.glob("index*")) == []


def test_a_key_in_the_address_is_neither_shown_nor_stored(server, tmp_path):
    address = server.address.replace("http://", "http://user:PASSWORD@") + "?token=SECRET"
    server.statuses = [403]
    with pytest.raises(ConnectionError, match="cannot fetch") as refused:
        fetch_zip(address, tmp_path)
    fetch_zip(address, tmp_path)
    server.stop()
    with pytest.raises(ConnectionError, match="cannot fetch") as unreachable:
        fetch_zip(address, tmp_path / "other")
    shown = f"{refused.value}{unreachable.value}" + (tmp_path / "index.zip.json").read_text()
    assert "SECRET" not in shown
    assert "PASSWORD" not in shown


def test_a_server_that_is_not_there_is_named_in_one_line(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(ConnectionError, match=rf"^cannot fetch http://127\.0\.0\.1:{port}/x\.zip: .*refused.*$"):
        fetch_zip(f"http://127.0.0.1:{port}/x.zip", tmp_path)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://h/a/index.zip?x=1#y", "index.zip"),
        ("https://h/index", "index.zip"),
        ("https://h/", "download.zip"),
        ("https://h", "download.zip"),
        ("https://h/..", "download.zip"),
        ("https://h/a/..%2f..%2fetc%2fpasswd", "passwd.zip"),
        ("https://h/..%5c..%5cevil.zip", "evil.zip"),
        ("https://h/C:%5cevil.zip", "evil.zip"),
        ("https://h/.bashrc", "bashrc.zip"),
        ("https://h/a%00b%0a.zip", "a_b.zip"),
        ("https://h/d%C3%A9cisions%20juri.zip", "décisions_juri.zip"),
        ("https://h/" + "a" * 500, "a" * 120 + ".zip"),
    ],
)
def test_a_file_name_is_plain_whatever_the_address(address, name):
    assert file_name_of(address) == name


@pytest.mark.parametrize("address", ["ftp://h/x.zip", "file:///etc/passwd", "s3://bucket/x.zip", "HF://x"])
def test_an_address_of_another_kind_is_refused(address, tmp_path):
    with pytest.raises(ValueError, match=r"cannot fetch .* \(expected http, https, or a local path\)"):
        fetch_zip(address, tmp_path)


def test_a_redirection_is_followed_over_http_only(server, tmp_path):
    server.redirections = [server.address.replace("index.zip", "mirror.zip")]
    assert fetch_zip(server.address, tmp_path).read_bytes() == server.body
    server.redirections = [_zip(tmp_path / "secret.zip", {"a": "1"}).as_uri()]
    with pytest.raises(ConnectionError, match=r"cannot fetch .*other\.zip"):
        fetch_zip(server.address.replace("index.zip", "other.zip"), tmp_path)


def test_a_zip_that_another_process_is_fetching_is_left_to_it(server, tmp_path):
    with FileLock(tmp_path / ".index.zip.lock"), pytest.raises(ValueError, match="another process is making"):
        fetch_zip(server.address, tmp_path)


# Fetching from a disk


def test_a_local_zip_is_copied_and_copied_again_only_when_it_changed(tmp_path):
    source = _zip(tmp_path / "index.zip", {"a": "1"})
    copy = fetch_zip(source, tmp_path / "target")
    inode = copy.stat().st_ino
    assert fetch_zip(str(source), tmp_path / "target").stat().st_ino == inode
    _zip(source, {"a": "2"})
    assert fetch_zip(source, tmp_path / "target").read_bytes() == source.read_bytes()


def test_a_local_zip_replaces_another_of_its_name(server, tmp_path):
    fetch_zip(server.address, tmp_path / "target")
    source = _zip(tmp_path / "index.zip", {"a": "1"})
    assert fetch_zip(source, tmp_path / "target").read_bytes() == source.read_bytes()
    assert fetch_zip(server.address, tmp_path / "target").read_bytes() == server.body


def test_a_local_zip_that_is_in_its_place_stays(tmp_path):
    source = _zip(tmp_path / "index.zip", {"a": "1"})
    assert fetch_zip(source, tmp_path) == source


def test_a_local_file_must_be_there_and_be_a_zip(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such zip: .*none\.zip"):
        fetch_zip(tmp_path / "none.zip", tmp_path / "target")
    (tmp_path / "text.zip").write_text("Attendu que")
    with pytest.raises(ValueError, match=r"not a zip: .*text\.zip \(11 bytes that begin with b'Attendu que'\)"):
        fetch_zip(tmp_path / "text.zip", tmp_path / "target")
    assert not (tmp_path / "target").exists()


# Unpacking


def test_a_zip_is_unpacked_with_nothing_more_and_nothing_less(tmp_path):
    files = {"a/b/c.bin": _noise(3_000_000, seed=1), "a/é.json": b"{}", "empty": b""}
    target = extract_zip(_zip(tmp_path / "x.zip", {"a/": "", "a/b/": "", **files}), tmp_path / "out" / "x")
    assert _tree(target) == files
    assert [path.name for path in target.parent.iterdir() if path != target] == [".x.lock"]


def test_a_zip_unpacked_before_is_not_unpacked_again(tmp_path):
    source = _zip(tmp_path / "x.zip", {"a": "1"})
    target = extract_zip(source, tmp_path / "x")
    (target / "added by its user").write_text("2")
    inode = (target / "a").stat().st_ino
    extract_zip(source, target)
    assert (target / "a").stat().st_ino == inode
    assert (target / "added by its user").exists()


def test_another_zip_takes_the_place_of_the_one_before(tmp_path):
    source = _zip(tmp_path / "x.zip", {"a": "1", "old": "1"})
    target = extract_zip(source, tmp_path / "x")
    extract_zip(_zip(source, {"a": "2"}), target)
    assert _tree(target) == {"a": b"2"}


@pytest.mark.parametrize("damage", [lambda f: f.unlink(), lambda f: f.write_text("12")])
def test_an_unpacked_folder_that_is_no_longer_whole_is_unpacked_again(tmp_path, damage):
    source = _zip(tmp_path / "x.zip", {"a": "1", "b": "1"})
    target = extract_zip(source, tmp_path / "x")
    damage(target / "b")
    extract_zip(source, target)
    assert _tree(target) == {"a": b"1", "b": b"1"}


def test_a_folder_that_holds_something_else_is_not_overwritten(tmp_path):
    source = _zip(tmp_path / "x.zip", {"a": "1"})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    for target in (tmp_path / "mine", tmp_path / "mine" / "thesis.txt"):
        with pytest.raises(ValueError, match=r"will not overwrite .*mine"):
            extract_zip(source, target)
    assert _tree(tmp_path / "mine") == {"thesis.txt": b"years"}


def test_a_folder_zipped_again_after_unpacking_is_unpacked(tmp_path):
    first = extract_zip(_zip(tmp_path / "x.zip", {"a": "1"}), tmp_path / "x")
    again = shutil.make_archive(str(tmp_path / "again"), "zip", first)
    target = extract_zip(again, tmp_path / "y")
    inode = (target / "a").stat().st_ino
    assert (extract_zip(again, target) / "a").stat().st_ino == inode


def test_folders_may_be_separated_the_windows_way(tmp_path):
    source = _raw_zip(tmp_path / "x.zip", "index\\fast_plaid_index\\metadata.json")
    assert _tree(extract_zip(source, tmp_path / "x")) == {"index/fast_plaid_index/metadata.json": b"target"}


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "a/../../evil",
        "a/..",
        "/etc/evil",
        "//server/evil",
        "\\evil",
        "..\\evil",
        "C:\\evil",
        "C:evil",
        "a/b:stream",
        "evil\0.txt",
        "evil\n",
        "a//b",
        "CON",
        "a/nul.txt",
        "name.",
        "name ",
        ".",
    ],
)
def test_an_entry_that_is_no_plain_path_is_refused(tmp_path, name):
    source = _raw_zip(tmp_path / "x.zip", name)
    with pytest.raises(ValueError, match=r"refused .*x\.zip: its entry .* is a path that would leave"):
        extract_zip(source, tmp_path / "deep" / "x")
    assert [path for path in tmp_path.rglob("*") if path != source] == []


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        (stat.S_IFLNK, "link"),
        (stat.S_IFCHR, "device"),
        (stat.S_IFBLK, "device"),
        (stat.S_IFIFO, "device"),
        (stat.S_IFSOCK, "device"),
    ],
)
def test_an_entry_that_is_no_file_is_refused(tmp_path, mode, kind):
    with pytest.raises(ValueError, match=f"its entry 'name' is a {kind}"):
        extract_zip(_raw_zip(tmp_path / "x.zip", "name", mode | 0o777), tmp_path / "x")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b", "a"], "holds 'a' more than once"),
        (["Config.json", "config.JSON"], "holds 'config.JSON' more than once"),
        (["a/b", "a/./b"], "holds 'a/b' more than once"),
        (["a", "a/b"], "holds 'a' both as a file and as a folder"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_for_one_place_are_refused(tmp_path, names, message):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name in names:
            archive.writestr(name, "text")
    with pytest.raises(ValueError, match=message):
        extract_zip(tmp_path / "x.zip", tmp_path / "x")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_packing_method_without_bounds_is_refused(tmp_path, method):
    with pytest.raises(ValueError, match=r"packed by method \d+ \(expected stored or deflated\)"):
        extract_zip(_zip(tmp_path / "x.zip", {"a": "1"}, method), tmp_path / "x")


def test_an_encrypted_entry_is_refused(tmp_path):
    data = bytearray(_zip(tmp_path / "x.zip", {"a": "1"}).read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(ValueError, match="its entry 'a' is encrypted"):
        extract_zip(tmp_path / "x.zip", tmp_path / "x")


def test_a_zip_bomb_is_refused_by_its_ratio(tmp_path):
    bomb = _zip(tmp_path / "bomb.zip", {"zeros": bytes(20_000_000)})
    with pytest.raises(ValueError, match=r"looks like a zip bomb: .* bytes unpack to 20,000,000 .*100-fold"):
        extract_zip(bomb, tmp_path / "x")
    assert extract_zip(bomb, tmp_path / "x", ZipLimits(ratio=2000)).is_dir()


def test_a_small_file_of_zeros_is_no_bomb(tmp_path):
    assert _tree(extract_zip(_zip(tmp_path / "x.zip", {"zeros": bytes(1_000_000)}), tmp_path / "x"))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (ZipLimits(total_bytes=9), r"unpacks to 10 bytes, the limit is 9"),
        (ZipLimits(entries=1), r"too many entries in .*: 2, the limit is 1"),
    ],
)
def test_a_zip_over_a_limit_is_refused(tmp_path, limits, message):
    source = _zip(tmp_path / "x.zip", {"a": "12345", "b": "67890"})
    with pytest.raises(ValueError, match=message):
        extract_zip(source, tmp_path / "x", limits)
    assert not (tmp_path / "x").exists()


def test_a_zip_whose_list_of_files_is_a_bomb_is_not_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for number in range(60):
            archive.writestr(f"{number}{'a' * 40_000}", "")
    with pytest.raises(ValueError, match=r"its list of files takes 2,\d+,\d+ bytes, the limit is 2,097,152"):
        extract_zip(tmp_path / "x.zip", tmp_path / "x", ZipLimits(entries=100))


@pytest.mark.parametrize("claimed", [1, 4_999, 5_001, 2**31])
def test_an_entry_that_lies_about_its_size_leaves_nothing(tmp_path, monkeypatch, claimed):
    # Room for what is claimed: else the largest claim is refused before anything is unpacked.
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(2**40, 0, 2**40))
    source = _zip(tmp_path / "x.zip", {"a": _noise(5_000, seed=1)})
    data = bytearray(source.read_bytes())
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = claimed.to_bytes(4, "little")
    source.write_bytes(data)
    with pytest.raises(ValueError, match=r"damaged zip|announces .* bytes, 5,000 were unpacked"):
        extract_zip(source, tmp_path / "x", ZipLimits(ratio=10**9))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".x.lock", "x.zip"]


def test_a_wrong_checksum_leaves_the_folder_before_as_it_was(tmp_path):
    source = _zip(tmp_path / "x.zip", {"a": "old"})
    target = extract_zip(source, tmp_path / "x")
    content = _noise(5_000, seed=1)
    _zip(source, {"a": "new", "b": content}, zipfile.ZIP_STORED)
    source.write_bytes(source.read_bytes().replace(content[2_000:2_010], b"0123456789"))
    with pytest.raises(ValueError, match=r"damaged zip: .*x\.zip, .*Bad CRC-32 for file 'b'"):
        extract_zip(source, target)
    assert _tree(target) == {"a": b"old"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"not a zip: .* \(0 bytes"),
        (b"<html>no</html>", r"not a zip: .* begin with b'<html>no</html"),
        (_zip_bytes()[:200_000], r"a zip that breaks off: .* \(200,000 bytes"),
        (b"PK\x05\x06" + bytes(18), "empty zip"),
    ],
)
def test_what_is_no_whole_zip_is_refused(tmp_path, content, message):
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        extract_zip(tmp_path / "x.zip", tmp_path / "x")


def test_a_zip_of_folders_only_is_empty(tmp_path):
    with pytest.raises(ValueError, match=r"empty zip: .* holds no file"):
        extract_zip(_zip(tmp_path / "x.zip", {"a/": ""}), tmp_path / "x")


def test_a_missing_zip_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such zip: .*none\.zip"):
        extract_zip(tmp_path / "none.zip", tmp_path / "x")


def test_any_damage_gives_one_kind_of_error_or_a_zip_like_any_other(tmp_path):
    files = {"a/config.json": b'{"a": 1}' * 50, "a/b.bin": _noise(500)}
    whole = _zip(tmp_path / "x.zip", files).read_bytes()
    dice = np.random.default_rng(7)
    refused = []
    for number in range(300):
        data = bytearray(whole)
        for at in dice.integers(len(data), size=1 + number % 3):
            data[at] = dice.integers(256)
        (tmp_path / "x.zip").write_bytes(data if number % 4 else data[: dice.integers(len(data))])
        try:
            found = _tree(extract_zip(tmp_path / "x.zip", tmp_path / "out" / "x"))
        except ValueError as error:
            refused.append(str(error))
        else:
            assert set(found.values()) <= {*files.values(), b""}
    assert len(refused) > 100
    assert all("x.zip" in message and "\n" not in message for message in refused)


def test_a_disk_too_full_is_known_before_anything_is_written(tmp_path, monkeypatch):
    source = _zip(tmp_path / "x.zip", {"a": "12345"})
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 6, 4))
    with pytest.raises(OSError, match=r"not enough space in .*: 5 bytes needed, 4 free"):
        extract_zip(source, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_download_too_large_for_the_disk_is_not_begun(server, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 6, 4))
    with pytest.raises(OSError, match=rf"not enough space in .*: {len(server.body):,} bytes needed, 4 free"):
        fetch_zip(server.address, tmp_path)


def test_an_extraction_cut_off_at_the_last_step_leaves_nothing(tmp_path, monkeypatch):
    source = _zip(tmp_path / "x.zip", {"a": "1"})

    def cut_off(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", cut_off)
        with pytest.raises(KeyboardInterrupt):
            extract_zip(source, tmp_path / "x")
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / ".x.extracting").exists()
    assert _tree(extract_zip(source, tmp_path / "x")) == {"a": b"1"}


def test_what_a_killed_extraction_left_is_cleared_away(tmp_path):
    source = _zip(tmp_path / "x.zip", {"a": "1"})
    (tmp_path / ".x.extracting").mkdir()
    (tmp_path / ".x.extracting" / "half").write_text("half")
    assert _tree(extract_zip(source, tmp_path / "x")) == {"a": b"1"}
    assert not (tmp_path / ".x.extracting").exists()


@pytest.mark.slow
def test_an_extraction_killed_half_way_succeeds_the_next_time(tmp_path):
    content = _noise(2_000_000, seed=1)
    source = _zip(tmp_path / "x.zip", {f"{number}.bin": content for number in range(100)}, zipfile.ZIP_STORED)
    code = "import sys; from legal_rag.zips import extract_zip; extract_zip(*sys.argv[1:])"
    process = subprocess.Popen([sys.executable, "-c", code, str(source), str(tmp_path / "x")])
    while not (tmp_path / ".x.extracting" / "5.bin").exists():
        assert process.poll() is None
        time.sleep(0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "x").exists()
    assert len(_tree(extract_zip(source, tmp_path / "x"))) == 100
    assert not (tmp_path / ".x.extracting").exists()


def test_a_folder_that_another_process_is_filling_is_left_to_it(tmp_path):
    source = _zip(tmp_path / "x.zip", {"a": "1"})
    with FileLock(tmp_path / ".x.lock"), pytest.raises(ValueError, match=r"another process is making .*x"):
        extract_zip(source, tmp_path / "x")


# Finding the encoder and the index


def _touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


PLAID = ("fast_plaid_index/metadata.json", "fast_plaid_index/centroids.npy")


@pytest.mark.parametrize(
    ("names", "root"),
    [
        (["modules.json", "config.json", "model.safetensors", "1_Dense/config.json", "1_Dense/model.safetensors"], "."),
        (
            ["colbert/modules.json", "colbert/0_Transformer/config.json", "colbert/0_Transformer/x.safetensors"],
            "colbert",
        ),
        (["a/b/config.json", "a/b/model.safetensors"], "a/b"),
        (["a/config.json", "a/b/modules.json", "a/b/model.safetensors"], "a/b"),
        (["a/modules.json", "a/w.safetensors", "__MACOSX/modules.json", "__MACOSX/a/modules.json"], "a"),
        (["a/modules.json", "a/w.safetensors", "a/pytorch_model.bin", "a/training_args.bin"], "a"),
    ],
)
def test_the_encoder_is_found_wherever_it_lies(tmp_path, names, root):
    assert find_encoder_root(_touch(tmp_path, *names)) == tmp_path / root


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["readme.txt"], FileNotFoundError, r"no encoder in .* \(expected modules\.json, or config\.json beside"),
        (["a/config.json"], FileNotFoundError, "no encoder in"),
        (["a/modules.json"], FileNotFoundError, "incomplete encoder in .*a: no weights"),
        (["config.json", "pytorch_model.bin"], ValueError, r"pickled weights are not read: .*pytorch_model\.bin"),
        (["modules.json", "w.safetensors", "1_Dense/pytorch_model.bin"], ValueError, "pickled weights are not read"),
        (["a/modules.json", "b/modules.json"], ValueError, "more than one encoder in .*: .*/a, .*/b"),
    ],
)
def test_what_is_no_usable_encoder_is_refused(tmp_path, names, error, message):
    with pytest.raises(error, match=message):
        find_encoder_root(_touch(tmp_path, *names))


@pytest.mark.parametrize(
    ("names", "root"),
    [
        ([f"legal_french_index/{name}" for name in PLAID], "legal_french_index"),
        ([*PLAID, "doc_mapping.json"], "."),
        ([f"a/b/c/{name}" for name in PLAID], "a/b/c"),
        ([f"export/{Path(name).name}" for name in PLAID], "export"),
        ([f"{top}/{name}" for top in ("aaa", "legal_french_index", "zzz") for name in PLAID], "legal_french_index"),
        ([f"{top}/{name}" for top in ("x", "x/deeper") for name in PLAID], "x"),
        ([f"{top}/x/{name}" for top in (".", "__MACOSX", ".x.building") for name in PLAID], "x"),
        (["x/manifest.json", "x/corpus.sqlite"] + [f"x/shards/1/{name}" for name in PLAID], "x"),
    ],
)
def test_the_index_is_found_wherever_it_lies(tmp_path, names, root):
    assert find_index_root(_touch(tmp_path, *names)) == tmp_path / root


def test_the_index_may_be_given_by_its_innermost_folder(tmp_path):
    _touch(tmp_path, *PLAID)
    assert find_index_root(tmp_path / "fast_plaid_index") == tmp_path


def test_an_index_of_another_name_may_be_asked_for(tmp_path):
    _touch(tmp_path, *(f"{top}/{name}" for top in ("juri", "constit") for name in PLAID))
    assert find_index_root(tmp_path, "constit") == tmp_path / "constit"
    with pytest.raises(ValueError, match=r"more than one index in .*/constit, .*/juri"):
        find_index_root(tmp_path)


@pytest.mark.parametrize("names", [["readme.txt"], ["fast_plaid_index/centroids.npy"], ["metadata.json"]])
def test_where_there_is_no_index_the_expected_layout_is_named(tmp_path, names):
    with pytest.raises(FileNotFoundError, match=r"no index in .*expected .*legal_french_index/fast_plaid_index"):
        find_index_root(_touch(tmp_path, *names))
    with pytest.raises(FileNotFoundError, match="no such folder"):
        find_index_root(tmp_path / "none")


# All of it


def _zip_folder(folder: Path, path: Path) -> Path:
    """Zip a folder under its own name."""
    return Path(shutil.make_archive(str(path), "zip", folder.parent, folder.name))


def test_a_retriever_is_built_from_two_addresses_and_later_without_the_server(
    tiny_library, tiny_model_folder, sample_file, tmp_path
):
    index_server = Server(_zip_folder(tiny_library.path, tmp_path / "index").read_bytes())
    encoder_server = Server(_zip_folder(tiny_model_folder, tmp_path / "encoder").read_bytes())
    sources = encoder_server.address.replace("index.zip", "encoder.zip"), index_server.address
    first = prepare_assets(*sources, tmp_path / "assets")
    index_server.stop()
    encoder_server.stop()

    assets = prepare_assets(*sources, tmp_path / "assets")

    assert assets == first
    retriever = build_retriever(assets.index, build_encoder(str(assets.encoder)))
    contents = {one.id: one.content for one in read_documents(sample_file)}  # cleaned: what offsets count in
    hits = retriever.search("Le pourvoi est-il rejeté ?", k=3)
    assert [hit.text for hit in hits] == [contents[hit.doc_id][hit.char_start : hit.char_end] for hit in hits]
    assert len(hits) == 3
    everything = retriever.search("Le pourvoi est-il rejeté ?", k=10**6)
    assert all(hit.text == contents[hit.doc_id][hit.char_start : hit.char_end] for hit in everything)


def test_an_encoder_from_a_folder_must_fit_the_index(tiny_library, tiny_model_folder, tmp_path):
    other = Path(shutil.copytree(tiny_model_folder, tmp_path / "other"))
    settings = other / "config_sentence_transformers.json"
    settings.write_text(settings.read_text("utf-8").replace("[Q] ", "question: "), "utf-8")
    with pytest.raises(ValueError, match="wrong encoder for this index: its query_prefix is 'question: '"):
        build_retriever(tiny_library.path, build_encoder(str(other)))


def test_an_old_index_is_prepared_from_a_local_zip_whatever_pickles_it_holds(
    tiny_library, tiny_encoder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    evil = b"cos\nsystem\n(S'touch EVIL'\ntR."  # unpickling it makes a file
    old = tmp_path / "export" / "my_index"
    shutil.copytree(tiny_library.path / "fast_plaid_index", old / "fast_plaid_index")
    shutil.copy(tiny_library.path / "doc_mapping.json", old)
    for name in ("embeddings.npy", "documents_ids_to_plaid_ids.pkl", "fast_plaid_index/embeddings.npy"):
        (old / name).write_bytes(evil)

    assets = prepare_assets(None, _zip_folder(old.parent, tmp_path / "old"), tmp_path / "assets")

    assert assets.encoder is None
    assert assets.index == tmp_path / "assets" / "index" / "old" / "export" / "my_index"
    corpus = open_corpus(assets.index, {doc_id: tiny_library[doc_id] for doc_id in tiny_library}, encoder=tiny_encoder)
    assert len(build_retriever(corpus, tiny_encoder).search("La cour rejette", k=3)) == 3
    assert not Path("EVIL").exists()


def test_a_folder_is_used_where_it_is(tiny_library, tiny_model_folder, tmp_path):
    assets = prepare_assets(tiny_model_folder, tiny_library.path.parent, tmp_path / "assets")
    assert (assets.encoder, assets.index) == (tiny_model_folder, tiny_library.path)
    assert not (tmp_path / "assets").exists()


@pytest.mark.parametrize("with_manifest", [True, False])
def test_an_index_that_contradicts_itself_is_refused(tiny_library, tmp_path, with_manifest):
    broken = Path(shutil.copytree(tiny_library.path, tmp_path / "broken"))
    lengths = broken / "fast_plaid_index" / "doclens.0.json"
    lengths.write_text(json.dumps(json.loads(lengths.read_text())[:-1]))
    if not with_manifest:
        (broken / "manifest.json").unlink()
    with pytest.raises(ValueError, match=r"damaged PLAID index: .*tokens announced"):
        prepare_assets(None, broken)


def test_an_index_with_a_file_missing_is_refused(tiny_library, tmp_path):
    broken = Path(shutil.copytree(tiny_library.path, tmp_path / "broken"))
    (broken / "fast_plaid_index" / "ivf.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"incomplete PLAID index: no ivf\.npy"):
        prepare_assets(None, broken)


@pytest.mark.parametrize(("encoder", "what"), [(None, "index"), ("none", "encoder")])
def test_a_source_that_is_nowhere_is_named(tmp_path, encoder, what):
    with pytest.raises(
        FileNotFoundError, match=rf"no {what} at none \(expected a zip's address or path, or a folder\)"
    ):
        prepare_assets(encoder, "none", tmp_path)
