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
# # Interroger des décisions de justice
#
# Carnet 1 sur 8. Posez une question de droit en français : la réponse cite mot pour mot les décisions sur lesquelles
# elle repose, et chaque citation est vérifiée dans leur texte. Sans modèle de langage, la réponse n'est faite que de
# passages cités.
#
# Ensuite : [générer des questions](notebooks/generer_des_questions.ipynb) sur le même corpus.

# %% [markdown]
# ## Réglages
#
# Laissez tout vide pour essayer sans clé ni réseau, sur soixante décisions fictives livrées avec le projet. `INDEX` est
# un dossier, ou l'adresse d'un zip ; `DATASET`, le jeu de données d'un index de PyLate qui ne le nomme pas.

# %%
PACKAGE = ""  # @param {type:"string"}
GENERATOR_MODEL_ID = ""  # @param ["", "mistralai/Magistral-Small-2509", "Qwen/Qwen3-4B"] {allow-input: true}
GENERATOR_API_BASE = ""  # @param ["", "http://127.0.0.1:8000/v1", "http://127.0.0.1:11434/v1"] {allow-input: true}
GENERATOR_API_KEY = ""  # @param {type:"string"}
INDEX = ""  # @param {type:"string"}
DATASET = ""  # @param {type:"string"}
ENCODER = ""  # @param {type:"string"}
INSTRUCTIONS = ""  # @param ["", "jurisprudence", "constitutionnel", "code_du_travail"]
OUTPUT_FOLDER = "demo_output"  # @param {type:"string"}

# %% [markdown]
# Un modèle peut noter à la fin de sa réponse, en balises que personne ne voit, qui et quoi les décisions lient : sans
# autre appel, le graphe de l'index les reçoit, rapportées aux textes lus. `TAG_THRESHOLD` écarte les notes dont le
# modèle lui-même n'est pas sûr ; `SEARCH_K` est le nombre de passages que rend une recherche.

# %%
SEARCH_K = 5  # @param {type:"integer"}
TEMPERATURE = 0.2  # @param {type:"number"}
MAX_STEPS = 10  # @param {type:"integer"}
SINGLE_PASS_EXTRACTION = True  # @param {type:"boolean"}
TAG_THRESHOLD = 0.7  # @param {type:"slider", min:0, max:1, step:0.05}

# %% [markdown]
# ## 1. Installer
#
# Là où le paquet manque, sur Colab par exemple, il vient de `PACKAGE`, sinon d'une copie du dépôt ou de ce que nomme
# `LEGAL_RAG_SOURCE`. Avant d'installer, la cellule dit ce qui changerait de ce qui est déjà là.

# %% jupyter={"source_hidden": true}
# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["legal-rag[agent,datasets,langextract]"]
#
# [tool.uv.sources]
# legal-rag = { path = "." }
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
pip = [sys.executable, "-m", "pip", "install", "-q", f"legal-rag[agent,datasets,langextract] @ {address}"]
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
# ## 2. Choisir le modèle de langage
#
# Un modèle du routeur Hugging Face (par sa clé) ou tout serveur compatible avec OpenAI (par son adresse). Sans l'un ni
# l'autre, les passages les plus proches tiennent lieu de réponse. Une courte demande vérifie adresse, clé et nom.

# %%
from legal_rag.agent import has_endpoint

lm, endpoint = None, {"api_key": GENERATOR_API_KEY or None, "api_base": GENERATOR_API_BASE or None}
if has_endpoint(**endpoint, model=GENERATOR_MODEL_ID):
    from legal_rag.agent import build_language_model, check_model

    lm = build_language_model(GENERATOR_MODEL_ID, **endpoint, temperature=TEMPERATURE)
    assert (problem := check_model(lm)) is None, problem
print("Modèle interrogé :", lm.model if lm else "aucun, les passages seront cités tels quels")

# %% [markdown]
# ## 3. Construire l'index
#
# `INDEX` et `ENCODER` sont l'adresse d'un zip, son chemin, ou un dossier (de Drive, par exemple) ; `ENCODER`, aussi le
# nom d'un modèle de Hugging Face. Sans `INDEX`, un index des décisions fictives est construit ici, avec ses entités, en
# une minute environ ; la première fois, l'encodeur est d'abord converti, en une demi-minute.

# %%
from legal_rag.assets import prepare_assets
from legal_rag.encoder import EncoderConfig

Path(OUTPUT_FOLDER).mkdir(parents=True, exist_ok=True)
assets = prepare_assets(ENCODER or None, INDEX or None, OUTPUT_FOLDER)
index = assets.index or Path(OUTPUT_FOLDER, "sample")
encoder_config = EncoderConfig(name=str(assets.encoder or "auto"))
print("Index :", index)

# %% [markdown]
# Un index de PyLate n'a pas les textes : il devient ici un index complet, avec ceux de son jeu de données.

# %%
from legal_rag.indexer import IndexConfig, import_pylate
from legal_rag.library.library import is_library

if assets.index and not is_library(index):
    form = {"source": DATASET or None, "index_folder": OUTPUT_FOLDER, "index_name": "pylate"}
    index = Path(import_pylate(index, IndexConfig(encoder=encoder_config, **form)).path)
print("Index fourni" if assets.index else "Aucun index fourni : celui des décisions fictives")

# %%
import legal_rag as lr

corpus = lr.open(index) if is_library(index) else lr.build("sample", index, encoder=encoder_config.name)
counts, name = corpus.manifest["counts"], corpus.manifest["encoder"]["name"]
print(f"{counts['documents']} décisions, {counts['chunks']} passages, encodeur : {name}")

# %% [markdown]
# L'index se cherche déjà : par les mots et par le sens, les passages les plus proches d'une question.

# %%
lr.search(corpus, "compte de campagne déposé en retard", k=3)

# %% [markdown]
# ## 4. Construire l'agent
#
# L'agent cherche dans l'index, lit les décisions, répond et cite. Ses consignes peuvent être échangées avec l'index.

# %%
from legal_rag.agent import Budget, build_agent, default_instructions
from legal_rag.deep_read import deep_read_tool
from legal_rag.encoder import build_encoder

marks = {"single_pass_extraction_enabled": SINGLE_PASS_EXTRACTION, "extraction_confidence_threshold": TAG_THRESHOLD}
settings = {"instructions": default_instructions(INSTRUCTIONS) if INSTRUCTIONS else None, "search_k": SEARCH_K}
settings |= {"encoder": build_encoder(encoder_config) if ENCODER else None, "budget": Budget(steps=MAX_STEPS)}
agent = build_agent(corpus, lm=lm, extra_tools=[deep_read_tool], **settings, **marks)
print("Agent :", type(agent).__name__, "- modèle interrogé :", lm.model if lm else "aucun")

# %% [markdown]
# ## 5. Poser des questions
#
# Chaque question étape par étape, pendant que l'agent travaille : ce qu'il cherche, lit et vérifie, puis sa réponse. La
# troisième n'a rien à voir avec le corpus : l'agent doit le dire plutôt que de citer n'importe quoi.

# %%
QUESTIONS = [
    "Un candidat qui dépose son compte de campagne en retard peut-il être déclaré inéligible ?",
    "Un chirurgien doit-il avertir une chanteuse d'un danger peu fréquent de l'opération pour sa voix ?",
    "Quelle est la recette de la pâte à brioche ?",
]
predictions = []
print(len(QUESTIONS), "questions")

# %%
from legal_rag.report import event_line

for question in QUESTIONS:
    print("\n===", question, end="\n\n")
    with agent.stream(question) as stream:
        for event in stream:
            print("-", event_line(event))
    predictions.append(stream.prediction)
    print("", *filter(None, (predictions[-1].notice, predictions[-1].answer)), sep="\n")

# %% [markdown]
# Une question peut en suivre une autre : `history` reçoit les réponses d'avant, que le modèle relit. Ce qui ne se
# comprend pas seul est cherché avec la question précédente.

# %%
FOLLOW_UP = "Et si le retard n'est que de quelques jours ?"
following = agent(FOLLOW_UP, history=predictions[:1])
print(FOLLOW_UP, *filter(None, (following.notice, following.answer)), sep="\n\n")

# %% [markdown]
# La première réponse en une page : un clic sur une citation mène à son passage, dans la décision ouverte à côté ; un
# signe et des mots disent ce qui a été contrôlé.

# %%
from legal_rag.report import render_answer, show_answer

show_answer(predictions[0], corpus=corpus)

# %% [markdown]
# ## 6. Contrôler
#
# Les outils que chaque réponse a demandés, avec leurs paramètres et ce qu'ils ont rendu, dans la forme de DSPy.

# %%
for prediction in predictions:
    print("\n===", prediction.question, end="\n\n")
    for name, value in prediction.trajectory.items():
        print(f"{name:14} {' '.join(str(value).split())[:110]}")

# %% [markdown]
# Chaque citation se vérifie : le texte de la décision, à ces positions, est le passage cité.

# %%
from legal_rag.report.lines import citations_in_french

print(citations_in_french(predictions[0].citation_counts) or "aucune citation")
for citation in predictions[0].citations:
    content = corpus.document(citation.doc_id).content
    identical = content[citation.char_start : citation.char_end] == citation.quote
    place = f"{citation.doc_id}, caractères {citation.char_start} à {citation.char_end}"
    print(f"{place} : {citation.status_in_french}, {identical}")

# %% [markdown]
# La première décision citée, telle que l'outil de lecture la montre : d'où elle vient, ce qu'elle a jugé, son texte.

# %%
from legal_rag.tools import lookup_legal_doc

doc_ids = [citation.doc_id for prediction in predictions for citation in prediction.citations]
print(lookup_legal_doc(doc_ids[0], corpus)[:1200] if doc_ids else "Aucune décision n'est citée.")

# %% [markdown]
# La même décision à côté de son plan : une décision rapporte ce que d'autres ont soutenu ou jugé avant de dire ce
# qu'elle juge. Des règles disent, en toutes lettres et en couleur, qui parle : la juridiction, une partie, la décision
# attaquée (censurée ou non), un texte cité.

# %%
from legal_rag.report import show_outline
from legal_rag.report.outline import format_outline

print(format_outline(corpus, doc_ids[0]) if doc_ids else "Aucune décision n'est citée.")
show_outline(corpus, doc_ids[0]) if doc_ids else None

# %% [markdown]
# Les réponses, à garder ou à partager. La suite : [générer des questions](notebooks/generer_des_questions.ipynb), pour
# mesurer ce que vaut la recherche.

# %%
answers = Path(OUTPUT_FOLDER, "reponses.md")
answers.write_text("\n\n".join(f"## {p.question}\n\n{p.answer}" for p in predictions) + "\n", encoding="utf-8")
page = Path(OUTPUT_FOLDER, "reponse.html")
page.write_text(render_answer(predictions[0], corpus), encoding="utf-8")
print("Réponses enregistrées dans", answers, "et", page)
