# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Vérifier un texte
#
# Carnet 6 sur 8, après [lire en profondeur](lecture_profonde.ipynb). Un projet de conclusions, un article, la réponse
# d'un modèle : chaque décision, article ou citation qu'il contient est confirmé, faux (avec ce qui est juste) ou absent
# de l'index. Ni modèle ni encodeur n'y servent.
#
# Ensuite : [explorer le graphe](explorer_le_graphe.ipynb) de ce que les décisions citent.

# %% [markdown]
# ## Réglages
#
# `FILE` nomme le texte à vérifier : Markdown, HTML, DOCX ou PDF. Laissez tout vide pour essayer sans réseau.

# %%
PACKAGE = ""  # @param {type:"string"}
INDEX = ""  # @param {type:"string"}
FILE = ""  # @param {type:"string"}
OUTPUT_FOLDER = "verification_output"  # @param {type:"string"}

# %% [markdown]
# ## 1. Installer
#
# Là où le paquet manque, sur Colab par exemple, il vient de `PACKAGE`, sinon d'une copie du dépôt ou de ce que nomme
# `LEGAL_RAG_SOURCE`. Avant d'installer, la cellule dit ce qui changerait de ce qui est déjà là.

# %% jupyter={"source_hidden": true}
# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["legal-rag"]
#
# [tool.uv.sources]
# legal-rag = { path = ".." }
# ///

# %%
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

found = importlib.util.find_spec("legal_rag")
missing = found is None or found.origin is None  # un reste d'une version retirée n'est pas le paquet

# %%
clone = next((str(folder) for folder in (Path(), Path("..")) if (folder / "src" / "legal_rag").is_dir()), "")
source, plan = PACKAGE or os.environ.get("LEGAL_RAG_SOURCE") or clone, b'{"install": []}'
assert source or not missing, "Le paquet manque : nommez-le par PACKAGE, ou une copie du dépôt par LEGAL_RAG_SOURCE."
address = source if "://" in source else Path(source).resolve().as_uri()
pip = [sys.executable, "-m", "pip", "install", "-q", f"legal-rag @ {address}"]
if missing:
    plan = subprocess.run([*pip, "--dry-run", "--report", "-"], stdout=subprocess.PIPE, check=True).stdout
planned = {each["metadata"]["name"]: each["metadata"]["version"] for each in json.loads(plan)["install"]}
print(f"À installer : {len(planned)} paquets" if missing else "Le paquet est là : rien n'est à installer.")

# %%
present = {each.name.lower().replace("_", "-"): each.version for each in importlib.metadata.distributions()}
for name, version in planned.items():
    if (before := present.get(name.lower().replace("_", "-"))) is not None:
        print(f"Ce qui est là change : {name} {before} devient {version}")
if missing:
    subprocess.run(pip, check=True)
    importlib.invalidate_caches()
print("legal-rag", importlib.metadata.version("legal-rag"))

# %% [markdown]
# ## 2. L'index
#
# Sans `INDEX`, les décisions fictives sont indexées ici, une fois, par leurs mots seuls.

# %%
import legal_rag as lr
from legal_rag.library.library import is_library

folder = Path(OUTPUT_FOLDER, "sample")
index = INDEX or (folder if is_library(folder) else lr.build("sample", folder, n_bits=0).path)
library = lr.open(index)
print(len(library), "décisions")

# %% [markdown]
# ## 3. Le texte
#
# Un projet qui a l'air juste : la première phrase l'est, la deuxième se trompe de jour, la troisième change un mot
# d'une citation, la dernière invente une décision.

# %%
DRAFT = """La réception peut être tacite (Cass. 3e civ., 21 sept. 2023, n° 22-16.934).

La chambre sociale l'avait admis (Cass. soc., 18 juill. 2003, n° 01-43.927).

« Celui qui n'a pas déposé son compte dans les conditions et le délai prescrits par l'article L. 52-12 est inéligible
pendant deux ans » (Cons. const., 23 nov. 1993, n° 93-9411 AN).

Elle le confirme depuis (Cass. soc., 9 janv. 2018, n° 16-99.999)."""
print(DRAFT)

# %% [markdown]
# ## 4. Vérifier
#
# Chaque référence à son tour, les fausses d'abord : ce qui a été comparé, et ce qui serait juste. La valeur elle-même
# s'affiche en tableau.

# %%
from legal_rag.citations import format_verification

verification = lr.verify(Path(FILE) if FILE else DRAFT, library)
print(format_verification(verification))
verification

# %% [markdown]
# La même chose en une page : le texte, et en marge ce qui a été trouvé, avec le passage de la décision.

# %%
lr.show(verification)

# %% [markdown]
# La page se garde et se partage. Plusieurs index se donnent ensemble : `lr.verify(texte, [decisions, codes])`. La
# suite : [explorer le graphe](explorer_le_graphe.ipynb).

# %%
from legal_rag.verification import render_verification

Path(OUTPUT_FOLDER).mkdir(parents=True, exist_ok=True)
page = Path(OUTPUT_FOLDER, "verification.html")
page.write_text(render_verification(verification, FILE or "projet"), encoding="utf-8")
print("Page enregistrée :", page)
