"""Model folders of strangers: every odd one is either read or refused in one sentence; none hangs, none is run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from serving import template_trial
from serving.engines.common import context_length, load_tokenizer
from serving.inspecting import inspect_model
from serving.model.fingerprint import ModelError
from serving.model.folder import check_complete, read_config
from serving.model.spec import ModelSpec
from tests.fixtures.odd_models import ODD, TEMPLATES


@pytest.fixture
def odd(tiny: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = Path(shutil.copytree(tiny, tmp_path / "odd"))
    ODD[request.param](folder)
    return folder


@pytest.mark.parametrize("odd", [name for name in ODD if name not in TEMPLATES], indirect=True)
def test_an_odd_folder_is_read_or_refused(odd: Path, own_cache: Path, request: pytest.FixtureRequest) -> None:
    try:
        lines = list(inspect_model(str(odd)))
    except ValueError as error:  # what the command line turns into one message; anything else would be a traceback
        lines = [f"refused: {error}"]
    assert any(line.startswith("weights hash") or (line.startswith("refused: ") and str(odd) in line) for line in lines)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_position_embeddings": -5}, "max_position_embeddings is '-5'; it must be a whole number from 1"),
        ({"max_position_embeddings": 0}, "max_position_embeddings is '0'"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is '1000000000'"),
        ({"_attn_implementation": "someone/kernel"}, "_attn_implementation is 'someone/kernel', code from the hub"),
        ({"text_config": {"attn_implementation": "a/b"}}, "attn_implementation is 'a/b', code from the hub"),
    ],
)
def test_absurd_configurations_are_refused(changes: dict[str, object], said: str, tiny: Path, tmp_path: Path) -> None:
    from tests.fixtures.odd_models import _config

    folder = Path(shutil.copytree(tiny, tmp_path / "odd"))
    _config(folder, changes)
    for load in (read_config, check_complete):
        with pytest.raises(ModelError, match=said.replace("(", r"\(")):
            load(folder)
    with pytest.raises(ModelError):
        context_length(ModelSpec(path=str(folder)), folder)


@pytest.mark.parametrize("name", ["pipe_extra.json", "zero_extra.json", "pipe_tokenizer.json"])
def test_only_plain_files_are_read(name: str, tiny: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny, tmp_path / "odd"))
    ODD[name](folder)
    with pytest.raises(ModelError, match="is no plain file but a pipe, a device or a socket; remove it"):
        check_complete(folder)


ENDLESS = ("template_loops", "template_writes", "template_multiplies", "template_numbers", "template_nested")


@pytest.mark.parametrize("name", [*ENDLESS, "template_long"])
def test_an_endless_template_is_refused(
    name: str, tiny: Path, tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template_trial, "SECONDS", 1)
    folder = Path(shutil.copytree(tiny, tmp_path / "odd"))
    ODD[name](folder)
    with pytest.raises(ModelError, match=r"the chat template of .* (is not to be trusted|has 2,800,000 characters)"):
        load_tokenizer(ModelSpec(path=str(folder)), folder)


def test_a_template_is_tried_once(tiny: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = load_tokenizer(ModelSpec(path=str(tiny)), tiny)
    assert len(list((own_cache / "templates").iterdir())) == 1
    monkeypatch.setattr(template_trial.subprocess, "run", None)  # not called again
    template_trial.check_template(tokenizer.chat_template, "tiny")


@pytest.mark.parametrize("text", [TEMPLATES["template_raises"], "{% for m in messages %}{{ m.content }}{% endfor %}"])
def test_a_template_that_ends_is_trusted(text: str, own_cache: Path) -> None:
    template_trial.check_template(text, "here")
    template_trial.check_template({"default": text, "tool_use": text}, "here")
    template_trial.check_template(None, "here")
