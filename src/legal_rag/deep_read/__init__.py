"""Deep reading: questions over many decisions, answered by sandboxed programs or by map-reduce."""

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
