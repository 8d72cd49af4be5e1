"""Read simulated archives of the Cour de cassation: documents a second of processor, and peak memory by size.

Run: python benchmarks/dila.py [--documents 10000 100000] [--articles]

A simulated decision has the fields of CASS and a text of 2,000 to 20,000 characters (8,000 in the middle); with
`--articles` an article of LEGI has 200 to 4,000 and eight versions. Archives are written to a temporary folder and
read as `legal-rag index --source` does, up to the documents; every second counts that this process and the one that
parses spend on a processor.
"""

import argparse
import io
import json
import random
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.dila_files import File, article, judicial, link, version

WORDS = """
la cour d'appel a retenu que le salarié avait été licencié sans cause réelle et sérieuse ; qu'en statuant ainsi, sans
rechercher, comme elle y était invitée, si l'employeur n'avait pas manqué à son obligation de reclassement, elle n'a pas
donné de base légale à sa décision au regard de l'article L. 1233-4 du code du travail
""".split()
READING = """
import json, resource, sys
from legal_rag.corpus import read_documents
n = chars = 0
for document in read_documents(sys.argv[1]):
    n, chars = n + 1, chars + len(document.content)
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
seconds = [each.ru_utime + each.ru_stime for each in used]
peaks = [each.ru_maxrss / 1024 for each in used]
print(json.dumps({"documents": n, "characters": chars, "seconds": seconds, "mb": peaks}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--articles", action="store_true", help="versions of articles instead of decisions")
    arguments = parser.parse_args()
    for n_documents in arguments.documents:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "SIMULE_20260101-000000.tar.gz"
            write(path, simulated(n_documents, arguments.articles))
            size = path.stat().st_size
            command = [sys.executable, "-c", READING, str(path)]
            read = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # noqa: S603
        figures = {
            "documents": read["documents"],
            "archive_mb": round(size / 1e6, 1),
            "characters_a_document": round(read["characters"] / read["documents"]),
            "seconds_of_processor": round(sum(read["seconds"]), 1),
            "of_them_parsing": round(read["seconds"][1], 1),
            "documents_a_second": round(read["documents"] / sum(read["seconds"])),
            "peak_mb": round(read["mb"][0]),
            "peak_mb_parsing": round(read["mb"][1]),
        }
        print(json.dumps(figures), flush=True)


def simulated(n_documents: int, articles: bool) -> Iterator[File]:
    """Yield files whose texts differ."""
    draw = random.Random(0)
    for number in range(1, n_documents + 1):
        low, high, middle = (200, 4_000, 1_000) if articles else (2_000, 20_000, 8_000)
        text = "<br/>\n".join(paragraphs(draw, int(draw.triangular(low, high, middle))))
        links = [link(f"article L. {draw.randrange(9999)}-{at} du code du travail", num=str(at)) for at in range(4)]
        if articles:
            ids = [f"LEGIARTI{8 * number + at:012}" for at in range(8)]
            listed = [version(doc_id, "2008-05-01", "2018-04-01") for doc_id in ids]
            yield article(8 * number, {}, body=text, versions=listed, links=links)
        else:
            notes = {"sct": [(1, "PRINCIPAL", text[:200].replace("<br/>", ""))], "ana": [text[:500].rpartition("<")[0]]}
            yield judicial(number, {}, text=text, links=links, **notes)


def paragraphs(draw: random.Random, n_chars: int) -> Iterator[str]:
    """Yield paragraphs of 600 characters or so."""
    while n_chars > 0:
        start, length = draw.randrange(len(WORDS)), draw.randrange(60, 140)
        text = " ".join(WORDS[(start + at) % len(WORDS)] for at in range(length)) + f" ({draw.randrange(10**6)})"
        n_chars -= len(text)
        yield text


def write(path: Path, files: Iterator[File]) -> None:
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for file in files:
            data = file.xml.encode()
            member = tarfile.TarInfo(file.path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
            archive.members.clear()


if __name__ == "__main__":
    main()
