"""The names of French codes, as texts write them."""

from legal_rag.legal_patterns.parts import GAP, SPACE

# The noun that names a code; "le code précité" or "le code prévoit" names none.
_CODE_WORD = (
    "(?:action|artisanat|assurances?|aviation|cinéma|civil|collectivités|commande|commerce|communes|consommation|"
    "construction|déontologie|domaine|douanes|défense|éducation|électoral|énergie|entrée|environnement|expropriation|"
    "famille|fonction|forestier|impositions|impôts|instruments|juridictions|justice|marchés|minier|monétaire|mutualité|"
    "nationalité|navigation|organisation|patrimoine|pêche|pensions|pénal|ports|postes|procédures?|propriété|recherche|"
    "relations|route|rural|santé|sécurité|service|sport|tourisme|transports|travail|urbanisme|voirie)(?!\\w)"
)
_CODE = (
    rf"(?:code|livre des proc[ée]dures){SPACE}(?:g[ée]n[ée]ral{SPACE})?"
    rf"(?:(?:de{SPACE}la|de{SPACE}l['’]|des|du|de|d['’]){GAP})?{_CODE_WORD}"
    rf"(?:{SPACE}(?:(?:et|ou){SPACE})?(?:(?:de{SPACE}la|de{SPACE}l['’]|des|du|de|d['’]|à{SPACE}l['’]){GAP})?"
    rf"(?:{{words}})(?!\w))*"
)
# Words that go on a code's name; any other word after its first noun is the sentence's.
_CODE_WORDS = (
    "administrati(?:f|ve|on|ons)|aériennes?|aide|aménagement|artistes|asile|assurances|civiles?|civils|collectivités|"
    "communications|commande|commerce|construction|consommation|culture|définitive|douanes|droit|électroniques|"
    "étrangers|exécution|familles?|finances|financier|fiscales|forêts?|générale|guerre|habitation|impôts|"
    "industrielle|intellectuelle|invalidité|judiciaire|juridictions|justice|locale|maritime|militaire|mines|mobile|"
    "monétaire|organisation|pêche|pénale|pensions|personnes|politique|postes|privée|procédures?|propriété|public|"
    "publique|publiques|rurale?|santé|séjour|sécurité|sociale?|sociales|solidarité|territoires|territoriales|"
    "utilité|victimes|voirie|routière"
)
CODE_NAME = _CODE.replace("{words}", _CODE_WORDS)
