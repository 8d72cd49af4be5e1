"""`scripts/judilibre.py` against a server on 127.0.0.1 that answers as the API's `export` does."""

import json
import runpy
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from support import ROOT

from legal_rag.corpus import read_documents

DECISIONS = [{"id": f"{n:024}", "text": f"LA COUR {n}", "jurisdiction": "cc", "unknown": n} for n in range(5)]
main = runpy.run_path(str(ROOT / "scripts" / "judilibre.py"))["main"]


class Export(BaseHTTPRequestHandler):
    """Answers two decisions a batch; each script of statuses is used up first."""

    statuses: list[int]
    asked: list[dict[str, str]]
    keys: list[str]
    body: object

    def do_GET(self):
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        type(self).asked.append(asked)
        type(self).keys.append(self.headers.get("KeyId"))
        first = 2 * int(asked["batch"])
        following = f"batch={asked['batch']}+1" if first + 2 < len(DECISIONS) else None
        export = {"total": len(DECISIONS), "results": DECISIONS[first : first + 2], "next_batch": following}
        data = json.dumps(self.body or export).encode()
        self.send_response(self.statuses.pop() if self.statuses else 200)
        self.send_header("Location", "/elsewhere?batch=0")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def api(monkeypatch):
    """Serve an export; give its handler and its address."""
    monkeypatch.setenv("JUDILIBRE_API_KEY", "secret-key")
    handler = type("Handler", (Export,), {"statuses": [], "asked": [], "keys": [], "body": None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    handler.address = f"http://127.0.0.1:{server.server_port}/v1"
    yield handler
    server.shutdown()
    server.server_close()


def download(api, path, *parameters):
    return main(["--output", str(path), "--api-base", api.address, *parameters])


def test_all_batches_become_lines_that_are_read(api, tmp_path):
    api.statuses = [429]
    assert download(api, tmp_path / "j.jsonl", "jurisdiction=cc", "date_start=2024-01-01") == 0
    documents = list(read_documents(tmp_path / "j.jsonl"))
    assert [document.content for document in documents] == [f"LA COUR {n}" for n in range(5)]
    assert [asked["batch"] for asked in api.asked] == ["0", "0", "1", "2"]
    assert {(asked["jurisdiction"], asked["date_start"]) for asked in api.asked} == {("cc", "2024-01-01")}
    assert set(api.keys) == {"secret-key"}


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (403, None, "403 Client Error"),
        (302, None, "not an export"),
        (200, [1], "not an export"),
        (200, {"errors": "x"}, "not an export"),
    ],
)
def test_what_is_not_an_export_is_one_line_and_leaves_the_earlier_file(api, status, body, problem, tmp_path, capsys):
    (tmp_path / "j.jsonl").write_text("before", "utf-8")
    api.statuses, api.body = [status], body
    assert download(api, tmp_path / "j.jsonl") == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if "is not written" in line]
    assert len(lines) == 1
    assert problem in lines[0]
    assert "secret-key" not in lines[0]
    assert (tmp_path / "j.jsonl").read_text("utf-8") == "before"
    assert len(api.asked) == 1  # no redirection was followed


def test_without_a_key_or_with_another_argument_nothing_is_asked(api, tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        download(api, tmp_path / "j.jsonl", "jurisdiction")
    assert "not a parameter: 'jurisdiction' (expected NAME=VALUE)" in capsys.readouterr().err
    monkeypatch.delenv("JUDILIBRE_API_KEY")
    with pytest.raises(SystemExit):
        download(api, tmp_path / "j.jsonl")
    assert "no key (expected one in the environment variable JUDILIBRE_API_KEY)" in capsys.readouterr().err
    assert api.asked == []
