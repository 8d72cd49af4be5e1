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
# Quelle part des bonnes décisions la recherche trouve-t-elle, et à quel rang ? Les modes de recherche sont comparés sur
# des questions dont la réponse est connue, avec les mesures de TREC, et une question manquée est regardée de près.

# %% [markdown]
# ## Réglages
#
# Laissez tout vide pour essayer sans réseau, sur les décisions et les questions fictives livrées avec le projet.

# %%
INDEX = ""  # @param {type:"string"}
QUESTIONS = ""  # @param {type:"string"}
QRELS = ""  # @param {type:"string"}
K = 50  # @param {type:"integer"}
OUTPUT_FOLDER = "evaluation_output"  # @param {type:"string"}

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
    pip = [sys.executable, "-m", "pip", "install", "-q", f"legal-rag[datasets,eval] @ {address}"]
    subprocess.run(pip, check=True)
    importlib.invalidate_caches()

# %% [markdown]
# ## 2. L'index et les questions
#
# Une question est une ligne JSON avec `qid`, `question` et `doc_id` ; un jeu de données enregistré convient aussi.

# %%
from legal_rag.evaluation import read_qrels, read_queries
from legal_rag.indexer import IndexConfig, build_index
from legal_rag.retriever import build_retriever

if not INDEX:
    build_index(IndexConfig(source="sample", index_folder=OUTPUT_FOLDER, index_name="sample"))
retriever = build_retriever(INDEX or Path(OUTPUT_FOLDER, "sample"))
queries, qrels = read_queries(QUESTIONS or "sample")

# %%
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

runs = {mode: batch_query(retriever, queries, K, mode=mode) for mode in MODES}
Path(OUTPUT_FOLDER).mkdir(parents=True, exist_ok=True)
write_qrels(Path(OUTPUT_FOLDER, "qrels.txt"), qrels)
for mode, run in runs.items():
    write_run(Path(OUTPUT_FOLDER, f"run_{mode}.txt"), run, run_name=mode)
print(Path(OUTPUT_FOLDER, "run_hybrid.txt").read_text().splitlines()[0])

# %% [markdown]
# ## 4. Mesurer
#
# La moyenne de chaque mesure, avec son intervalle de confiance à 95 % ; les questions sont peu nombreuses, les
# intervalles sont larges.

# %%
from legal_rag.evaluation import evaluate_run

evaluations = {mode: evaluate_run(qrels, run) for mode, run in runs.items()}
for mode, evaluation in evaluations.items():
    for figure in evaluation.figures:
        print(f"{mode:12} {figure.measure:8} {figure.mean:.3f}  [{figure.low:.3f}, {figure.high:.3f}]")

# %% [markdown]
# trec_eval doit trouver les mêmes chiffres. pyserini l'apporte, dans un environnement à part : `make trec` le crée dans
# une copie du dépôt, `LEGAL_RAG_TREC` nomme un autre Python qui le possède. Ailleurs, la commande est
# `python -m pyserini.eval.trec_eval -c -m recall.1,5,10 qrels.txt run_hybrid.txt`.

# %%
from legal_rag.evaluation import find_trec_python, trec_eval

if find_trec_python() is None:
    print("pyserini n'est pas installé ici : les chiffres ci-dessus ne sont pas vérifiés par trec_eval.")
else:
    theirs = trec_eval(qrels, runs["hybrid"])
    for figure in evaluations["hybrid"].figures:
        print(f"{figure.measure:8} {figure.mean:.4f}  trec_eval : {theirs[figure.measure]:.4f}")

# %% [markdown]
# La différence entre deux modes est-elle due au hasard ? Le test échange leurs résultats question par question.

# %%
from legal_rag.evaluation import compare_runs

for comparison in compare_runs(evaluations["hybrid"], evaluations["bm25"]):
    print(f"{comparison.measure:8} hybrid - bm25 = {comparison.difference:+.3f}, p = {comparison.p_value:.3f}")

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
# La question dont la bonne décision vient le plus tard, ce qui était attendu et ce qui est venu à la place.

# %%
from legal_rag.evaluation import hardest
from legal_rag.law import legal_citation

texts = {query.qid: query.text for query in queries}
failure = hardest(qrels, runs["hybrid"], n=1)[0]
print(texts[failure.qid], "\nPremière bonne décision au rang", failure.first_rank)
for doc_id in [*failure.wanted, *failure.returned[:3]]:
    indexed = doc_id in retriever.corpus
    print("-", doc_id, ":", legal_citation(retriever.corpus.document(doc_id)).with_name if indexed else "absente")
