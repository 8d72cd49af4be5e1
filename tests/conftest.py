"""What several test files share: real data where there is some, a small real encoder, a Library of the sample."""

import base64
import hashlib
import json
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings
from support import model_variables
from support.headless_browser import HeadlessBrowser
from support.html_pages import Page

import legal_rag
from legal_rag.agent import doubt
from legal_rag.cli import main
from legal_rag.corpus import Document, read_documents
from legal_rag.encoder import ColbertEncoder, build_encoder, bundled_encoder
from legal_rag.evaluation import install_trec_eval
from legal_rag.indexer import IndexConfig, build_index, open_index
from legal_rag.library import Library
from legal_rag.library.manifest import record_checksums
from legal_rag.retriever import Retriever

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # litellm would try the network at import
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # vectors and backends are compared with the processor's
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers share the processors
os.environ["DSPY_CACHEDIR"] = tempfile.mkdtemp(prefix="replies-")  # never the user's own replies
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in a shell's background ignores

settings.register_profile(  # neither the machine's load nor the draw of a day decides
    "steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("steady")

LONGEST_FIRST = (  # the files that take a worker longest; the others follow in their order
    "end_to_end/test_demo.py",
    "indexer/test_ray.py",
    "indexer/test_resume.py",
    "retriever/test_ray.py",
    "library/test_plaid.py",
    "encoder/test_encoder.py",
    "encoder/test_openvino.py",
    "evaluation/test_questions.py",
    "indexer/test_updates.py",
)
SAMPLE = Path(legal_rag.__file__).parent / "corpus" / "sample"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, so that no worker begins one when the others are done; a browser is slow."""
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def no_question_is_off_topic_to_random_weights() -> Iterator[None]:
    """Let the small encoder answer every question: its random weights tell none from another."""
    measure = doubt._measure_background

    def measured(retriever: Retriever) -> doubt.Background:
        is_random = retriever.encoder.identity.dim < 128
        return (
            doubt.Background(doubt.Signs(-1.0, -1.0, 0.0), doubt.Signs(1.0, 1.0, 1.0))
            if is_random
            else measure(retriever)
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doubt, "_measure_background", measured)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Leave files to the system's cache: a kill does not undo what was written, only a power cut would."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real decisions and questions, or skip."""
    folder = os.environ.get("LEGAL_RAG_DATA")
    if not folder:
        pytest.skip("LEGAL_RAG_DATA names no folder of real decisions")
    return Path(folder)


@pytest.fixture(scope="session")
def shared_decisions(shared_data: Path) -> tuple[Document, ...]:
    """Read the real decisions, once for all tests."""
    return tuple(read_documents(shared_data / "decisions.jsonl.gz"))


@pytest.fixture(scope="session")
def sample_file() -> Path:
    """Return the file of the sample corpus: sixty decisions made up for this project."""
    return SAMPLE / "decisions.jsonl"


@pytest.fixture(scope="session")
def sample_rows(sample_file: Path) -> list[dict]:
    """Return the sample's rows as they stand in its file."""
    return [json.loads(line) for line in sample_file.read_text("utf-8").splitlines()]


@pytest.fixture(scope="session")
def sample_questions() -> list[dict]:
    """Return the sample's questions, each with its decision's id and the span of its answer."""
    return [json.loads(line) for line in (SAMPLE / "questions.jsonl").read_text("utf-8").splitlines()]


Make = Callable[[Path], object]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Make], Path]:
    """Fill a folder once for all workers of a run: the first one makes it, the others wait; nobody changes it after."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def filled(name: str, make: Make) -> Path:
        with FileLock(base / f"{name}.lock"):
            if not (base / f"{name}.made").exists():
                shutil.rmtree(base / name, ignore_errors=True)
                make(base / name)
                (base / f"{name}.made").touch()
        return base / name

    return filled


@pytest.fixture(scope="session")
def tiny_model_folder(once: Callable[[str, Make], Path], sample_rows: list[dict]) -> Path:
    """Make a PyLate checkpoint: BERT of two layers with random weights, projected to 32, marker tokens in its table."""
    return once("tiny-colbert", lambda folder: _save_tiny_colbert(folder, sample_rows))


def _save_tiny_colbert(folder: Path, rows: list[dict]) -> None:
    import torch
    from pylate.models import ColBERT

    base = _save_tiny_bert(folder.with_name("tiny-bert"), rows)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = ColBERT(
            str(base),
            embedding_size=32,
            query_prefix="[Q] ",
            document_prefix="[D] ",
            query_length=64,
            document_length=256,
            device="cpu",
        )
    model.save(str(folder), create_model_card=False)


@pytest.fixture(scope="session")
def tiny_encoder(tiny_model_folder: Path) -> ColbertEncoder:
    """Load the small encoder; its vectors mean little, but equal words lie near one another."""
    return build_encoder(str(tiny_model_folder))


@pytest.fixture(scope="session")
def tiny_library(
    tiny_encoder: ColbertEncoder,
    sample_file: Path,
    once: Callable[[str, Make], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Library:
    """Index the sample with the small encoder; each worker has a copy."""
    built = once("tiny-index", lambda folder: _build(sample_file, folder, tiny_encoder))
    copy = shutil.copytree(built, tmp_path_factory.mktemp("tiny-library"), dirs_exist_ok=True)
    return Library.open(copy)


def _build(source: Path, folder: Path, encoder: ColbertEncoder) -> None:
    build_index(IndexConfig(source=source, index_folder=str(folder)), encoder)


@pytest.fixture(scope="session")
def index_of(tiny_encoder: ColbertEncoder, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Library]:
    """Return what indexes a source with the small encoder, in a folder of its own or in the one given."""

    def built(source: object, folder: Path | None = None, **settings: object) -> Library:
        config = IndexConfig(source=source, index_folder=str(folder or tmp_path_factory.mktemp("index")), **settings)
        build_index(config, tiny_encoder)
        return open_index(config)

    return built


@pytest.fixture(autouse=True)
def no_runs_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the small Library as it was built, whatever runs a test saved in it."""
    library = request.getfixturevalue("tiny_library") if "tiny_library" in request.fixturenames else None
    yield
    if library is not None:
        shutil.rmtree(library.path / "runs", ignore_errors=True)
        record_checksums(library.path, "runs")


@pytest.fixture(scope="session")
def bundled() -> ColbertEncoder:
    """Load the bundled encoder, converting it on a machine's first use (ten seconds)."""
    return bundled_encoder()


@pytest.fixture(scope="session")
def sample_library(
    bundled: ColbertEncoder,
    sample_file: Path,
    once: Callable[[str, Make], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Library:
    """Index the sample with the bundled encoder (under a minute); each worker has a copy."""
    built = once("sample-index", lambda folder: _build(sample_file, folder, bundled))
    copy = shutil.copytree(built, tmp_path_factory.mktemp("sample-library"), dirs_exist_ok=True)
    return Library.open(copy)


@pytest.fixture(scope="session")
def place(tiny_library: Library) -> list[str]:
    """Return the options that name the small Library on the command line."""
    return ["--index-folder", str(tiny_library.path.parent), "--index-name", tiny_library.path.name]


@pytest.fixture
def copied(tiny_library: Library, tmp_path: Path) -> Path:
    """Copy the small Library, to be damaged."""
    return Path(shutil.copytree(tiny_library.path, tmp_path / tiny_library.path.name))


@pytest.fixture(scope="session")
def trec_python(once: Callable[[str, Make], Path]) -> Path:
    """Make the environment of `make trec` (about twenty seconds); return its Python."""

    def make(folder: Path) -> None:
        assert install_trec_eval(folder) is None

    return once("venv-trec", make) / "bin" / "python"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadlessBrowser]:
    """Open a browser for the tests of a file, which `make test` leaves out."""
    with HeadlessBrowser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def lets_through() -> Callable[[str, str], None]:
    """Check that a page's policy lets through some script and the page's own style, and nothing else."""

    def check(html: str, script: str) -> None:
        style = html.partition("<style>")[2].partition("</style>")[0]
        hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (script, style)]
        sources = "script-src 'sha256-{}'; style-src 'sha256-{}'".format(*hashes)
        policies = [one for _, one in Page(html).tags if one.get("http-equiv") == "Content-Security-Policy"]
        assert [one["content"] for one in policies] == [
            f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
        ]

    return check


@pytest.fixture(scope="session")
def contrast() -> Callable[[str, str], float]:
    """Return what tells the contrast of two colours, as the guidelines of the W3C reckon it."""

    def luminance(colour: str) -> float:
        channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
        return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    def between(one: str, other: str) -> float:
        low, high = sorted((luminance(one), luminance(other)))
        return (high + 0.05) / (low + 0.05)

    return between


@pytest.fixture
def no_endpoint(monkeypatch):
    """Leave no model to be asked, whatever the environment says."""
    for name in model_variables():
        monkeypatch.delenv(name)


@pytest.fixture
def settings(tmp_path):
    """Write a file of settings, and return the options before a command that name it."""

    def writing(text):
        (tmp_path / "settings.toml").write_text(text, "utf-8")
        return ["--config", str(tmp_path / "settings.toml")]

    return writing


@pytest.fixture
def said(capfd):
    """Run a command that must succeed, and return what it wrote on stdout."""

    def running(*argv):
        assert main(list(map(str, argv))) == 0
        return capfd.readouterr().out

    return running


@pytest.fixture
def refused(capfd):
    """Run a command that must fail, and return its one line."""

    def running(*argv):
        assert main(list(map(str, argv))) == 1
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("legal-rag: ")
        assert err.count("\n") == 1
        return err.removeprefix("legal-rag: ").strip()

    return running


def _save_tiny_bert(folder: Path, rows: list[dict]) -> Path:
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *_word_pieces((row["content"] for row in rows), 2000 - len(special))]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    roles = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=256, **roles).save_pretrained(folder)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=256,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(config)
    with torch.no_grad():  # a token's vector is then mostly its word's, so that texts with words in common are near
        model.embeddings.word_embeddings.weight *= 10
    model.save_pretrained(folder)
    return folder


def _word_pieces(texts: Iterable[str], size: int) -> list[str]:
    """Choose all characters, frequent words and pieces of the others; `tokenizers` would choose others each time."""
    from tokenizers import normalizers, pre_tokenizers

    normalizer, splitter = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    words = Counter(word for text in texts for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    frequent = sorted(words, key=lambda word: (-words[word] * (len(word) - 1), word))
    pieces = Counter[str]()
    for word in frequent[size // 2 :]:
        for start in range(len(word)):
            for end in range(start + 2, min(len(word), start + 6) + 1):
                pieces["##" * (start > 0) + word[start:end]] += words[word] * (end - start - 1)
    characters = sorted({"##" * (place > 0) + one for word in words for place, one in enumerate(word)})
    chosen = [*characters, *frequent[: size // 2], *sorted(pieces, key=lambda piece: (-pieces[piece], piece))]
    return list(dict.fromkeys(chosen))[:size]
