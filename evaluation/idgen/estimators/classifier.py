"""A sequence classifier of the discrimination label: ``category[SEP]question[SEP]mean length[SEP]ratio`` in 512 tokens.

Any local model that transformers can put a classification head on: an encoder, or a small causal model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.idgen.estimators.rows import Categories, Row
from serving.files import naming, write_text

FILE = "classifier.json"
TOKENS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How it is trained: AdamW, the learning rate falling linearly to 0; ``seed`` draws the head and the order."""

    epochs: int = 3
    learning_rate: float = 2e-5
    batch_size: int = 8
    max_tokens: int = TOKENS
    seed: int = 0


class Classifier:
    """A trained classifier. ``classes``: the labels, in the order of the head's outputs."""

    def __init__(self, model: Any, tokenizer: Any, categories: Categories, classes: list[int], training: Training):
        self.model = model
        self.tokenizer = tokenizer
        self.categories = categories
        self.classes = classes
        self.training = training

    def probabilities(self, rows: Sequence[Row]) -> NDArray[np.float64]:
        """Rows x ``classes``."""
        import torch

        self.model.eval()
        found = []
        with torch.inference_mode():
            for start in range(0, len(rows), self.training.batch_size):
                part = rows[start : start + self.training.batch_size]
                logits = self.model(**_batch(part, self.tokenizer, self.categories, self.training)).logits
                found.append(logits.float().softmax(-1).numpy())
        return np.concatenate(found).astype(np.float64) if found else np.empty((0, len(self.classes)))

    def save(self, folder: Path) -> None:
        """Weights as safetensors, tokenizer, and ``classifier.json``."""
        folder.mkdir(parents=True, exist_ok=True)
        with naming(folder):
            self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        fields = {"classes": self.classes, "categories": self.categories.to_json(), "training": asdict(self.training)}
        write_text(folder / FILE, json.dumps({"kind": "classifier", **fields}))

    @classmethod
    def load(cls, folder: Path) -> Classifier:
        """ValueError if the folder holds none."""
        try:
            fields = json.loads((folder / FILE).read_text(encoding="utf-8"))
            categories, training = Categories(**fields["categories"]), Training(**fields["training"])
            model, tokenizer = _loaded(folder, len(fields["classes"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder} holds no classifier ({FILE}): {error}") from error
        return cls(model, tokenizer, categories, fields["classes"], training)


def fit(rows: Sequence[Row], base: Path, training: Training) -> Classifier:
    """Trains all parameters of ``base`` with a new head. ValueError for rows without label, or none."""
    import torch

    labels = [row.label for row in rows if row.label is not None]
    if not rows or len(labels) < len(rows):
        raise ValueError(
            f"{len(rows) - len(labels)} of {len(rows)} rows have no label; there must be some, all with one"
        )
    classes = sorted(set(labels))
    # the head is drawn by the seed; what other parts of the program draw goes on as before
    state = torch.random.get_rng_state()
    torch.manual_seed(training.seed)
    try:
        model, tokenizer = _loaded(base, max(2, len(classes)))
        made = Classifier(model, tokenizer, Categories.of(rows), classes, training)
        _train(made, rows, [classes.index(label) for label in labels])
    finally:
        torch.random.set_rng_state(state)
    return made


def _train(made: Classifier, rows: Sequence[Row], targets: list[int]) -> None:
    import torch

    training, model = made.training, made.model
    optimizer = torch.optim.AdamW(model.parameters(), lr=training.learning_rate)
    steps = training.epochs * -(-len(rows) // training.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / max(1, steps))
    order = np.random.default_rng(training.seed)
    model.train()
    for _ in range(training.epochs):
        shuffled = order.permutation(len(rows)).tolist()
        for start in range(0, len(rows), training.batch_size):
            part = shuffled[start : start + training.batch_size]
            batch = _batch([rows[index] for index in part], made.tokenizer, made.categories, training)
            loss = torch.nn.functional.cross_entropy(
                model(**batch).logits.float(), torch.tensor([targets[index] for index in part])
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()


def text(row: Row, categories: Categories, question: str | None = None) -> str:
    """What the model reads: the numbers rounded, for digits beyond say nothing."""
    parts = [row.category, row.question if question is None else question]
    return "[SEP]".join([*parts, f"{categories.mean_length(row):.0f}", f"{categories.ratio(row):.2f}"])


def _batch(rows: Sequence[Row], tokenizer: Any, categories: Categories, training: Training) -> Any:
    texts = [_fitting(row, tokenizer, categories, training.max_tokens) for row in rows]
    return tokenizer(texts, padding=True, truncation=True, max_length=training.max_tokens, return_tensors="pt")


def _fitting(row: Row, tokenizer: Any, categories: Categories, limit: int) -> str:
    """The text with the question cut at its end: what stands behind it must not be lost."""
    whole = text(row, categories)
    over = len(tokenizer(whole)["input_ids"]) - limit
    if over <= 0:
        return whole
    ids = tokenizer(row.question, add_special_tokens=False)["input_ids"]
    kept = tokenizer.decode(ids[: max(0, len(ids) - over - 4)], skip_special_tokens=True)
    return text(row, categories, kept)


def _loaded(folder: Path, outputs: int) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=max(2, outputs), local_files_only=True, use_safetensors=True, dtype=torch.float32
    )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = tokenizer.pad_token_id
    tokenizer.padding_side = "right"
    return model, tokenizer
