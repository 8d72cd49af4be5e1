"""A document's outline as nested spans of its text; a decision's main parts, and who speaks in its paragraphs."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.corpus.structure.outline import TreeNode, build_tree, path_to, walk
    from legal_rag.corpus.structure.speakers import Paragraph, Part, main_parts, read_paragraphs
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
