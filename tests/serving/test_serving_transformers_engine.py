"""Generation with transformers on a tiny random model: every row of a batch keeps its own rules."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from serving.engines.common import Prepared, completion, context_length, end_ids, load_tokenizer, prepare
from serving.engines.decoding import _sample
from serving.engines.transformers_engine import TransformersBackend
from serving.model.fingerprint import ModelError
from serving.model.spec import ModelSpec
from serving.records import Completion, Message, Request, Sampling, ScoreRequest
from serving.rendering import render
from tests.serving.serving_models import CHATML, base_model, byte_tokenizer, save_model

PROMPTS = (
    "The quick brown",
    "Question: What is",
    "Hello",
    "Which planet is known as the red one? A. Venus B. Mars",
    "I",
)
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"verdict": {"enum": ["yes", "no"]}, "score": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["verdict", "score"],
        "additionalProperties": False,
    }
)


def backend_of(folder: Path, **more: Any) -> TransformersBackend:
    return TransformersBackend(ModelSpec(path=str(folder), engine="transformers", dtype="float32", **more))


@pytest.fixture(scope="module")
def backend(tiny: Path) -> TransformersBackend:
    return backend_of(tiny)


def ask(prompt: Any, max_tokens: int = 12, schema: str | None = None, **sampling: Any) -> Request:
    return Request(prompt=prompt, sampling=Sampling(max_tokens=max_tokens, **sampling), schema=schema)


def greedy_reference(backend: TransformersBackend, prompt: Any, max_tokens: int) -> list[int]:
    """transformers' own greedy decoding of one prompt, up to the end token."""
    ids = torch.tensor([render(backend.tokenizer, prompt)])
    with torch.inference_mode():
        out = backend.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=max_tokens,
            eos_token_id=backend.tokenizer.eos_token_id,
            pad_token_id=backend.tokenizer.pad_token_id,
        )
    return out[0, ids.shape[1] :].tolist()  # type: ignore[no-any-return]


def test_greedy_answers_of_a_batch_are_those_of_generate_one_by_one(backend: TransformersBackend) -> None:
    chat = (Message(role="user", content="What is 2 + 2?"),)
    requests = [ask(prompt, 5 + 3 * n) for n, prompt in enumerate((*PROMPTS, chat))]
    for answer, request in zip(backend.generate(requests), requests, strict=True):
        ids = greedy_reference(backend, request.prompt, request.sampling.max_tokens)
        assert answer.text == backend.tokenizer.decode(ids, skip_special_tokens=True)
        assert answer.output_tokens == len(ids)
        assert answer.prompt_tokens == len(render(backend.tokenizer, request.prompt))
        ended = ids[-1] == backend.tokenizer.eos_token_id
        assert (answer.finish_reason, answer.complete) == (("stop", True) if ended else ("length", False))


def test_an_end_token_stops_a_row_and_is_counted(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "ends")
    backend = backend_of(folder)
    ids = greedy_reference(backend, PROMPTS[0], 8)
    end = next(i for i in range(2, 8) if ids[i] not in ids[:i])
    config = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    (folder / "generation_config.json").write_text(
        json.dumps({**config, "eos_token_id": [ids[end], 1]}), encoding="utf-8"
    )
    first, _ = backend_of(folder).generate([ask(PROMPTS[0], 8), ask(PROMPTS[3], 30)])
    assert (first.finish_reason, first.complete, first.output_tokens) == ("stop", True, end + 1)
    assert first.text == backend.tokenizer.decode(ids[:end], skip_special_tokens=True)
    exact = backend_of(folder).generate([ask(PROMPTS[0], end + 1)])[0]
    assert (exact.finish_reason, exact.output_tokens) == ("stop", end + 1)
    short = backend_of(folder).generate([ask(PROMPTS[0], end)])[0]
    assert (short.finish_reason, short.output_tokens) == ("length", end)


def test_the_folders_generation_config_changes_nothing(
    tiny: Path, tmp_path: Path, backend: TransformersBackend
) -> None:
    folder = shutil.copytree(tiny, tmp_path / "opinionated")
    config = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    opinions = {
        "repetition_penalty": 5.0,
        "no_repeat_ngram_size": 1,
        "do_sample": True,
        "top_k": 3,
        "min_new_tokens": 9,
    }
    (folder / "generation_config.json").write_text(json.dumps(config | opinions), encoding="utf-8")
    requests = [ask(prompt, 40) for prompt in PROMPTS]
    assert backend_of(folder).generate(requests) == backend.generate(requests)


def test_an_answer_is_the_same_whoever_is_in_the_batch(backend: TransformersBackend) -> None:
    requests = [
        ask(PROMPTS[0], temperature=1.0, seed=5),
        ask(PROMPTS[3], 20, temperature=0.7, top_p=0.8, seed=6),
        ask(PROMPTS[1]),
        ask(PROMPTS[2], 40, schema=SCHEMA),
        ask(PROMPTS[4], stop=("e",)),
    ]
    together = backend.generate(requests)
    assert [backend.generate([request])[0] for request in requests] == together
    assert backend.generate(requests[::-1])[::-1] == together
    grouped = backend_of(Path(backend._spec.path), max_num_seqs=2)
    assert grouped.generate(requests) == together


def test_seeds(backend: TransformersBackend) -> None:
    texts = [a.text for a in backend.generate([ask(PROMPTS[0], 20, temperature=1.0, seed=seed) for seed in range(6)])]
    assert len(set(texts)) == 6
    assert backend.generate([ask(PROMPTS[0], 20, temperature=1.0, seed=3)])[0].text == texts[3]
    greedy = {a.text for a in backend.generate([ask(PROMPTS[0], 20, seed=seed) for seed in range(3)])}
    assert len(greedy) == 1


def test_sampling_follows_temperature_and_top_p() -> None:
    # p = [.5, .3, .15, .05]: top_p .75 keeps the first two and makes them 5/8 and 3/8
    logits = torch.tensor([0.15, 0.5, 0.05, 0.3]).log()
    generator = torch.Generator().manual_seed(0)
    drawn = [_sample(logits, 1.0, 0.75, generator) for _ in range(2000)]
    assert set(drawn) == {1, 3}
    assert drawn.count(1) / 2000 == pytest.approx(5 / 8, abs=0.04)
    assert {_sample(logits, 1.0, 1e-6, generator) for _ in range(50)} == {1}
    hot = [_sample(logits, 0.5, 1.0, generator) for _ in range(2000)]  # p^2 normalised: .25 / .365
    assert hot.count(1) / 2000 == pytest.approx(0.685, abs=0.04)
    assert {_sample(logits.masked_fill(logits < -1.0, -torch.inf), 5.0, 1.0, generator) for _ in range(50)} == {1}


# stop strings and budgets


def test_stop_strings_are_cut_and_end_the_row(backend: TransformersBackend) -> None:
    whole = backend.generate([ask(PROMPTS[0], 30)])[0].text
    stop = whole[8:10]
    at = whole.find(stop)
    cut, neighbour = backend.generate([ask(PROMPTS[0], 30, stop=("never seen", stop)), ask(PROMPTS[3], 60)])
    assert (cut.text, cut.finish_reason, cut.complete) == (whole[:at], "stop", True)
    assert cut.output_tokens < 30
    assert neighbour.output_tokens == 60
    assert cut == backend.generate([ask(PROMPTS[0], 30, stop=("never seen", stop))])[0]


def test_padding_after_a_stopped_row_is_not_counted(tmp_path: Path) -> None:
    names = ("<|im_start|>", "<|im_end|>", "<pad>")
    folder = save_model(tmp_path / "padded", byte_tokenizer(CHATML, names, pad="<pad>"))
    backend = backend_of(folder)
    whole = backend.generate([ask(PROMPTS[0], 30)])[0].text
    request = ask(PROMPTS[0], 30, stop=(whole[5:7],))
    alone = backend.generate([request])[0]
    assert backend.generate([request, ask(PROMPTS[3], 60)])[0] == alone
    assert alone.output_tokens < 20


def test_stop_strings_of_the_spec_and_of_a_transcript(tmp_path: Path, tiny: Path, backend: TransformersBackend) -> None:
    whole = backend.generate([ask(PROMPTS[0], 30)])[0].text
    assert (
        backend_of(tiny, stop=(whole[4:6],)).generate([ask(PROMPTS[0], 30)])[0].text == whole[: whole.find(whole[4:6])]
    )
    base = backend_of(save_model(tmp_path / "base", base_model()))
    chat, text = ask((Message(role="user", content="Hi"),), stop=("x",)), ask("Hi", stop=("x", "x"))
    ready = prepare(base._spec, base.tokenizer, 100, [chat, text])
    assert [r.stop for r in ready] == [("x", "\nUser:", "\nSystem:"), ("x",)]


def test_a_prompt_without_room_ends_with_context_and_the_others_go_on(tiny: Path) -> None:
    backend = backend_of(tiny, max_length=32)
    long = "The quick brown fox " * 40
    answers = backend.generate([ask(long), ask("Hello"), ask((Message(role="user", content=long),), schema=SCHEMA)])
    assert [a.finish_reason for a in answers] == ["context", "length", "context"]
    assert [(a.text, a.output_tokens, a.complete) for a in answers if a.finish_reason == "context"] == [
        ("", 0, False)
    ] * 2
    assert answers[0].prompt_tokens > 32
    assert [a.finish_reason for a in backend.generate([ask(long)])] == ["context"]


@pytest.mark.parametrize("free", [1, 2, 5])
def test_an_answer_fills_the_context_and_not_more(tiny: Path, free: int) -> None:
    tokenizer = load_tokenizer(ModelSpec(path=str(tiny)), tiny)
    prompt = PROMPTS[3]
    length = len(tokenizer(prompt)["input_ids"])
    (answer,) = backend_of(tiny, max_length=length + 1 + free).generate([ask(prompt, 100)])
    assert (answer.finish_reason, answer.output_tokens) == ("length", free)
    (none,) = backend_of(tiny, max_length=length + 1).generate([ask(prompt, 100)])
    assert none.finish_reason == "context"


def test_an_empty_prompt_without_bos_is_answered_with_context(backend: TransformersBackend) -> None:
    nothing, other = backend.generate([ask(""), ask("Hello")])
    assert (nothing.finish_reason, nothing.prompt_tokens, nothing.complete) == ("context", 0, False)
    assert other == backend.generate([ask("Hello")])[0]
    assert backend.generate([]) == []
    assert backend.score([]) == []


# structured output and reasoning


def test_structured_output_is_valid_in_a_mixed_batch(backend: TransformersBackend) -> None:
    other = json.dumps({"enum": ["A", "B", "C"]})
    requests = [
        ask(PROMPTS[0], 40, SCHEMA),
        ask(PROMPTS[1], 5),
        ask(PROMPTS[2], 40, other, temperature=2.0, seed=1),
        ask(PROMPTS[3], 40, SCHEMA, temperature=2.0, seed=2),
        ask(PROMPTS[4], 60),
    ]
    answers = backend.generate(requests)
    for index in (0, 3):
        value = json.loads(answers[index].text)
        assert set(value) == {"verdict", "score"}
        assert value["verdict"] in ("yes", "no")
        assert 0 <= value["score"] <= 9
        assert (answers[index].finish_reason, answers[index].complete) == ("stop", True)
    assert json.loads(answers[2].text) in ("A", "B", "C")
    plain = backend.generate([requests[1], requests[4]])
    assert [answers[1], answers[4]] == plain
    assert backend.generate(requests) == answers


def test_a_structured_answer_cut_by_its_budget_is_incomplete(backend: TransformersBackend) -> None:
    (answer,) = backend.generate([ask(PROMPTS[0], 3, SCHEMA)])
    assert (answer.finish_reason, answer.complete, answer.output_tokens) == ("length", False, 3)
    with pytest.raises(json.JSONDecodeError):
        json.loads(answer.text)


def _split(tiny: Path, text: str, tags: tuple[str, str] | None, schema: str | None = None) -> Any:
    spec = ModelSpec(path=str(tiny), reasoning_tags=tags)
    return completion(spec, ask("p", schema=schema), Prepared((1, 2), 9, ("STOP",)), text, "stop", 7)


def test_reasoning_that_the_template_opened_and_nobody_closed(tiny: Path) -> None:
    spec = ModelSpec(path=str(tiny), reasoning_tags=("<think>", "</think>"))

    def done(text: str) -> Completion:
        return completion(spec, ask("p"), Prepared((1, 2), 9, (), thinking=True), text, "stop", 7)

    cut, whole = done("2 + 2"), done("2 + 2</think>4")
    assert (cut.text, cut.reasoning, cut.complete) == ("", "2 + 2", False)
    assert (whole.text, whole.reasoning, whole.complete) == ("4", "2 + 2", True)


def test_reasoning_is_kept_apart(tiny: Path) -> None:
    tags = ("<think>", "</think>")
    done = _split(tiny, "<think>2 + 2</think>\n4STOP5", tags)
    assert (done.text, done.reasoning, done.complete, done.finish_reason) == ("4", "2 + 2", True, "stop")
    assert (done.prompt_tokens, done.output_tokens) == (2, 7)
    unclosed = _split(tiny, "<think>2 + 2", tags)
    assert (unclosed.text, unclosed.reasoning, unclosed.complete) == ("", "2 + 2", False)
    assert _split(tiny, "<think>x</think>4", None).text == "<think>x</think>4"
    assert _split(tiny, '"<think>x</think>4"', tags, "{}").text == '"<think>x</think>4"'


# loading


def test_every_end_token_of_the_folder_counts(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "many")
    tokenizer = load_tokenizer(ModelSpec(path=str(folder)), folder)
    (folder / "generation_config.json").write_text('{"eos_token_id": [7, 9]}', encoding="utf-8")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"eos_token_id": 11}), encoding="utf-8")
    assert end_ids(folder, tokenizer) == [1, 7, 9, 11]
    (folder / "generation_config.json").unlink()
    (folder / "config.json").write_text(json.dumps(config | {"eos_token_id": None}), encoding="utf-8")
    assert end_ids(folder, tokenizer) == [1]


def test_the_spec_chooses_the_template(tiny: Path, tmp_path: Path) -> None:
    template = tmp_path / "mine.jinja"
    template.write_text("{% for m in messages %}[{{ m['content'] }}]{% endfor %}", encoding="utf-8")
    chat = (Message(role="user", content="Hi"),)
    for name, expected in ((str(template), "[Hi]"), ("none", "User: Hi\n\nAssistant:")):
        tokenizer = load_tokenizer(ModelSpec(path=str(tiny), chat_template=name), tiny)
        assert tokenizer.decode(render(tokenizer, chat)) == expected


def test_max_length_beyond_the_models_own_is_refused(tiny: Path) -> None:
    assert context_length(ModelSpec(path=str(tiny)), tiny) == 256
    assert context_length(ModelSpec(path=str(tiny), max_length=256), tiny) == 256
    with pytest.raises(ModelError, match=r"max_length is 257.*context of 256 tokens; use at most 256"):
        context_length(ModelSpec(path=str(tiny), max_length=257), tiny)


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json"])
def test_a_broken_file_is_named(tiny: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(tiny, tmp_path / "broken")
    (folder / name).write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match=str(folder)):
        backend_of(folder)


def test_a_text_longer_than_the_context_is_scored_at_its_end(tiny: Path) -> None:
    backend = backend_of(tiny, max_length=16)
    prompt = "The quick brown fox jumps over the lazy dog." * 4
    (table,) = backend.score([ScoreRequest(prompt=prompt, continuation=" Hello there", answer_only=True)])
    ids = backend.tokenizer(prompt + " Hello there")["input_ids"]
    assert table.dropped == len(ids) - 16
    assert backend.tokenizer.decode(table.ids) == " Hello there"


def test_an_adapter_is_merged(tiny: Path, tmp_path: Path, backend: TransformersBackend) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny)
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    adapted = peft.get_peft_model(model, config)
    adapted.save_pretrained(tmp_path / "adapter")
    scored = backend_of(tiny, adapter=str(tmp_path / "adapter")).score([ScoreRequest(prompt=PROMPTS[0])])[0]
    ids = torch.tensor([backend.tokenizer(PROMPTS[0])["input_ids"]])
    with torch.inference_mode():
        logp = adapted(input_ids=ids).logits[0].double().log_softmax(-1)
    expected = [float(logp[i, ids[0, i + 1]]) for i in range(ids.shape[1] - 1)]
    assert scored.logprobs == pytest.approx(expected, abs=1e-4)
    assert scored.logprobs != pytest.approx(backend.score([ScoreRequest(prompt=PROMPTS[0])])[0].logprobs, abs=1e-2)
