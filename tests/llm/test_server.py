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

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raw_server import RESET, STAY, RawServer, completion, dripped, response

from legal_rag.base import deadline
from legal_rag.llm import Budget, BudgetExceededError, Endpoint, ModelError, UsageTracker, ask, server
from legal_rag.llm.server import MASK, MAX_BODY, MAX_MESSAGE, MAX_TEXT, keys_of_environment, mask_keys

KEY = "sk-very/secret+0123456789"
GOOD = response(completion())
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HELLO = [{"role": "user", "content": "Bonjour ?"}]


def send(api_base, seconds=5.0, key="", tracker=None, num_retries=0):
    endpoint = Endpoint(
        model="openai/m",
        name="m",
        api_base=api_base,
        api_key=key,
        timeout=seconds,
        num_retries=num_retries,
        cache=False,
    )
    return ask(endpoint, HELLO, tracker=tracker)


def reply_to(*steps, **settings):
    with RawServer(lambda request: steps) as serving:
        return send(serving.api_base, **settings)


def failure_of(*steps, **settings):
    with pytest.raises(ModelError) as caught:
        reply_to(*steps, **settings)
    return caught.value


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
        [b"HTTP/1.1 100 Continue\r\n\r\n" * 10, *dripped(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, 0.01, 25)],
    ],
    ids=["silence", "headers", "body", "chunks", "last byte", "continue"],
)
def test_one_deadline_holds_for_the_whole_reply(steps):
    before = set(threading.enumerate())
    with RawServer(lambda request: steps) as serving:
        started = time.monotonic()
        with pytest.raises(ModelError, match="no reply in time"):
            send(serving.api_base, 0.2)
        with pytest.raises(deadline.DeadlineError), deadline.within(0.2):
            send(serving.api_base)
        with pytest.raises(BudgetExceededError, match="0,2 seconde"):
            send(serving.api_base, tracker=UsageTracker(Budget(seconds=0.2)))
        assert time.monotonic() - started < 4
        assert {
            one for one in threading.enumerate() if "_serve" not in one.name and "_accept" not in one.name
        } <= before


@pytest.mark.parametrize(
    ("behaviour", "kind", "what"),
    [
        (endless(b"a" * 65_536, b"HTTP/1.1 200 OK\r\n\r\n"), "unreadable", "more than 4,000,000 bytes"),
        (endless(b"10000\r\n" + b"a" * 65_536 + b"\r\n", CHUNKED), "unreadable", "more than 4,000,000 bytes"),
        (endless(b"a" * 65_536, b"HTTP/1.1 200 OK\r\nX-A: "), "transport", "."),
        (lambda r: [response(gzip.compress(b" " * (MAX_BODY + 1)), "Content-Encoding: gzip")], "unreadable", "more"),
        (lambda r: [response(b"{}", "Content-Encoding: br")], "unreadable", "compressed by 'br', which was not asked"),
        (lambda r: [response(b"{}", "Content-Encoding: gzip, gzip")], "unreadable", "compressed by 'gzip, gzip'"),
        (lambda r: [response(b"{}", "Content-Encoding: gzip")], "unreadable", "not compressed as it says"),
        (lambda r: [response(b"{}", status="307 X")], "redirect", "."),
        (lambda r: [response(b"", status="101 X")], "transport", "."),
        (lambda r: [b"SSH-2.0-OpenSSH\r\n"], "transport", "."),
        (lambda r: [response(b"[" * 99_000)], "server", "no completion"),
        (lambda r: [response(b"[" + b"1," * 200_000 + b"1]")], "unreadable", "more than 200,000 values"),
        (lambda r: [response(completion(choices=[]))], "server", "no completion"),
        (lambda r: [response(completion(choices="abc"))], "server", "no completion"),
        (lambda r: [response(completion(message=None))], "server", "no completion"),
        (lambda r: [response(completion(5))], "server", "no completion"),
    ],
)  # fmt: skip
def test_a_reply_beyond_its_bounds_is_refused(behaviour, kind, what):
    with RawServer(behaviour) as serving, pytest.raises(ModelError, match=what) as caught:
        send(serving.api_base)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    "steps", [[], [RESET], [GOOD[:20], RESET], [GOOD[:-1]], [CHUNKED, b"ff\r\na"], [response(b"{}", length=9)]]
)
def test_a_connection_that_breaks_off_is_no_reply(steps):
    assert failure_of(*steps).kind == "transport"


@pytest.mark.parametrize(
    "reply",
    [
        response(completion(), version="HTTP/1.0", length=""),
        response(b"\xef\xbb\xbf" + completion()),
        response(gzip.compress(completion()), "Content-Encoding: gzip"),
        b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD,
        CHUNKED + b"%x;ext=1\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n" % (len(completion()), completion()),
        GOOD.replace(b"\r\n", b"\n"),
        response(completion([{"type": "text", "text": "Aucun passage "}, {"type": "text", "text": "pertinent."}])),
    ],
)
def test_unusual_replies_are_read_as_they_are_meant(reply):
    done = reply_to(reply)
    assert (done.text, done.usage[:4], done.cut_off) == ("Aucun passage pertinent.", (1, 0, 10, 5), False)


def test_an_error_is_read_no_further_than_one_needs_to_know():
    with RawServer(endless(b"a" * 65_536, b"HTTP/1.1 500 X\r\n\r\n")) as serving:
        with pytest.raises(ModelError, match=r"the server failed \(500\): a") as caught:
            send(serving.api_base)
        assert len(caught.value.said) == MAX_MESSAGE
        assert serving.sent < MAX_BODY  # what the system buffers included


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (401, {}, "auth"),
        (404, {}, "unknown model"),
        (429, {"code": "insufficient_quota"}, "billing"),
        (400, {"code": "context_length_exceeded"}, "context"),
        (422, {}, "request"),
        (529, {}, "server"),
        (200, {"code": 429, "message": "slow down"}, "rate limit"),
    ],
)
def test_a_failure_has_a_kind(status, error, kind):
    assert failure_of(response(json.dumps({"error": error}).encode(), status=f"{status} X")).kind == kind


@pytest.mark.parametrize(
    ("after", "seconds"),
    [("5", 5.0), ("0.5", 0.5), ("99999", 3600.0), *((one, None) for one in ("-1", "inf", "nan", "a", "9" * 400, ""))],
)
def test_a_wait_that_the_server_asks_for_is_read(after, seconds):
    assert failure_of(response(b"{}", f"Retry-After: {after}", status="429 X")).retry_after == seconds


def test_a_connection_is_used_again_until_the_server_closes_it():
    from support.scripted_server import Reply, ScriptedServer

    with ScriptedServer(lambda prompt, attempt: Reply("Oui")) as serving:
        connected, connect = [], server._Network.connect_tcp
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                server._Network, "connect_tcp", lambda *args, **more: connected.append(1) or connect(*args, **more)
            )
            for _ in range(3):
                assert send(serving.api_base).text == "Oui"
    assert len(connected) == 1
    with RawServer(lambda request: [GOOD, 0.05]) as closing:  # after each reply: what is kept is not used
        assert [send(closing.api_base, num_retries=1).text for _ in range(3)] == ["Aucun passage pertinent."] * 3


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 700, "completion_tokens": 90}, (700, 90)),
        ({"prompt_tokens": -5, "completion_tokens": "many"}, (3, 7)),
        ({"prompt_tokens": 10**12, "completion_tokens": True}, (3, 7)),
        ([1, 2], (3, 7)),
        (None, (3, 7)),
    ],
)
def test_texts_are_bounded_and_what_a_server_says_of_its_tokens_is_believed_within_reason(usage, expected):
    done = reply_to(response(completion("a\ud800b" + "c" * MAX_TEXT)))
    assert (done.text[:3], len(done.text)) == ("a\ufffdb", MAX_TEXT)
    done = reply_to(response(completion(usage=usage)))
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == expected


def test_a_parameter_that_a_server_refuses_by_name_is_left_out_from_then_on():
    def steps(request):
        if b'"seed"' in request:
            return [response(b'{"error": {"message": "extra field: seed"}}', "Connection: close", status="422 X")]
        return [response(completion(), "Connection: close")]

    with RawServer(steps) as serving:
        endpoint = Endpoint(model="openai/m", name="m", api_base=serving.api_base, seed=1, cache=False, num_retries=0)
        assert [ask(endpoint, HELLO).text for _ in range(2)] == ["Aucun passage pertinent."] * 2
        assert ['"seed"' in request.decode() for request in serving.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("status", "said", "sent"),
    [
        (400, "failed to parse grammar", [True, False, False]),
        (422, "extra field", [True, False, False]),
        (500, "internal error", [True, False, True, False]),  # which may have been about anything
    ],
)
def test_a_form_that_a_server_refuses_without_naming_it_is_left_out_once_that_helps(status, said, sent):
    def steps(request):
        if b'"response_format"' in request:
            return [response(json.dumps({"error": said}).encode(), "Connection: close", status=f"{status} X")]
        return [response(completion(), "Connection: close")]

    form = {"response_format": {"type": "json_object"}}
    with RawServer(steps) as serving:
        endpoint = Endpoint(model="openai/m", name="m", api_base=serving.api_base, extra=form, cache=False)
        assert [ask(endpoint, HELLO).text for _ in range(2)] == ["Aucun passage pertinent."] * 2
        assert ["response_format" in request.decode() for request in serving.requests] == sent


def test_a_form_is_asked_for_again_of_a_server_that_fails_without_it_too():
    bad = response(b'{"error": "no"}', "Connection: close", status="400 X")
    form = {"response_format": {"type": "json_object"}}
    with RawServer(lambda request: [bad]) as serving:
        endpoint = Endpoint(model="openai/m", name="m", api_base=serving.api_base, extra=form, cache=False)
        for _ in range(2):
            with pytest.raises(ModelError, match="refused"):
                ask(endpoint, HELLO)
        assert ["response_format" in request.decode() for request in serving.requests] == [True, False] * 2


@pytest.mark.parametrize(
    ("content", "calls", "text"),
    [
        (None, [("search", '{"query": "bail"}')],
         '{"tool_calls": [{"name": "search", "arguments": {"query": "bail"}}]}'),
        ("Je cherche.", [("search", {"query": "été"})],
         'Je cherche.\n{"tool_calls": [{"name": "search", "arguments": {"query": "été"}}]}'),
        ("", [("search", "{bail"), ("finish", None)],
         '{"tool_calls": [{"name": "search", "arguments": "{bail"}, {"name": "finish", "arguments": null}]}'),
        ("Oui", [], "Oui"),
    ],
)  # fmt: skip
def test_tool_calls_of_the_native_form_are_written_as_text(content, calls, text):
    rows = [{"type": "function", "function": {"name": name, "arguments": given}} for name, given in calls]
    message = {"role": "assistant", "content": content, "tool_calls": rows}
    assert reply_to(response(completion(message=message))).text == text


@pytest.mark.parametrize("calls", [5, ["search"], [{}], [{"function": {}}], [{"function": None}], {"name": "search"}])
def test_tool_calls_in_no_known_form_are_no_reply(calls):
    assert failure_of(response(completion(message={"content": "Oui", "tool_calls": calls}))).kind == "server"


@settings(deadline=2000, max_examples=25)
@given(
    st.one_of(
        st.binary(max_size=300), st.text(max_size=100).map(str.encode), st.integers(0, 10**400).map(str).map(str.encode)
    )
)
def test_whatever_bytes_a_server_sends_are_a_reply_or_a_failure(body):
    for data in (body, b'{"choices": [' + body + b"]}", completion().replace(b"Aucun", body)):
        with suppress(ModelError):
            assert isinstance(reply_to(response(data)).text, str)


# --- keys

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
    text = f"none EMPTY test placeholder local-1 {key}"
    assert mask_keys(text, [key]) == text


@pytest.mark.parametrize(
    "text", ["\\" * 250_000, "&#0" * 80_000, (KEY[:-1] + "%41") * 9_000], ids=["\\", "&#0", "near"]
)
def test_the_time_that_masking_takes_is_linear_in_the_text(text):
    started = time.process_time()
    mask_keys(text, [KEY])
    assert time.process_time() - started < 2.0


def test_the_keys_of_the_environment_are_known_by_their_names(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", KEY)
    monkeypatch.setenv("MY_TOKEN", "hf_0123456789")
    monkeypatch.setenv("HARMLESS", "not-a-key-0123")
    assert {KEY, "hf_0123456789"} <= keys_of_environment()
    assert "not-a-key-0123" not in keys_of_environment()


def test_the_key_that_was_sent_comes_back_masked_whatever_it_stands_in():
    assert reply_to(response(completion(f"Clé {KEY}")), key=KEY).text == f"Clé {MASK}"
    said = json.dumps({"error": {"message": f"bad {KEY}", KEY: [KEY]}}).encode()
    for body, status in ((said, "401 X"), (f"<p>{KEY}</p>".encode(), "502 X"), (f"<p>{KEY}</p>".encode(), "200 X")):
        failure = failure_of(response(body, f"X-Request-Id: {KEY}", status=status), key=KEY)
        assert KEY not in f"{failure} {failure.said} {failure.reason}"
        assert MASK in failure.said


def test_a_key_that_http_does_not_take_is_not_named():
    failure = failure_of(key=f"{KEY}\n")
    assert (failure.kind, KEY in str(failure)) == ("configuration", False)
    assert failure_of(key=f"{KEY}Ω").kind == "configuration"


# --- proxies and TLS


def test_a_proxy_of_the_environment_is_asked(monkeypatch):
    with RawServer(lambda request: [GOOD]) as proxy:
        monkeypatch.setenv("http_proxy", f"http://user:p%40ss@127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert send("http://models.invalid/v1").text == "Aucun passage pertinent."
        (request,) = proxy.requests
    head = request.decode().split("\r\n")
    assert head[0] == "POST http://models.invalid/v1/chat/completions HTTP/1.1"
    assert {"Host: models.invalid", "Proxy-Authorization: Basic dXNlcjpwQHNz"} <= set(head)


def test_a_proxy_that_makes_no_tunnel_is_no_server(monkeypatch):
    with RawServer(lambda request: [b"HTTP/1.1 403 Forbidden\r\n\r\n"]) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises(ModelError, match="does not answer"):
            send("https://models.invalid/v1", key=KEY)
    assert [request.split(b"\r\n")[0] for request in proxy.requests] == [b"CONNECT models.invalid:443 HTTP/1.1"]
    assert KEY.encode() not in b"".join(proxy.requests)


@pytest.mark.parametrize(("step", "seconds", "what"), [(STAY, 0.2, "no reply in time"), (GOOD, 5.0, "does not answer")])
def test_a_server_without_a_certificate_that_holds_is_not_asked(step, seconds, what):
    with RawServer(lambda request: [step], listens_before=False) as serving, pytest.raises(ModelError, match=what):
        send(serving.api_base.replace("http:", "https:"), seconds)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate by openssl")
def test_a_server_is_asked_over_tls_if_its_certificate_holds(tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} -days 2 -subj /CN=x"
    subprocess.run([*command.split(), "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with RawServer(lambda request: [GOOD], tls=context) as serving:
        with pytest.raises(ModelError, match="CERTIFICATE_VERIFY_FAILED"):
            send(serving.api_base)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        server._connection_pool.cache_clear()
        try:
            assert send(serving.api_base).text == "Aucun passage pertinent."
        finally:
            server._connection_pool.cache_clear()
