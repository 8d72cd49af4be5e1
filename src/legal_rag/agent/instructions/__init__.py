"""The agent's system prompts, in French: a file `NAME.md` in this folder for each kind of corpus."""

from importlib.resources import files

from legal_rag.library.library import INSTRUCTIONS, Library

__all__ = ["default_instructions", "instruction_names", "instructions_of"]


def default_instructions(name: str = "jurisprudence") -> str:
    """Return one of the package's instructions, which `instruction_names` lists; LookupError for another name."""
    if name not in (names := instruction_names()):
        raise LookupError(f"no instructions named {name!r} (there are: {', '.join(names)})")
    return (files(__name__) / f"{name}.md").read_text(encoding="utf-8").strip()


def instruction_names() -> list[str]:
    """Return the names of the package's instructions, sorted."""
    file_names = (file.name for file in files(__name__).iterdir())
    return sorted(name.removesuffix(".md") for name in file_names if name.endswith(".md"))


def instructions_of(corpus: Library) -> str:
    """Return the instructions in an index's folder, or the default ones."""
    path = corpus.path / INSTRUCTIONS
    return path.read_text(encoding="utf-8").strip() if path.is_file() else default_instructions()
