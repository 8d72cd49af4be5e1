"""The outlines of a Library's documents."""

from legal_rag.corpus.structure.outline import TreeNode, build_tree
from legal_rag.library.corpus import Corpus


def outline_of(corpus: Corpus, doc_id: str) -> TreeNode:
    """Return the outline of a document.

    Raises:
        LookupError: If there is no such document.
    """
    return build_tree(corpus.document(doc_id).content)
