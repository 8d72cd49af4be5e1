"""A retriever that loads its encoder when something is first searched for: many deep reads never do."""

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from legal_rag.retriever import Corpus, Retriever


class LazyRetriever:
    """Stands for a `Retriever` over a corpus; threads may share it."""

    def __init__(self, corpus: "Corpus", *, trust_remote_code: bool = False) -> None:
        self.corpus = corpus
        self._trust_remote_code = trust_remote_code
        self._retriever: Retriever | None = None
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        """Return what the retriever has of that name, loading it first."""
        if name.startswith("__"):  # what copying and inspecting ask for loads nothing
            raise AttributeError(name)
        with self._lock:
            if self._retriever is None:
                from legal_rag.retriever import build_retriever

                self._retriever = build_retriever(self.corpus, trust_remote_code=self._trust_remote_code)
        return getattr(self._retriever, name)
