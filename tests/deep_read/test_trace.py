"""Traces are rlms' own, hold no key, survive a kill, are read back turn by turn, and steer no page."""

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm.logger import RLMLogger
from support.headless_browser import HeadlessBrowser
from support.rlm_scripts import root_model
from support.scripted_server import Reply, ScriptedServer
from support.trace_cases import CONTEXT, QUESTION, block, call, run_rlm, turn, written

from legal_rag.agent import build_language_model
from legal_rag.deep_read import deep_read, read_trace, show_trace
from legal_rag.deep_read.settings import DeepReadSettings
from legal_rag.deep_read.trace import TraceMessage, ViewLimits, render_trace, visible

PROGRAMS = [
    'print(len(context))\nshort = llm_query("Résume : é")\nprint(short)',
    "print(1 / 0)",
    Reply("Je réfléchis, sans programme."),
    'both = llm_query_batched(["a ?", "b ?"])\nprint(both)\nanswer["content"] = f"42, {short}"\nanswer["ready"] = True',
]
SUB = {"Résume": "Court.", "a ?": "A", "b ?": "B"}
FIRST = '"iteration": 1, "prompt": [], "response": ""'
NOT_TRACES = [
    ("", "holds no whole line"),
    ("\n\n", "line 1: no JSON object"),
    ("Bonjour\n", "line 1: no JSON object"),
    ("[1, 2]\n", "line 1: the line: Input should be"),
    ('{"id": "D1", "text": "Vu le code"}\n', "line 1: iteration: Field required"),
    ('{"iteration": 2, "prompt": [], "response": "", "code_blocks": []}\n', "iteration 2, not 1"),
    ('{"iteration": 1, "prompt": ["x"], "response": "", "code_blocks": []}\n', "line 1: prompt.0: Input should be"),
    (f'{{{FIRST}, "code_blocks": [{{"result": {{}}}}]}}\n', "line 1: code_blocks.0.code: Field required"),
    ('{"type": "metadata"}\n{"type": "itera\n{"type": "metadata"}\n', "line 2: no JSON object"),
    ('{"type": "metadata"}\n' + "[" * 100_000 + "\n", "line 2: no JSON object"),
    ("\x80\x81\n", "line 1: no JSON object"),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


def test_a_trace_that_rlms_wrote_is_read(tmp_path):
    logger = RLMLogger(str(tmp_path))
    with ScriptedServer(root_model(PROGRAMS, SUB)) as server:
        run_rlm(server, logger)
    trace = read_trace(Path(logger.log_file_path))
    assert trace.metadata["root_model"] == "racine"
    first, second, third, last = trace.iterations
    assert first.messages[0].role == "system"
    assert first.messages[1].content.startswith(f"Answer the following: {QUESTION}")
    assert (first.blocks[0].code, first.blocks[0].stdout) == (PROGRAMS[0], f"{len(CONTEXT)}\nCourt.\n")
    assert [(one.prompt, one.reply, one.usage.tokens) for one in first.calls] == [("Résume : é", "Court.", 2)]
    assert "ZeroDivisionError" in second.blocks[0].stderr
    assert (third.response, third.blocks) == ("Je réfléchis, sans programme.", ())
    assert [one.prompt for one in last.calls] == ["a ?", "b ?"]
    assert last.messages[-1] == TraceMessage(role="user", content="Turn 4/6:")
    assert trace.final_answer == last.final_answer == "42, Court."
    assert (trace.usage.calls, trace.usage.cost) == (3, None)


def test_a_deep_read_writes_every_turn_program_and_call_and_no_key(path, tiny_library):
    programs = [
        "short = llm_query('Résume : é')\nprint(short)",
        "1 / 0",
        "FINAL(count(find_documents(date_from='1993')))",
    ]
    with ScriptedServer(root_model(programs, SUB)) as server:
        lm = build_language_model("racine", "sk-SECRET-0123456789", server.api_base, cache=False)
        deep_read(QUESTION, library=tiny_library, lm=lm, trace=path, settings=DeepReadSettings(plan="rlm"))
    assert "sk-SECRET" not in path.read_text()
    trace = read_trace(path)
    first, second, last = trace.iterations
    assert [(one.prompt, one.reply) for one in first.calls] == [("Résume : é", "Court.")]
    assert second.failed
    assert "ZeroDivisionError" in second.blocks[0].stderr
    assert last.blocks[0].code == programs[-1]
    assert "Reçus :\nr" in last.blocks[0].stdout
    assert trace.final_answer == last.final_answer
    assert json.dumps(trace.to_json(), allow_nan=False)


@pytest.mark.parametrize(("text", "reason"), NOT_TRACES)
def test_what_is_no_trace_is_refused_with_its_line(path, text, reason):
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=reason) as refused:
        read_trace(path)
    assert "not a trace" in str(refused.value)


def test_a_trace_that_is_not_there_is_said(path):
    with pytest.raises(FileNotFoundError, match="no trace at"):
        read_trace(path)


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_a_trace_cut_anywhere_is_read_up_to_its_last_whole_line(data, tmp_path_factory):
    path = written(
        tmp_path_factory.mktemp("cut") / "run.jsonl", turn(block(calls=[call()])), turn(block(final=[1, "é"]))
    )
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    cut = data.draw(st.integers(len(lines[0]), len(whole) - 1))
    path.write_bytes(whole[:cut])
    ends = [len(b"".join(lines[: n + 1])) for n in range(len(lines))]
    assert len(read_trace(path).iterations) in (
        sum(end <= cut for end in ends) - 1,
        sum(end <= cut + 1 for end in ends) - 1,
    )


def test_an_answer_that_is_a_value_is_read_as_the_text_that_readers_get(path):
    assert read_trace(written(path, turn(block(final={"annulées": 2})))).final_answer == "- **annulées** : 2"


# --- shown as a page


ATTACKS = [
    "</script><script>alert('script')</script>",
    "</pre></code><img src=x onerror=alert('img')>",
    "<!--<script>alert('comment')</script>-->",
    "\"><svg onload=alert('svg')>",
    "' autofocus onfocus=alert('focus') x='",
    "{{ alert('jinja') }}{% raw %}",
    "[lien](javascript:alert('address)') ![image](x onerror=alert('md'))",
    "</title></style></textarea><iframe srcdoc=\"<script>parent.alert('frame')</script>\">",
    "#<b>commentaire</b>\n'''<i>texte</i>''' + f'{<u>}' @<s>",
]
STEERING = (
    "\x1b[31m rouge \x1b]0;titre\x07 \u202eà l’envers\u202c \r effacé \x08\x9b2J \ud800 \x00 \u2028 \ufdd0 1\ufdd1"
)
LIGHT = ("strong", "em", "br", "p", "span")  # what Markdown and Pygments may make of an attack


def unasked(prompt="Résume D3.", reply="Bref.", **changed):
    one = call(prompt, reply, **changed)
    for summary in one.usage_summary.model_usage_summaries.values():
        summary.total_calls = summary.total_input_tokens = summary.total_output_tokens = 0
        summary.total_cost = 0.0
    return one


def full(path):
    calls = [call(), unasked("Résume D2.", "", error="délai dépassé"), unasked(execution_time=0.0)]
    first = block("ask()\n\nprint(1 / 0)", "Deux lignes\n  affichées\n", "\nZeroDivisionError: division by zero", calls)
    last = block('FINAL({"annulées": 2})', "", final={"annulées": 2})
    return read_trace(written(path, turn(first, thought="Je lis."), turn(last, thought="J'ai fini.")))


def hostile(path, text):
    code = block(text, text, text, [call(text, text), call(text, "", error=text)], final=text)
    turns = turn(code, block(text), code, thought=text)
    return read_trace(written(path, turns, question=text, root_model=text))


class Page(HTMLParser):
    """What a browser makes of a page: its tags, and the text it shows."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.pieces, self._hidden = [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._hidden += tag in ("script", "style", "title")

    def handle_endtag(self, tag):
        self._hidden -= tag in ("script", "style", "title")

    def handle_data(self, data):
        self.pieces.append("" if self._hidden else data)

    def text(self):
        return "".join(self.pieces)


def page_of(trace):
    return Page(render_trace(trace))


def test_a_page_is_told_everything_turn_by_turn(path):
    text = page_of(full(path)).text().replace("\u00a0", " ").replace("\u202f", " ")
    for told in (
        QUESTION, "Réponse rendue", "racine", "2 sur 10 au plus", "3, dont 1 repris sans frais et 1 en échec",
        "40 lus, 2 écrits", "0,0010 $", "Je lis.", "ask()\n\nprint(1 / 0)", "Deux lignes\n  affichées",
        "ZeroDivisionError: division by zero", "Résume D1.", "Court.", "délai dépassé", "reprise sans appel",
        'FINAL({"annulées": 2})', "annulées : 2", "Vous écrivez des programmes.", "run.jsonl",
    ):  # fmt: skip
        assert told in text


def test_a_run_without_turns_programs_or_an_answer_says_so(path):
    assert "La trace ne contient aucun tour" in page_of(read_trace(written(path))).text()
    path.unlink()
    trace = read_trace(written(path, turn(block("", "", "Votre réponse ne contient aucun programme."))))
    told = page_of(trace).text()
    assert "Votre réponse ne contient aucun programme." in told
    assert "Arrêtée sans réponse finale" in told
    assert "Réponse du programme" not in told


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("é\u00a0\u202f’\n", "é\u00a0\u202f’\n"),
        ("a\r\nb\rc", "a\nb\\u000dc"),
        ("\x1b[0m", "\\u001b[0m"),
        ("\tx", "    x"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("\ud800\U000e0041", "\\ud800\\U000e0041"),
        ("\u00ad\u200b\ufeff", "\\u00ad\\u200b\\ufeff"),
    ],
)
def test_what_is_not_seen_is_written_as_its_code(text, shown):
    assert visible(text) == shown


def test_nothing_in_a_page_turns_the_order_of_letters(path):
    page = render_trace(hostile(path, STEERING))
    page.encode()
    assert not set(page) & set("\x1b\x07\x08\x9b\u202e\u202c\u2028\x00\r")


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_a_trace_says_adds_no_tag_handler_or_address_and_is_shown_as_it_is(tmp_path, attack):
    def tags(page):
        return [tag for tag, _ in page.tags if tag not in LIGHT]

    page = page_of(hostile(tmp_path / "attack.jsonl", attack))
    plain = hostile(tmp_path / "plain.jsonl", "\n".join(["Du texte."] * len(attack.split("\n"))))
    assert tags(page) == tags(page_of(plain))
    for tag, attributes in page.tags:
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "style", "srcdoc")}
        assert tag != "a" or attributes["href"].startswith("#tour-")
    assert attack is ATTACKS[8] or page.text().count(attack) >= 12


def test_only_the_pages_own_script_and_style_may_run(path):
    page = page_of(full(path))
    (policy,) = [attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-[\w+/=]{44}'; style-src 'sha256-[\w+/=]{44}'; "
        r"base-uri 'none'; form-action 'none'",
        policy,
    )


def test_a_page_names_no_address_elsewhere(path):
    assert re.findall(r"https?:|//[a-z]|url\(|@import", render_trace(full(path))) == []


def test_the_script_never_reads_text_as_markup():
    script = files("legal_rag.deep_read").joinpath("templates", "trace.js").read_text("utf-8")
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(", script) == []


def test_a_program_is_marked_up_and_loses_no_character(path):
    code = 'for x in [1, 2]:  # deux\n\tprint(f"<{x}>", "é")\n\n\nclass   Broken(:'
    page = page_of(read_trace(written(path, turn(block(code)))))
    assert code.expandtabs(4) in page.text()
    assert {"k", "c1", "mi", "nb"} <= {attrs.get("class") for tag, attrs in page.tags if tag == "span"}


def test_a_trace_of_absurd_length_is_cut_and_says_so(path, monkeypatch):
    monkeypatch.setattr("legal_rag.deep_read.trace.SHOWN", ViewLimits(turns=3, calls=2, text=900, printed=900, call=90))
    long = "x" * 1000
    calls = [call(long, long) for _ in range(4)]
    trace = read_trace(written(path, turn(block(long, long, long, calls), thought=long), *(turn() for _ in range(5))))
    text = page_of(trace).text()
    for told in ("3 autres tours ne sont pas montrés", "2 autres appels ne sont pas montrés", "910 caractères de plus"):
        assert told in text
    assert text.count("x" * 90) < 50


def test_a_notebook_shows_the_trace_in_a_closed_frame(path):
    html = show_trace(full(path), height=500)._repr_html_()
    ((tag, attributes),) = [(tag, attrs) for tag, attrs in Page(html).tags if tag != "div"]
    assert (tag, attributes["sandbox"], attributes["title"]) == ("iframe", "allow-scripts", "Lecture approfondie")
    assert attributes["srcdoc"] == render_trace(read_trace(path))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with HeadlessBrowser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def opened(browser, path):
    """Open a page on a desk's screen."""

    def opening(trace):
        page = path.with_suffix(".html")
        page.write_text(render_trace(trace), "utf-8")
        browser.resize(1300, 900)
        browser.forget()
        browser.open(page.as_uri())
        return page.as_uri()

    return opening


@pytest.mark.slow
def test_all_is_folded_and_unfolded_at_once(browser, opened, path):
    address = opened(full(path))
    shown = "ask()\n\nprint(1 / 0)"
    assert browser.texts(".code pre")[0] == shown
    assert browser.texts(".calls pre") == []
    browser.click("[data-open=false]")
    assert browser.texts(".code pre") == []
    browser.click("[data-open=true]")
    assert browser.texts(".code pre")[0] == shown
    assert browser.texts(".calls pre")[:2] == ["Résume D1.", "Court."]
    assert (browser.messages, browser.alerts, set(browser.requests)) == ([], [], {address})


@pytest.mark.slow
def test_an_entry_of_the_overview_leads_to_its_turn(browser, opened, path):
    opened(full(path))
    browser.click(".overview li:nth-child(2) a")
    browser.wait_for("location.hash === '#tour-2'")
    assert browser.run("document.querySelector('#tour-2').getBoundingClientRect().top < innerHeight")


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 390, 1300])
def test_no_width_needs_scrolling_sideways(browser, opened, path, width):
    opened(hostile(path, "x" * 300 + " " + "é" * 500))
    browser.resize(width, 800)
    browser.click("[data-open=true]")
    assert browser.run("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.parametrize("attack", [*ATTACKS, STEERING])
def test_nothing_that_a_trace_says_runs(browser, opened, path, attack):
    address = opened(hostile(path, attack))
    browser.click("[data-open=true]")
    assert (browser.messages, browser.alerts, set(browser.requests)) == ([], [], {address})


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_readable_on_every_colour(path, contrast, dark):
    blocks = re.findall(r"(@media[^{}]*dark\) \{\s*)?:root \{(.*?)\}", render_trace(full(path)), re.DOTALL)
    named = dict(re.findall(r"--([\w-]+): (#\w{6});", "".join(text for mode, text in blocks if bool(mode) is dark)))
    pairs = [
        (one, fill)
        for one in ("keyword", "text", "remark", "numeral", "name", "quiet", "ink")
        for fill in ("panel", "paper")
    ]
    for ink, fill in [*pairs, ("bad", "bad-fill"), ("good", "good-fill"), ("bad", "paper"), ("accent", "paper")]:
        assert contrast(named[ink], named[fill]) >= 4.5, (ink, fill)
