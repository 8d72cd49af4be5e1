"""A document's outline as spans of its text: sections by headings, numbered parts, and paragraphs.

In: a text. Out: a tree of nodes that lie inside one another, and its JSON form.
"""

from legal_rag.corpus.structure.outline import build_tree
from legal_rag.corpus.structure.tree import TreeNode, find_node, from_json, to_json, walk

__all__ = ["TreeNode", "build_tree", "find_node", "from_json", "to_json", "walk"]
