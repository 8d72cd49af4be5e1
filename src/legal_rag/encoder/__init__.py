"""Text to token vectors: the bundled encoder, or any ColBERT checkpoint."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "Encoder": "encoder",
    "EncoderConfig": "encoder",
    "EncoderIdentity": "encoder",
    "PyLateEncoder": "encoder",
    "build_encoder": "encoder",
    "bundled_encoder": "encoder",
    "resolve_encoder": "encoder",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.encoder.encoder import Encoder as Encoder
    from legal_rag.encoder.encoder import EncoderConfig as EncoderConfig
    from legal_rag.encoder.encoder import EncoderIdentity as EncoderIdentity
    from legal_rag.encoder.encoder import PyLateEncoder as PyLateEncoder
    from legal_rag.encoder.encoder import build_encoder as build_encoder
    from legal_rag.encoder.encoder import bundled_encoder as bundled_encoder
    from legal_rag.encoder.encoder import resolve_encoder as resolve_encoder
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
