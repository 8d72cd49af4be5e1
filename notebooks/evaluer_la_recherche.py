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
# # Évaluer la recherche
#
# Carnet 3 sur 8, après [générer des questions](generer_des_questions.ipynb). Quelle part des bonnes décisions la
# recherche trouve-t-elle, et à quel rang ? Ses modes sont comparés avec les mesures de TREC, recoupées par pyserini.
#
# Ensuite : [extraire les entités](extraire_les_entites.ipynb) des décisions trouvées.

# %% [markdown]
# ## Réglages
#
# Laissez tout vide pour essayer sans réseau, sur les décisions et les questions fictives livrées avec le projet.
# `QUESTIONS` nomme un fichier JSONL ou le dossier d'un jeu de données ; `PYSERINI`, s'il faut installer trec_eval.

# %%
PACKAGE = ""  # @param {type:"string"}
INDEX = ""  # @param {type:"string"}
QUESTIONS = ""  # @param {type:"string"}
QRELS = ""  # @param {type:"string"}
K = 50  # @param {type:"integer"}
PYSERINI = True  # @param {type:"boolean"}
OUTPUT_FOLDER = "evaluation_output"  # @param {type:"string"}

# %% [markdown]
# ## 1. Installer
#
# Là où le paquet manque, sur Colab par exemple, il vient de `PACKAGE`, sinon d'une copie du dépôt ou de ce que nomme
# `LEGAL_RAG_SOURCE`. Avant d'installer, la cellule dit ce qui changerait de ce qui est déjà là.

# %% jupyter={"source_hidden": true}
# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["legal-rag[datasets,eval]"]
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
pip = [sys.executable, "-m", "pip", "install", "-q", f"legal-rag[datasets,eval] @ {address}"]
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
# ## 2. L'index et les questions
#
# Sans `INDEX`, les décisions fictives sont indexées ici, une fois, en une minute environ.
# Une question est une ligne JSON avec `qid`, `question` et `doc_id`.

# %%
import legal_rag as lr
from legal_rag.library.library import is_library

folder = Path(OUTPUT_FOLDER, "sample")
index = INDEX or (folder if is_library(folder) else lr.build("sample", folder).path)
library = lr.open(index)
print(len(library), "décisions")

# %%
from legal_rag.evaluation import read_qrels, read_queries

queries, qrels = read_queries(QUESTIONS or "sample")
if QRELS:
    qrels = read_qrels(QRELS)
print(f"{len(queries)} questions, par exemple : {queries[0].text}")

# %% [markdown]
# ## 3. Chercher dans chaque mode
#
# `colbert` compare les mots par le sens, `bm25` par la lettre, `hybrid` additionne les deux et tient compte de ce que
# citent les meilleurs documents ; `bm25+rerank` reclasse par le sens ce que la lettre a trouvé. Chaque résultat est
# enregistré dans un fichier que trec_eval lit.

# %%
from legal_rag.evaluation import batch_query, write_qrels, write_run
from legal_rag.retriever import MODES

runs = {mode: batch_query(library.retriever, queries, K, mode=mode) for mode in MODES}
Path(OUTPUT_FOLDER).mkdir(parents=True, exist_ok=True)
write_qrels(Path(OUTPUT_FOLDER, "qrels.txt"), qrels)
for mode, run in runs.items():
    write_run(Path(OUTPUT_FOLDER, f"run_{mode}.txt"), run, run_name=mode)
print(Path(OUTPUT_FOLDER, "run_hybrid.txt").read_text().splitlines()[0])

# %% [markdown]
# ## 4. Mesurer
#
# La moyenne de chaque mesure par ir_measures, avec son intervalle de confiance à 95 % ; les questions sont peu
# nombreuses, les intervalles sont larges.

# %%
from legal_rag.evaluation import evaluate_run

evaluations = {mode: evaluate_run(qrels, run) for mode, run in runs.items()}
for mode, evaluation in evaluations.items():
    for figure in evaluation.figures:
        print(f"{mode:12} {figure.measure:9} {figure.mean:.3f}  [{figure.low:.3f}, {figure.high:.3f}]")

# %% [markdown]
# trec_eval doit trouver les mêmes chiffres. pyserini l'apporte, avec un Java, dans un environnement à part (400 Mo, une
# demi-minute) : `.venv-trec`, ou le Python que nomme `LEGAL_RAG_TREC`. La commande elle-même est
# `python -m pyserini.eval.trec_eval -c -m recall.1,5,10 qrels.txt run_hybrid.txt`.

# %%
from legal_rag.evaluation import find_trec_python, install_trec_eval

problem = install_trec_eval() if PYSERINI and find_trec_python() is None else None
has_trec_eval = find_trec_python() is not None
print("trec_eval est là." if has_trec_eval else f"Sans trec_eval, restent les chiffres d'ir_measures. {problem or ''}")

# %%
from legal_rag.evaluation import trec_eval

theirs = trec_eval(qrels, runs["hybrid"]) if has_trec_eval else {}
for figure in evaluations["hybrid"].figures:
    said = f"trec_eval : {theirs[figure.measure]:.4f}" if figure.measure in theirs else ""
    print(f"{figure.measure:9} {figure.mean:.4f}  {said}")

# %% [markdown]
# La différence entre deux modes est-elle due au hasard ? Le test échange leurs résultats question par question.

# %%
from legal_rag.evaluation import compare_runs

for comparison in compare_runs(evaluations["hybrid"], evaluations["bm25"]):
    print(f"{comparison.measure:9} hybrid - bm25 = {comparison.difference:+.3f}, p = {comparison.p_value:.3f}")

# %% [markdown]
# D'autres systèmes dans le même tableau : un autre BM25 (`bm25s`, documents entiers), une fusion par les rangs. Leurs
# tests sont corrigés de leur nombre (Holm-Bonferroni) ; `to_latex()` donne le tableau d'un article.

# %%
from legal_rag.evaluation import compare_systems

systems = ["hybrid", "colbert", "bm25", "bm25s", "rrf(colbert,bm25)"]
compare_systems(library, queries, qrels, systems, k=K, output=Path(OUTPUT_FOLDER, "systemes"))

# %% [markdown]
# ## 5. Voir
#
# À gauche, la part des bonnes décisions parmi les k premières ; à droite, le rang de la première.

# %%
from IPython.display import Image, display

from legal_rag.evaluation import plot_runs, save_plot

picture = Path(OUTPUT_FOLDER, "rappel.png")
save_plot(plot_runs(qrels, runs), picture)
display(Image(picture.read_bytes()))

# %% [markdown]
# ## 6. Regarder une question manquée
#
# La question dont la bonne décision vient le plus tard, ce qui était attendu et ce qui est venu à la place. La suite :
# [extraire les entités](extraire_les_entites.ipynb) de ces décisions, et chercher par elles.

# %%
from legal_rag.evaluation import hardest
from legal_rag.law import legal_citation

texts = {query.qid: query.text for query in queries}
failure = hardest(qrels, runs["hybrid"], n=1)[0]
print(texts[failure.qid], "\nPremière bonne décision au rang", failure.first_rank)
for doc_id in [*failure.wanted, *failure.returned[:3]]:
    indexed = doc_id in library
    print("-", doc_id, ":", legal_citation(library.document(doc_id)).with_name if indexed else "absente")
