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
# # Lire en profondeur
#
# Carnet 5 sur 8, après [extraire les entités](extraire_les_entites.ipynb). « Combien de décisions… », « toutes celles
# qui… », « comparer ces douze arrêts » : dix passages n'y répondent pas. Ici un corpus entier est décrit, compté,
# croisé et lu par des programmes, et chaque réponse dit d'où elle vient.
#
# Ensuite : [vérifier un texte](verifier_un_texte.ipynb) qui cite des décisions.

# %% [markdown]
# ## Réglages
#
# Laissez tout vide pour essayer sans clé ni réseau, sur les décisions fictives livrées avec le projet. Avec une clé ou
# une adresse, ici ou dans l'environnement, un modèle écrit lui-même les programmes ; la clé n'est jamais enregistrée.

# %%
PACKAGE = ""  # @param {type:"string"}
GENERATOR_MODEL_ID = ""  # @param {type:"string"}
GENERATOR_API_BASE = ""  # @param {type:"string"}
GENERATOR_API_KEY = ""  # @param {type:"string"}
INDEX = ""  # @param {type:"string"}
QUESTION = "Quelles cours d'appel ont infirmé, même en partie, et sur quels articles ?"  # @param {type:"string"}
MODEL_CALLS = 400  # @param {type:"integer"}
OUTPUT_FOLDER = "deep_read_output"  # @param {type:"string"}

# %% [markdown]
# ## 1. Installer
#
# Là où le paquet manque, sur Colab par exemple, il vient de `PACKAGE`, sinon d'une copie du dépôt ou de ce que nomme
# `LEGAL_RAG_SOURCE`. Avant d'installer, la cellule dit ce qui changerait de ce qui est déjà là.

# %% jupyter={"source_hidden": true}
# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["legal-rag[agent,langextract]"]
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
pip = [sys.executable, "-m", "pip", "install", "-q", f"legal-rag[agent,langextract] @ {address}"]
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
# Des règles y relèvent les parties, les dates, les montants, les dispositifs ; ce qui l'a été ne l'est pas deux fois.

# %%
from legal_rag.extraction import ExtractionSettings
from legal_rag.indexer import extract_library

report = extract_library(library, ExtractionSettings(model_id="rules"))
print(f"{report.entities} entités dans {report.documents} décisions")

# %% [markdown]
# ## 3. Premier niveau : le corpus
#
# Chaque décision reçoit un résumé (le sommaire officiel, sinon des phrases de son texte), des mots-clés et un thème.
# Aucun modèle n'est demandé, et rien n'est gardé en mémoire : tout se lit dans l'index.

# %%
from legal_rag.corpus_index import CorpusIndexer

index = CorpusIndexer(library).build_corpus_index()
print(f"{index.total_docs} décisions, {index.total_chars} caractères ; leurs thèmes :")
for topic, ids in index.topics.items():
    print(f"{len(ids):4} {topic}")

# %% [markdown]
# La fiche d'une décision ; les décisions qui ont un mot-clé, ou qui nomment quelqu'un, une date, une somme, un article.

# %%
first = next(iter(index.documents.values()))
print(first.title, first.summary, ", ".join(first.keywords), sep="\n", end="\n\n")
for keyword in ("compte de campagne", "licenciement", "Élections"):
    print(f"mot-clé {keyword} : {index.keyword(keyword)}")
for entity in ("3 000 euros", "article 700 du code de procédure civile", first.entities[0]):
    print(f"{entity} : {len(index.entity(entity))} décisions")

# %% [markdown]
# ## 4. Second niveau : une décision
#
# Son plan vient de ses titres, de ses numéros et de ses paragraphes ; chaque section est un morceau exact du texte.

# %%
from legal_rag.deep_read import create_multi_doc_env

corpus = create_multi_doc_env(index)
sections = corpus["get_doc_toc"](first.doc_id)["sections"]
for section in sections:
    print(f"{section['start']:6}-{section['end']:6} {section['title']}")
print(f"\n{corpus['read_doc_section'](first.doc_id, sections[-2]['title'])[:400]}")

# %% [markdown]
# ## 5. Une question sur beaucoup de décisions, par les fonctions seules
#
# Quelles sommes en euros les dispositifs fixent-ils, cour par cour ? Les montants sont ceux que les règles ont relevés
# à l'intérieur des dispositifs ; chacun a sa position, que l'on peut relire.

# %%
from collections import defaultdict

sums = defaultdict(list)
for doc_id, meta in corpus["get_doc_metas"]().items():
    ruled = corpus["get_entities"](doc_id, ["dispositif"])
    for amount in corpus["get_entities"](doc_id, ["montant"]):
        inside = any(part["char_start"] <= amount["char_start"] < part["char_end"] for part in ruled)
        if inside and amount["attributes"]["devise"] == "EUR":
            sums[meta["juridiction"]].append((float(amount["attributes"]["valeur"]), doc_id, amount["char_start"]))

# %%
from statistics import median

for court, amounts in sorted(sums.items()):
    highest, doc_id, start = max(amounts)
    middle = median(value for value, _, _ in amounts)
    print(f"{court:36} {len(amounts):3} | médiane {middle:10.2f} | la plus haute {highest:10.2f} ({doc_id}, {start})")

# %% [markdown]
# ## 6. Le même travail, par un programme enfermé
#
# Un programme écrit par un modèle ne court jamais ici : un interpréteur à part (Monty) l'exécute dans un processus sans
# fichier, sans réseau et sans variable d'environnement, qui ne peut qu'appeler les fonctions du corpus.

# %%
from legal_rag.deep_read import Sandbox

COUNT = """
found = grep_corpus(r"article 700 du (?:nouveau )?code de procédure civile", max_docs=None)
print(count(found), "décisions citent l'article 700 ;", search_status()["scanned"], "textes lus")
"""
with Sandbox(corpus.functions) as sandbox:
    for program in (COUNT, "print(open('/etc/passwd').read())", "import socket"):
        result = sandbox.run(program)
        print(result.status, "|", (result.output or result.error or "").strip().splitlines()[-1][:110])

# %% [markdown]
# ## 7. Laisser un modèle écrire les programmes
#
# Le modèle reçoit la question et la liste des fonctions, écrit un programme, lit ce qu'il affiche, et recommence
# jusqu'à sa réponse. Ce qu'il peut coûter au plus est dit avant ; une limite atteinte rend ce qui a été trouvé.

# %%
from dataclasses import replace

from legal_rag.agent import build_language_model, has_endpoint
from legal_rag.deep_read import DEEP_READ_BUDGET, deep_read

endpoint = [GENERATOR_MODEL_ID or None, GENERATOR_API_KEY or None, GENERATOR_API_BASE or None]
asks_a_model = has_endpoint(model=endpoint[0], api_key=endpoint[1], api_base=endpoint[2])
lm = build_language_model(*endpoint) if asks_a_model else None
budget = replace(DEEP_READ_BUDGET, model_calls=MODEL_CALLS)
print("Modèle :", lm.model if lm else "aucun ; donnez une clé ou une adresse dans les réglages")

# %% [markdown]
# Une lecture interrompue reprend où elle s'était arrêtée : les réponses du modèle sont gardées, les programmes rejoués.

# %%
import zlib

from legal_rag.report import event_line

trace = Path(OUTPUT_FOLDER, f"lecture_{zlib.crc32(QUESTION.encode()):08x}.jsonl")
how = {"budget": budget, "trace": trace, "on_start": print}
how["on_event"] = lambda event: print("-", event_line(event))
prediction = deep_read(QUESTION, library=library, lm=lm, **how) if lm else None
print(prediction.answer if prediction else "Sans modèle, voyez les fonctions des parties 3 à 6 : elles y répondent.")

# %% [markdown]
# La réponse avec ses sources, puis la trace : ce que le modèle a pensé, écrit et lu, tour après tour. La suite :
# [vérifier un texte](verifier_un_texte.ipynb), celui-ci ou un autre.

# %%
from legal_rag.report import show_answer

show_answer(prediction, corpus=library) if prediction else print("Pas de rapport : aucun modèle n'a été demandé.")

# %%
from legal_rag.deep_read import read_trace, show_trace

show_trace(read_trace(trace)) if prediction else print("Pas de trace : aucun modèle n'a été demandé.")
