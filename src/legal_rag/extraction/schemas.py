"""Extraction schemas: classes, attributes, prompt and examples, built-in or from a TOML file."""

import hashlib
import json
import os
import re
import tomllib
import unicodedata
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from legal_rag.extraction.entities import CLASSES

_HEAD, _TAIL = 2000, 700  # characters: titles, parties and salutations, then operative part and signatures
_WEIGHTS = {"title": 6, "strong": 3, "weak": 1}  # titles count once, other cues each once
_ENOUGH = 3
# Title, strong and weak cues of each kind of document, in folded letters; ^ is the beginning of a line.
_CUES = {
    "jurisprudence": (
        "^au nom du peuple francais|^la cour de cassation|^le conseil constitutionnel(?:,| a ete saisi)",
        "par ces motifs|au nom du peuple francais|a rendu (?:l'arret|la decision|le jugement)|d e c i d e"
        "|ainsi (?:fait et )?(?:juge|delibere|prononce)|vu la requete|vu le pourvoi|au vu des textes suivants"
        "|present arret|entiers depens|article 700 du|delibere (?:par|dans)|statuant (?:sur|en|au)|attendu que?"
        r"|repertoire general|r\.?g\.?[ :]|nrg[ :]|audience publique|sur le (?:premier |second )?moyen|pourvoi n"
        "|arret n|appel d'une decision|prud'homale|composition de la cour|rendu public le|au pourvoi"
        "|presente decision sera|jugement (?:dont appel|entrepris|defere)",
        "cour de cassation|cour d'appel|conseil d'etat|conseil constitutionnel|appelante?s?|intimee?s?"
        "|demanderesse|defenderesse|pourvoi|greffier|tribunal|condamne|decide|jugement|arret|requete"
        "|vu l(?:'article|es articles|'ordonnance|a loi)|moyen|c/",
    ),
    "correspondence": (
        "^lettre recommandee",
        "^(?:de|a|objet|cc|cci|from|to|subject|sent|envoye|re) ?:|veuillez (?:agreer|recevoir|croire)"
        "|salutations distinguees|sentiments (?:distingues|devoues|les meilleurs)|(?:bien |tres )?cordialement"
        "|meilleures salutations|je vous prie d(?:'agreer|e croire|e recevoir)|bien a vous|votre bien devouee?"
        "|^bonjour|^madame, monsieur,"
        "|^(?:chere?s?|mon cher|ma chere) (?:maitre|monsieur|madame|confrere|consoeur|client)",
        r"^(?:madame|monsieur|maitre)[ \w]{0,30},|^(?:nos|vos|n\.|v\.)/? ?ref|^(?:p\.j\.|pj|date|copie) ?:"
        "|mise en demeure|par la presente|accuse de reception|suite a (?:notre|votre)|lettre recommandee|mail"
        "|votre (?:courrier|lettre)|pieces? jointes?",
    ),
    "corporate": (
        "^(?:extrait du )?proces-verbal d[eu]|^statuts|^decisions? (?:de l'associe|du president|unanime)"
        "|^extrait (?:du )?kbis",
        "proces-verbal (?:de l'assemblee|des? deliberations|des? decisions|de la reunion|du conseil)"
        "|(?:premiere|deuxieme|troisieme|derniere) resolution|resolution n|resolution est adoptee"
        "|resolutions? adoptee|decisions? de l'associee? unique|feuille de presence"
        "|statuts (?:mis a jour|constitutifs|de la societe)|article 1(?:er)? ?[-:.]? ?forme"
        "|assemblee generale (?:ordinaire|extraordinaire|mixte|constitutive)",
        "assemblee generale|resolution|ordre du jour|capital social|siege social|rcs|associes?|actionnaires?"
        "|conseil d'administration|commissaire aux comptes|statuts|gerante?|quorum|denomination sociale"
        "|proces-verbal",
    ),
    "regulation": (
        "^(?:reglement interieur|note de service|charte|livret d'accueil|accord (?:d'entreprise|collectif))"
        "|^guide du salarie",
        "conges payes|titres?[- ]restaurant|tickets?[- ]restaurant|evenements? familia(?:l|ux)"
        "|heures supplementaires|horaires? (?:de travail|collectifs?|variables?|individualises?)|jours? de rtt"
        "|regles applicables au personnel|accord (?:d'entreprise|collectif)|duree du travail|temps de travail"
        "|plages? (?:fixe|mobile|variable)",
        "(?:les|des|aux) salaries|le salarie|du personnel|jours ouvr|anciennete|conges?|rtt|teletravail"
        "|periode d'essai|l'employeur|la direction|hierarchi|absences?|mutuelle|prime|reglement interieur"
        "|note de service",
    ),
    "contract": (
        "^(?:contrat|convention|bail|avenant|protocole|promesse|accord de confidentialite|conditions generales)",
        "entre les soussigne|il (?:a ete|est) (?:prealablement |ensuite |expressement )?(?:expose|arrete|convenu)"
        "|ci-apres (?:denomm|designe|appel)"
        "|(?:le present|au present|du present) (?:contrat|accord|bail|protocole)|la presente convention"
        "|les parties (?:conviennent|declarent|s'engagent)|(?:contrat|bail) est (?:consenti|soumis|regi)"
        "|lu et approuve|exemplaires originaux",
        "d'une part|d'autre part|les parties|(?:aux|des) presentes|loi applicable|force majeure|confidentialite"
        "|resiliation|preavis|tacite reconduction|droit (?:applicable|francais)|prestataire|bailleur|preneur"
        "|cedant|cessionnaire|acheteur|vendeur|concedant|exemplaires|originaux"
        "|contrat de (?:travail|bail|prestation|vente|licence|location)",
    ),
}
SCHEMA_NAMES = tuple(sorted(CLASSES))
_KINDS = {"str": "text", "dict": "a table", "list": "a list of tables"}  # of TOML, as errors name them
RULES = "rules"  # model id of `legal_rag.extraction.rules`
RULES_VERSION = 1  # raise it when the rules find something else: saved results of another version are not used
RULES_SCHEMA = "jurisprudence"
AUTO = "auto"  # `choose_schema` for each document
DEFAULT_MODEL = "gemini-2.5-flash"  # where there is a key for it
KEY_VARIABLE = "LANGEXTRACT_API_KEY"


@dataclass(frozen=True)
class ExampleExtraction:
    """An extraction of an example; `extraction_text` is a verbatim part of its text."""

    extraction_class: str
    extraction_text: str
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Example:
    """A text made up for this purpose, and what a model should find in it, in the order of the text."""

    text: str
    extractions: tuple[ExampleExtraction, ...]


@dataclass(frozen=True)
class Schema:
    """What to look for: the classes of entities, a prompt that explains them, examples that show them."""

    name: str
    version: str  # another one whenever prompt, classes or examples are others: 12 hexadecimal digits
    prompt: str  # with a line for every class
    classes: tuple[str, ...]
    examples: tuple[Example, ...]  # one or more

    def lx_examples(self) -> list[Any]:
        """Return the examples as LangExtract's `ExampleData`."""
        from langextract.data import ExampleData, Extraction

        return [
            ExampleData(
                text=example.text,
                extractions=[
                    Extraction(one.extraction_class, one.extraction_text, attributes=dict(one.attributes) or None)
                    for one in example.extractions
                ],
            )
            for example in self.examples
        ]


@dataclass(frozen=True, kw_only=True)
class ExtractionSettings:
    """How documents are extracted; the key is sent to the model's server only, and never saved."""

    schema_name: str = AUTO  # or a name that `get_schema` knows
    model_id: str = RULES
    api_key: str | None = None
    api_base: str | None = None  # of an OpenAI-compatible server, or Ollama's
    max_char_buffer: int = 2000  # characters in a piece that the model is shown; the rules read whole documents
    extraction_passes: int = 2  # 1 to 5; the rules need one
    max_workers: int = 5  # requests under way at once

    def __post_init__(self) -> None:
        if not 1 <= self.extraction_passes <= 5:
            raise ValueError(f"extraction_passes must be 1 to 5, got {self.extraction_passes}")
        if self.max_char_buffer < 200:
            raise ValueError(f"max_char_buffer must be at least 200 characters, got {self.max_char_buffer}")
        if self.max_workers < 1:
            raise ValueError(f"max_workers must be at least 1, got {self.max_workers}")

    @property
    def schema(self) -> str:
        """Name of the schema; the rules take their own for `AUTO`."""
        return RULES_SCHEMA if (self.model_id, self.schema_name) == (RULES, AUTO) else self.schema_name

    @property
    def passes(self) -> int:
        """Passes over each piece."""
        return 1 if self.model_id == RULES else self.extraction_passes

    def __repr__(self) -> str:
        return f"ExtractionSettings(schema_name={self.schema_name!r}, model_id={self.model_id!r}, …)"


def get_schema(name: str) -> Schema:
    """Return a schema.

    Args:
        name: One of `SCHEMA_NAMES`, or the path of a TOML file (`./mine.toml`) laid out as theirs are.

    Raises:
        ValueError: If there is no schema of that name, or the file is unsound: it has no `prompt`, `classes` or
            `examples`, or an extraction that does not stand in its text, or of a class that is not among `classes`.
        FileNotFoundError: If there is no such file.
    """
    if name in SCHEMA_NAMES:
        return _bundled(name)
    if not name.endswith(".toml"):
        raise ValueError(
            f"no schema named {name!r} (expected one of {', '.join(SCHEMA_NAMES)}, or the path of a .toml file)"
        )
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"no schema file {name} (expected a TOML file with prompt, classes and examples)")
    return _read(path.stem, str(path), path.read_bytes())


def default_model(api_key: str | None = None) -> str:
    """Return the default model: Gemini where there is a key, given or in the environment, else the rules."""
    return DEFAULT_MODEL if api_key or os.environ.get(KEY_VARIABLE) else RULES


def choose_schema(text: str) -> str:
    """Choose the schema of a document, as `auto` does, by cues in its beginning and end; `general` without any."""
    read = _plain(text)
    scores = {name: _score(pattern, read) for name, pattern in _patterns()}
    best = max(scores, key=lambda name: scores[name])  # of equal ones the first, as `_CUES` has them
    return best if scores[best] >= _ENOUGH else "general"


def _plain(text: str) -> str:
    text = text.strip()
    read = text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    letters = unicodedata.normalize("NFKD", read.lower().replace("’", "'")).encode("ascii", "ignore").decode()
    return "\n" + "\n".join(" ".join(words) for line in letters.splitlines() if (words := line.split()))


def _score(pattern: re.Pattern[str], read: str) -> int:
    cues = {(found.lastgroup or "", found.group()[1:]) for found in pattern.finditer(read)}
    kinds = ["title" for kind, _ in cues if kind == "title"][:1] + [kind for kind, _ in cues if kind != "title"]
    return sum(_WEIGHTS[kind] for kind in kinds)


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [(name, _compiled(*cues)) for name, cues in _CUES.items()]


def _compiled(title: str, strong: str, weak: str) -> re.Pattern[str]:
    # A blank may be a line end. A leading character set lets the search skip quickly.
    cues = f"(?P<title>{title})|(?P<strong>{strong})|(?P<weak>{weak})".replace(" ", r"\s").replace("^", r"(?<=\n)")
    return re.compile(rf"[ \n'\"(>*#-](?:{cues})")


@cache
def _bundled(name: str) -> Schema:
    file = f"{name}.toml"
    return _read(name, file, (files("legal_rag.extraction") / "schemas" / file).read_bytes())


@lru_cache(maxsize=16)  # by content: a file of one's own may change between two calls
def _read(name: str, file: str, content: bytes) -> Schema:
    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except ValueError as error:  # no UTF-8, or no TOML
        raise ValueError(f"{file} is no TOML: {str(error).splitlines()[0]}") from error
    task, explained = _taken(table, "prompt", str, file), _taken(table, "classes", dict, file)
    if not all(isinstance(line, str) for line in explained.values()):
        raise ValueError(f"{file}: every class needs its explanation, a string, got {explained!r}")
    rows = enumerate(_taken(table, "examples", list, file), start=1)
    examples = tuple(_example(row, set(explained), f"{file}, example {number}") for number, row in rows)
    prompt = "\n".join([task.strip(), "", *(f"- {one} : {line}" for one, line in explained.items())])
    canonical = json.dumps([prompt, table["examples"]], ensure_ascii=False)
    version = hashlib.sha256(canonical.encode()).hexdigest()[:12]
    return Schema(name, version, prompt, tuple(explained), examples)


def _example(row: Any, classes: set[str], where: str) -> Example:
    text = _taken(row, "text", str, where).strip()
    rows = _taken(row, "extractions", list, where)
    extractions = tuple(_extraction(one, classes, where) for one in rows)
    start, previous = 0, ""
    for one in extractions:
        # Passages may nest, but the same words again are another mention.
        passage = one.extraction_text
        found = text.find(passage, start + (passage == previous))
        if found < 0:
            where_not = "from the extraction ahead of it on" if passage in text else "in the example's text"
            raise ValueError(f"{where}: {passage!r} stands nowhere {where_not} (expected word for word, in its order)")
        start, previous = found, passage
    return Example(text, extractions)


def _extraction(row: Any, classes: set[str], where: str) -> ExampleExtraction:
    of_class, text = _taken(row, "class", str, where), _taken(row, "text", str, where)
    if of_class not in classes:
        raise ValueError(f"{where}: unknown class {of_class!r} (expected one of {', '.join(sorted(classes))})")
    attributes = row.get("attributes", {})
    if not isinstance(attributes, dict) or not all(isinstance(value, str) for value in attributes.values()):
        raise ValueError(f"{where}: attributes of {text!r} must be a table of strings, got {attributes!r}")
    return ExampleExtraction(of_class, text, attributes)


def _taken(table: Any, key: str, kind: type, where: str) -> Any:
    value = table.get(key) if isinstance(table, dict) else None
    if not isinstance(value, kind) or not value or (isinstance(value, str) and value.isspace()):
        raise ValueError(f"{where}: {key!r} must be {_KINDS[kind.__name__]}, not empty, got {value!r}")
    return value
