"""Pages as a browser reads them, and texts that try to break out of them."""

from html.parser import HTMLParser

ATTACKS = [
    "</script><script>alert('script')</script>",
    "<img src=x onerror=alert('img')>",
    "<!--<script>alert('comment')</script>-->",
    "\"><svg onload=alert('svg')>",
    "' autofocus onfocus=alert('focus') x='",
    "{{ alert('jinja') }}{% raw %}",
    "[lien](javascript:alert('address)') ![image](x onerror=alert('md'))",
    "</title><iframe srcdoc=\"<script>parent.alert('frame')</script>\">",
    "]]></style></textarea><script>alert('style')</script>",
    "__proto__ <br/> &lt;b&gt; **gras** `code`",
    "\u202egnihsrever\ufdd0 1\ufdd1 \ud800 \x00",
]


class Page(HTMLParser):
    """What a browser makes of a page: its tags, its text, and what stands in scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.pieces, self.scripts, self._opened = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._opened.append(tag)
        self.pieces.append("\n" if tag in ("p", "li", "br", "h1", "h2", "h3", "h4", "td", "blockquote") else "")

    def handle_endtag(self, tag):
        while self._opened and self._opened.pop() != tag:
            pass

    def handle_data(self, data):
        inside = self._opened[-1] if self._opened else ""
        (self.scripts if inside == "script" else self.pieces).append("" if inside == "style" else data)

    def text(self):
        return "".join(self.pieces)
