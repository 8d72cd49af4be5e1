"""A trace is readable as a page; what models and programs wrote in it steers nothing."""

import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from support.headless_browser import HeadlessBrowser
from support.trace_cases import QUESTION, block, call, turn, written

from legal_rag.deep_read import read_trace, show_trace
from legal_rag.deep_read.trace import ViewLimits, render_trace, visible

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


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


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


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_readable_on_every_colour(path, dark):
    blocks = re.findall(r"(@media[^{}]*dark\) \{\s*)?:root \{(.*?)\}", render_trace(full(path)), re.DOTALL)
    named = dict(re.findall(r"--([\w-]+): (#\w{6});", "".join(text for mode, text in blocks if bool(mode) is dark)))
    pairs = [
        (one, fill)
        for one in ("keyword", "text", "remark", "numeral", "name", "quiet", "ink")
        for fill in ("panel", "paper")
    ]
    for ink, fill in [*pairs, ("bad", "bad-fill"), ("good", "good-fill"), ("bad", "paper"), ("accent", "paper")]:
        low, high = sorted((luminance(named[ink]), luminance(named[fill])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, fill)
