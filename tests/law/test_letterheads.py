"""What a text says of itself: who wrote it and when, by its first and last lines."""

import pytest

from legal_rag.corpus import read_documents
from legal_rag.law import Letterhead, read_letterhead

MAIL = "De : Claire Rouvière <c@x.example>\nÀ : Service\nObjet : Pièces\nEnvoyé : lundi 14 octobre 2024 09:42\n\nTexte."


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (MAIL, Letterhead("2024-10-14", "Claire Rouvière", is_email=True)),
        (
            "From: <a@b.example>\nTo: c\nSubject: d\nDate: Tue, 4 Feb 2025 09:14:00 +0100",
            Letterhead("2025-02-04", "a@b.example", is_email=True),
        ),
        ("> De : Paul\n> Date : 2024-11-05", Letterhead("2024-11-05", "Paul")),
        ("Auteur : Jean Petit\nDate : 12 mai 2024\n\nNote.", Letterhead("2024-05-12", "Jean Petit")),
        ("Lyon, le 3 mai 1993\n\nMonsieur, votre lettre du 2 avril 1993", Letterhead("1993-05-03")),
        ("Note\n\nle mardi 4 mai 1993.\n\nTexte", Letterhead("1993-05-04")),
        ("BAIL du 2 mai 2001\nFait en deux exemplaires à Vienne, le 3 mai 2001, sur 4 p.", Letterhead("2001-05-03")),
        ("Signé le 1er juin 2001\nAvenant\nFait à Lyon, le 2 juin 2002", Letterhead("2002-06-02")),
        ("COUR DE CASSATION\n\nAudience publique du 8 novembre 2023\nRejet", Letterhead("2023-11-08")),
        ("Jugement du tribunal judiciaire de Lyon du 8 novembre 2023 RG 1", Letterhead("2023-11-08")),
        (
            "Délibéré par le Conseil dans sa séance du 29 mai 1993, où siégeait M. X.\nRendu public le 1er juin 1993.",
            Letterhead("1993-06-01"),
        ),
        ("Vu la loi.\nAinsi jugé, et prononcé à l'audience publique du 8 mai 2023", Letterhead("2023-05-08")),
        ("ENTRE LES SOUSSIGNÉES :\n- La société Alpha, SAS", Letterhead("", "La société Alpha")),
        ("Entre les soussignés : d'une part, M. Paul Esnault (le bailleur)", Letterhead("", "M. Paul Esnault")),
        (f"BAIL\n{'Le preneur paie. ' * 5000}\nFait à Lyon, le 12 novembre 2024", Letterhead("2024-11-12")),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)  # fmt: skip
def test_a_text_says_who_wrote_it_and_when(text, read):
    assert read_letterhead(text) == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Le contrat a été signé hier, entre les parties.",
        "Attendu que l'arrêt attaqué a été rendu le 3 mai 1993 ;",
        "Date : hier\nEnvoyé : Tue, 99 Feb 2025",
        "Fait à Lyon, le 31 février 2024",
        f"{'x ' * 1000}\nArrêt n° 12 du 3 mai 1993",
        "De :\nDate :",
        "Entre les soussignés",
    ],
)
def test_what_a_text_does_not_say_is_empty(text):
    assert read_letterhead(text) == Letterhead()


def test_real_decisions_say_their_own_date(shared_decisions):
    read = [(read_letterhead(one.content).date, one.decision_date) for one in shared_decisions[::8]]
    found = [day == date for day, date in read if day]
    assert len(found) > 0.9 * len(read)
    assert sum(found) > 0.99 * len(found)


def test_a_file_of_html_is_read_as_what_it_shows_and_a_row_gets_no_date_from_its_text(tmp_path):
    (tmp_path / "a.html").write_text(f"<p>{MAIL}</p>".replace("\n", "<br/>").replace("<c@", "&lt;c@"), encoding="utf-8")
    (one,) = read_documents(tmp_path)
    assert (one.decision_date, one.extra) == ("2024-10-14", {"author": "Claire Rouvière", "nature": "courriel"})
    (one,) = read_documents([{"id": "a", "content": MAIL}])
    assert (one.decision_date, one.extra) == ("", {})
