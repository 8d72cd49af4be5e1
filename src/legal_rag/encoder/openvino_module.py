"""A compiled OpenVINO model as a sentence-transformers module, for PyLate; modules.json names this class."""

import threading
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.models import Transformer
from transformers.modeling_outputs import BaseModelOutput

from legal_rag.encoder.runtime import MODEL_FILE, compile_model

STEP = 16  # tokens: OpenVINO prepares anew, and keeps memory, for every input length


class OpenVinoBody(torch.nn.Module):
    """A compiled transformer with the parts of a transformers model's interface that sentence-transformers uses."""

    _first_call = threading.Lock()

    def __init__(self, path: Path, config: Any) -> None:
        super().__init__()
        self.config = config
        self._compiled = compile_model(path)
        self._local = threading.local()  # a request answers one call at a time
        # OpenVINO's bindings initialise in their first call, where two threads would deadlock (one holds Python's lock,
        # the other the initialisation): make that call here, in one thread.
        with self._first_call:
            self(torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, 1, dtype=torch.int64))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> BaseModelOutput:
        """Map token ids and mask, shape (n_texts, n_tokens), int64, to (n_texts, n_tokens, hidden), float32."""
        if not hasattr(self._local, "request"):
            self._local.request = self._compiled.create_infer_request()
        n_tokens = input_ids.shape[1]
        padding = (0, min(-n_tokens % STEP, self.config.max_position_embeddings - n_tokens))
        ids = torch.nn.functional.pad(input_ids, padding, value=self.config.pad_token_id or 0)
        mask = torch.nn.functional.pad(attention_mask, padding)
        found = self._local.request.infer({"input_ids": ids.numpy(), "attention_mask": mask.numpy()})[0][:, :n_tokens]
        return BaseModelOutput(last_hidden_state=torch.from_numpy(found.copy()))  # the next call writes there

    def resize_token_embeddings(self, _: int) -> None:
        """Do nothing: the table was converted with the marker tokens' rows."""


class OpenVinoTransformer(Transformer):
    """sentence-transformers' `Transformer` around it; tokenising is inherited."""

    def _load_model(self, model_name_or_path: str, config: Any, *_: Any, **__: Any) -> None:
        self.auto_model = OpenVinoBody(Path(model_name_or_path) / MODEL_FILE, config)

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write everything but the weights, which are written converted."""
        self.auto_model.config.save_pretrained(output_path)
        self.tokenizer.save_pretrained(output_path)
        self.save_config(output_path)
