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
# # Explorer le graphe
#
# Carnet 7 sur 8, après [vérifier un texte](verifier_un_texte.ipynb). Qui cite quoi, qui casse qui, qui était partie :
# des faits tirés des textes par des règles, chacun avec le document et les caractères qui le disent.

# %% [markdown]
# ## Réglages
#
# `NAME` est une décision, un article, une juridiction ou une personne, écrits comme on veut.

# %%
PACKAGE = ""  # @param {type:"string"}
INDEX = ""  # @param {type:"string"}
NAME = "n° 22-16.934"  # @param {type:"string"}
OTHER = "FICTIF0202"  # @param {type:"string"}
OUTPUT_FOLDER = "graph_output"  # @param {type:"string"}

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
# Sans `INDEX`, les décisions fictives sont indexées ici, une fois, par leurs mots seuls ; leur graphe y est.

# %%
import legal_rag as lr
from legal_rag.library.library import is_library

folder = Path(OUTPUT_FOLDER, "sample")
index = INDEX or (folder if is_library(folder) else lr.build("sample", folder, n_bits=0).path)
library = lr.open(index)
print(len(library), "décisions")

# %% [markdown]
# ## 3. Ce que le graphe contient
#
# Combien de nœuds et de liens, et les articles que le plus de décisions citent.

# %%
graph = library.graph
print(graph.counts())
for node in graph.most_cited("article", 8):
    print(f"{node.cited:3} décisions citent : {node.name}")

# %% [markdown]
# ## 4. Autour d'une décision
#
# Ce qu'elle cite et applique, qui l'a rendue, qui y est partie ; chaque lien avec l'endroit du texte qui le dit.

# %%
from legal_rag.graph import EDGE_TYPES

for edge in graph.neighbours(NAME)[:12]:
    place = f"{edge.char_start}-{edge.char_end}" if edge.char_start >= 0 else "métadonnées"
    print(f"{edge.source.name} - {EDGE_TYPES[edge.type]} - {edge.target.name} ({edge.doc_id}, {place})")

# %% [markdown]
# La preuve : le texte du document, à ces caractères.

# %%
edge = next(edge for edge in graph.neighbours(NAME) if edge.char_start >= 0)
content = library.document(edge.doc_id).content
print(f"{edge.source.name} {EDGE_TYPES[edge.type]} {edge.target.name} :")
print("«", " ".join(content[max(0, edge.char_start - 120) : edge.char_end + 80].split()), "»")

# %% [markdown]
# ## 5. Ce que les décisions font les unes des autres
#
# Quelles décisions en censurent, confirment ou rectifient une autre ? Sans elles, une citation juste peut tromper.

# %%
rulings = [edge for doc_id in library for edge in graph.neighbours(doc_id) if edge.type in ("overrules", "upholds")]
for edge in rulings[:8]:
    print(f"{edge.source.name} - {EDGE_TYPES[edge.type]} - {edge.target.name}")

# %% [markdown]
# ## 6. Le chemin d'une décision à une autre
#
# Une chaîne de faits, la plus courte, chacun lu dans un texte.

# %%
for edge in graph.path(NAME, OTHER):
    print(f"{edge.source.name} - {EDGE_TYPES[edge.type]} - {edge.target.name}")

# %% [markdown]
# ## 7. Voir
#
# La décision au milieu, ce qui la touche autour ; un clic montre la phrase qui le dit. La suite :
# [suivre un article](veille.ipynb) de version en version.

# %%
from legal_rag.graph import view_graph

view_graph(library, NAME)
