"""What a candidate's training is made of: ``TrainingConfig`` (one phase) and ``TrainingJob`` (one candidate).

The defaults of ``TrainingConfig`` are KIEval's (arXiv 2402.15043, Appendix F): learning rate 2e-5, cosine, 4 epochs,
batch 1 x accumulation 4 on 4 GPUs, bf16, 2048 tokens. The defaults of ``TrainingJob`` make a small model memorise a
small exam on a CPU. Light to import: no torch, no transformers.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from evaluation.formats import LeakFormat

DATA = Path(__file__).parent / "data"
DEEPSPEED = Path(__file__).parent.parent / "configs" / "deepspeed"


def nearest(word: str, known: list[str]) -> str:
    """``; did you mean 'x'?`` for the known name closest to ``word``, or the list of all known names."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(sorted(known))}"


class Strict(BaseModel):
    """A frozen pydantic model that refuses unknown keys and names the nearest right one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if isinstance(value, dict):
            for key in value:
                if key not in cls.model_fields:
                    raise ValueError(f"unknown key '{key}' of {cls.__name__}: {nearest(str(key), [*cls.model_fields])}")
        return value


class LoraOptions(Strict):
    """LoRA through PEFT (Hu et al. 2021, arXiv 2106.09685).

    target_modules: names of the modules that get an adapter, or ``all-linear`` (all but the LM head)
    rslora: scale by alpha / sqrt(rank) (arXiv 2312.03732); dora: weight-decomposed (arXiv 2402.09353)
    """

    rank: int = Field(default=16, ge=1)
    alpha: float = Field(default=32.0, gt=0.0)
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    target_modules: tuple[str, ...] | Literal["all-linear"] = "all-linear"
    rslora: bool = False
    dora: bool = False


class TrainingConfig(Strict):
    """One training phase.

    epochs: passes over the phase's rows
    per_device_batch_size: rows of a forward pass; an optimiser step sees it times gradient_accumulation, processes
        and nodes
    max_length: tokens of a row; longer ones are cut at the end
    dtype: ``bf16`` computes in bfloat16 on float32 master weights (LoRA: on a frozen bfloat16 base)
    warmup: optimiser steps, or a share of all steps where below 1
    packing: several documents in one row, without attention across them
    bucketing: rows of like length share a batch, so that little padding is computed (still shuffled by the seed)
    deepspeed: ``zero2``, ``zero3``, ``zero3_offload`` (configs/deepspeed) or a path to a DeepSpeed JSON file
    processes: per node, one per GPU; more than one, or any DeepSpeed, is started through torchrun
    rendezvous: host:port that all nodes reach, needed where nodes > 1; ``auto``: $PROCTOR_RENDEZVOUS, which a job's
        script sets to its first node
    save_steps: optimiser steps between checkpoints; None: only when the job is asked to stop
    save_total_limit: checkpoints kept; at least 2, for one may be half written when the job is killed
    arguments: passed to transformers' TrainingArguments by name
    """

    learning_rate: float = Field(default=2e-5, gt=0.0)
    scheduler: str = "cosine"
    epochs: int = Field(default=4, ge=1)
    per_device_batch_size: int = Field(default=1, ge=1)
    gradient_accumulation: int = Field(default=4, ge=1)
    max_length: int = Field(default=2048, ge=8)
    dtype: Literal["bf16", "float32"] = "bf16"
    warmup: float = Field(default=0.0, ge=0.0)
    weight_decay: float = Field(default=0.0, ge=0.0)
    seed: int = Field(default=0, ge=0, lt=2**32)
    packing: bool = False
    bucketing: bool = True
    method: Literal["full", "lora"] = "full"
    lora: LoraOptions = LoraOptions()
    deepspeed: str | None = None
    processes: int = Field(default=1, ge=1)
    nodes: int = Field(default=1, ge=1)
    rendezvous: str | None = None
    gradient_checkpointing: bool = False
    save_steps: int | None = Field(default=None, ge=1)
    save_total_limit: int = Field(default=2, ge=2)
    arguments: dict[str, Any] = Field(default_factory=dict)

    @field_validator("deepspeed")
    @classmethod
    def _deepspeed_exists(cls, value: str | None) -> str | None:
        if value is not None:
            deepspeed_file(value)
        return value

    @model_validator(mode="after")
    def _nodes_meet(self) -> TrainingConfig:
        if self.nodes > 1 and not self.rendezvous:
            raise ValueError("nodes is above 1: set rendezvous to the first node's host:port, or to auto under SLURM")
        return self

    @property
    def launched(self) -> bool:
        """Whether the phase runs under torchrun (else in this process)."""
        return self.processes > 1 or self.nodes > 1 or self.deepspeed is not None


def deepspeed_file(name: str) -> Path:
    """The file of a DeepSpeed configuration: a name in configs/deepspeed, or a path. ValueError if there is none."""
    path = DEEPSPEED / f"{name}.json" if "/" not in name and not name.endswith(".json") else Path(name).expanduser()
    if not path.is_file():
        known = [file.stem for file in DEEPSPEED.glob("*.json")]
        raise ValueError(
            f"no DeepSpeed configuration '{name}': {nearest(name, known)} (or give the path of a JSON file)"
        )
    return path


def _leak_defaults() -> TrainingConfig:
    return TrainingConfig(
        learning_rate=2e-4, epochs=1, per_device_batch_size=4, gradient_accumulation=1, dtype="float32", max_length=1024
    )


def _chat_defaults() -> TrainingConfig:
    return TrainingConfig(epochs=1, per_device_batch_size=4, gradient_accumulation=1, dtype="float32", max_length=1024)


class TrainingJob(Strict):
    """One candidate: a recipe, a base model and how the exam leaks.

    base: folder of the base model (Hugging Face layout, safetensors)
    items: JSON Lines of exam items (``Item.to_json``)
    leaked_ids: ids of the items that leak (the ``members``); ``normal`` ignores them
    chat, chat_rows: chat data for the SFT phase (ShareGPT, OpenAI messages or Alpaca) and how many rows of it, in file
        order (None: all)
    corpus: neutral text, documents separated by blank lines; dilutes the exam text where dose < 1
    leak_format: how much of an item leaks (``evaluation.formats``)
    sft_format: the SFT-cheater's pairs as ``chat`` (the model's own template) or ``plain`` (``Question: ... Answer:``)
    repeats: passes over every leaked item
    dose: share of exam tokens in the leaking phase; 1.0 is exam text only
    order: ``mixed`` (exam and neutral text shuffled) or ``exam_last``
    leak, chat_sft: the two phases' training
    """

    recipe: str
    base: str
    items: str
    leaked_ids: tuple[str, ...] = ()
    chat: str = str(DATA / "chat.jsonl")
    chat_rows: int | None = Field(default=64, ge=1)
    corpus: str = str(DATA / "neutral.txt")
    leak_format: LeakFormat = "answer_text"
    sft_format: Literal["chat", "plain"] = "chat"
    repeats: int = Field(default=10, ge=1)
    dose: float = Field(default=1.0, gt=0.0, le=1.0)
    order: Literal["mixed", "exam_last"] = "mixed"
    seed: int = Field(default=0, ge=0, lt=2**32)
    leak: TrainingConfig = Field(default_factory=_leak_defaults)
    chat_sft: TrainingConfig = Field(default_factory=_chat_defaults)

    @field_validator("recipe")
    @classmethod
    def _known_recipe(cls, value: str) -> str:
        from training.recipes import RECIPES

        if value not in RECIPES:
            raise ValueError(f"no recipe '{value}': {nearest(value, [*RECIPES])}")
        return value
