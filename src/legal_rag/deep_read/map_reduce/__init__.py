"""Map-reduce over documents: a model reads each with quotations that are verified, and one answer is written from them.

For sub-models that read one text at a time and answer in JSON. The main names are imported when used.
"""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "DocumentAnswers": "run",
    "Finding": "mapping",
    "MapReduceResult": "run",
    "MapReduceSettings": "mapping",
    "answer_each": "run",
    "map_reduce": "run",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.deep_read.map_reduce.mapping import Finding as Finding
    from legal_rag.deep_read.map_reduce.mapping import MapReduceSettings as MapReduceSettings
    from legal_rag.deep_read.map_reduce.run import DocumentAnswers as DocumentAnswers
    from legal_rag.deep_read.map_reduce.run import MapReduceResult as MapReduceResult
    from legal_rag.deep_read.map_reduce.run import answer_each as answer_each
    from legal_rag.deep_read.map_reduce.run import map_reduce as map_reduce
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
