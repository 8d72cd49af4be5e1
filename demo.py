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
# Posez une question de droit en français : la réponse cite mot pour mot les décisions sur lesquelles elle repose, et
# chaque citation est vérifiée dans leur texte. Sans modèle de langage, la réponse n'est faite que de passages cités.

# %% [markdown]
# ## Réglages
#
# Laissez tout vide pour essayer sans clé ni réseau, sur soixante décisions fictives livrées avec le projet. `SEARCH_K`
# est le nombre de passages que rend chaque recherche du modèle, `MAX_STEPS` celui de ses étapes.

# %%
GENERATOR_MODEL_ID = ""  # @param ["", "mistralai/Magistral-Small-2509", "Qwen/Qwen3-4B"] {allow-input: true}
GENERATOR_API_BASE = ""  # @param ["", "http://127.0.0.1:8000/v1", "http://127.0.0.1:11434/v1"] {allow-input: true}
GENERATOR_API_KEY = ""  # @param {type:"string"}
INDEX = ""  # @param {type:"string"}
ENCODER = ""  # @param {type:"string"}
INSTRUCTIONS = ""  # @param ["", "jurisprudence", "constitutionnel", "code_du_travail"]
SEARCH_K = 5  # @param {type:"integer"}
TEMPERATURE = 0.2  # @param {type:"number"}
MAX_STEPS = 10  # @param {type:"integer"}
OUTPUT_FOLDER = "demo_output"  # @param {type:"string"}

# %% [markdown]
# Un modèle peut noter à la fin de sa réponse, en balises que personne ne voit, qui et quoi les décisions lient : sans
# autre appel, le graphe de l'index les reçoit, rapportées aux textes lus. `TAG_THRESHOLD` écarte les notes dont le
# modèle lui-même n'est pas sûr.

# %%
SINGLE_PASS_EXTRACTION = True  # @param {type:"boolean"}
TAG_THRESHOLD = 0.7  # @param {type:"slider", min:0, max:1, step:0.05}

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

PUBLISHED, PUBLISHED_INDEX = "", ""  # les adresses du paquet et d'un index, quand ils seront publiés
clone = next((str(folder) for folder in (Path(), Path("..")) if (folder / "src" / "legal_rag").is_dir()), "")
source = os.environ.get("LEGAL_RAG_SOURCE") or clone or PUBLISHED
print("Source du paquet, s'il manque :", source or "aucune")

# %%
found = importlib.util.find_spec("legal_rag")
if found is None or found.origin is None:  # un reste d'une version retirée n'est pas le paquet
    missing = "Le paquet n'est pas publié : placez-vous dans une copie du dépôt, ou nommez-la par LEGAL_RAG_SOURCE."
    assert source, missing
    address = source if "://" in source else Path(source).resolve().as_uri()
    pip = [sys.executable, "-m", "pip", "install", "-q", f"legal-rag[agent,datasets,langextract] @ {address}"]
    subprocess.run(pip, check=True)
    importlib.invalidate_caches()
print("Paquet :", importlib.util.find_spec("legal_rag").origin)

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
# ## 3. Préparer l'index
#
# `INDEX` est l'adresse d'un zip, son chemin, ou un dossier (de Drive, par exemple) ; `ENCODER` de même, ou le nom d'un
# modèle de Hugging Face. Sans `INDEX`, un index des décisions fictives est construit ici, en une minute environ.

# %%
from legal_rag.assets import prepare_assets
from legal_rag.encoder import EncoderConfig
from legal_rag.indexer import IndexConfig, build_index

Path(OUTPUT_FOLDER).mkdir(parents=True, exist_ok=True)
assets = prepare_assets(ENCODER or None, INDEX or PUBLISHED_INDEX or None, OUTPUT_FOLDER)
encoder_config = EncoderConfig(name=str(assets.encoder or "auto"))
index = assets.index or Path(OUTPUT_FOLDER, "sample")
print("Index :", index)

# %%
config = IndexConfig(source="sample", encoder=encoder_config, index_folder=OUTPUT_FOLDER, index_name="sample")
report = None if assets.index else build_index(config)
print(f"Index construit en {report.seconds['total']:.0f} s" if report else "Index fourni : rien à construire")

# %% [markdown]
# ## 4. Construire l'agent
#
# L'agent cherche dans l'index, lit les décisions, répond et cite. Ses consignes peuvent être échangées avec l'index.

# %%
from legal_rag.encoder import build_encoder
from legal_rag.library import Library

encoder = build_encoder(encoder_config) if ENCODER else None
corpus = Library(index)
counts, name = corpus.manifest["counts"], corpus.manifest["encoder"]["name"]
print(f"{counts['documents']} décisions, {counts['chunks']} passages, encodeur : {name}, dans {corpus.path}")

# %%
from legal_rag.agent import Budget, build_agent, default_instructions
from legal_rag.deep_read import deep_read_tool

marks = {"single_pass_extraction_enabled": SINGLE_PASS_EXTRACTION, "extraction_confidence_threshold": TAG_THRESHOLD}
settings = {"instructions": default_instructions(INSTRUCTIONS) if INSTRUCTIONS else None, "search_k": SEARCH_K}
tools = {"extra_tools": [deep_read_tool], "budget": Budget(steps=MAX_STEPS)}
agent = build_agent(corpus, encoder=encoder, lm=lm, **settings, **tools, **marks)
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
    print(f"{citation.doc_id}, caractères {citation.char_start} à {citation.char_end} : {citation.status}, {identical}")

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

show_outline(corpus, doc_ids[0]) if doc_ids else print("Aucune décision n'est citée.")

# %% [markdown]
# Ce que des règles y relèvent, à des positions tout aussi exactes : dates, montants, articles, parties… Le carnet
# `extraire_les_entites` le fait pour tout un corpus, et sait interroger un modèle.

# %%
from legal_rag.extraction import run_extraction

for doc_id in doc_ids[:1]:
    cited = corpus.document(doc_id)
    extraction = run_extraction(cited.content, cited.id, schema_name="jurisprudence", model_id="rules")
    for entity in extraction.extractions[:12]:
        start, end = entity["char_start"], entity["char_end"]
        print(f"{entity['extraction_class']:16} {start:5}-{end:5}  {' '.join(cited.content[start:end].split())[:80]}")

# %% [markdown]
# Ce que le graphe de l'index en sait : ce qu'elle cite et applique, qui l'a rendue, qui y est partie, qui la cite ; et
# où le texte le dit. N'y figurent que des faits tirés des textes, non les liens qu'un modèle a proposés.

# %%
from legal_rag.graph import EDGE_TYPES, KnowledgeGraph

linked = doc_ids[:1] if (corpus.path / "graph.sqlite").is_file() else []  # un index ancien peut n'en avoir aucun
for doc_id in linked:
    for edge in KnowledgeGraph(corpus).neighbours(doc_id)[:15]:
        ends = f"{edge.source.name[-45:]:45}  {EDGE_TYPES[edge.type]:20}  {edge.target.name[-45:]:45}"
        place = f"{edge.char_start}-{edge.char_end}" if edge.char_start >= 0 else "métadonnées"
        print(f"{ends}  {edge.doc_id}, {place}")

# %% [markdown]
# ## 6. Lire en profondeur
#
# « Combien de décisions… » : quelques passages n'y répondent pas. Un modèle lit alors tout le corpus, par des
# programmes enfermés, et dit d'où vient sa réponse ; le carnet `lecture_profonde` montre comment. Viennent ensuite les
# thèmes du corpus, pour lesquels il ne faut pas de modèle.

# %%
from legal_rag import deep_read
from legal_rag.corpus_index import CorpusIndex, has_corpus_index

DEEP_QUESTION = "Combien de décisions déclarent un candidat inéligible, et lesquelles ?"
known = has_corpus_index(corpus)  # un index peut être construit sans
show = {"on_event": lambda event: print("-", event_line(event))}
counted = deep_read.deep_read(DEEP_QUESTION, library=corpus, lm=lm, **show) if lm and known else None
print(counted.answer if counted else "Pas de lecture profonde : il y faut un modèle, et un index construit ici.")
for topic, ids in CorpusIndex.open(corpus).topics.items() if known else ():
    print(f"{len(ids):4} {topic}")

# %% [markdown]
# ## 7. Vérifier un texte
#
# N'importe quel texte : chaque décision, article ou citation qu'il contient est confirmé, faux (avec ce qui est juste)
# ou absent de l'index. Ici la première réponse, suivie d'une référence inventée.

# %%

from legal_rag.verification import show_verification, verify_text

draft = f"{predictions[0].answer}\n\nCass. soc., 9 janv. 2018, n° 16-99.999, l'aurait confirmé."
show_verification(verify_text(draft, corpus))

# %% [markdown]
# Les réponses, à garder ou à partager.

# %%
answers = Path(OUTPUT_FOLDER, "reponses.md")
answers.write_text("\n\n".join(f"## {p.question}\n\n{p.answer}" for p in predictions) + "\n", encoding="utf-8")
page = Path(OUTPUT_FOLDER, "reponse.html")
page.write_text(render_answer(predictions[0], corpus), encoding="utf-8")
print("Réponses enregistrées dans", answers, "et", page)
