from .checks import Citation as Citation
from .checks import CitationStatus as CitationStatus
from .enricher import CitationEnricher as CitationEnricher
from .enricher import EnrichedResponse as EnrichedResponse
from .enricher import is_abstention as is_abstention
from .markers import format_marker as format_marker
