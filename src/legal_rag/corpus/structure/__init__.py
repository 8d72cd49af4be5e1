"""A document's outline as nested spans of its text: sections by headings, numbers and paragraphs."""

from legal_rag.corpus.structure.outline import TreeNode, build_tree, walk

__all__ = ["TreeNode", "build_tree", "walk"]
