"""Attacks by a model's server: what it sends, when, and how much, at each door by which models are asked."""

import gzip
import itertools
import json
import os
import random
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from support.raw_server import RESET, STAY, Behaviour, RawServer, Step, completion, dripped, response

from attacks.cases import Case, Outcome, Place

KEY = "sk-attack-0123456789-AbCdEfGhIj"
QUESTION = "Quel est le délai pour déposer le compte de campagne ?"
TEXT = "Le 12 mai 1993, M. Durand a payé 2 000 francs à la société Lever, qui le lui a rendu le 3 juin 1994. " * 3
BUDGET_S, DRIP_S = 2.0, 1.0  # of a case; of one whose server only ends with it
STARTS_S = {"ask": 1.5, "programs": 2.0, "questions": 1.0, "litellm": 1.0}  # that a door takes beside
MB = 1_000_000

# --- doors -----------------------------------------------------------------------------------------------------------

Door = Callable[[Place, str, float], str]  # (where, address, seconds) to what a user reads


def _model(api_base: str, seconds: float, **settings: object) -> Any:
    from legal_rag.agent import build_language_model

    return build_language_model("m", KEY, api_base, num_retries=0, cache=False, timeout=60.0, **settings)


def ask(place: Place, api_base: str, seconds: float) -> str:
    """Ask the agent, and save the answer."""
    from legal_rag.agent import Budget, LegalReActAgent, default_instructions
    from legal_rag.report import SavedAnswers, render_answer

    lm = _model(api_base, seconds)
    agent = LegalReActAgent(
        _retriever(place.library), lm, default_instructions(), budget=Budget(seconds=seconds, model_calls=4)
    )
    prediction = agent(QUESTION)
    SavedAnswers(place.folder / "answers").save(prediction)
    assert prediction.usage.tokens < 1_000_000
    (place.folder / "page.html").write_text(render_answer(prediction))
    return f"{prediction.status}: {prediction.notice or prediction.answer}"


def by_map(place: Place, api_base: str, seconds: float) -> str:
    """Read deeply, by map-reduce."""
    return _read(place, api_base, seconds, "map")


def by_programs(place: Place, api_base: str, seconds: float) -> str:
    """Read deeply, by programs."""
    return _read(place, api_base, seconds, "rlm")


def by_eight(place: Place, api_base: str, seconds: float) -> str:
    """Read deeply, with eight requests at once."""
    return _read(place, api_base, seconds, "map", n=8)


def _read(place: Place, api_base: str, seconds: float, plan: str, n: int = 2) -> str:
    from legal_rag.agent import Budget
    from legal_rag.deep_read import deep_read
    from legal_rag.deep_read.settings import DeepReadSettings

    prediction = deep_read(
        QUESTION,
        library=_library(place.library),
        lm=_model(api_base, seconds),
        settings=DeepReadSettings(plan=plan, map_documents=n, workers=n),
        budget=Budget(seconds=seconds, model_calls=3 * n, tokens=1_000_000),
    )
    (place.folder / "answer.json").write_text(json.dumps(prediction.to_record()))
    return f"{prediction.status}: {prediction.notice or prediction.answer}"


def questions(place: Place, api_base: str, seconds: float) -> str:
    """Make a question."""
    from legal_rag.base import deadline
    from legal_rag.evaluation.questions import generate_questions

    with deadline.within(seconds):
        report = generate_questions(
            _library(place.library), _model(api_base, seconds), limit=1, output=place.folder / "set"
        )
    return f"{report.accepted} accepted of {report.documents}"


def by_openai(place: Place, api_base: str, seconds: float) -> str:
    """Extract through LangExtract."""
    return _extracted("m", api_base, seconds)


def by_ollama(place: Place, api_base: str, seconds: float) -> str:
    """Extract by a model of Ollama's."""
    return _extracted("ollama/m", api_base.removesuffix("/v1"), seconds)


def _extracted(model: str, api_base: str, seconds: float) -> str:
    from legal_rag.base import deadline
    from legal_rag.extraction import run_extraction

    with deadline.within(seconds):
        found = run_extraction(
            TEXT, "t", "jurisprudence", model_id=model, api_key=KEY, api_base=api_base, extraction_passes=1
        )
    return f"{len(found.extractions)} entities, {found.dropped_chunks} pieces without a reply"


def check(place: Place, api_base: str, seconds: float) -> str:
    """Try the model."""
    from legal_rag.llm import check_model

    return check_model(_model(api_base, seconds), seconds) or "The model replies."


def litellm(place: Place, api_base: str, seconds: float) -> str:
    """Ask by LiteLLM, as for providers that it alone knows: its client bounds no sizes, so slow servers only."""
    import dspy

    from legal_rag.llm import check_model

    lm = dspy.LM("openai/m", api_base=api_base, api_key=KEY, engine="litellm", timeout=60.0, cache=False)
    return check_model(lm, seconds) or "The model replies."


DOORS: dict[str, Door] = {
    "ask": ask,
    "map": by_map,
    "programs": by_programs,
    "eight": by_eight,
    "questions": questions,
    "openai": by_openai,
    "ollama": by_ollama,
    "check": check,
    "litellm": litellm,
}
QUICK = ("check", "ask", "openai", "map", "ollama", "questions")  # in turn, for behaviours of no door of their own


@cache
def _retriever(library: Path) -> Any:
    from legal_rag.retriever import build_retriever

    return build_retriever(library)


@cache
def _library(library: Path) -> Any:
    from legal_rag.library import Library

    return Library(library)


def prepare(place: Place) -> None:
    """Import and open what every case takes, so that none is measured with it: also what answers in a model's stead."""
    good, refused = _once(response(completion())), _once(response(b"{}", status="401 Unauthorized"))
    for door, behaviour in itertools.product(DOORS.values(), (good, refused)):
        with RawServer(behaviour) as server, suppress(Exception):
            door(place, server.api_base, 30.0)


def _case(name: str, door: str, behaviour: Behaviour, seconds: float = BUDGET_S, *, masked: bool = False) -> Case:
    def run(place: Place) -> Outcome:
        with RawServer(behaviour) as server:
            os.environ["ATTACKED_API_KEY"] = KEY
            try:
                line = DOORS[door](place, server.api_base, seconds)
            except (ValueError, ConnectionError) as error:
                line = f"{type(error).__name__}: {error}"
            except Exception as error:
                from legal_rag.base.deadline import DeadlineError

                if not isinstance(error, DeadlineError):
                    raise
                line = "DeadlineError: the time was over"
            finally:
                del os.environ["ATTACKED_API_KEY"]
        written = b"".join(path.read_bytes() for path in place.folder.rglob("*") if path.is_file())
        shown = line.encode() + written
        has_key = any(form.encode() in shown for form in _disguises(KEY))
        was_asked = bool(server.requests) or not masked
        return Outcome(not has_key and was_asked and "Traceback" not in line, line)

    return Case(f"{name}, {door}", run, seconds + STARTS_S.get(door, 0.5))


# --- behaviours ------------------------------------------------------------------------------------------------------


def _once(*steps: Step) -> Behaviour:
    return lambda request: steps


def _forever(data: bytes, before: bytes = b"", wait: float = 0.0) -> Behaviour:
    def steps(request: bytes) -> Iterator[Step]:
        yield before
        while True:
            yield data
            if wait:
                yield wait

    return steps


def _dripping(before: bytes, data: bytes, wait: float = 0.3, size: int = 1) -> Behaviour:
    def steps(request: bytes) -> Iterator[Step]:
        yield before
        yield from dripped(data, wait, size)

    return steps


def _late(write: Callable[[], bytes]) -> Behaviour:
    return lambda request: [write()]


def _streamed(block: bytes, size: int) -> Behaviour:
    """Send a completion of some size without having it in memory."""
    before, _, after = completion(["@"]).partition(b"@")

    def steps(request: bytes) -> Iterator[Step]:
        yield _head(f"Content-Length: {len(before) + size // len(block) * len(block) + len(after)}") + before
        yield from itertools.repeat(block, size // len(block))
        yield after

    return steps


def _head(*headers: str, status: str = "200 OK", version: str = "HTTP/1.1") -> bytes:
    return response(b"", *headers, status=status, version=version, length="")


def _bomb(coding: str, megabytes: int) -> Iterator[bytes]:
    packer, blanks = zlib.compressobj(9, zlib.DEFLATED, {"gzip": 31, "deflate": 15, "raw": -15}[coding]), b" " * MB
    yield _head(f"Content-Encoding: {'deflate' if coding == 'raw' else coding}")
    for _ in range(megabytes):
        yield packer.compress(blanks)
    yield packer.flush()


def _nested(depth: int, kind: str = "[") -> bytes:
    return kind.encode() * depth + b"1" + {"[": b"]", '{"a":': b"}"}[kind] * depth


def _disguises(key: str) -> tuple[str, ...]:
    return (
        key,
        "\u200b".join(key),
        " ".join(key),
        quote(key, safe=""),
        "".join(f"%{ord(one):02X}" for one in key),
        "".join(f"\\u{ord(one):04x}" for one in key),
        "".join(f"&#{ord(one)};" for one in key),
        key[::-1],
        b64encode(key.encode()).decode(),
        b64encode(b"x" + key.encode()).decode(),
        key.encode().hex(),
    )


def slow() -> Iterator[tuple[str, Behaviour]]:
    """Servers that end only when the call does."""
    whole = response(completion("mot " * 2000))
    chunked = _head("Transfer-Encoding: chunked")
    yield "silence", _once(STAY)
    yield "a byte of the status every 0.3 s", _dripping(b"", whole)
    yield "a byte of the headers every 0.05 s", _dripping(b"HTTP/1.1 200 OK\r\nX-A: ", b"a" * 4000, 0.05)
    yield "a header every 0.2 s", _forever(b"X-Header: 1\r\n", b"HTTP/1.1 200 OK\r\n", 0.2)
    yield "a byte of the body every 0.3 s", _dripping(response(b"", length=5000), completion("mot " * 2000))
    yield "a byte of JSON's blanks every 0.1 s", _forever(b" ", _head(), 0.1)
    yield "a chunk every 0.2 s", _forever(b"1\r\na\r\n", chunked, 0.2)
    yield "a byte of a chunk's size every 0.2 s", _forever(b"0", chunked, 0.2)
    yield "a trailer every 0.2 s", _forever(b"X-T: 1\r\n", chunked + b"2\r\n{}\r\n0\r\n", 0.2)
    yield "100 Continue every 0.2 s", _forever(b"HTTP/1.1 100 Continue\r\n\r\n", b"", 0.2)
    yield "a comment of a stream every 0.2 s", _forever(b": ping\n\n", _head("Content-Type: text/event-stream"), 0.2)
    yield "gzip of nothing every 0.2 s", _forever(gzip.compress(b""), _head("Content-Encoding: gzip"), 0.2)
    yield "half a body, then silence", _once(response(completion())[:200], STAY)
    yield "headers, then silence", _once(_head("Content-Length: 10"), STAY)
    yield "an error of 500 that drips", _dripping(_head(status="500 Internal Server Error"), b"x" * 9000, 0.2)


def large() -> Iterator[tuple[str, Behaviour]]:
    """Servers that send more than there is room for."""
    chunked = _head("Transfer-Encoding: chunked")
    block = b"a" * 65_536
    yield "an endless body", _forever(block, _head())
    yield "an endless body of chunks", _forever(b"10000\r\n" + block + b"\r\n", chunked)
    yield "an endless header", _forever(block, b"HTTP/1.1 200 OK\r\nX-A: ")
    yield "endless headers", _forever(b"X-Header: 1\r\n" * 4000, b"HTTP/1.1 200 OK\r\n")
    yield "an endless status", _forever(block, b"HTTP/1.1 200 ")
    yield "endless trailers", _forever(b"X-T: 1\r\n" * 4000, chunked + b"2\r\n{}\r\n0\r\n")
    yield "an endless size of a chunk", _forever(block, chunked)
    yield "endless 100 Continue", _forever(b"HTTP/1.1 100 Continue\r\n\r\n" * 2000)
    yield "an endless chunk", _forever(block, chunked + b"F" * 200 + b"\r\n")
    yield "an endless stream", _forever(b'data: {"choices": []}\n\n' * 2000, _head("Content-Type: text/event-stream"))
    yield "an endless error", _forever(block, _head(status="500 Internal Server Error"))
    error = _head("Content-Length: 104857600", status="400 Bad Request")
    yield "an error of 100 MB", lambda request: (error if n == 0 else block for n in range(1601))
    yield "a text of 19 MB", _late(lambda: response(completion("a" * 19 * MB)))
    moons = "🂡".encode()
    yield "12 MB of four bytes each", _late(lambda: response(completion().replace(b"Aucun", moons * 3 * MB)))
    pairs = rb"\ud83d\ude00"
    yield "19 MB of escapes", _late(lambda: response(completion().replace(b"Aucun", pairs * (19 * MB // 12))))
    yield "19 MB of blanks", _late(lambda: response(b" " * 19 * MB + completion()))
    for coding, size in (("gzip", 2_000), ("gzip", 100), ("deflate", 2_000), ("raw", 500)):
        yield f"{size} MB in {coding}", lambda request, coding=coding, size=size: _bomb(coding, size)
    twice = gzip.compress(gzip.compress(b" " * 100 * MB))
    yield "gzip in gzip", _once(response(twice, "Content-Encoding: gzip, gzip"))
    member = gzip.compress(b" " * 100)
    yield "200,000 members of gzip", _late(lambda: response(member * 200_000, "Content-Encoding: gzip"))
    yield "6,000,000 empty lists", _late(lambda: response(b"[" + b"[]," * 6 * MB + b"[]]"))
    yield "3,000,000 members", _late(lambda: response(b"{" + b'"a":1,' * 3 * MB + b'"b":1}'))
    choice = json.loads(completion())["choices"]
    yield "100,000 choices", _late(lambda: response(completion(choices=choice * 100_000)))
    yield "1,000 choices", _late(lambda: response(completion(choices=choice * 1_000)))
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    calls = {"role": "assistant", "content": None, "tool_calls": [call] * 20_000}
    yield "20,000 calls of tools", _late(lambda: response(completion(message=calls)))


def costly() -> Iterator[tuple[str, Behaviour]]:
    """Replies within the bounds that are meant to take long."""
    for name, body in {
        "6 MB of escaped marks": lambda: b'\\"' * 3 * MB,
        "a text of backslashes that never ends": lambda: b'{"a": "' + b"\\" * 9 * MB,
        "a text of backslashes": lambda: completion("\\" * 4 * MB),
        "texts of entities": lambda: completion(["&#0" * 80_000] * 50),
        "199,000 texts": lambda: json.dumps(["\\" * 40] * 199_000).encode(),
        "all but the last sign of the key, often": lambda: completion((KEY[:-1] + "%41") * 50_000),
        "all but the last sign of the key, spaced": lambda: completion("\u200b".join(KEY[:-1] * 5_000) + "%41"),
        "numbers of 4,000 figures": lambda: b"[" + b",".join([b"9" * 4_000] * 4_000) + b"]",
        "a number of 9,000,000 figures": lambda: b"[1." + b"1" * 9 * MB + b"]",
        "900,000 lines of a stream": lambda: b"data: {}\n" * 900_000,
        "190,000 lines of a stream": lambda: b'data: {"choices": []}\n\n' * 90_000,
        "texts with many links": lambda: completion("[Source: A, chars 0-20] « a » " * 6_000),
    }.items():
        yield name, lambda request, body=body: [response(body())]


def malformed() -> Iterator[tuple[str, Behaviour]]:
    """Replies that are not what they should be."""
    good = completion()
    for name, body in {
        "no body": b"",
        "a word": b"OK",
        "HTML": b"<html><body>502</body></html>",
        "null": b"null",
        "a number": b"42",
        "a list": b"[]",
        "a text": b'"ok"',
        "an empty object": b"{}",
        "half of JSON": good[: len(good) // 2],
        "JSON twice": good + good,
        "a BOM": b"\xef\xbb\xbf" + good,
        "UTF-16": good.decode().encode("utf-16"),
        "UTF-32": good.decode().encode("utf-32"),
        "Latin-1": completion("é").decode().encode("latin-1", "replace"),
        "bytes of no text": bytes(range(256)) * 20,
        "NUL": b"\0" * 5000,
        "half a character": completion("\ud800 a"),
        "100,000 lists in lists": _nested(100_000),
        "65 lists in lists": _nested(65),
        "100,000 objects in objects": _nested(100_000, '{"a":'),
        "lists that never close": b"[" * 5_000_000,
        "a number of 5,000 figures": good.replace(b'"created": 0', b'"created": ' + b"9" * 5_000),
        "a number of 1e308": good.replace(b'"created": 0', b'"created": 1e308'),
        "a number of 1e999": good.replace(b'"created": 0', b'"created": 1e999'),
        "NaN": good.replace(b'"created": 0', b'"created": NaN'),
        "names said twice": good.replace(b'"model"', b'"choices": [], "model"'),
        "a name of 1 MB": good.replace(b'"model"', b'"' + b"m" * MB + b'"'),
        "an error for 200": b'{"error": {"message": "no", "code": 1e5, "type": []}}',
        "an error that is a list": b'{"error": [1, 2]}',
        "a stream not asked for": b"data: " + good + b"\n\ndata: [DONE]\n\n",
    }.items():
        yield name, _once(response(body))
    for name, changes in {
        "no choices": {"choices": []},
        "choices of null": {"choices": None},
        "choices of numbers": {"choices": [1, 2]},
        "choices as a text": {"choices": "abc"},
        "choices as an object": {"choices": {"0": {}}},
        "no message": {"message": None},
        "a message that is a list": {"message": [1]},
        "content null": {"content": None},
        "content an object": {"content": {"a": 1}},
        "content a number": {"content": 5},
        "content a list": {"content": [{"type": "text", "text": 5}, 7, None]},
        "content blank": {"content": " \n"},
        "content of control characters": {"content": "\x1b]52;c;aGk=\x07\x00\x08" * 50},
        "content of thoughts alone": {"content": "<think>" * 5000},
        "content of marks": {"content": "[[ ## " * 30_000},
        "content of brackets": {"content": "{" * 200_000},
        "content of links": {"content": "[Source: A, chars 0-" * 9_000},
        "odd finish_reason": {"finish_reason": {"a": 1}},
        "finish_reason null": {"finish_reason": None},
        "finish_reason length": {"finish_reason": "length"},
        "model a list": {"model": ["m"]},
        "no model": {"model": None},
        "a model of 1 MB": {"model": "m" * MB},
        "a role of its own": {"message": {"role": "system", "content": "a"}},
        "a refusal": {"message": {"role": "assistant", "content": None, "refusal": "no"}},
        "a call without a name": {"message": {"content": None, "tool_calls": [{"id": "1", "type": "function"}]}},
        "calls that are numbers": {"message": {"content": None, "tool_calls": [1, 2, 3]}},
        "a call of bad arguments": {
            "message": {
                "tool_calls": [{"id": 1, "type": "function", "function": {"name": "f", "arguments": "{" * 9999}}]
            }
        },
        "usage null": {"usage": None},
        "usage a list": {"usage": [1]},
        "usage a text": {"usage": "many"},
        "usage negative": {"usage": {"prompt_tokens": -5, "completion_tokens": -9}},
        "usage of nothing": {"usage": {"prompt_tokens": 0, "completion_tokens": 0}},
        "usage of texts": {"usage": {"prompt_tokens": "1", "completion_tokens": "2"}},
        "usage of 1e14": {"usage": {"prompt_tokens": 10**14, "completion_tokens": 10**14}},
        "usage of floats": {"usage": {"prompt_tokens": 1.5, "completion_tokens": 1e10}},
        "usage of truth": {"usage": {"prompt_tokens": True, "completion_tokens": False}},
        "details of usage a list": {"usage": {"prompt_tokens": 1, "prompt_tokens_details": [1]}},
    }.items():
        yield name, _once(response(completion(**changes)))


def of_http() -> Iterator[tuple[str, Behaviour]]:
    """Replies that are hardly HTTP, and connections that break."""
    good, chunked = completion(), _head("Transfer-Encoding: chunked")
    for name, sent in {
        "HTTP/1.0": response(good, version="HTTP/1.0", length=""),
        "HTTP/0.9": good,
        "HTTP/9.9": response(good, version="HTTP/9.9"),
        "another protocol": b"SSH-2.0-OpenSSH_9.0\r\n",
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00",
        "nothing": b"",
        "a status of no number": response(good, status="abc OK"),
        "a status of two figures": response(good, status="20 OK"),
        "a status of ten figures": response(good, status="2000000000 OK"),
        "a negative status": response(good, status="-200 OK"),
        "a length too short": response(good, length=20),
        "a length too long": response(good, length=10**6),
        "a length of 10^30": response(good, length=10**30),
        "a negative length": response(good, length=-5),
        "a length of no number": response(good, length="many"),
        "two lengths": response(good, "Content-Length: 5"),
        "a length and chunks": response(good, "Transfer-Encoding: chunked"),
        "chunks of no number": chunked + b"zz\r\n" + good,
        "a negative chunk": chunked + b"-1\r\n" + good,
        "a chunk that is cut off": chunked + b"ffff\r\n" + good,
        "a chunk of no end": chunked + b"%x\r\n%s" % (len(good), good),
        "an unknown coding of transfer": _head("Transfer-Encoding: gzip, chunked") + good,
        "no colon in a header": b"HTTP/1.1 200 OK\r\nabc\r\n\r\n" + good,
        "a header of NUL": response(good, "X-A: \0\0"),
        "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: %d\n\n%s" % (len(good), good),
        "a folded header": response(good, "X-A: 1\r\n 2\r\n\t3"),
        "150 headers": response(good, *["X-A: 1"] * 150),
        "a cookie": response(good, "Set-Cookie: a=b; Domain=com"),
        "1,000 cookies": response(good, *["Set-Cookie: a=b"] * 80),
        "a type of its own": response(good, "Content-Type: application/x-python-pickle"),
        "an upgrade": response(b"", "Upgrade: h2c", status="101 Switching"),
        "103 first": b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + response(good),
        "204": response(b"", status="204 No Content"),
        "206": response(good, "Content-Range: bytes 0-1/9", status="206 Partial"),
        "304": response(b"", status="304 Not Modified"),
        "gzip that is none": response(good, "Content-Encoding: gzip"),
        "gzip cut off": response(gzip.compress(good)[:-9], "Content-Encoding: gzip"),
        "gzip as asked by nobody": response(gzip.compress(good), "Content-Encoding: gzip"),
        "br": response(good, "Content-Encoding: br"),
        "zstd": response(good, "Content-Encoding: zstd"),
        "thirty codings": response(good, "Content-Encoding: " + ", ".join(["gzip"] * 30)),
        "two replies": response(good) + response(b"{}"),
        "a reply and refuse": response(good) + b"\0" * 9999,
    }.items():
        yield name, _once(sent)
    whole = response(good)
    for name, cut in (("at once", 0), ("in the status", 9), ("in the headers", 40), ("in the body", len(whole) - 50)):
        yield f"a reset {name}", _once(whole[:cut], RESET)
    yield "a reset in a chunk", _once(chunked + b"ff\r\nabc", RESET)
    for code in (
        100,
        199,
        201,
        299,
        300,
        400,
        401,
        402,
        403,
        404,
        405,
        408,
        409,
        413,
        418,
        422,
        429,
        451,
        500,
        502,
        503,
        529,
        599,
        600,
        999,
    ):
        yield f"status {code}", _once(response(b'{"error": {"message": "no"}}', status=f"{code} X"))
    for after in ("1e9", "-5", "0", "abc", "1" * 4000, "Wed, 21 Oct 2099 07:28:00 GMT", "inf", "nan", "0x10", "١"):
        said = f"Retry-After: {after}".encode().decode("latin-1")
        yield f"wait {after[:30]}", _once(response(b"{}", said, status="429 Too Many Requests"))
    for to in ("http://127.0.0.1:9/v1", "http://example.org/", "file:///etc/passwd", "//x", "", "/v1/chat/completions"):
        yield f"a redirection to {to!r}", _once(response(b"", f"Location: {to}", status="307 Temporary Redirect"))
    yield "a redirection with the key", _once(response(b"", f"Location: http://x/?key={KEY}", status="302 Found"))


def echoing() -> Iterator[tuple[str, Behaviour]]:
    """Servers that send the key back."""
    for n, form in enumerate(_disguises(KEY)):
        yield f"the key in the text, form {n}", _once(response(completion(f"Clé {form}, merci.")))
    escaped = "".join(f"\\u{ord(one):04x}" for one in KEY)
    for name, key in (("as it is", KEY), ("escaped twice", escaped)):
        written = f'{{"thought": "J\'ai {key}.", "query": "{key}"}}'
        yield f"the key in thoughts and arguments, {name}", _once(response(completion(written)))
    for name, key in (("as it is", KEY), ("spaced out", " ".join(KEY)), ("of no width", "\u200b".join(KEY))):
        written = json.dumps({"evidence": [key, "P1"], "answer": f"La clé est {key} [P1] [{key}]."})
        yield f"the key in an answer, {name}", _once(response(completion(written)))
    program = "Je lis.\n\n```repl\nFINAL('%s ' + str(len(find_documents())))\n```"
    yield "the key in a program", _once(response(completion(program % KEY)))
    for status in ("400 Bad Request", "401 Unauthorized", "429 Too Many Requests", "500 Error"):
        body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}.", "code": KEY, "type": KEY}})
        yield f"the key in an error of {status[:3]}", _once(response(body.encode(), status=status))
    yield "the key in an error of no JSON", _once(response(f"<b>{KEY}</b>".encode(), status="403 Forbidden"))
    yield "the key in headers", _once(response(b"{}", f"X-Request-Id: {KEY}", f"Retry-After: {KEY}", status="500 X"))
    yield "the key as the status", _once(response(b"{}", status=f"{KEY} X"))
    yield "the key as a name", _once(response(json.dumps({KEY: 1, "choices": [{"message": {KEY: KEY}}]}).encode()))
    yield "the key in finish_reason and model", _once(response(completion("a", finish_reason=KEY, model=KEY)))
    yield (
        "the key in thoughts apart",
        _once(
            response(
                completion(message={"role": "assistant", "content": "a", "reasoning_content": KEY, "refusal": KEY})
            )
        ),
    )
    call = {"id": KEY, "type": "function", "function": {"name": KEY, "arguments": json.dumps({"a": KEY})}}
    yield (
        "the key in a call of a tool",
        _once(response(completion(message={"role": "assistant", "content": None, "tool_calls": [call]}))),
    )
    yield "the request sent back", lambda request: [response(completion(request.decode("latin-1")))]
    yield "the request sent back as an error", lambda request: [response(request, status="400 Bad Request")]


# --- generated -------------------------------------------------------------------------------------------------------


def generated(draw: random.Random) -> Iterator[tuple[str, Behaviour, float]]:
    """Combine a stage of the reply, what goes wrong there, and how much of it."""
    n = 0
    while True:
        n += 1
        stage = draw.choice(("status", "headers", "body", "chunks", "gzip", "json"))
        fault = draw.choice(("cut", "reset", "drip", "bytes", "repeat", "bits"))
        data = _drawn_reply(draw, stage)
        low, high = {"status": (0, 12), "headers": (15, 60)}.get(stage, (60, len(data)))
        at = draw.randint(low, min(high, len(data)))
        size = draw.choice((1, 7, 100, 4_000, 300_000))
        name = f"{n}: {fault} of {size} in {stage} at {at}"
        if fault == "drip":
            yield (
                name,
                _dripping(data[:at], data[at:] + b" " * 9_000, draw.choice((0.02, 0.1, 0.4)), min(size, 7)),
                DRIP_S,
            )
        elif fault in ("cut", "reset"):
            yield name, _once(data[:at], RESET if fault == "reset" else b""), BUDGET_S
        else:
            new = {
                "bytes": draw.randbytes(size),
                "repeat": data[at : at + draw.randint(1, 40)] * size,
                "bits": bytes(one ^ (1 << draw.randrange(8)) for one in data[at : at + min(size, 7)]),
            }[fault]
            end = at + len(new) if fault == "bits" else at
            yield name, _once(data[:at] + new[: 5 * MB] + data[end:]), BUDGET_S


def _drawn_reply(draw: random.Random, stage: str) -> bytes:
    body = completion("mot " * draw.choice((1, 50, 20_000)), model=draw.choice(("m", "gpt-5", "")))
    if stage == "json":
        value: object = draw.choice((None, -1, 1e300, "x", [], {}, [[]], True, "\ud800", 10**20))
        body = completion(**{draw.choice(("choices", "message", "usage", "content", "model", "finish_reason")): value})
    if stage == "gzip":
        return response(gzip.compress(body), "Content-Encoding: gzip")
    if stage != "chunks":
        return response(body)
    size = draw.choice((1, 100, 5_000))
    parts = (body[start : start + size] for start in range(0, min(len(body), 400 * size), size))
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return _head("Transfer-Encoding: chunked") + chunks + b"0\r\n\r\n"


N_GENERATED = 60


def cases(seed: int) -> Iterator[Case]:
    """Yield all cases."""
    for n, (name, behaviour) in enumerate(slow()):
        yield _case(name, QUICK[n % len(QUICK)], behaviour, DRIP_S)
        if n % 3 == 0:
            yield _case(name, ("litellm", "programs")[n // 3 % 2], behaviour, DRIP_S)
    for n, (name, behaviour) in enumerate(large()):
        yield _case(name, QUICK[n % len(QUICK)], behaviour)
    for n, (name, behaviour) in enumerate(costly()):
        yield _case(name, ("check", "ask", "openai", "map")[n % 4], behaviour)
    for group in (malformed, of_http):
        for n, (name, behaviour) in enumerate(group()):
            yield _case(name, QUICK[n % len(QUICK)], behaviour)
    for name, block in (("letters", b"a" * 12), ("escapes", rb"\ud83d\ude00"), ("lists", b'",[],"aaaaaa')):
        yield _case(f"19 MB of {name} to eight at once", "eight", _streamed(block * 5_000, 19 * MB))
    for n, (name, behaviour) in enumerate(echoing()):
        doors = (
            ("programs",) if "program" in name else ("ask", QUICK[n % len(QUICK)]) if n % len(QUICK) != 1 else ("ask",)
        )
        for door in doors:
            yield _case(name, door, behaviour, masked=True)
    draw = random.Random(seed)
    for (name, behaviour, seconds), _ in zip(generated(draw), range(N_GENERATED), strict=False):
        yield _case(name, draw.choice(QUICK), behaviour, seconds)
