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
# # Extraire les entités
#
# Carnet 4 sur 8, après [évaluer la recherche](evaluer_la_recherche.ipynb). Dates, montants, articles, juridictions,
# parties, avocats, dispositif : chaque entité d'une décision est relevée avec sa position exacte, que chacun peut
# vérifier. Des règles suffisent ; un modèle de langage peut faire le même travail.
#
# Ensuite : [lire en profondeur](lecture_profonde.ipynb), où ces entités se comptent et se croisent.

# %% [markdown]
# ## Réglages
#
# Laissez tout vide pour essayer sans clé ni réseau : les règles lisent les décisions fictives livrées avec le projet.
# `EXTRACT_MODEL` nomme un modèle (`gemini-2.5-flash`, `gpt-4o-mini`, `ollama/mistral`, ou celui que sert
# `EXTRACT_API_BASE`) ; sa clé vient d'ici ou de l'environnement (`LANGEXTRACT_API_KEY`), et n'est jamais enregistrée.
# `EXTRACT_PASSES` dit combien de fois il lit chaque morceau : plus il en lit, plus il trouve, et plus il en coûte. Les
# règles lisent une fois, et connaissent les décisions (`auto`, `jurisprudence`, `general`).

# %%
PACKAGE = ""  # @param {type:"string"}
INDEX = ""  # @param {type:"string"}
EXTRACT_MODEL = "rules"  # @param {type:"string"}
SCHEMAS = ["auto", "jurisprudence", "contract", "correspondence", "corporate", "regulation", "general"]
EXTRACT_SCHEMA = "auto"  # @param {type:"string"}
EXTRACT_PASSES = 2  # @param {type:"slider", min:1, max:5, step:1}
EXTRACT_API_KEY = ""  # @param {type:"string"}
EXTRACT_API_BASE = ""  # @param {type:"string"}
OUTPUT_FOLDER = "entities_output"  # @param {type:"string"}

# %% [markdown]
# ## 1. Installer
#
# Là où le paquet manque, sur Colab par exemple, il vient de `PACKAGE`, sinon d'une copie du dépôt ou de ce que nomme
# `LEGAL_RAG_SOURCE`. Avant d'installer, la cellule dit ce qui changerait de ce qui est déjà là.

# %% jupyter={"source_hidden": true}
# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["legal-rag[langextract]"]
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
pip = [sys.executable, "-m", "pip", "install", "-q", f"legal-rag[langextract] @ {address}"]
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
# Sans `INDEX`, les décisions fictives sont indexées ici, une fois, par leurs mots seuls, et d'abord sans entités.

# %%
import legal_rag as lr
from legal_rag.library.library import is_library

folder = Path(OUTPUT_FOLDER, "sample")
index = INDEX or (folder if is_library(folder) else lr.build("sample", folder, n_bits=0, entities=False).path)
library = lr.open(index)
print(len(library), "décisions")

# %% [markdown]
# ## 3. Extraire
#
# Interrompue, l'extraction reprend où elle s'était arrêtée ; une décision déjà lue n'est pas relue.

# %%
from legal_rag.extraction import ExtractionSettings
from legal_rag.indexer import extract_library

access = {"api_key": EXTRACT_API_KEY or None, "api_base": EXTRACT_API_BASE or None}
how = {"schema_name": EXTRACT_SCHEMA, "extraction_passes": EXTRACT_PASSES}
settings = ExtractionSettings(model_id=EXTRACT_MODEL, **how, **access)
report = extract_library(library, settings)
print(f"{report.entities} entités dans {report.documents} décisions, dont {report.extracted} lues à l'instant")

# %% [markdown]
# ## 4. Vérifier
#
# Le texte de la décision, à la position de chaque entité, est l'entité elle-même.

# %%
from collections import Counter

library, counts, exact = lr.open(library.path), Counter(), 0
for document in library.documents():
    for entity in library.entities(document.id):
        counts[entity["extraction_class"]] += 1
        exact += document.content[entity["char_start"] : entity["char_end"]] == entity["extraction_text"]
print(f"{exact} entités sur {sum(counts.values())} sont le texte même de leur décision")
for name, count in counts.most_common():
    print(f"{name:20} {count}")

# %% [markdown]
# ## 5. Regarder
#
# Les premières entités d'une décision, avec leurs positions.

# %%
doc_id = next(iter(library))
library.entities(doc_id)

# %% [markdown]
# Une page les montre en couleurs dans le texte, à filtrer par classe ou par mots ; `view_entities(library)` y met
# toutes les décisions.

# %%
from legal_rag.extraction import view_entities

view_entities(library, doc_id)

# %% [markdown]
# ## 6. S'en servir
#
# Une question qui nomme une date, un montant ou une partie trouve les décisions qui les contiennent ; un filtre n'en
# garde que celles-là. La suite : [lire en profondeur](lecture_profonde.ipynb).

# %%
from legal_rag.law import legal_citation

amounts = [entity for id_ in library for entity in library.entities(id_) if entity["extraction_class"] == "montant"]
amount = amounts[0]["extraction_text"]
for hit in lr.search(library, "somme due", k=3, entity=(f"montant={amount}",)):
    print(f"{amount} : {hit.doc_id}, {legal_citation(library.document(hit.doc_id)).with_name}")
