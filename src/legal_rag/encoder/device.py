"""Choose the device and number format for encoding."""

import ctypes
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def best_device() -> str:
    """Return 'cuda' where torch sees a GPU, else 'cpu'."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def n_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def product_dtype() -> "torch.dtype":
    """Return the precision for matrix products on the CPU.

    bfloat16 where the processor multiplies it natively, two to three times as fast; float32 elsewhere, where
    bfloat16 would be the slower one.
    """
    import torch

    native = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()  # absent from some builds of torch
    return torch.bfloat16 if native else torch.float32


def give_back_memory() -> None:
    """Return to the system what was freed: the C library keeps arrays of changing sizes, more with every shard."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):  # another C library, which has its own ways
        return
