"""Fetching from a real server, unpacking real and hostile zips, finding encoder and index wherever they lie."""

import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from support.killable import LONGEST_S, Killable, run_until

from legal_rag.assets import (
    Assets,
    ZipLimits,
    extract_zip,
    fetch_zip,
    find_encoder_root,
    find_index_root,
    prepare_assets,
)
from legal_rag.corpus import read_documents
from legal_rag.encoder import build_encoder
from legal_rag.library import Library
from legal_rag.retriever import build_retriever


class Server:
    """A web server for one file, which behaves as it is told to."""

    def __init__(self, body: bytes) -> None:
        self.body, self.headers = body, {"ETag": '"v1"', "X-Repo-Commit": "0" * 40}  # the latter: of the hub
        self.redirections: list[str] = []  # where the next requests are sent
        self.statuses: list[int] = []  # for the next requests, in place of 200
        self.cuts: list[int] = []  # bytes of the body after which the next connections end
        self.announced: int | None = None  # a false Content-Length; -1: none
        self.requests: list[tuple[str, str]] = []  # method and path
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.handle_error = lambda *_: None  # a client that hangs up is what some tests are about
        self.root = f"http://127.0.0.1:{self._http.server_port}"
        self.address = f"{self.root}/files/index.zip"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests.append((self.command, self.path))
                status = 302 if server.redirections else 200
                if server.statuses or self.path.startswith("/api/"):
                    status = server.statuses.pop(0) if server.statuses else 404
                body = server.body if status == 200 else b"no"
                length = len(body) if server.announced is None else server.announced
                self.send_response(status)
                headers = server.headers | ({"Content-Length": str(length)} if length >= 0 else {})
                if status == 302:
                    headers["Location"] = server.redirections.pop(0)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.close_connection = True
                if self.command == "GET":
                    self.wfile.write(body[: server.cuts.pop(0)] if server.cuts and status == 200 else body)

            do_HEAD = do_GET  # noqa: N815 - as http.server calls it

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _noise(size: int, seed: int = 1) -> bytes:
    return np.random.default_rng(seed).bytes(size)


def _zip_bytes(seed=1, size=400_000) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.bin", _noise(size, seed=seed))
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


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_zip_is_fetched_once_whole_under_its_own_name_and_from_another_address_anew(server, tmp_path, capsys):
    path = fetch_zip(server.address, tmp_path / "new")
    assert fetch_zip(server.address, tmp_path / "new") == path
    assert re.fullmatch(r"index-[0-9a-f]{8}\.zip", path.name)
    assert (first := path.read_bytes()) == server.body
    assert len(server.requests) == 1
    assert _names(path.parent) == [f".{path.name}.lock", path.name]
    assert capsys.readouterr().out == ""
    server.body = _zip_bytes(seed=2)
    assert fetch_zip(server.address + "?version=2", tmp_path / "new").read_bytes() == server.body != first


def test_a_zip_of_the_hub_is_fetched_into_its_cache_and_is_there_without_network(server, tmp_path):
    code = "import sys; from legal_rag.assets import fetch_zip; print(fetch_zip(*sys.argv[1:]))"
    address = f"{server.root}/datasets/org/index/resolve/refs%2Fpr%2F1/v1/d%C3%A9cisions.zip?download=true"

    def fetched(offline: str) -> str:
        hub = {"HF_ENDPOINT": server.root, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": offline}
        command = [sys.executable, "-c", code, address, str(tmp_path / "downloads")]
        return subprocess.run(command, env=os.environ | hub, capture_output=True, text=True, check=True).stdout

    path = Path(fetched(offline="0").strip())
    assert ("GET", "/datasets/org/index/resolve/refs%2Fpr%2F1/v1/d%C3%A9cisions.zip") in server.requests
    server.stop()
    assert fetched(offline="1").strip() == str(path)
    assert (path.name, path.read_bytes()) == ("décisions.zip", server.body)
    assert path.is_relative_to(tmp_path / "hub")
    assert not (tmp_path / "downloads").exists()


@pytest.mark.parametrize(
    ("behaviour", "error", "message"),
    [
        ({"statuses": [404]}, ConnectionError, r"cannot fetch http.*index\.zip: the server answers 404 Not Found"),
        ({"statuses": [204]}, ConnectionError, "204 No Content"),
        ({"statuses": [500]}, ConnectionError, "500 Internal Server Error"),
        ({"announced": 500_000}, ConnectionError, "more expected"),
        ({"cuts": [200_000]}, ConnectionError, "more expected"),
        ({"announced": 100_000}, ValueError, r"not a whole zip: http.*index\.zip \(100,000 bytes that begin with b'PK"),
        ({"announced": -1, "cuts": [200_000]}, ValueError, "not a whole zip"),
        ({"body": b"<!DOCTYPE html>"}, ValueError, "15 bytes that begin with b'<!DOCTYPE html"),
        ({"redirections": ["file:///etc/passwd"]}, ConnectionError, r"cannot fetch .*index\.zip"),
    ],
)
def test_what_is_no_whole_zip_is_refused_and_fetched_again(server, tmp_path, behaviour, error, message):
    whole = server.body
    vars(server).update(behaviour)
    with pytest.raises(error, match=message):
        fetch_zip(server.address, tmp_path)
    assert not list(tmp_path.glob("*.zip"))
    vars(server).update(body=whole, announced=-1, redirections=[server.address])
    assert fetch_zip(server.address, tmp_path).read_bytes() == whole


def test_a_key_in_the_address_is_neither_shown_nor_stored(server, tmp_path):
    address = server.address.replace("http://", "http://user:PASSWORD@") + "?token=SECRET"
    server.statuses = [403]
    with pytest.raises(ConnectionError, match="cannot fetch") as refused:
        fetch_zip(address, tmp_path)
    fetch_zip(address, tmp_path)
    server.stop()
    with pytest.raises(
        ConnectionError, match=r"^cannot fetch http://127\.0\.0\.1:\d+/files/index\.zip: .*refused.*$"
    ) as away:
        fetch_zip(address, tmp_path / "other")
    shown = f"{refused.value}{away.value}{_names(tmp_path)}"
    assert "SECRET" not in shown
    assert "PASSWORD" not in shown


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("index", "index"),
        ("", "download"),
        ("..", "download"),
        ("a/..%2f..%2fetc%2fpasswd", "passwd"),
        ("..%5c..%5cevil.zip", "evil"),
        ("C:%5cevil.zip", "C_evil"),
        (".bashrc", "bashrc"),
        ("a%00b%0a.zip", "a_b"),
        ("d%C3%A9cisions%20juri.zip", "décisions_juri"),
        ("a" * 500, "a" * 60),
    ],
)
def test_a_file_name_is_plain_whatever_the_address(server, tmp_path, path, name):
    fetched = fetch_zip(server.address.replace("files/index.zip", path), tmp_path)
    assert fetched.parent == tmp_path
    assert fetched.name[:-13] == name


@pytest.mark.parametrize("address", ["ftp://h/x.zip", "file:///etc/passwd", "s3://bucket/x.zip", "HF://x"])
def test_an_address_of_another_kind_is_refused(address, tmp_path):
    with pytest.raises(ValueError, match=r"cannot fetch .* \(expected http, https, or a local path\)"):
        prepare_assets(None, address, tmp_path)


def test_what_another_process_is_making_is_left_to_it(server, tmp_path):
    path = fetch_zip(server.address, tmp_path)
    for target, make in (
        (path, lambda: fetch_zip(server.address, tmp_path)),
        (tmp_path / "x", lambda: extract_zip(path, tmp_path / "x")),
    ):
        with (
            FileLock(target.parent / f".{target.name}.lock"),
            pytest.raises(ValueError, match="another process is making"),
        ):
            make()


def test_a_disk_too_full_is_known_before_anything_is_written(server, tmp_path, monkeypatch):
    source = _zip(tmp_path / "x.zip", {"a": "12345"})
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 6, 4))
    with pytest.raises(OSError, match=r"not enough space in .*: 5 bytes needed, 4 free"):
        extract_zip(source, tmp_path / "x")
    with pytest.raises(OSError, match=rf"not enough space in .*: {len(server.body):,} bytes needed, 4 free"):
        fetch_zip(server.address, tmp_path)
    assert not (tmp_path / "x").exists()


def test_a_zip_is_unpacked_whole_whoever_zipped_it(tmp_path):
    files = {"a/b/c.bin": _noise(3_000_000, seed=1), "a/é.json": b"{}", "empty": b"", "zeros": bytes(1_000_000)}
    target = extract_zip(_zip(tmp_path / "x.zip", {"a/": "", "a/b/": "", **files}), tmp_path / "out" / "x")
    assert _tree(target) == files
    assert _names(target.parent) == [".x.lock", "x"]
    bomb = _zip(tmp_path / "bomb.zip", {"zeros": bytes(20_000_000)})
    assert extract_zip(bomb, tmp_path / "x", ZipLimits(ratio=2000)).is_dir()


def test_a_zip_unpacked_before_is_not_unpacked_again_another_takes_its_place_and_a_folder_may_be_zipped_again(tmp_path):
    source = _zip(tmp_path / "x.zip", {"a": "1"})
    target = extract_zip(source, tmp_path / "x")
    (target / "added by its user").write_text("2")
    extract_zip(source, target)
    assert (target / "added by its user").exists()
    (tmp_path / ".x.extracting").mkdir()  # what a killed extraction left
    assert _tree(extract_zip(_zip(source, {"b": "12"}), target)) == {"b": b"12"}  # its time may be the other's
    assert _names(tmp_path) == [".x.lock", "x", "x.zip"]
    again = shutil.make_archive(str(tmp_path / "again"), "zip", target)
    assert _tree(extract_zip(again, tmp_path / "y")) == {"b": b"12"}


def test_a_folder_that_holds_something_else_is_not_overwritten(tmp_path):
    source = _zip(tmp_path / "x.zip", {"a": "1"})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    for target in (tmp_path / "mine", tmp_path / "mine" / "thesis.txt"):
        with pytest.raises(ValueError, match=r"will not overwrite .*mine"):
            extract_zip(source, target)
    assert _tree(tmp_path / "mine") == {"thesis.txt": b"years"}


def test_folders_may_be_separated_the_windows_way(tmp_path):
    source = _raw_zip(tmp_path / "x.zip", "index\\fast_plaid_index\\metadata.json")
    assert _tree(extract_zip(source, tmp_path / "x")) == {"index/fast_plaid_index/metadata.json": b"target"}


NO_PLAIN_PATHS = (
    "../evil|a/../../evil|a/..|/etc/evil|//server/evil|\\evil|..\\evil|C:\\evil|C:evil|a/b:stream|evil\0.txt|evil\n"
).split("|")
NO_FILES = [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        *((lambda path, name=name: _raw_zip(path, name), "entry .* is .* no plain path") for name in NO_PLAIN_PATHS),
        (lambda path: _names_zip(path, ["a" * 256]), "entry .* is .* no plain path"),
        *((lambda path, kind=kind: _raw_zip(path, "name", kind | 0o777), "expected a file") for kind in NO_FILES),
        *(
            (lambda path, names=names: _names_zip(path, names), "cannot unpack")
            for names in (["a", "a/b"], ["a/b", "a"])
        ),
        (lambda path: _zip(path, {"a": "1"}, zipfile.ZIP_BZIP2), r"packed by method 12 \(expected a file, stored or"),
        (lambda path: _zip(path, {"a": "1"}, zipfile.ZIP_LZMA), "packed by method 14"),
        (lambda path: _encrypted(path), "is encrypted"),
        (lambda path: _zip(path, {"zeros": bytes(20_000)}), r"unpacks to 20,000 bytes \(expected at most \d\d,\d00\)"),
        (lambda path: _zip(path, {"a": _noise(30_000)}), r"unpacks to 30,000 bytes \(expected at most 29,999\)"),
        (lambda path: _names_zip(path, "abcd"), r"4 entries \(expected at most 3\)"),
        (lambda path: path.write_bytes(b""), r"x\.zip \(0 bytes"),
        (lambda path: path.write_bytes(b"<html>no</html>"), "begin with b'<html>no</html"),
        (lambda path: path.write_bytes(_zip_bytes()[:200_000]), "200,000 bytes that begin with b'PK"),
        (lambda path: _lying(path, 1), "cannot unpack .*Bad CRC-32"),
        (lambda path: path, r"No such file .*x\.zip"),
    ],
)
def test_a_hostile_zip_leaves_nothing(tmp_path, make, problem):
    make(tmp_path / "x.zip")
    with pytest.raises((ValueError, FileNotFoundError), match=problem):
        extract_zip(tmp_path / "x.zip", tmp_path / "deep" / "x", ZipLimits(entries=3, total_bytes=29_999))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"] in ([], ["x.zip"])


def _names_zip(path, names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")


def _encrypted(path):
    data = bytearray(_zip(path, {"a": "1"}).read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)


def _lying(path, claimed):
    """Write a zip whose list says that its file of 500 bytes has so many."""
    data = bytearray(_zip(path, {"a": _noise(500)}).read_bytes())
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = claimed.to_bytes(4, "little")
    path.write_bytes(data)


def test_a_wrong_checksum_leaves_the_folder_before_as_it_was(tmp_path):
    source = _zip(tmp_path / "x.zip", {"a": "old"})
    target = extract_zip(source, tmp_path / "x")
    content = _noise(5_000, seed=1)
    _zip(source, {"a": "new", "b": content}, zipfile.ZIP_STORED)
    source.write_bytes(source.read_bytes().replace(content[2_000:2_010], b"0123456789"))
    with pytest.raises(ValueError, match=r"cannot unpack .*x\.zip .*Bad CRC-32 for file 'b'"):
        extract_zip(source, target)
    assert _tree(target) == {"a": b"old"}


def test_any_damage_gives_one_kind_of_error_or_a_zip_like_any_other(tmp_path):
    files = {"a/config.json": b'{"a": 1}' * 50, "a/b.bin": _noise(500)}
    whole = _zip(tmp_path / "x.zip", files).read_bytes()
    dice = np.random.default_rng(7)
    refused = []
    for number in range(120):
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
    assert len(refused) > 40
    assert all("x.zip" in message and "\n" not in message for message in refused)


@pytest.mark.slow
def test_an_extraction_killed_half_way_succeeds_the_next_time(tmp_path):
    files = {f"{number}.bin": _noise(1_000, number) for number in range(9)}
    source = _zip(tmp_path / "x.zip", files)
    assert Killable(run_until, "assets.sync", "/5.bin", extract_zip, source, tmp_path / "x").killed_after(LONGEST_S)
    assert (tmp_path / ".x.extracting" / "5.bin").exists()
    assert not (tmp_path / "x").exists()
    assert _tree(extract_zip(source, tmp_path / "x")) == files
    assert not (tmp_path / ".x.extracting").exists()


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


def test_an_index_may_be_given_by_its_innermost_folder_or_asked_for_by_another_name(tmp_path):
    _touch(tmp_path, *(f"{top}/{name}" for top in ("juri", "constit") for name in PLAID))
    assert find_index_root(tmp_path / "juri" / "fast_plaid_index") == tmp_path / "juri"
    assert find_index_root(tmp_path, "constit") == tmp_path / "constit"
    with pytest.raises(ValueError, match=r"more than one index in .*/constit, .*/juri"):
        find_index_root(tmp_path)


@pytest.mark.parametrize("names", [["readme.txt"], ["fast_plaid_index/ivf.npy"], ["metadata.json"]])
def test_where_there_is_no_index_the_expected_layout_is_named(tmp_path, names):
    with pytest.raises(FileNotFoundError, match=r"no index in .*expected .*legal_french_index/fast_plaid_index"):
        find_index_root(_touch(tmp_path, *names))
    with pytest.raises(FileNotFoundError, match="no such folder"):
        find_index_root(tmp_path / "none")


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


def test_an_index_of_pylate_is_unpacked_to_be_imported_whatever_pickles_it_holds(tiny_library, tmp_path, monkeypatch):
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
    with pytest.raises(FileNotFoundError, match="'legal-rag import-pylate' makes a Library of it"):
        Library(assets.index)
    assert not Path("EVIL").exists()


def test_a_folder_is_used_where_it_is(tiny_library, tiny_model_folder, tmp_path):
    assets = prepare_assets(tiny_model_folder, tiny_library.path.parent, tmp_path / "assets")
    assert (assets.encoder, assets.index) == (tiny_model_folder, tiny_library.path)
    assert not (tmp_path / "assets").exists()


@pytest.mark.parametrize("name", ["maastrichtlawtech/colbert-legal-french", "bundled-128", "auto"])
def test_an_encoder_may_be_named_and_there_may_be_no_index_yet(name, tmp_path):
    assert prepare_assets(name, None, tmp_path) == Assets(name, None)


@pytest.mark.parametrize("with_manifest", [True, False])
def test_an_index_that_contradicts_itself_or_lacks_a_file_is_refused(tiny_library, tmp_path, with_manifest):
    broken = Path(shutil.copytree(tiny_library.path, tmp_path / "broken"))
    lengths = broken / "fast_plaid_index" / "doclens.0.json"
    lengths.write_text(json.dumps(json.loads(lengths.read_text())[:-1]))
    if not with_manifest:
        (broken / "manifest.json").unlink()
    with pytest.raises(ValueError, match=r"damaged PLAID index: .*tokens announced"):
        prepare_assets(None, broken)
    (broken / "fast_plaid_index" / "0.codes.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"incomplete PLAID index: no 0\.codes\.npy"):
        prepare_assets(None, broken)


@pytest.mark.parametrize(
    ("encoder", "what"), [(None, "index at none"), ("none", "encoder at none"), ("a/b.zip", r"encoder at a/b\.zip")]
)
def test_a_source_that_is_nowhere_is_named(tmp_path, encoder, what):
    with pytest.raises(FileNotFoundError, match=rf"no {what} \(expected a zip's address or path, or a folder\)"):
        prepare_assets(encoder, "none", tmp_path)
