"""What is run of a root model's reply, and what an answer rests on."""

import pytest

from legal_rag.deep_read.prompts import answer_text
from legal_rag.deep_read.rlm import code_blocks, prose_of


@pytest.mark.parametrize(
    ("reply", "codes"),
    [
        ("Je compte.\n```repl\nprint(1)\n```", ["print(1)"]),
        ("```repl\na = 1\n```\npuis\n```repl\nprint(a)\n```", ["a = 1", "print(a)"]),
        ("```python\nprint(1)\n```", ["print(1)"]),
        ("```\nprint(1)\n```", ["print(1)"]),
        ("```python\nexemple()\n```\n```repl\nprint(2)\n```", ["print(2)"]),
        ("```repl\nprint('coupé')", ["print('coupé')"]),
        ("```json\n{}\n```", []),
        ("```sql\nSELECT 1\n```", []),
        ("docs = list_documents()\nprint(len(docs))", ["docs = list_documents()\nprint(len(docs))"]),
        ("La réponse est 12.", []),
        ("", []),
        ("Oui", []),
        ("```repl\n```", []),
        ("\x00```repl\nprint(1)\n```", []),
    ],
)
def test_code_is_found_in_a_reply_in_the_forms_that_models_write(reply, codes):
    assert code_blocks(reply) == codes


@pytest.mark.parametrize(
    ("reply", "codes"),
    [
        ("FINAL(12)", ["FINAL(12)"]),
        ('Fini.\nFINAL("douze décisions")', ['FINAL("douze décisions")']),
        ("FINAL(douze décisions, en tout)", ["FINAL('douze décisions, en tout')"]),
        ("FINAL(total)", ["FINAL_VAR('total')"]),
        ("FINAL_VAR(total)", ["FINAL_VAR('total')"]),
        ("FINAL_VAR(mes résultats)", ["FINAL_VAR('mes résultats')"]),
        ("```repl\nn = 3\n```\nFINAL(n)", ["n = 3", "FINAL_VAR('n')"]),
        ("FINAL(une réponse\nsur deux lignes)", ["FINAL('une réponse\\nsur deux lignes')"]),
        ("On écrit FINAL(x) à la fin, plus tard.", []),
    ],
)
def test_a_final_call_outside_of_code_is_run_too(reply, codes):
    assert code_blocks(reply) == codes


def test_what_is_said_beside_the_code_is_the_prose():
    assert prose_of("Je compte.\n```repl\nprint(1)\n```\nEt voilà.\nFINAL(1)") == "Je compte.\n\n\nEt voilà."
    assert prose_of("print(len(list_documents()))") == ""


def test_brackets_without_end_are_no_code():
    assert code_blocks("(" * 100_000) == []
    assert code_blocks(f"FINAL({'(' * 100_000})")[0].startswith("FINAL('((((")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("  Une réponse. ", "Une réponse."),
        (12, "12"),
        (2.5, "2,5"),
        (float("nan"), "(rien)"),
        (True, "oui"),
        ([], "(rien)"),
        ({}, "(rien)"),
        (["A", "B"], "- A\n- B"),
        ({"1993": 2, "1994": 3}, "- **1993** : 2\n- **1994** : 3"),
        ([[1993, 2], [1994, 3]], "- 1993, 2\n- 1994, 3"),
        ({"Rejet": ["A", "B", "C", "D"]}, "- **Rejet** :\n  - A\n  - B\n  - C\n  - D"),
        ({"n": None, "docs": []}, "- **n** : (rien)\n- **docs** : (rien)"),
        (["a\nb"], "- a b"),
    ],
)
def test_an_answer_of_a_program_is_written_for_a_reader(value, text):
    assert answer_text(value) == text
