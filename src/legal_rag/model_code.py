"""Code that a model folder brings along: found before anything of the folder is loaded, and refused.

In: a model folder. Out: nothing, or an error that names the code.
"""

import json
import re
from pathlib import Path

LIBRARY_MODULE = re.compile(r"(?:sentence_transformers\.(?:\w+\.)*|pylate\.(?:\w+\.)*|torch\.nn\.modules\.\w+\.)\w+")


def refuse_own_code(folder: Path) -> None:
    """Refuse a model folder that names Python code of its own, which sentence-transformers would import and run.

    It asks for permission only for models from the hub, and a folder may have come out of anyone's zip.

    Raises:
        ValueError: If a module or an activation is not one of the libraries' own; the message names it.
    """
    modules = folder / "modules.json"
    named = [module.get("type") for module in json.loads(modules.read_text("utf-8"))] if modules.is_file() else []
    for file in sorted(folder.glob("*/config.json")):
        named.append(json.loads(file.read_text("utf-8")).get("activation_function"))
    config = folder / "config.json"
    own = json.loads(config.read_text("utf-8")).get("auto_map") if config.is_file() else None
    foreign = [name for name in named if name is not None and not LIBRARY_MODULE.fullmatch(str(name))]
    if foreign or own:
        raise ValueError(
            f"the encoder in {folder} brings its own code: {(foreign or [own])[0]!r} (trust_remote_code allows it)"
        )
