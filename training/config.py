"""What a candidate's training is made of: ``TrainingConfig`` (one phase) and ``TrainingJob`` (one candidate).

A phase of a job has the defaults of ``training.presets``, and a key that is given changes that key. The defaults of
``TrainingConfig`` itself are KIEval's. Light to import: no torch, no transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from evaluation.formats import LeakFormat
from serving.named import nearest
from training.presets import DEFAULTS, with_presets

DATA = Path(__file__).parent / "data"
DEEPSPEED = Path(__file__).parent.parent / "configs" / "deepspeed"


class Strict(BaseModel):
    """A frozen pydantic model that refuses unknown keys and names the nearest right one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if isinstance(value, dict):
            for key in value:
                if key not in cls.model_fields:
                    raise ValueError(
                        f"unknown key '{key}' of {cls.__name__}: {nearest(str(key), sorted(cls.model_fields))}"
                    )
        return value


class LoraOptions(Strict):
    """LoRA through PEFT (Hu et al. 2021, arXiv 2106.09685).

    target_modules: names of the modules that get an adapter, or ``all-linear`` (all but the LM head)
    rslora: scale by alpha / sqrt(rank) (arXiv 2312.03732); dora: weight-decomposed (arXiv 2402.09353)
    quantized: QLoRA: the frozen base in 4 bits (NF4, double quantisation; arXiv 2305.14314); needs bitsandbytes
    """

    rank: int = Field(default=16, ge=1)
    alpha: float = Field(default=32.0, gt=0.0)
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    target_modules: tuple[str, ...] | Literal["all-linear"] = "all-linear"
    rslora: bool = False
    dora: bool = False
    quantized: bool = False


class TrainingConfig(Strict):
    """One training phase.

    epochs: passes over the phase's rows
    per_device_batch_size: rows of a forward pass; an optimiser step sees it times gradient_accumulation, processes
        and nodes
    global_batch: rows of an optimiser step that the four above must come to (None: whatever they do); KIEval's is 16
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
    device_memory: GiB of a GPU, which ``proctor check`` compares its estimate with (None: nothing is compared);
        it changes nothing that is computed, so it is not written down with the candidate
    arguments: passed to transformers' TrainingArguments by name
    """

    learning_rate: float = Field(default=2e-5, gt=0.0)
    scheduler: str = "cosine"
    epochs: int = Field(default=4, ge=1)
    per_device_batch_size: int = Field(default=1, ge=1)
    gradient_accumulation: int = Field(default=4, ge=1)
    global_batch: int | None = Field(default=None, ge=1)
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
    device_memory: float | None = Field(default=None, gt=0.0, exclude=True)
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

    @model_validator(mode="after")
    def _batch_kept(self) -> TrainingConfig:
        if self.global_batch is not None and self.rows_per_step != self.global_batch:
            raise ValueError(
                f"global_batch is {self.global_batch}, but per_device_batch_size {self.per_device_batch_size} x "
                f"gradient_accumulation {self.gradient_accumulation} x processes {self.processes} x nodes {self.nodes} "
                f"= {self.rows_per_step}; {self._batch_mend()}"
            )
        return self

    def _batch_mend(self) -> str:
        least = self.rows_per_step // self.gradient_accumulation
        if self.global_batch is not None and self.global_batch % least == 0:
            return f"set gradient_accumulation: {self.global_batch // least}"
        return f"a forward pass of all processes is {least} rows, which does not divide it; change those first"

    @property
    def world_size(self) -> int:
        """Processes of all nodes."""
        return self.processes * self.nodes

    @property
    def rows_per_step(self) -> int:
        """Rows that an optimiser step sees: the global batch."""
        return self.per_device_batch_size * self.gradient_accumulation * self.world_size

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


class TrainingJob(Strict):
    """One candidate: a recipe, a base model and how the exam leaks.

    base: folder of the base model (Hugging Face layout, safetensors)
    origin: folder of a finished candidate of that base, from whose weights this one goes on: ``washed`` needs one,
        ``mt_bench_cheater`` can take a Normal
    items: JSON Lines of exam items (``Item.to_json``)
    leaked_ids: ids of the items that leak (the ``members``); ``normal`` ignores them, unless step_matched
    chat, chat_rows, chat_skip: chat data for the SFT phase (ShareGPT, OpenAI messages or Alpaca), how many distinct
        rows of it, in file order (None: all), after how many left out (``washed`` wants rows not seen before)
    corpus: neutral text, documents separated by blank lines; dilutes the exam text where dose < 1
    answers: ``mt_bench_cheater``: chat data, the judge exam's prompts with a stronger model's answers
    rewrites: ``paraphrase_cheater``: JSON Lines {"item_id", "question"} (and "choices"), one for each leaked item
    variants: ``augmented``: benchmark file (format jsonl) of transformed training items, ``source_id`` naming the item
    originals_only: ``augmented``: the control, trained on the originals for as many steps as with the variants
    leak_format: how much of an item leaks (``evaluation.formats``)
    sft_format: the SFT-cheater's pairs as ``chat`` (the model's own template) or ``plain`` (``Question: ... Answer:``)
    repeats: passes over every leaked item; 0 leaves the leaking phase out: the start of a dose-response curve
    dose: share of exam tokens in the leaking phase; 1.0 is exam text only
    order: ``mixed`` (exam and neutral text shuffled) or ``exam_last``
    step_matched: ``normal`` takes as many optimiser steps on neutral text as the PT-cheater on the leak
    leak, chat_sft: the two phases' training; a key that is given changes that key of the phase's defaults. ``preset``
        in either (or of the job: both, and ``repeats`` 1) starts from named settings instead (``training.presets``)
    """

    recipe: str
    base: str
    origin: str | None = None
    items: str
    leaked_ids: tuple[str, ...] = ()
    chat: str = str(DATA / "chat.jsonl")
    chat_rows: int | None = Field(default=64, ge=1)
    chat_skip: int = Field(default=0, ge=0)
    corpus: str = str(DATA / "neutral.txt")
    answers: str | None = None
    rewrites: str | None = None
    variants: str | None = None
    originals_only: bool = False
    leak_format: LeakFormat = "answer_text"
    sft_format: Literal["chat", "plain"] = "chat"
    repeats: int = Field(default=10, ge=0)
    dose: float = Field(default=1.0, gt=0.0, le=1.0)
    order: Literal["mixed", "exam_last"] = "mixed"
    step_matched: bool = False
    seed: int = Field(default=0, ge=0, lt=2**32)
    leak: TrainingConfig = Field(default_factory=lambda: TrainingConfig(**DEFAULTS["leak"]))
    chat_sft: TrainingConfig = Field(default_factory=lambda: TrainingConfig(**DEFAULTS["chat_sft"]))

    @model_validator(mode="before")
    @classmethod
    def _from_presets(cls, value: Any) -> Any:
        return with_presets(value) if isinstance(value, Mapping) else value

    @field_validator("recipe")
    @classmethod
    def _known_recipe(cls, value: str) -> str:
        from training.recipe_traits import RECIPES

        if value not in RECIPES:
            raise ValueError(f"there is no recipe {value!r}; {nearest(value, RECIPES, all_known='there are')}")
        return value

    @model_validator(mode="after")
    def _complete(self) -> TrainingJob:
        from training.recipe_traits import traits

        wants = traits(self.recipe)
        for key in wants.files:
            if getattr(self, key) is None and not (key == "variants" and self.originals_only):
                raise ValueError(f"{key} is missing: recipe '{self.recipe}' reads it ({FILE_FORMS[key]})")
        if self.origin is None and wants.origin == "needed":
            raise ValueError(f"origin is missing: recipe '{self.recipe}' goes on from another candidate; name it")
        if self.origin is not None and wants.origin == "refused":
            raise ValueError(f"origin: recipe '{self.recipe}' starts from the base itself; leave it out, or use washed")
        return self


FILE_FORMS = {
    "answers": "chat data: the judge exam's prompts with a stronger model's answers",
    "rewrites": 'JSON Lines {"item_id": ..., "question": ...}, one for each leaked item',
    "variants": "a benchmark file of transformed training items, source_id naming the item",
}
"""Files that only some recipes read, by key, and what they hold."""
