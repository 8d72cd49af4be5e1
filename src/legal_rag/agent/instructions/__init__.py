"""What a model is told to do, in French: one text a kind of corpus, each a file `NAME.md` beside this module.

In: the name of a text, or a corpus. Out: the text, as it is sent with every call of the model.
"""

from importlib.resources import files

from legal_rag.library.library import INSTRUCTIONS
from legal_rag.retriever.retriever import Corpus

__all__ = ["default_instructions", "instruction_names", "instructions_of"]


def default_instructions(name: str = "jurisprudence") -> str:
    """Return one of the package's own instructions; `instruction_names` lists them.

    Raises:
        LookupError: If there are none of that name.
    """
    if name not in (names := instruction_names()):
        raise LookupError(f"no instructions named {name!r} (there are: {', '.join(names)})")
    return (files(__name__) / f"{name}.md").read_text(encoding="utf-8").strip()


def instruction_names() -> list[str]:
    """Return the names of the package's own instructions, sorted."""
    found = (file.name for file in files(__name__).iterdir())
    return sorted(name.removesuffix(".md") for name in found if name.endswith(".md"))


def instructions_of(corpus: Corpus) -> str:
    """Return the instructions that lie in an index's folder, or the default ones."""
    own = corpus.path / INSTRUCTIONS
    return own.read_text(encoding="utf-8").strip() if own.is_file() else default_instructions()
