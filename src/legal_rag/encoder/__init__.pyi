from .encoder import ColbertEncoder as ColbertEncoder
from .encoder import Encoder as Encoder
from .encoder import EncoderConfig as EncoderConfig
from .encoder import EncoderIdentity as EncoderIdentity
from .encoder import build_encoder as build_encoder
from .encoder import bundled_encoder as bundled_encoder
from .encoder import resolve_encoder as resolve_encoder
