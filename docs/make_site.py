"""Build the documentation: README, `docs/`, benchmarks and changelog as one site with links, `build/docs/site`."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "docs"
PAGES = {
    ROOT / "README.md": "index.md",
    ROOT / "CONTRIBUTING.md": "contributing.md",
    ROOT / "CHANGELOG.md": "changelog.md",
    ROOT / "benchmarks" / "README.md": "benchmarks.md",
    ROOT / "collections" / "README.md": "collections.md",
    ROOT / "collections" / "guideline.md": "guideline.md",
    ROOT / "src" / "legal_rag" / "law" / "README.md": "law.md",
    ROOT / "src" / "legal_rag" / "corpus" / "sample" / "README.md": "sample.md",
    **{page: page.name for page in sorted((ROOT / "docs").glob("*.md"))},
    **{page: f"figures-{page.name}" for page in sorted((ROOT / "benchmarks" / "pages").glob("*.md"))},
}


def site_text(page: Path) -> str:
    """Return a page's text with links to other pages of the site; a link to another file leaves its words."""

    def link(match: re.Match[str]) -> str:
        words, path, anchor = match["words"], match["path"], match["anchor"] or ""
        target = (page.parent / path).resolve()
        return f"[{words}]({PAGES[target]}{anchor})" if target in PAGES else words

    text = re.sub(
        r"\[(?P<words>[^\]]+)\]\((?!https?:)(?P<path>[^)#\s]+)(?P<anchor>#[^)]*)?\)", link, page.read_text("utf-8")
    )
    return text.replace('"docs/images/', '"images/')


def main() -> None:
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "images", BUILD / "pages" / "images")
    for page, name in PAGES.items():
        (BUILD / "pages" / name).write_text(site_text(page), "utf-8")
    config = shutil.copy(ROOT / "docs" / "zensical.toml", BUILD)
    sys.exit(
        subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--config-file", config]).returncode
    )


if __name__ == "__main__":
    main()
