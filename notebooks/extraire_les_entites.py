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
# Dates, montants, articles, juridictions, parties, avocats, dispositif : chaque entité d'une décision est relevée avec
# sa position exacte, que chacun peut vérifier. Des règles suffisent ; un modèle de langage peut faire le même travail.

# %% [markdown]
# ## Réglages
#
# Laissez tout vide pour essayer sans clé ni réseau : les règles lisent les décisions fictives livrées avec le projet.
# `EXTRACT_MODEL` nomme un modèle (`gemini-2.5-flash`, `gpt-4o-mini`, `ollama/mistral`, ou celui que sert
# `EXTRACT_API_BASE`) ; sa clé vient d'ici ou de l'environnement (`LANGEXTRACT_API_KEY`), et n'est jamais enregistrée.
# `EXTRACT_PASSES` dit combien de fois il lit chaque morceau : plus il en lit, plus il trouve, et plus il en coûte. Les
# règles lisent une fois, et connaissent les décisions (`auto`, `jurisprudence`, `general`).

# %%
INDEX = ""  # @param {type:"string"}
EXTRACT_MODEL = "rules"  # @param {type:"string"}
EXTRACT_SCHEMA = (
    "auto"  # @param ["auto", "jurisprudence", "contract", "correspondence", "corporate", "regulation", "general"]
)
EXTRACT_PASSES = 2  # @param {type:"slider", min:1, max:5, step:1}
EXTRACT_API_KEY = ""  # @param {type:"string"}
EXTRACT_API_BASE = ""  # @param {type:"string"}
OUTPUT_FOLDER = "entities_output"  # @param {type:"string"}

# %% [markdown]
# ## 1. Installer
#
# Sur Colab, ou partout où le paquet manque, il est installé ici, depuis son adresse ou depuis une copie du dépôt
# (`LEGAL_RAG_SOURCE` nomme une autre adresse, un fichier ou un dossier). Une seconde fois, rien n'est à faire.

# %%
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

PUBLISHED = ""  # l'adresse du paquet, quand il sera publié
clone = next((str(folder) for folder in (Path(), Path("..")) if (folder / "src" / "legal_rag").is_dir()), "")
source = os.environ.get("LEGAL_RAG_SOURCE") or clone or PUBLISHED

# %%
found = importlib.util.find_spec("legal_rag")
if found is None or found.origin is None:  # un reste d'une version retirée n'est pas le paquet
    assert source, (
        "Le paquet n'est pas publié : placez-vous dans une copie du dépôt, ou nommez-la par LEGAL_RAG_SOURCE."
    )
    address = source if "://" in source else Path(source).resolve().as_uri()
    pip = [sys.executable, "-m", "pip", "install", "-q", f"legal-rag[langextract] @ {address}"]
    subprocess.run(pip, check=True)
    importlib.invalidate_caches()

# %% [markdown]
# ## 2. L'index
#
# Sans `INDEX`, les décisions fictives sont indexées ici par leurs mots seuls.

# %%
from legal_rag.indexer import IndexConfig, build_index
from legal_rag.library import Library

if not INDEX:
    build_index(IndexConfig(source="sample", index_folder=OUTPUT_FOLDER, index_name="sample", n_bits=0))
library = Library(Path(INDEX or Path(OUTPUT_FOLDER, "sample")))
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

counts, exact = Counter(), 0
for document in library.documents():
    for entity in library.entities_of(document.id):
        counts[entity["extraction_class"]] += 1
        exact += document.content[entity["char_start"] : entity["char_end"]] == entity["extraction_text"]
print(f"{exact} entités sur {sum(counts.values())} sont le texte même de leur décision")
for name, count in counts.most_common():
    print(f"{name:20} {count}")

# %% [markdown]
# ## 5. Regarder
#
# Une page montre les décisions une à une, leurs entités colorées par classe ; choisissez-en une dans la liste, filtrez
# par classe ou par texte. La même page, avec toutes les décisions, est enregistrée à côté de l'index.

# %%
from legal_rag.extraction import view_entities

view_entities(library)

# %% [markdown]
# ## 6. S'en servir
#
# Une question qui nomme une date, un montant ou une partie trouve les décisions qui les contiennent ; un filtre n'en
# garde que celles-là.

# %%
from legal_rag.law import legal_citation
from legal_rag.library import Filters
from legal_rag.retriever import build_retriever

retriever = build_retriever(library)
amounts = [one for id_ in library for one in library.entities_of(id_) if one["extraction_class"] == "montant"]
amount = amounts[0]["extraction_text"]
for hit in retriever.search("somme due", 3, filters=Filters(entity=(f"montant={amount}",))):
    print(f"{amount} : {hit.doc_id}, {legal_citation(library.document(hit.doc_id)).with_name}")
