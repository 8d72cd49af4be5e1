"""Deep reading: questions over many decisions, answered by sandboxed programs or by map-reduce.

The package itself is the function that notebooks call:

>>> deep_read(library, "Combien de décisions citent l'article 1240 ?", lm=lm).mode
'deep_read'

Without a model it answers by the nearest passages alone. Its settings are those of `legal_rag.deep_read.deep_read`.
"""

import sys
from types import ModuleType
from typing import Any

from legal_rag.base.extras import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)


class _CallableRoom(ModuleType):
    """This package, which is also the function that notebooks call: `legal_rag.deep_read(library, question)`."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        from legal_rag.deep_read.reading import deep_read_library

        return deep_read_library(*arguments, **settings)


sys.modules[__name__].__class__ = _CallableRoom
