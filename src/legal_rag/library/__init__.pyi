from .bm25 import LexicalIndex as LexicalIndex
from .filters import Filters as Filters
from .library import DEFAULT_FOLDER as DEFAULT_FOLDER
from .library import DEFAULT_NAME as DEFAULT_NAME
from .library import Library as Library
from .plaid.search import PlaidShards as PlaidShards
from .plaid.search import SearchSettings as SearchSettings
from .store import StoredChunk as StoredChunk
