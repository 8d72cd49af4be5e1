"""What encoding runs on: device, cores, number format, and OpenVINO's one runtime."""

import ctypes
import os
import sys
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


MODEL_FILE = "openvino.xml"
PRECISION = "int8"  # or "f32": nothing quantised, for comparison

_core_lock = threading.Lock()


class OpenVinoError(RuntimeError):
    """OpenVINO cannot convert or run this model."""


def best_device() -> str:
    """Return 'cuda' where torch sees a GPU, else 'cpu'."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def n_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_lanes() -> int:
    """Return how many batches to encode at once: one a core, or `OMP_NUM_THREADS` where it is set."""
    return int(os.environ.get("OMP_NUM_THREADS") or n_cores())


def product_dtype() -> "torch.dtype":
    """Return the precision for matrix products on the CPU.

    bfloat16 where the processor multiplies it natively (two to three times as fast), else float32.
    """
    import torch

    native = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()  # absent from some builds of torch
    return torch.bfloat16 if native else torch.float32


def give_back_memory() -> None:
    """Return freed memory to the system: glibc keeps arrays of changing sizes, more with every shard."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):  # another C library
        return


def compile_model(path: Path) -> Any:
    """Compile a converted model for this processor, to answer `n_lanes` calls at once.

    Returns:
        OpenVINO's compiled model: its requests map arrays `input_ids` and `attention_mask` to the hidden states, and
        run on one core each.

    Raises:
        OpenVinoError: If the file is damaged, or OpenVINO does not run here.
    """
    import torch

    # What is not int8 is computed in the processor's fastest precision.
    rest = "bf16" if PRECISION == "int8" and product_dtype() == torch.bfloat16 else "f32"
    settings = {"NUM_STREAMS": n_lanes(), "INFERENCE_NUM_THREADS": n_lanes(), "INFERENCE_PRECISION_HINT": rest}
    try:
        with _core_lock:
            core = _core()
        return core.compile_model(path, "CPU", settings)
    except (ImportError, RuntimeError) as error:
        raise OpenVinoError(f"OpenVINO does not run {path}: {first_line(error)}") from error


@cache
def _core() -> Any:
    # One for the process, never freed: on Linux each gives the main thread an alternate signal stack, and a freed one
    # leaves a dangling stack, so that the next interruption would end the process.
    return import_openvino().Core()


def import_openvino() -> Any:
    """Import OpenVINO without its telemetry."""
    # Intel's packages report their use over the network unless this one cannot be imported.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its class where it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
