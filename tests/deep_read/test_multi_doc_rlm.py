"""A folder of texts as a corpus to ask deep questions of."""

import io

import pytest
from support.rlm_scripts import root_model
from support.scripted_server import Reply, ScriptedServer

from legal_rag.deep_read import MultiDocRLM

CONTRACT = "Contrat entre la société Alpha et la société Bêta.\n\nArticle 1 - Objet\nLe prestataire conseille."
LETTER = "De : Mme Durand\nObjet : mise en demeure\n\nVous êtes mis en demeure de payer 1 200 euros sous huit jours."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    texts = tmp_path_factory.mktemp("corpus") / "textes"
    texts.mkdir()
    (texts / "contrat.txt").write_text(CONTRACT, encoding="utf-8")
    (texts / "lettre.txt").write_text(LETTER, encoding="utf-8")
    return texts


@pytest.fixture(scope="module")
def rlm(folder, tiny_encoder):
    script = root_model(["FINAL({'documents': sorted(doc_ids)})"])
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(script) as server:
        patch.setattr("legal_rag.indexer.build.build_encoder", lambda config: tiny_encoder)
        rlm = MultiDocRLM(folder, root_model="m", api_base=server.api_base)
        rlm.build_index(parallel=False, batch_size=1, save_path=folder.parent / "corpus.index")
        yield rlm


def test_a_folder_of_texts_is_indexed_asked_loaded_again_and_its_functions_called_by_hand(rlm, folder):
    prediction = rlm.query("Quels sont les documents ?")
    assert prediction.events[-1].input["value"] == {"documents": ["contrat.txt", "lettre.txt"]}
    index = MultiDocRLM(folder).load_index(folder.parent / "corpus.index")
    assert index.documents["lettre.txt"].file_path == "lettre.txt"
    assert index.entity("1 200 euros") == ["lettre.txt"]
    functions = rlm.environment()
    assert list(functions["grep_corpus"]("mise en demeure")) == ["lettre.txt"]
    assert functions["total_docs"] == 2


def test_a_session_answers_what_is_typed(rlm, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("print(total_docs * 21)\n"))
    rlm.repl()
    assert "42" in capsys.readouterr().out


def test_documents_come_and_go(rlm, tmp_path, tiny_encoder, monkeypatch):
    monkeypatch.setattr("legal_rag.indexer.build.load_encoder", lambda *_, **__: tiny_encoder)
    new = tmp_path / "avenant.txt"
    new.write_text("Avenant au contrat : le prix est porté à 900 euros.", encoding="utf-8")
    index = rlm.add_document(new)
    assert index.total_docs == 3
    assert index.entity("900 euros") == ["avenant.txt"]
    assert rlm.remove_document("avenant.txt").document_ids() == ["contrat.txt", "lettre.txt"]
    with pytest.raises(LookupError, match="no document 'avenant.txt'"):
        rlm.remove_document("avenant.txt")


def test_the_sub_model_describes_the_documents_where_it_is_asked_to(folder):
    said = (
        '{"summary": "Le créancier met le débiteur en demeure de payer sous huit jours.", "title": "Mise en demeure"}'
    )
    with ScriptedServer(lambda prompt, attempt: Reply(said)) as server:
        index = MultiDocRLM(folder, root_model="m", api_base=server.api_base).build_index(parallel=False, by_model=True)
        assert len(server.prompts) == 2
    meta = index.documents["lettre.txt"]
    assert (meta.title, meta.author, meta.doc_type) == ("Mise en demeure", "Mme Durand", "courrier")
    assert index.summary_sources() == {"openai/m": 2}


def test_an_index_is_copied_where_nothing_is(rlm, tmp_path):
    assert rlm.save_index() == rlm.library.path
    copy = rlm.save_index(tmp_path / "copie")
    assert MultiDocRLM(copy).load_index(copy).total_docs == 2
    with pytest.raises(FileExistsError, match="will not overwrite"):
        rlm.save_index(tmp_path / "copie")


def test_without_a_model_the_functions_work_and_questions_are_refused(rlm, no_endpoint):
    bare = MultiDocRLM(rlm.library.path)
    functions = bare.environment()
    assert functions["search_by_entity"]("1 200 euros") == ["lettre.txt"]
    with pytest.raises(ValueError, match="aucun modèle n'est branché"):
        functions["llm_query"]("lis")
    with pytest.raises(ValueError, match=r"no model can be asked \(expected GENERATOR_API_BASE"):
        bare.query("Quels sont les documents ?")


def test_without_an_index_there_is_nothing_to_ask(folder):
    with pytest.raises(FileNotFoundError, match="expected build_index or load_index first"):
        MultiDocRLM(folder, root_model="m", api_base="http://127.0.0.1:9").query("Quoi ?")


def test_a_source_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no corpus at"):
        MultiDocRLM(tmp_path / "rien").build_index()


def test_a_library_keeps_its_place(tiny_library):
    with pytest.raises(ValueError, match="expected no save_path"):
        MultiDocRLM(tiny_library.path).build_index(save_path="ailleurs")
