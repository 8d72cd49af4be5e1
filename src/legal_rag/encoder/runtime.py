"""What encoding and searching run on: device, cores, number format, OpenVINO's one runtime."""

import ctypes
import os
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

PRECISION = "int8"  # or "f32": nothing quantised, for comparison

_core_lock = threading.Lock()
_GPU_DRIVERS = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}


class OpenVinoError(RuntimeError):
    """OpenVINO cannot convert or run this model."""


@cache
def best_device() -> str:
    """Return 'cuda' where torch is installed and sees a GPU, else 'cpu'."""
    try:
        ctypes.CDLL(_GPU_DRIVERS[sys.platform])  # importing torch takes seconds: not where there is no driver
        import torch
    except (KeyError, OSError, ImportError):
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"


def n_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_lanes() -> int:
    """Return how many batches to encode at once: one a core, or `OMP_NUM_THREADS` where it is set."""
    return int(os.environ.get("OMP_NUM_THREADS") or n_cores())


def multiplies_bfloat16() -> bool:
    """Return whether the processor multiplies bfloat16 natively, two to three times as fast as float32."""
    try:
        return "BF16" in openvino_core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    except (ImportError, RuntimeError):  # OpenVINO does not run here
        return False


def give_back_memory() -> None:
    """Return freed memory to the system: glibc keeps arrays of changing sizes, more with every shard."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):  # another C library
        return


def compile_model(model: Any, *, kept_in: Path | None = None) -> Any:
    """Compile a model, the path of a converted one or an `openvino.Model`, for this processor.

    `kept_in` is a folder for the compiled graph, without the weights, from which the next process loads the model in a
    third of the time; unused where it cannot be made. OpenVinoError if the file is damaged, or OpenVINO does not run
    here.
    """
    try:
        settings = {
            "NUM_STREAMS": n_lanes(),
            "INFERENCE_NUM_THREADS": n_lanes(),
            "INFERENCE_PRECISION_HINT": "f32",  # of what is not int8: each processor rounds bfloat16 otherwise
        }
        if kept_in and _make_folder(kept_in):
            settings |= {"CACHE_DIR": str(kept_in), "CACHE_MODE": "OPTIMIZE_SIZE"}
        return openvino_core().compile_model(model, "CPU", settings)
    except (ImportError, RuntimeError) as error:
        raise OpenVinoError(f"OpenVINO does not run {model}: {first_line(error)}") from error


def _make_folder(folder: Path) -> bool:
    # OpenVINO only reads a folder it cannot write to; it replaces a damaged file.
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return False
    return True


def openvino_core() -> Any:
    """Return the process's one OpenVINO runtime."""
    with _core_lock:
        return _core()


@cache
def _core() -> Any:
    # Never freed: on Linux each gives the main thread an alternate signal stack, and a freed one leaves a dangling
    # stack, so that the next interruption would end the process.
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
