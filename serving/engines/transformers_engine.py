"""Hugging Face transformers: all full-vocabulary scoring, and generation where vLLM is not at hand.

Decoding goes through ``model.generate`` with one logits processor of our own, so that every row of a batch has its own
grammar, temperature and seed; the caller's batch is the batch, left-padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from serving.engines.common import Prepared, completion, context_length, end_ids, load_tokenizer, marked, prepare
from serving.model.adapters import with_adapter_merged
from serving.model.fingerprint import ModelError, check_model_folder, resolve_model
from serving.model.spec import ModelSpec
from serving.records import Completion, FinishReason, Request, ScoreRequest, TokenScores
from serving.rendering import render_with_continuation
from serving.scoring.token_table import score_batch
from serving.scoring.tree_attention import tree_limit, tree_states

BARRED = -1e30
"""A logit below this is a mask's: -inf, or the lowest number of a format."""


class TransformersBackend:
    def __init__(self, spec: ModelSpec) -> None:
        import torch
        from transformers import AutoModelForCausalLM, GenerationConfig
        from transformers.utils import logging

        logging.disable_progress_bar()
        folder = resolve_model(spec)
        check_model_folder(folder, allow_pickle=spec.allow_pickle)
        self._spec = spec
        self._max_length = context_length(spec, folder)
        self.tokenizer = load_tokenizer(spec, folder)
        self._end_ids = end_ids(folder, self.tokenizer)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = spec.dtype if spec.dtype == "auto" else getattr(torch, spec.dtype)
        arguments = {"dtype": dtype, "trust_remote_code": False, "use_safetensors": not spec.allow_pickle or None}
        if self.device == "cuda":
            arguments["device_map"] = "auto"
        model = AutoModelForCausalLM.from_pretrained(folder, **{**arguments, **spec.engine_args})
        if spec.adapter:
            model = with_adapter_merged(model, Path(spec.adapter).expanduser())
        self.model: Any = model.eval()
        self.model.generation_config = GenerationConfig()  # the folder's would fill in what a request leaves open
        self._barred: Any = None
        self._exact_head = self._head_is_plain()
        self.tree_limit = tree_limit(self)
        self._grammars: Any = None

    # scoring

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        import torch

        rendered = [
            render_with_continuation(
                self.tokenizer, r.prompt, r.continuation, bos=r.bos if r.bos != "model" else self._spec.bos
            )
            for r in requests
        ]
        with torch.inference_mode():
            return score_batch(
                rendered,
                requests,
                self,
                max_length=self._max_length,
                bucket_tokens=self._spec.score_batch_tokens,
                pad_id=self._pad_id,
                device=str(self.model.device),
            )

    @property
    def _pad_id(self) -> int:
        pad = self.tokenizer.pad_token_id
        return int(pad if pad is not None else self._end_ids[0] if self._end_ids else 0)

    def hidden_states(self, ids_BT: Any, mask_BT: Any) -> Any:
        if not self._exact_head:
            return self.model(input_ids=ids_BT, attention_mask=mask_BT, use_cache=False).logits
        return self.model.base_model(input_ids=ids_BT, attention_mask=mask_BT, use_cache=False).last_hidden_state

    def tree_states(self, ids_BT: Any, depths_BT: Any, visible_BTS: Any, header: Any) -> tuple[Any, Any]:
        return tree_states(self.model.base_model, ids_BT, depths_BT, visible_BTS, header)

    def head(self, hidden_NH: Any) -> Any:
        if not self._exact_head:  # the rows are logits already
            return hidden_NH.float()
        logits_NV = self._scaled(self.model.get_output_embeddings()(hidden_NH).float())
        if self._barred is not None:
            logits_NV[:, self._barred] = float("-inf")
        return logits_NV

    def _scaled(self, logits: Any) -> Any:
        """What a model's forward does to its logits after the head: Gemma's soft cap, Cohere's and Granite's scale."""
        config = self.model.config.get_text_config()
        if (scale := getattr(config, "logit_scale", None)) is not None:
            logits = logits * scale
        if (scale := getattr(config, "logits_scaling", None)) is not None:
            logits = logits / scale
        if (cap := getattr(config, "final_logit_softcapping", None)) is not None:
            logits = (logits / cap).tanh() * cap
        return logits

    def _head_is_plain(self) -> bool:
        """Checks on a few tokens that hidden states through our head give the model's own logits.

        Words that the model bars at every position (rows of the head that nobody uses: a bias of -inf, or a mask in its
        forward) are no difference: they have probability 0 here and there.
        """
        import torch

        ids = torch.arange(3, 11, device=self.model.device)[None] % self.model.get_input_embeddings().num_embeddings
        self._exact_head = True
        try:
            with torch.inference_mode():
                own = self.model(input_ids=ids, use_cache=False).logits.float()
                ours = self.head(self.hidden_states(ids, torch.ones_like(ids)))
            if own.shape != ours.shape:
                return False
            barred_V = (own < BARRED).all(dim=(0, 1))
            own, ours = own[..., ~barred_V], ours[..., ~barred_V]
            if not own.numel() or not own.isfinite().all():
                return False
            # In half precision a model rounds after each step of its own scaling, ours is done in float32.
            rounding = 1e-3 if self.model.dtype == torch.float32 else 2e-2
            if not bool((own - ours).norm() <= rounding * own.norm()):
                return False
            self._barred = barred_V if bool(barred_V.any()) else None
            return True
        except (AttributeError, TypeError, RuntimeError):
            return False

    # generation

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        prepared = prepare(self._spec, self.tokenizer, self._max_length, requests)
        answers: list[Completion | None] = [None] * len(requests)
        for start in range(0, len(requests), self._spec.max_num_seqs):
            group = range(start, min(start + self._spec.max_num_seqs, len(requests)))
            alive = [i for i in group if prepared[i].room > 0]
            for i in group:
                if prepared[i].room == 0:
                    answers[i] = completion(self._spec, requests[i], prepared[i], "", "context", 0)
            if alive:
                outputs = self._decode([requests[i] for i in alive], [prepared[i] for i in alive])
                for i, (text, reason, count) in zip(alive, outputs, strict=True):
                    answers[i] = completion(self._spec, requests[i], prepared[i], text, reason, count)
        return [answer for answer in answers if answer is not None]

    def _decode(self, requests: list[Request], prepared: list[Prepared]) -> list[tuple[str, FinishReason, int]]:
        import torch
        from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

        from serving.engines.decoding import PerRow, RowsDone

        width = max(len(ready.ids) for ready in prepared)
        ids_BT = torch.full((len(prepared), width), self._pad_id, dtype=torch.long)
        mask_BT = torch.zeros_like(ids_BT)
        for b, ready in enumerate(prepared):
            ids_BT[b, width - len(ready.ids) :] = torch.tensor(ready.ids)
            mask_BT[b, width - len(ready.ids) :] = 1
        rows = PerRow(requests, self._matchers(requests), width)
        done = RowsDone(self.tokenizer, prepared, width)
        config = GenerationConfig(
            do_sample=False,
            max_new_tokens=max(ready.room for ready in prepared),
            pad_token_id=self._pad_id,
            eos_token_id=self._end_ids or None,
        )
        device = self.model.device
        with torch.inference_mode():
            output_BT = self.model.generate(
                input_ids=ids_BT.to(device),
                attention_mask=mask_BT.to(device),
                generation_config=config,
                logits_processor=LogitsProcessorList([rows]),
                stopping_criteria=StoppingCriteriaList([done]),
            )
        results: list[tuple[str, FinishReason, int]] = []
        ends = set(self._end_ids)
        for ready, length, row in zip(prepared, done.lengths, output_BT[:, width:].tolist(), strict=True):
            row = row[:length]  # what follows is padding
            at = next((i for i, token in enumerate(row) if token in ends), None)
            ended = at is not None
            kept = row[:at]
            text = marked(self.tokenizer, ready, kept, ()) or self.tokenizer.decode(kept, skip_special_tokens=True)
            results.append((text, "stop" if ended else "length", len(kept) + ended))
        return results

    def _matchers(self, requests: list[Request]) -> list[Any]:
        """One fresh grammar matcher per row with a schema; compiled schemas are kept."""
        if not any(request.schema for request in requests):
            return [None] * len(requests)
        try:
            import xgrammar
        except ImportError as error:
            raise ModelError("structured output needs the package xgrammar: pip install xgrammar") from error
        if self._grammars is None:
            size = self.model.get_output_embeddings().weight.shape[0]
            info = xgrammar.TokenizerInfo.from_huggingface(
                self.tokenizer, vocab_size=size, stop_token_ids=self._end_ids or None
            )
            self._grammars = xgrammar.GrammarCompiler(info)
        return [
            xgrammar.GrammarMatcher(
                self._grammars.compile_json_schema(request.schema, any_whitespace=False, separators=(",", ":"))
            )
            if request.schema
            else None
            for request in requests
        ]
