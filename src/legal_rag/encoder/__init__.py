"""Text to token vectors: the bundled encoder, or any ColBERT checkpoint."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.encoder.encoder import (
        ColbertEncoder,
        Encoder,
        EncoderConfig,
        EncoderIdentity,
        build_encoder,
        bundled_encoder,
        resolve_encoder,
    )
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
