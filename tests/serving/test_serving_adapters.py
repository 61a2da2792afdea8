"""Adapters: which can be served beside their base, how they are merged, and that they share an engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from serving.engines.scripted_engine import ScriptedBackend
from serving.importing import import_model
from serving.ledger import Ledger
from serving.model.adapters import Limits, apart, check_servable, limits, with_adapter_merged
from serving.model.spec import ModelSpec
from serving.records import Completion, Request, Sampling
from serving.role_engines import Cast
from tests.serving.adapter_models import make_adapter
from tests.serving.serving_models import save_model

IDS = torch.tensor([[5, 17, 80, 33, 120, 7]])


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base whose head and embeddings are one tensor."""
    return save_model(tmp_path_factory.mktemp("tied") / "base", tie_word_embeddings=True)


def logits(model: Any) -> Any:
    with torch.inference_mode():
        return model.eval()(input_ids=IDS).logits


def adapted(base: Path, adapter: Path) -> Any:
    """What PEFT itself computes, adapter beside the base."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    return logits(PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapter))


def test_adapters_that_vllm_can_serve(tiny: Path, tmp_path: Path) -> None:
    first = make_adapter(tiny, tmp_path / "a", seed=1)
    assert check_servable(first) == 4
    assert limits([str(first)]) == Limits(rank=8, adapters=1)
    assert limits([]) is None
    patterned = make_adapter(tiny, tmp_path / "b", seed=1, rank_pattern={"q_proj": 20})
    assert limits([str(first), str(patterned)]) == Limits(rank=32, adapters=2)


@pytest.mark.parametrize(
    ("modules", "more", "said"),
    [
        (("q_proj", "lm_head"), {}, "changes lm_head: vLLM drops"),
        (("q_proj", "embed_tokens"), {}, "changes model.embed_tokens: vLLM drops"),
        (("q_proj",), {"modules_to_save": ["lm_head"]}, "changes lm_head"),
        (("q_proj",), {"use_dora": True}, "uses use_dora, which vLLM can't serve"),
    ],
)
def test_adapters_that_it_can_not_with_the_reason(
    modules: Sequence[str], more: dict[str, Any], said: str, tiny: Path, tmp_path: Path
) -> None:
    folder = make_adapter(tiny, tmp_path / "a", seed=1, modules=modules, **more)
    with pytest.raises(ValueError, match=said) as error:
        check_servable(folder)
    assert f"'proctor models import {folder} OUT'" in str(error.value)


def test_a_folder_that_is_no_adapter(tmp_path: Path) -> None:
    for text, said in ((None, "lacks adapter_config"), ("{", "is not JSON"), ('{"peft_type": "IA3"}', "is 'IA3'")):
        if text is not None:
            (tmp_path / "adapter_config.json").write_text(text, encoding="utf-8")
            (tmp_path / "adapter_model.safetensors").write_bytes(b"")
        with pytest.raises(ValueError, match=said):
            check_servable(tmp_path)
    (tmp_path / "adapter_model.safetensors").unlink()
    (tmp_path / "adapter_model.bin").write_bytes(b"")
    with pytest.raises(ValueError, match="only pickled weights"):
        check_servable(tmp_path)


@pytest.mark.parametrize("modules", [("q_proj", "v_proj"), ("q_proj", "lm_head"), ("embed_tokens",)])
@pytest.mark.parametrize("kind", ["own head", "shared head"])
def test_importing_an_adapter_merges_it(
    modules: Sequence[str], kind: str, tiny: Path, tied: Path, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    base = tiny if kind == "own head" else tied
    folder = make_adapter(base, tmp_path / "adapter", seed=3, modules=modules)
    out = import_model(folder, tmp_path / "out")
    merged = logits(AutoModelForCausalLM.from_pretrained(out))
    assert torch.allclose(merged, adapted(base, folder), atol=1e-4)
    assert not torch.allclose(merged, logits(AutoModelForCausalLM.from_pretrained(base)), atol=1e-1)
    assert (out / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adapter", "out"]


def test_merging_into_another_model_is_refused(tmp_path: Path, tiny: Path) -> None:
    folder = make_adapter(tiny, tmp_path / "adapter", seed=1)
    other = save_model(tmp_path / "other", hidden_size=32)
    with pytest.raises(ValueError, match="does not fit its base model"):
        import_model(folder, tmp_path / "out", base=str(other))
    with pytest.raises(ValueError, match="--base belongs to an adapter"):
        import_model(tiny, tmp_path / "out", base=str(other))
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": None}))
    with pytest.raises(ValueError, match="give it with --base"):
        import_model(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert with_adapter_merged is not None


def test_base_and_adapters_never_share_a_batch() -> None:
    assert apart(["a", None, "b", None, "a"]) == [[0, 2, 4], [1, 3]]
    assert apart([None, None]) == [[0, 1]]
    assert apart(["a"]) == [[0]]
    assert apart([]) == []


class Family(ScriptedBackend):
    """Notes which adapters it is started with and asked for."""

    made: list[Family] = []  # noqa: RUF012

    def __init__(self, spec: ModelSpec, *, fingerprint: str, adapters: Sequence[str] = (), **_: Any) -> None:
        super().__init__(ModelSpec(path="-", engine="scripted"))
        self.fingerprint, self.spec, self.adapters = fingerprint, spec, adapters
        self.asked: list[str | None] = []
        self.made.append(self)

    def generate_with(self, adapters: Sequence[str | None], requests: Sequence[Request]) -> list[Completion]:
        self.asked += adapters
        return super().generate(requests)

    def close(self) -> None:
        pass


def test_adapters_of_one_base_share_an_engine(tiny: Path, tmp_path: Path) -> None:
    paths = [str(make_adapter(tiny, tmp_path / name, seed=seed)) for seed, name in enumerate("ab")]
    base = ModelSpec(path=str(tiny), engine="vllm", dtype="float32")
    roles = {"candidate": base, **{n: base.model_copy(update={"adapter": p}) for n, p in zip("xy", paths, strict=True)}}
    Family.made.clear()
    cast = Cast(roles, ledger=Ledger(None), mode="lockstep", make_engine=Family)  # type: ignore[arg-type]
    generating = [engine for engine in Family.made if engine.spec.engine == "vllm"]
    assert [(engine.adapters, engine.spec.adapter) for engine in generating] == [(tuple(paths), None)]
    assert len([engine for engine in Family.made if engine.spec.engine == "transformers"]) == 3, "each scores merged"
    request = Request(prompt="hello", sampling=Sampling(max_tokens=4))
    for role in ("x", "candidate", "y"):
        cast.answer(role, [request])
    assert generating[0].asked == [paths[0], None, paths[1]]
    assert len({cast.fingerprint(role, "generate") for role in roles}) == 3
    alone = Cast({"candidate": base}, ledger=Ledger(None), mode="lockstep", make_engine=Family)  # type: ignore[arg-type]
    assert alone.fingerprint("candidate", "generate") != cast.fingerprint("candidate", "generate"), "kernels differ"


def test_an_adapter_that_can_not_be_served_is_refused_before_anything_starts(tiny: Path, tmp_path: Path) -> None:
    head = make_adapter(tiny, tmp_path / "head", seed=1, modules=("lm_head",))
    spec = ModelSpec(path=str(tiny), engine="vllm", adapter=str(head))
    with pytest.raises(ValueError, match="changes lm_head"):
        Cast({"candidate": spec}, ledger=Ledger(None), mode="lockstep")
