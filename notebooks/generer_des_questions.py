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
# # Générer des questions
#
# Un jeu de questions et de réponses est tiré d'un corpus indexé : chaque réponse est copiée mot pour mot d'une
# décision, à des positions que chacun peut vérifier. Il sert ensuite à évaluer la recherche, ou à entraîner un modèle.

# %% [markdown]
# ## Réglages
#
# Laissez tout vide pour essayer sans clé ni réseau : les sommaires des décisions fictives livrées avec le projet
# deviennent alors des questions. Un modèle est interrogé dès qu'une clé ou une adresse est donnée, ici ou dans
# l'environnement (`HF_TOKEN` n'y suffit que si un modèle est nommé) ; `LIMIT` décisions sont tirées au sort.

# %%
GENERATOR_MODEL_ID = ""  # @param {type:"string"}
GENERATOR_API_BASE = ""  # @param {type:"string"}
GENERATOR_API_KEY = ""  # @param {type:"string"}
INDEX = ""  # @param {type:"string"}
LIMIT = 100  # @param {type:"integer"}
WORKERS = 8  # @param {type:"integer"}
SEED = 0  # @param {type:"integer"}
OUTPUT_FOLDER = "questions_output"  # @param {type:"string"}

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
    pip = [sys.executable, "-m", "pip", "install", "-q", f"legal-rag[agent,datasets] @ {address}"]
    subprocess.run(pip, check=True)
    importlib.invalidate_caches()

# %% [markdown]
# ## 2. L'index
#
# Sans `INDEX`, les décisions fictives sont indexées ici par leurs mots seuls, ce qui suffit pour évaluer BM25.

# %%
from legal_rag.indexer import IndexConfig, build_index
from legal_rag.library import Library

if not INDEX:
    build_index(IndexConfig(source="sample", index_folder=OUTPUT_FOLDER, index_name="sample", n_bits=0))
library = Library(Path(INDEX or Path(OUTPUT_FOLDER, "sample")))
print(len(library), "décisions")

# %% [markdown]
# ## 3. Le modèle, et ce qu'il coûterait
#
# L'estimation lit quelques décisions et n'interroge personne. Le maximum suppose que toutes les tentatives servent.

# %%
from legal_rag.agent import build_language_model, has_endpoint
from legal_rag.evaluation.questions import estimate

endpoint = [GENERATOR_MODEL_ID or None, GENERATOR_API_KEY or None, GENERATOR_API_BASE or None]
asks_a_model = has_endpoint(model=endpoint[0], api_key=endpoint[1], api_base=endpoint[2])
lm = build_language_model(*endpoint, cache=False) if asks_a_model else None
print(estimate(library, lm, limit=LIMIT) if lm else "Sans modèle : les sommaires officiels servent de questions.")

# %% [markdown]
# ## 4. Générer
#
# Arrêtée ou interrompue, la cellule reprend où elle en était : aucune décision terminée n'est demandée deux fois au
# modèle. Ce qui n'est pas en français, pas dans le texte ou mal posé est écarté et compté.

# %%
from legal_rag.evaluation.questions import generate_questions

folder = Path(OUTPUT_FOLDER, "questions")
report = generate_questions(library, lm, limit=LIMIT, seed=SEED, workers=WORKERS, output=folder)
print(report.accepted, "questions pour", report.documents, "décisions ;", report.splits)
print("Écartées :", report.rejected, "- échecs :", report.failed, "- presque identiques :", report.duplicates)

# %% [markdown]
# ## 5. Voir et vérifier
#
# Quelques lignes du jeu, et la preuve que chaque réponse est bien le texte de sa décision.

# %%
from datasets import load_from_disk

saved = load_from_disk(str(folder))
for row in saved["train"].select(range(min(3, len(saved["train"])))):
    print("\n".join([row["question"], f"-> {row['answer']}", f"   {row['document_title']}", ""]))

# %%
identical = 0
for row in (row for split in saved.values() for row in split):
    content = library.document(row["doc_id"]).content
    identical += content[row["answer_span_start"] : row["answer_span_end"]] == row["answer"]
print(f"{identical} réponses sur {report.accepted} sont le texte même de leur décision")

# %% [markdown]
# ## 6. Évaluer la recherche avec ces questions
#
# Le jeu se lit tel quel ; le carnet `evaluer_la_recherche` va plus loin. Des sommaires officiels, qui reprennent les
# mots de leur décision, donnent des chiffres flatteurs : ils montrent que tout marche, ils ne jugent pas une recherche.

# %%
from legal_rag.evaluation import batch_query, evaluate_run, read_queries
from legal_rag.retriever import build_retriever

queries, qrels = read_queries(folder)
run = batch_query(build_retriever(library), queries, 10, mode="bm25")
flattery = "" if lm else "  (flatteur : questions tirées des sommaires)"
for figure in evaluate_run(qrels, run).figures:
    print(f"{figure.measure:8} {figure.mean:.3f}  [{figure.low:.3f}, {figure.high:.3f}]{flattery}")

# %% [markdown]
# La fiche du jeu dit d'où il vient et ce qui a été écarté.

# %%
from IPython.display import Markdown

Markdown((folder / "README.md").read_text(encoding="utf-8").split("---", 2)[2])
