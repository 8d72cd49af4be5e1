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
# # Suivre un article
#
# Carnet 8 sur 8, après [explorer le graphe](explorer_le_graphe.ipynb). Un article change, des décisions l'appliquent,
# chacune dans la version de son temps : lire celle d'un jour, voir ce que chacune a changé, qui l'applique, et tenir
# l'index à jour.

# %% [markdown]
# ## Réglages
#
# Laissez `INDEX` vide pour essayer sans réseau, sur trois versions et six décisions fictives, écrites plus bas. Un
# index à vous contient les versions d'un code et des décisions : les archives LEGI et CASS de la DILA se lisent telles
# quelles.

# %%
PACKAGE = ""  # @param {type:"string"}
INDEX = ""  # @param {type:"string"}
ARTICLE = "article L. 1233-4 du code du travail"  # @param {type:"string"}
DAY = "2016-03-01"  # @param {type:"string"}
OUTPUT_FOLDER = "veille_output"  # @param {type:"string"}

# %% [markdown]
# ## 1. Installer
#
# Là où le paquet manque, sur Colab par exemple, il vient de `PACKAGE`, sinon d'une copie du dépôt ou de ce que nomme
# `LEGAL_RAG_SOURCE`. Avant d'installer, la cellule dit ce qui changerait de ce qui est déjà là.

# %% jupyter={"source_hidden": true}
# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["legal-rag[eval]"]
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
pip = [sys.executable, "-m", "pip", "install", "-q", f"legal-rag[eval] @ {address}"]
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
# ## 2. Les versions
#
# Chaque version d'un article est un document, avec les jours de son entrée en vigueur (`valid_from`) et de sa fin
# (`valid_until`, exclu). Ces textes sont fictifs.

# %%
days = ["2008-05-01", "2015-08-08", "2017-09-24", ""]
texts = [
    "L'employeur reclasse le salarié dans les entreprises du groupe. L'offre est écrite et précise.",
    "L'employeur reclasse le salarié sur le territoire national, dans les entreprises du groupe. L'offre est écrite.",
    "L'employeur reclasse le salarié sur le territoire national, dans les entreprises du groupe dont il fait partie.",
]
of_all = {"title": "Code du travail, article L1233-4", "number": "L1233-4", "article_id": "LEGIARTI000000000001"}
in_code = {**of_all, "text_title": "Code du travail", "nature": "CODE"}
ids = [f"LEGIARTI00000000000{number}" for number in (1, 2, 3)]
versions = [{**in_code, "id": one, "content": text} for one, text in zip(ids, texts, strict=True)]

# %%
for version, first, until in zip(versions, days, days[1:], strict=False):
    version |= {"valid_from": first, "valid_until": until, "state": "MODIFIE" if until else "VIGUEUR"}

# %% [markdown]
# Des décisions qui l'appliquent ; deux disent dans quelle rédaction.

# %%
said = {
    "2010-06-02": "l'article L. 1233-4 du code du travail",
    "2013-11-20": "l'article L. 1233-4 du code du travail",
    "2016-05-11": "l'article L. 1233-4 du code du travail",
    "2018-02-07": "l'article L. 1233-4 du code du travail, dans sa rédaction issue de la loi du 6 août 2015",
    "2019-01-16": "l'article L. 1233-4 du code du travail",
    "2020-09-23": "l'article L. 1233-4 du code du travail, dans sa rédaction applicable au 1er juin 2016",
}
court = {"juridiction": "Cour de cassation", "formation": "Chambre sociale", "solution": "Rejet"}
decisions = [{**court, "id": f"ARRET-{day}", "decision_date": day, "content": f"Vu {s} ;"} for day, s in said.items()]

# %%
import legal_rag as lr
from legal_rag.library.library import is_library

folder = Path(OUTPUT_FOLDER, "sample")
index = INDEX or (folder if is_library(folder) else lr.build([*versions, *decisions], folder, n_bits=0).path)
library = lr.open(index)
print(len(library), "documents")

# %% [markdown]
# ## 3. L'article au jour dit
#
# Le texte en vigueur ce jour-là. La recherche le voit de même : `lr.search(library, "reclassement", at=DAY)`.

# %%
from datetime import date

from legal_rag.library import version_at

document = version_at(ARTICLE, date.fromisoformat(DAY), library)
print(f"{document.id}, {document.force.in_french} :\n{document.content}")

# %% [markdown]
# ## 4. Ce que chaque version a changé
#
# Les mots retirés entre crochets et traits, les mots ajoutés entre crochets et croix.

# %%
from legal_rag.library import versions_of

for version in versions_of(ARTICLE, library):
    print(f"{version.document.id}, {version.document.force.in_french}")
    for lead, before, after in version.changes:
        print("   …", lead, f"[-{before}-]" * bool(before), f"[+{after}+]" * bool(after))

# %% [markdown]
# ## 5. Qui l'applique, dans quelle version
#
# Une décision vise la rédaction qu'elle date, sinon celle de son jour.

# %%
from legal_rag.graph.applications import RULES_IN_FRENCH, applications

held, found = applications(library.graph, ARTICLE)
for one in found:
    print(f"{one.edge.source.name} : {one.doc_id or 'aucune version'}, {RULES_IN_FRENCH[one.rule]}")

# %% [markdown]
# ## 6. Voir
#
# Une ligne par version, le temps où elle est en vigueur ; un point par décision qui l'applique. Un point hors de sa
# ligne est une décision sur des faits plus anciens.

# %%
from matplotlib.dates import date2num
from matplotlib.figure import Figure

figure = Figure(figsize=(10, 3), layout="constrained")
axes, rows = figure.subplots(), {version.doc_id: row for row, version in enumerate(held)}
for version, row in zip(held, rows.values(), strict=True):
    first, until = date2num(version.force.first), date2num(min(version.force.until, date(2021, 1, 1)))
    axes.barh(row, until - first, left=first, height=0.4, color="lightsteelblue")

# %%
from IPython.display import Image, display

from legal_rag.evaluation import save_plot

on_version = [(date.fromisoformat(one.edge.source.decision_date), rows[one.doc_id]) for one in found if one.doc_id]
axes.plot(*zip(*on_version, strict=True), "o", color="firebrick")
axes.set_yticks(list(rows.values()), [f"{one.doc_id}\n{one.force.in_french}" for one in held], fontsize=7)
axes.set(title=ARTICLE)
axes.xaxis_date()
save_plot(figure, picture := Path(OUTPUT_FOLDER, "versions.png"))
display(Image(picture.read_bytes()))

# %% [markdown]
# ## 7. Tenir à jour
#
# Un lot apporte une décision, et en retire une autre : rien de celle-ci ne reste dans l'index. En ligne de commande,
# `legal-rag update` prend les lots de la DILA tels qu'ils arrivent. C'était le dernier carnet :
# [le premier](../demo.ipynb) pose les questions.

# %%
from legal_rag.indexer import IndexConfig, update_library

place = IndexConfig(index_folder=str(library.path.parent), index_name=library.path.name)
new = {**decisions[0], "id": "ARRET-2021-03-17", "decision_date": "2021-03-17"}
if not INDEX:
    report = update_library(place, [[new]], removed=["ARRET-2013-11-20"])
    print("Nouveau :", *report.added, "- retiré :", *report.removed)

# %%
library = library.reload()
print(len(library), "documents :", ", ".join(one.edge.source.name for one in applications(library.graph, ARTICLE)[1]))
