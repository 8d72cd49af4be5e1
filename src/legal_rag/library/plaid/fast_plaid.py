"""Install fast-plaid, which searches on GPUs, where a runtime such as Colab's brings its own PyTorch."""

import importlib
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from legal_rag.encoder.runtime import best_device

# Each build runs with one release of PyTorch and requires it: pip, left to choose, would replace the runtime's, and its
# torchvision and transformers would no longer import.
BUILDS = {
    "2.7.0": "1.4.6.270",
    "2.7.1": "1.4.6.271",
    "2.8.0": "1.4.6.280",
    "2.9.0": "1.4.6.290",
    "2.10.0": "1.4.6.2100",
    "2.11.0": "1.4.6.2110",
}
INSTEAD = "les index sont écrits et cherchés sur le processeur"


def fast_plaid_build(torch: str) -> str | None:
    """Return the version of fast-plaid for a version of PyTorch such as '2.9.0+cu126'; None if there is none."""
    return BUILDS.get(torch.partition("+")[0])


def install_fast_plaid() -> str:
    """Install the build of fast-plaid for the PyTorch that is there, which stays as it is.

    Returns:
        A French sentence for the notebook: what was installed or, where nothing was, why, and what happens instead.
    """
    if find_spec("fast_plaid") is not None:
        return "fast-plaid est installé."
    if best_device() != "cuda":
        return f"Pas de GPU : {INSTEAD}."
    try:
        torch = version("torch")
    except PackageNotFoundError:
        return f"La version de PyTorch est inconnue : {INSTEAD}."
    build = fast_plaid_build(torch)
    if build is None:
        return f"fast-plaid n'existe pas pour PyTorch {torch} (mais pour {', '.join(BUILDS)}) : {INSTEAD}."
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"fast-plaid=={build}"]
    done = subprocess.run([*pip, f"torch=={torch}"], capture_output=True, text=True, check=False)  # noqa: S603
    importlib.invalidate_caches()
    if done.returncode:
        reason = (done.stderr.strip() or "erreur de pip").splitlines()[-1]
        return f"fast-plaid {build} ne s'installe pas ({reason}) : {INSTEAD}."
    return f"fast-plaid {build} est installé pour PyTorch {torch}."
