"""Load the encoder that an index was built with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from legal_rag.encoder.encoder import Encoder, EncoderIdentity, build_encoder


def encoder_of(manifest: Mapping[str, Any], path: Path) -> EncoderIdentity:
    """Read which encoder made an index.

    Args:
        manifest: The index's.
        path: Its folder, to name in an error.

    Raises:
        ValueError: If the manifest does not say.
    """
    try:
        return EncoderIdentity(**manifest["encoder"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"damaged manifest: {path} does not say which encoder made it ({error})") from error


def load_encoder(
    manifest: Mapping[str, Any],
    path: Path,
    encoder: Encoder | None = None,
    *,
    trust_remote_code: bool = False,
    documents: bool = False,
) -> Encoder:
    """Return the encoder that an index was made with.

    Args:
        manifest: The index's.
        path: Its folder, to name in an error.
        encoder: One already loaded, which is only checked.
        trust_remote_code: Run code that comes with the encoder; an index cannot allow it by itself.
        documents: See `check_encoder`.

    Raises:
        FileNotFoundError: If it is not to be had.
        ValueError: If the manifest does not say which it is, or `encoder` is another one.
    """
    expected = encoder_of(manifest, path)
    encoder = encoder or build_encoder(expected.config(trust_remote_code=trust_remote_code))
    check_encoder(encoder.identity, expected, documents=documents)
    return encoder


def check_encoder(found: EncoderIdentity, expected: EncoderIdentity, *, documents: bool = False) -> None:
    """Refuse an encoder other than the one an index was made with.

    An encoder loaded from a folder, as one that came in a zip is, bears the folder's name and no revision: only its
    dimension and prefixes are compared.

    Args:
        found: The encoder at hand.
        expected: The index's.
        documents: Documents are to be encoded, not questions alone: their length and pooling must be the same too.

    Raises:
        ValueError: If id, revision, dimension or prefixes differ; the message names the first difference.
    """
    identifying = () if Path(found.name).is_dir() else ("name", "revision")
    of_documents = ("document_length", "pool_factor") if documents else ()
    for name in (*identifying, "dim", "query_prefix", "document_prefix", *of_documents):
        ours, theirs = getattr(found, name), getattr(expected, name)
        if ours != theirs:
            raise ValueError(
                f"wrong encoder for this index: its {name} is {ours!r}, the index was made with {theirs!r}"
            )
