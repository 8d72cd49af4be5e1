"""The rules find the piece in any prompt of LangExtract's."""

import pytest
from langextract.core.format_handler import FormatHandler
from langextract.data import ExampleData, Extraction, FormatType
from langextract.prompting import PromptTemplateStructured, QAPromptGenerator

from legal_rag.extraction.grounding import piece_of

PLAIN = ("Le 3 mai 1993.", "3 mai 1993")
ASKING = ('Q: qui ?\nA: {"extractions": []}\n\nQ: et le 4 mai 1993 ?\nA: rien', "4 mai 1993")


@pytest.mark.parametrize("form", [FormatType.JSON, FormatType.YAML])
@pytest.mark.parametrize("fences", [True, False])
@pytest.mark.parametrize("examples", [[], [PLAIN], [PLAIN, PLAIN], [ASKING], [ASKING, PLAIN]])
@pytest.mark.parametrize(
    "piece",
    ["", "Le 5 mai.", "Q: qui ?", "Q: qui ?\nA: moi", "A: \n", '\n\nA: {"extractions": []}', "```json\n{}\n```", "Q: "],
)
def test_the_piece_is_found_in_any_prompt_of_langextracts(form, fences, examples, piece):
    shown = [ExampleData(text, [Extraction("date", found, attributes={"a": "Q: b\nA: c"})]) for text, found in examples]
    template = PromptTemplateStructured("Trouvez les dates.\n", shown)
    prompt = QAPromptGenerator(template, FormatHandler(form, use_fences=fences)).render(piece, "Avant : rien.")
    assert piece_of(prompt) == piece


@pytest.mark.parametrize("prompt", ["", "Bonjour", "A: ", "QQ: a\nA: "])
def test_what_is_no_prompt_of_langextracts_is_refused(prompt):
    with pytest.raises(ValueError, match="not a prompt of LangExtract's"):
        piece_of(prompt)
