"""Take README's pictures: an answer from the sample corpus, as Chromium shows its page in light and dark colours."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

import legal_rag as lr
from legal_rag.report import render_answer

QUESTION = "Saisir un tribunal incompétent interrompt-il la prescription ?"
INDEX = Path("demo_output/sample")
IMAGES = Path(__file__).parent / "images"
SCHEMES = {"dark": 0, "light": 1}  # Chromium's numbers of the colour schemes
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,640")


def main() -> None:
    library = lr.open(INDEX) if INDEX.is_dir() else lr.build("sample", INDEX)
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    assert browser, "no Chromium here"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "answer.html")
        page.write_text(render_answer(lr.ask(library, QUESTION), library), "utf-8")
        for scheme, number in SCHEMES.items():
            shot = Path(folder, f"{scheme}.png")
            colours = f"--blink-settings=preferredColorScheme={number}"
            subprocess.run(
                [
                    browser,
                    *OPTIONS,
                    colours,
                    f"--user-data-dir={folder}/{scheme}",
                    f"--screenshot={shot}",
                    page.as_uri(),
                ],
                check=True,
                capture_output=True,
            )
            target = IMAGES / f"answer-{scheme}.png"
            Image.open(shot).convert("RGB").quantize(64).save(target, optimize=True)
            print(f"{target}: {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
