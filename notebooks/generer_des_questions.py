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
# Carnet 2 sur 8, après [interroger des décisions](../demo.ipynb). DSPy tire d'un corpus indexé un jeu de questions et
# de réponses : chaque réponse est copiée mot pour mot d'une décision, à des positions que chacun peut vérifier.
#
# Ensuite : [évaluer la recherche](evaluer_la_recherche.ipynb) avec de telles questions.

# %% [markdown]
# ## Réglages
#
# Laissez tout vide pour essayer sans clé ni réseau : les sommaires des décisions fictives livrées avec le projet
# deviennent alors des questions. Un modèle est interrogé dès qu'une clé ou une adresse est donnée, ici ou dans
# l'environnement (`HF_TOKEN` n'y suffit que si un modèle est nommé) ; `LIMIT` décisions sont tirées au sort.

# %%
PACKAGE = ""  # @param {type:"string"}
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
# Là où le paquet manque, sur Colab par exemple, il vient de `PACKAGE`, sinon d'une copie du dépôt ou de ce que nomme
# `LEGAL_RAG_SOURCE`. Avant d'installer, la cellule dit ce qui changerait de ce qui est déjà là.

# %% jupyter={"source_hidden": true}
# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["legal-rag[agent,datasets]"]
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
pip = [sys.executable, "-m", "pip", "install", "-q", f"legal-rag[agent,datasets] @ {address}"]
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

questions = Path(OUTPUT_FOLDER, "questions")
report = generate_questions(library, lm, limit=LIMIT, seed=SEED, workers=WORKERS, output=questions)
print(report.accepted, "questions pour", report.documents, "décisions ;", report.splits)
print("Écartées :", report.rejected, "- échecs :", report.failed, "- presque identiques :", report.duplicates)

# %% [markdown]
# ## 5. Voir et vérifier
#
# Quelques lignes du jeu, et la preuve que chaque réponse est bien le texte de sa décision.

# %%
from datasets import load_from_disk

saved = load_from_disk(str(questions))
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
# Le jeu se lit tel quel. Des sommaires officiels, qui reprennent les mots de leur décision, donnent des chiffres
# flatteurs : ils montrent que tout marche, ils ne jugent pas une recherche.

# %%
flattery = "" if lm else "  (flatteur : questions tirées des sommaires)"
for figure in lr.evaluate(library, questions, k=10, mode="bm25").figures:
    print(f"{figure.measure:9} {figure.mean:.3f}  [{figure.low:.3f}, {figure.high:.3f}]{flattery}")

# %% [markdown]
# ## 7. Optimiser une consigne avec ces questions
#
# Chaque ligne devient un `dspy.Example`. Un modèle récrit la question en requête ; `BootstrapFewShot` retient de
# `train` des récritures qui trouvent leur décision, et les lui montre en exemple. La note, sur `dev` et `test`, est le
# rang réciproque moyen de la bonne décision, en pour cent.

# %%
import dspy

from legal_rag.evaluation.questions import read_examples, search_metric

train = read_examples(questions, "train")
held = read_examples(questions, "dev") + read_examples(questions, "test")
metric = search_metric(library.retriever, mode="bm25")
rewrite = dspy.Predict(dspy.Signature("question -> query", "Récris la question en mots-clés, en français."))
score = dspy.Evaluate(devset=held, metric=metric, num_threads=WORKERS)
print(len(train), "exemples pour apprendre,", len(held), "pour mesurer")

# %%
if lm and train and held:
    with dspy.context(lm=lm):
        before = score(rewrite).score
        optimised = dspy.BootstrapFewShot(metric, max_labeled_demos=0).compile(rewrite, trainset=train)
        print(f"Avant : {before:.1f} ; avec {len(optimised.demos)} exemples : {score(optimised).score:.1f}")
else:
    print("Sans modèle ou sans question, rien n'est optimisé : donnez GENERATOR_API_BASE et GENERATOR_MODEL_ID.")

# %% [markdown]
# La fiche du jeu dit d'où il vient et ce qui a été écarté. La suite :
# [évaluer la recherche](evaluer_la_recherche.ipynb), où `QUESTIONS` peut nommer ce jeu.

# %%
from IPython.display import Markdown

Markdown((questions / "README.md").read_text(encoding="utf-8").split("---", 2)[2])
