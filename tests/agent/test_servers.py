"""What a model's server may send: in time, within bounds, and without anybody's key."""

import gzip
import json
import shutil
import ssl
import subprocess
import threading
import time
from base64 import b64encode, urlsafe_b64encode
from contextlib import suppress
from urllib.parse import quote

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raw_server import RESET, STAY, RawServer, completion, dripped, response

from legal_rag import deadline, exchange
from legal_rag.agent import Budget, build_language_model, use_reply_cache
from legal_rag.agent.budget import BudgetExceededError
from legal_rag.agent.llm import check_model
from legal_rag.agent.model_calls import BudgetedLM, UsageTracker
from legal_rag.exchange import (
    MAX_BODY,
    MAX_CHOICES,
    MAX_MESSAGE,
    BadReplyError,
    ModelConnections,
    NotSentError,
    ServerTimeoutError,
    UnreachableServerError,
    cleaned,
    sending_nothing,
)
from legal_rag.model_keys import MASK, keys_of_environment, mask_keys

KEY = "sk-very/secret+0123456789"
GOOD = response(completion())
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def send(server, seconds=5.0, headers=()):
    connections = ModelConnections()
    try:
        return connections.send("POST", f"{server.api_base}/chat/completions", headers, b"{}", seconds)
    finally:
        connections.close()


def endless(data, before=b""):
    def steps(request):
        yield before
        while True:
            yield data

    return steps


@pytest.mark.parametrize(
    "steps",
    [
        [STAY],
        [b"HTTP/1.1 200 OK\r\n", *dripped(b"X-A: 1\r\n" * 1000, 0.01)],
        [response(b"", length=5000), *dripped(b" " * 5000, 0.01)],
        [CHUNKED, *dripped(b"1\r\n \r\n" * 1000, 0.01, 6)],
        [GOOD[:-1], STAY],
    ],
)
def test_one_deadline_holds_for_the_whole_reply(steps):
    with RawServer(lambda request: steps) as server:
        started = time.monotonic()
        with pytest.raises(ServerTimeoutError, match="timed out"):
            send(server, 0.2)
        with pytest.raises(ServerTimeoutError, match="timed out"), deadline.within(0.2):
            send(server)
        assert time.monotonic() - started < 1.0


@pytest.mark.parametrize("engine", ["auto", pytest.param("litellm", marks=pytest.mark.slow)])
def test_both_of_dspys_engines_keep_to_the_seconds_left(engine):
    drip = [b"HTTP/1.1 200 OK\r\n\r\n", *dripped(b" " * 5000, 0.02)]
    with RawServer(lambda request: drip) as server:
        lm = dspy.LM("openai/m", api_base=server.api_base, api_key=KEY, engine=engine, timeout=30.0, num_retries=3)
        if engine == "litellm":
            check_model(lm, 0.1)  # imports it
        before, started = set(threading.enumerate()), time.monotonic()
        with pytest.raises(BudgetExceededError, match="0,3 seconde"):
            BudgetedLM(lm, UsageTracker(Budget(seconds=0.3)))("?")
        with pytest.raises(BudgetExceededError), deadline.within(0.3):
            BudgetedLM(lm, UsageTracker(Budget()))("?")
        assert time.monotonic() - started < 3.0
        assert {one for one in threading.enumerate() if "Thread-" not in one.name} <= before


@pytest.mark.parametrize(
    ("behaviour", "what"),
    [
        (endless(b"a" * 65_536, b"HTTP/1.1 200 OK\r\n\r\n"), "more than 20,000,000 bytes"),
        (endless(b"10000\r\n" + b"a" * 65_536 + b"\r\n", CHUNKED), "more than 2.,000,000 bytes"),
        (endless(b"a" * 65_536, b"HTTP/1.1 200 OK\r\nX-A: "), "LineTooLong"),
        (endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 2000), "more than 1,000,000 bytes"),
        (lambda request: [response(gzip.compress(b" " * (MAX_BODY + 1)), "Content-Encoding: gzip")], "more than"),
        (lambda request: [response(b"{}", "Content-Encoding: br")], "compressed by 'br', which was not asked for"),
        (lambda request: [response(b"{}", "Content-Encoding: gzip, gzip")], "compressed by 'gzip, gzip'"),
        (lambda request: [response(b"{}", "Content-Encoding: gzip")], "not a reply in HTTP"),
        (lambda request: [response(b"{}", status="307 X")], "redirects .307., which is not followed"),
        (lambda request: [response(b"", status="101 X")], "a reply of status 101"),
        (lambda request: [b"SSH-2.0-OpenSSH\r\n"], "BadStatusLine"),
        (lambda request: [response(b"[" * 65 + b"]" * 65)], "nested more than 64 deep"),
        (lambda request: [response(b"[" + b"1," * 200_000 + b"1]")], "more than 200,000 values"),
        (lambda request: [response(b'{"created": 1e999}')], "a number beyond all bounds"),
        (lambda request: [response(b'{"created": NaN}')], "a number beyond all bounds"),
    ],
)
def test_a_reply_beyond_its_bounds_is_refused(behaviour, what):
    with RawServer(behaviour) as server, pytest.raises(BadReplyError, match=what):
        send(server)


@pytest.mark.parametrize(
    "steps", [[], [RESET], [GOOD[:20], RESET], [GOOD[:-1]], [CHUNKED, b"ff\r\na"], [response(b"{}", length=9)]]
)
def test_a_connection_that_breaks_off_is_no_reply(steps):
    with RawServer(lambda request: steps) as server, pytest.raises(UnreachableServerError, match="broke off"):
        send(server)


@pytest.mark.parametrize(
    "reply",
    [
        response(completion(), version="HTTP/1.0", length=""),
        response(b"\xef\xbb\xbf" + completion()),
        response(gzip.compress(completion()), "Content-Encoding: gzip"),
        response(gzip.compress(completion()[:99]) + gzip.compress(completion()[99:]), "Content-Encoding: x-gzip"),
        b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD,
        CHUNKED + b"%x;ext=1\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n" % (len(completion()), completion()),
        response(completion(), length=-5),
        GOOD.replace(b"\r\n", b"\n"),
    ],
)
def test_unusual_replies_are_read_as_they_are_meant(reply):
    with RawServer(lambda request: [reply]) as server:
        assert json.loads(send(server).body) == json.loads(completion())


def test_an_error_is_read_no_further_than_one_needs_to_know():
    with RawServer(endless(b"a" * 65_536, b"HTTP/1.1 500 X\r\n\r\n")) as server:
        assert send(server) == (500, (), b"a" * MAX_MESSAGE)
        assert server.sent < MAX_BODY  # what the system buffers included


def test_only_headers_that_clients_use_reach_them():
    sent = [
        "Set-Cookie: a=b",
        "Location: http://x",
        "Retry-After: 5",
        "X-Request-Id: r1",
        "Retry-After: 1e9",
        "Request-Id: \xe9",
    ]
    with RawServer(lambda request: [response(b"{}", *sent, status="429 X")]) as server:
        reply = send(server)
    assert reply.headers == (("content-type", "application/json"), ("retry-after", "5"), ("x-request-id", "r1"))


@pytest.mark.parametrize("after", ["-1", "3601", "inf", "nan", "abc", "", "9" * 400, "Wed, 21 Oct 2026"])
def test_a_wait_beyond_reason_is_not_waited_for(after):
    with RawServer(lambda request: [response(b"{}", f"Retry-After: {after}", status="429 X")]) as server:
        assert "retry-after" not in dict(send(server).headers)


def test_a_connection_is_used_again_until_the_server_closes_it():
    connections = ModelConnections()
    reply = GOOD + b""
    with RawServer(lambda request: [reply, 0.05]) as server:
        url = f"{server.api_base}/x"
        for _ in range(3):  # the server closes each: what is kept is not used, or tried again
            assert connections.send("POST", url, [], b"{}").status == 200
        connections.close()
    assert len(server.requests) == 3


def test_nothing_is_sent_where_nothing_may_be():
    with RawServer(lambda request: [GOOD]) as server:
        with sending_nothing(), pytest.raises(NotSentError):
            send(server)
        assert server.requests == []
        assert send(server).status == 200


def test_choices_and_usage_are_bounded():
    usage = {
        "prompt_tokens": -1,
        "completion_tokens": 7,
        "total_tokens": "x",
        "prompt_tokens_details": {"a": 1.5, "b": 2},
    }
    body = completion(choices=[{"index": n} for n in range(50)], usage=usage)
    found = json.loads(cleaned(body))
    assert len(found["choices"]) == MAX_CHOICES
    assert found["usage"] == {"completion_tokens": 7, "prompt_tokens_details": {"b": 2}}
    assert "usage" not in json.loads(cleaned(completion(usage="many")))
    assert json.loads(cleaned(completion("a\ud800b")))["choices"][0]["message"]["content"] == "a\ufffdb"


@pytest.mark.parametrize(
    "body",
    [
        b'\\"' * 2_000_000,
        b'{"a": "' + b"\\" * 4_000_000,
        b'{"a": "' + b"\\\\" * 1_000_000 + b'"}',
        b'{"a": "' + b"&#0" * 100_000 + b'"}',
        b'{"a": "' + KEY[:-1].encode() * 10_000 + b'%41"}',
        b'{"a": 1.' + b"1" * 4_000_000 + b"}",
    ],
    ids=["quotes", "no end", "backslashes", "entities", "nearly keys", "figures"],
)
def test_the_time_that_cleaning_takes_is_linear_in_the_reply(body):
    started = time.process_time()
    cleaned(body, [KEY])
    assert time.process_time() - started < 2.0


def test_cleaning_ends_at_the_deadline():
    texts = json.dumps(["%41" * 1000] * 5_000).encode()
    with deadline.within(0.2), pytest.raises(deadline.DeadlineError):
        cleaned(texts, [KEY])


def test_streams_are_cleaned_line_by_line():
    body = f'data: {{"a": "{KEY}"}}\n\n: {KEY}\n\ndata: [DONE]\n\n'.encode()
    assert cleaned(body, [KEY]).decode() == f'data: {{"a": "{MASK}"}}\n\n: {MASK}\n\ndata: [DONE]\n\n\n'


FORMS = {
    "plain": KEY,
    "backwards": KEY[::-1],
    "of a URL": quote(KEY, safe=""),
    "all of it of a URL": "".join(f"%{ord(one):02X}" for one in KEY),
    "of JSON": "".join(f"\\u{ord(one):04x}" for one in KEY),
    "of JSON in JSON": json.dumps("".join(f"\\u{ord(one):04X}" for one in KEY))[1:-1],
    "of HTML": "".join(f"&#{ord(one)};" for one in KEY),
    "spaced": " ".join(KEY),
    "broken": KEY[:7] + "\n" + KEY[7:],
    "of no width": "\u200b".join(KEY),
    "hexadecimal": KEY.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_key_is_masked_in_its_simple_disguises(form):
    assert mask_keys(f"Clé : {form}.", [KEY]) == f"Clé : {MASK}."


@pytest.mark.parametrize("before", ["", "x", "xy", "Bearer "])
def test_a_key_within_base64_of_more_is_masked(before):
    for encode in (b64encode, urlsafe_b64encode):
        text = encode(f"{before}{KEY} and more".encode()).decode()
        masked = mask_keys(text, [KEY])
        assert MASK in masked
        assert len(masked) - len(MASK) < len(text) - len(KEY)


@pytest.mark.parametrize("key", ["", "none", "EMPTY", "test", "placeholder", "local-1", "--------", "00000000"])
def test_what_is_no_key_is_left(key):
    assert (
        mask_keys(f"none EMPTY test placeholder local-1 {key}", [key]) == f"none EMPTY test placeholder local-1 {key}"
    )


def test_the_keys_of_the_environment_are_known_by_their_names(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", KEY)
    monkeypatch.setenv("MY_TOKEN", "hf_0123456789")
    monkeypatch.setenv("HARMLESS", "not-a-key-0123")
    assert {KEY, "hf_0123456789"} <= keys_of_environment()
    assert "not-a-key-0123" not in keys_of_environment()


@pytest.mark.parametrize(
    "header", [("Authorization", f"Bearer {KEY}"), ("x-api-key", KEY), ("X-Goog-Api-Key", KEY), ("api-key", KEY)]
)
def test_the_key_that_was_sent_comes_back_masked_whatever_it_stands_in(header):
    said = {"error": {"message": f"bad {KEY}", KEY: [KEY]}}
    for body, status in (
        (json.dumps(said).encode(), "401 X"),
        (f"<p>{KEY}</p>".encode(), "502 X"),
        (completion(KEY), "200 X"),
    ):
        with RawServer(
            lambda request, body=body, status=status: [response(body, f"X-Request-Id: {KEY}", status=status)]
        ) as server:
            reply = send(server, headers=[header])
        assert KEY not in str(reply)
        assert MASK in reply.body.decode()


def test_a_key_that_http_does_not_take_is_not_named():
    with pytest.raises(BadReplyError, match="characters that HTTP does not take") as caught:
        ModelConnections().send("POST", "http://127.0.0.1:9/", [("Authorization", f"Bearer {KEY}\n")], b"")
    assert KEY not in str(caught.value)


def test_the_cache_of_replies_never_holds_the_key(tmp_path, monkeypatch):
    monkeypatch.setattr(dspy, "cache", dspy.cache)
    file = use_reply_cache(tmp_path)
    with RawServer(lambda request: [response(completion(f"Clé {KEY}"))]) as server:
        lm = build_language_model("m", KEY, server.api_base, num_retries=0)
        replies = [BudgetedLM(lm, UsageTracker(Budget()))("?") for _ in range(2)]
    assert replies == [[f"Clé {MASK}"]] * 2
    assert len(server.requests) == 1
    assert MASK.encode() in file.read_bytes()
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_a_server_that_redirects_is_named_as_one():
    with RawServer(lambda request: [response(b"", "Location: http://127.0.0.1:9/v1", status="302 Found")]) as server:
        lm = build_language_model("m", KEY, server.api_base, num_retries=0)
        assert "adresse redirigée" in check_model(lm, 5.0)


@settings(deadline=2000, max_examples=150)
@given(
    st.one_of(
        st.binary(max_size=300), st.text(max_size=100).map(str.encode), st.integers(0, 10**400).map(str).map(str.encode)
    )
)
def test_whatever_bytes_a_server_sends_are_text_or_refused(body):
    for data in (body, b'{"choices": [' + body + b"]}", completion().replace(b"Aucun", body)):
        with suppress(BadReplyError):
            cleaned(data, [KEY]).decode()


def test_a_proxy_of_the_environment_is_asked(monkeypatch):
    with RawServer(lambda request: [GOOD]) as proxy:
        monkeypatch.setenv("http_proxy", f"http://user:p%40ss@127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert ModelConnections().send("POST", "http://models.invalid/v1/x?a=1", [], b"{}", 5.0).status == 200
        (request,) = proxy.requests
    head = request.decode().split("\r\n")
    assert head[0] == "POST http://models.invalid/v1/x?a=1 HTTP/1.1"
    assert {"Host: models.invalid", "Proxy-Authorization: Basic dXNlcjpwQHNz"} <= set(head)


def test_a_proxy_that_makes_no_tunnel_is_no_server(monkeypatch):
    with RawServer(lambda request: [b"HTTP/1.1 403 Forbidden\r\n\r\n"]) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises(UnreachableServerError, match="broke off"):
            ModelConnections().send("POST", "https://models.invalid/v1/x", [("api-key", KEY)], b"{}", 5.0)
    assert [request.split(b"\r\n")[0] for request in proxy.requests] == [b"CONNECT models.invalid:443 HTTP/1.1"]
    assert KEY.encode() not in b"".join(proxy.requests)


def test_a_server_without_a_certificate_that_holds_is_not_asked():
    with RawServer(lambda request: [STAY], listens_before=False) as server:
        https = server.api_base.replace("http:", "https:")
        with pytest.raises(ServerTimeoutError):
            ModelConnections().send("POST", https, [], b"{}", 0.2)
    with RawServer(lambda request: [GOOD], listens_before=False) as server:
        https = server.api_base.replace("http:", "https:")
        with pytest.raises(UnreachableServerError, match="no connection"):
            ModelConnections().send("POST", https, [], b"{}", 5.0)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate by openssl")
def test_a_server_is_asked_over_tls_if_its_certificate_holds(tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} -days 2 -subj /CN=x"
    subprocess.run([*command.split(), "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with RawServer(lambda request: [GOOD], tls=context) as server:
        with pytest.raises(UnreachableServerError, match="CERTIFICATE_VERIFY_FAILED"):
            send(server)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        exchange._tls.cache_clear()
        try:
            assert send(server).status == 200
        finally:
            exchange._tls.cache_clear()


@pytest.mark.slow  # imports the SDK
def test_langextracts_client_of_gemini_is_bounded_as_well(monkeypatch):
    pytest.importorskip("google.genai")
    from langextract.core.exceptions import InferenceError

    from legal_rag.extraction import ExtractionSettings
    from legal_rag.extraction.langextract import build_model

    replies = iter([response(json.dumps({"candidates": [{"content": {"parts": [{"text": f"a {KEY}"}]}}]}).encode())])
    with RawServer(lambda request: [next(replies, response(b"[" * 65 + b"]" * 65))]) as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.api_base)
        model = build_model(ExtractionSettings(model_id="gemini-2.5-flash", api_key=KEY), [])
        assert next(iter(model.infer(["?"])))[0].output == f"a {MASK}"
        with pytest.raises(InferenceError, match="nested more than 64 deep"):
            list(model.infer(["?"]))
