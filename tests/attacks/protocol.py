"""Calls of the MCP server with arguments made to hang, fill or break it, ids made to leave the index, wrong tokens."""

import asyncio
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attacks.arguments import TOOL_VALUES
from attacks.cases import Case, Outcome, Place

NEEDED = {
    "ask": {"question": "Quel préavis est dû ?"},
    "search": {"query": "préavis"},
    "lookup": {"id": "FICTIF0101"},
    "outline": {"id": "FICTIF0101"},
    "entities": {"id": "FICTIF0101"},
    "graph": {"name": "FICTIF0101"},
    "verify": {"text": "Cass. soc., 10 juillet 2002, n° 00-45.135"},
}
FURTHER = {"search": ("filters", "index"), "lookup": ("section", "part"), "entities": ("classes",), "graph": ("type",)}
LEAVING = (
    "../manifest.json", "..\\manifest.json", "/etc/passwd", "file:///etc/passwd", "%2e%2e%2fmanifest.json", "....//x",
    "FICTIF0101/../../manifest.json", "FICTIF0101\0", "C:\\Windows\\win.ini", "~/.netrc", "$HOME",
    "';DROP TABLE documents",
)  # fmt: skip
TOKEN = "le-jeton"
TOKENS = ("", " ", "le-jeto", "le-jetonn", "LE-JETON", "\xe9" * 2000, "x" * 60_000, "null", "le-jeton,le-jeton", "*")
MOST_CHARS = 400_000  # of an answer
FOREIGN = ("root:", "format_version", "Traceback", 'File "')  # of other files, and of Python


def prepare(place: Place) -> None:
    """Have every document encoded once, and keep every file of the index open: SQLite makes files while one is."""
    tools = _tools(place.library)
    for tool, given in NEEDED.items():
        getattr(tools, tool)(**given)
    for library in tools.libraries.values():
        for doc_id in library:
            tools.ask(library.document(doc_id).title)


@cache
def _tools(library: Path) -> Any:
    from legal_rag.library import Library
    from legal_rag.mcp_server import LegalTools

    return LegalTools([Library(library)])


def _server(place: Place, token: str = "") -> Any:
    from legal_rag.mcp_server import LegalServer

    return LegalServer(_tools(place.library), token)


def _tried(tool: str, parameter: str) -> Case:
    """Call a tool with every value in one parameter: it answers within bounds, or refuses in one line."""

    def run(place: Place) -> Outcome:
        from mcp.client.client import Client

        async def called() -> list[tuple[str, bool]]:
            given = [*(eval(written, {}) for written in TOOL_VALUES), *LEAVING]  # noqa: S307 - written in this folder
            async with Client(_server(place)) as client:
                results = [await client.call_tool(tool, NEEDED[tool] | {parameter: _json(value)}) for value in given]
            return [("".join(part.text for part in result.content), result.is_error) for result in results]

        answers = asyncio.run(called())
        foreign = (*FOREIGN, str(place.library))
        contained = [
            len(text) < MOST_CHARS and not (is_error and "\n" in text) and not any(sign in text for sign in foreign)
            for text, is_error in answers
        ]
        return Outcome(sum(contained), answers[-1][0])

    return Case(f"{tool} {parameter}", run, 60.0, len(TOOL_VALUES) + len(LEAVING))


def _json(value: Any) -> Any:
    """Return a value as a client can send it."""
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | range):
        return [_json(item) for item in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _resources(place: Place) -> Outcome:
    from mcp.client.client import Client
    from mcp.shared.exceptions import MCPError

    async def read() -> list[str]:
        lines = []
        async with Client(_server(place)) as client:
            for name in LEAVING:
                for index in (place.library.name, quote(name, safe=""), name):
                    for doc_id in (quote(name, safe=""), name):
                        try:
                            result = await client.read_resource(f"legal-rag://document/{index}/{doc_id}")
                            lines.append(f"read: {result.contents[0].text}")
                        except MCPError as error:
                            lines.append(str(error))
        return lines

    lines = asyncio.run(read())
    return Outcome(sum(not line.startswith("read: ") and "\n" not in line for line in lines), lines[0])


def _tokens(place: Place) -> Outcome:
    import httpx2

    async def asked() -> list[int]:
        app = _server(place, TOKEN).streamable_http_app(host="127.0.0.1")
        transport = httpx2.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as http,
        ):
            headers = [{"Authorization": f"Bearer {token}".encode("latin-1")} for token in TOKENS]
            return [(await http.post("/mcp", json={}, headers=header)).status_code for header in headers]

    statuses = asyncio.run(asked())
    return Outcome(statuses.count(401), f"401 Authentication required, {statuses.count(401)} of {len(statuses)}")


def cases(seed: int) -> Iterator[Case]:
    """Yield parameters of every tool with all hostile values, resources out of the index, wrong tokens."""
    for tool, needed in NEEDED.items():
        for parameter in (*needed, *FURTHER.get(tool, ())):
            yield _tried(tool, parameter)
    yield Case("resources", _resources, 30.0, len(LEAVING) * 6)
    yield Case("tokens", _tokens, 30.0, len(TOKENS))
