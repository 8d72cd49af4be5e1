"""A document's outline as nested spans of its text; a decision's main parts, and who speaks in its paragraphs."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.corpus.structure.outline import build_tree
    from legal_rag.corpus.structure.speakers import main_parts, read_paragraphs
    from legal_rag.corpus.structure.tree import Paragraph, Part, TreeNode, path_to, walk
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
