"""The token table against one text at a time in float64, and what it must never do: pad into a mean, or fill memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from serving.engines.transformers_engine import TransformersBackend
from serving.model.spec import ModelSpec
from serving.records import Message, ScoreRequest, Segment, TokenScores
from serving.rendering import Rendered, last_tokens, render_with_continuation
from serving.scoring.token_table import ROWS_PER_CHUNK, score_batch
from tests.serving.serving_models import byte_tokenizer, save_model

TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "Which planet is known as the red one?",
    "Hello",
    "Question: What is 2 + 2?\nAnswer: It is 4. I am fine, thanks. How are you? The quick brown fox.",
    "\u00e9\u00e8 \U0001f600 \r\n\t",
)
VOCABULARY = 11


@pytest.fixture(scope="module")
def backend(tiny: Path) -> TransformersBackend:
    return TransformersBackend(ModelSpec(path=str(tiny), engine="transformers", dtype="float32"))


def reference(backend: TransformersBackend, request: ScoreRequest) -> TokenScores:
    """One text, full softmax, float64: written from the definitions."""
    rendered = render_with_continuation(backend.tokenizer, request.prompt, request.continuation, bos=request.bos)
    ids = torch.tensor(rendered.ids)
    with torch.inference_mode():
        logits_TV = backend.model.double()(ids[None]).logits[0]
    backend.model.float()
    logp_TV = logits_TV - torch.logsumexp(logits_TV, -1, keepdim=True)
    rows = [i for i in range(1, len(ids)) if not request.answer_only or rendered.segments[i] == "answer"]
    logprobs, means, stds, ranks = [], [], [], []
    for i in rows:
        logp_V = logp_TV[i - 1]
        mean = float((logp_V.exp() * logp_V).sum())
        logprobs.append(float(logp_V[ids[i]]))
        means.append(mean)
        stds.append(math.sqrt(float((logp_V.exp() * (logp_V - mean) ** 2).sum())))
        ranks.append(int((logp_V > logp_V[ids[i]]).sum()))
    return TokenScores(
        ids=tuple(rendered.ids[i] for i in rows),
        logprobs=tuple(logprobs),
        segments=tuple(rendered.segments[i] for i in rows),
        means=tuple(means),
        stds=tuple(stds),
        entropies=tuple(-mean for mean in means),
        ranks=tuple(ranks),
        greedy=tuple(rank == 0 for rank in ranks),
    )


def assert_close(ours: TokenScores, theirs: TokenScores, tolerance: float = 1e-4) -> None:
    assert ours.ids == theirs.ids
    assert ours.segments == theirs.segments
    assert ours.ranks == theirs.ranks
    assert ours.greedy == theirs.greedy
    for name in ("logprobs", "means", "stds", "entropies"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=tolerance), name


CHAT = (Message(role="user", content="What is 2 + 2?"),)
REQUESTS = [
    *(ScoreRequest(prompt=text, moments=True) for text in TEXTS),
    ScoreRequest(prompt=TEXTS[0], continuation=" Hello there", moments=True),
    ScoreRequest(prompt=TEXTS[0], continuation=" Hello there", answer_only=True, moments=True),
    ScoreRequest(prompt=TEXTS[1], bos="always", moments=True),
    ScoreRequest(prompt=CHAT, continuation="It is 4.", answer_only=True, moments=True),
    ScoreRequest(prompt="The qui", continuation="ck", moments=True),
]


def test_the_table_equals_one_text_at_a_time_in_float64(backend: TransformersBackend) -> None:
    for ours, request in zip(backend.score(REQUESTS), REQUESTS, strict=True):
        assert_close(ours, reference(backend, request))


def test_neighbours_order_and_bucket_size_change_nothing(tiny: Path, backend: TransformersBackend) -> None:
    together = backend.score(REQUESTS)
    for ours, theirs in zip(reversed(backend.score(REQUESTS[::-1])), together, strict=True):
        assert_close(ours, theirs, 1e-5)
    for request, theirs in zip(REQUESTS, together, strict=True):
        assert_close(backend.score([request])[0], theirs, 1e-5)
    small = backend._spec
    try:
        backend._spec = small.model_copy(update={"score_batch_tokens": 64})
        for ours, theirs in zip(backend.score(REQUESTS), together, strict=True):
            assert_close(ours, theirs, 1e-5)
    finally:
        backend._spec = small


def test_moments_only_where_asked(backend: TransformersBackend) -> None:
    plain, full = backend.score([ScoreRequest(prompt=TEXTS[0]), ScoreRequest(prompt=TEXTS[0], moments=True)])
    assert plain.means == plain.stds == plain.entropies == ()
    assert plain.ranks == full.ranks
    assert plain.logprobs == full.logprobs
    assert len(full.means) == len(full.ids)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("gemma2", {"head_dim": 16, "final_logit_softcapping": 5.0, "query_pre_attn_scalar": 16}),
        ("granite", {"logits_scaling": 4.0, "attention_multiplier": 0.25}),
        ("cohere", {"logit_scale": 0.25}),
        ("gpt_neox", {}),
        ("qwen2", {"tie_word_embeddings": True}),
    ],
)
def test_what_a_family_does_to_its_logits_is_done(kind: str, config: dict[str, Any], tmp_path: Path) -> None:
    folder = save_model(tmp_path / kind, kind=kind, **config)
    backend = TransformersBackend(ModelSpec(path=str(folder), engine="transformers", dtype="float32"))
    assert backend._exact_head
    requests = [ScoreRequest(prompt=text, moments=True) for text in TEXTS]
    for ours, request in zip(backend.score(requests), requests, strict=True):
        assert_close(ours, reference(backend, request))


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("gemma2", {"head_dim": 16, "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 16}),
        ("granite", {"logits_scaling": 4.0, "attention_multiplier": 0.25}),
        ("cohere", {"logit_scale": 0.25}),
    ],
)
def test_rounding_in_half_precision_is_no_head_of_another_kind(
    kind: str, config: dict[str, Any], tmp_path: Path
) -> None:
    folder = save_model(tmp_path / kind, kind=kind, **config)
    backend = TransformersBackend(ModelSpec(path=str(folder), engine="transformers", dtype="bfloat16"))
    assert backend._exact_head


def test_a_head_of_another_kind_is_noticed_and_the_models_own_logits_are_used(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    class Doubled(transformers.LlamaForCausalLM):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            output = super().forward(*args, **kwargs)
            output.logits = output.logits * 2
            return output

    monkeypatch.setattr(
        transformers.AutoModelForCausalLM,
        "from_pretrained",
        lambda folder, **more: Doubled.from_pretrained(folder, **more),
    )
    backend = TransformersBackend(ModelSpec(path=str(tiny), engine="transformers", dtype="float32"))
    assert not backend._exact_head
    request = ScoreRequest(prompt=TEXTS[0], moments=True)
    assert_close(backend.score([request])[0], reference(backend, request))


# arithmetic on made-up logits


def made_up(
    texts: Sequence[tuple[str, str]],
    logits_V: Callable[[int], Sequence[float]],
    *,
    max_length: int = 100,
    bucket_tokens: int = 64,
    spy: list[Any] | None = None,
    **options: bool,
) -> list[TokenScores]:
    """Scores texts whose tokens are letters (a = 0) under a model whose logits depend on the last letter alone."""
    rendered, requests = [], []
    for prompt, answer in texts:
        segments: list[Segment] = ["prompt"] * len(prompt) + ["answer"] * len(answer)
        rendered.append(Rendered(ids=tuple(ord(c) - ord("a") for c in prompt + answer), segments=tuple(segments)))
        requests.append(ScoreRequest(prompt=prompt, continuation=answer, **options))

    return score_batch(
        rendered,
        requests,
        LastLetter(logits_V, spy),
        max_length=max_length,
        bucket_tokens=bucket_tokens,
        pad_id=25,
        device="cpu",
    )


class LastLetter:
    """A model whose logits depend on the last letter alone; it can't be given trees."""

    tree_limit = 0

    def __init__(self, logits_V: Callable[[int], Sequence[float]], spy: list[Any] | None) -> None:
        self.logits_V = logits_V
        self.spy = [] if spy is None else spy

    def hidden_states(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
        self.spy.append(("hidden", tuple(ids_BT.shape), int(mask_BT.sum())))
        assert ((ids_BT == 25) | (mask_BT == 1)).all(), "padding is not the pad id"
        return ids_BT[..., None].float()

    def tree_states(self, ids_BT: Any, depths_BT: Any, visible_BTS: Any, header: Any) -> tuple[Any, Any]:
        raise AssertionError("asked for a tree")

    def head(self, hidden_NH: torch.Tensor) -> torch.Tensor:
        self.spy.append(("head", tuple(hidden_NH.shape), 0))
        return torch.tensor([list(self.logits_V(int(h))) for h in hidden_NH[:, 0]])


def cost(tables: Sequence[TokenScores]) -> tuple[int, int]:
    """Tokens computed and tokens asked."""
    return sum(table.computed_tokens for table in tables), sum(table.asked_tokens for table in tables)


def uniform(_: int) -> list[float]:
    return [12.4] * VOCABULARY


def test_moments_of_a_distribution_worked_out_by_hand() -> None:
    # p = [.7, .2, .1]: mu = .7 log .7 + .2 log .2 + .1 log .1 = -0.801819, sigma = 0.703126
    logits = [math.log(p) + 3.0 for p in (0.7, 0.2, 0.1)]
    (table,) = made_up([("ab", "")], lambda _: logits, moments=True)
    assert table.means[0] == pytest.approx(-0.801819, abs=1e-5)
    assert table.entropies[0] == pytest.approx(0.801819, abs=1e-5)
    assert table.stds[0] == pytest.approx(0.703126, abs=1e-5)
    assert (table.logprobs[0] - table.means[0]) / table.stds[0] == pytest.approx(-1.1486, abs=1e-4)
    assert (table.ranks, table.greedy) == ((1,), (False,))


@pytest.mark.parametrize("size", [3, 400, 32_000, 49_152, 256_000])
@pytest.mark.parametrize("level", [0.0, 12.4, -7.7])
def test_sigma_of_a_uniform_distribution_is_zero_whatever_the_rounding(size: int, level: float) -> None:
    (table,) = made_up([("ab", "")], lambda _: [level] * size, moments=True)
    assert table.stds == (0.0,)
    assert table.logprobs[0] == pytest.approx(-math.log(size), abs=1e-4)
    assert table.ranks == (0,)


def test_sigma_of_a_one_hot_distribution_is_zero_and_nothing_is_nan() -> None:
    hot = [-math.inf] * VOCABULARY
    hot[1] = 4.0
    chosen, banned = made_up([("ab", ""), ("ac", "")], lambda _: hot, moments=True)
    assert (chosen.logprobs, chosen.means, chosen.stds, chosen.ranks) == ((0.0,), (0.0,), (0.0,), (0,))
    assert (banned.logprobs, banned.means, banned.stds, banned.ranks) == ((-math.inf,), (0.0,), (0.0,), (1,))


def test_an_entry_of_probability_zero_adds_nothing() -> None:
    half = [0.0, 0.0, -math.inf, -math.inf]
    (table,) = made_up([("ab", "")], lambda _: half, moments=True)
    assert table.means[0] == pytest.approx(-math.log(2), abs=1e-6)
    assert table.stds == (0.0,)


@pytest.mark.parametrize("text", ["", "a"])
def test_texts_of_no_or_one_token_have_an_empty_table(text: str) -> None:
    spy: list[Any] = []
    scoring = made_up([(text, ""), (text, "")], uniform, spy=spy, moments=True)
    assert scoring == [TokenScores(ids=(), logprobs=(), segments=())] * 2
    assert (cost(scoring), spy) == ((0, 0), [])


def test_truncation_keeps_the_end_of_the_answer() -> None:
    (table,) = made_up([("abc", "de")], uniform, max_length=3)
    assert (table.ids, table.segments, table.dropped) == ((3, 4), ("answer", "answer"), 2)
    (whole,) = made_up([("abc", "de")], uniform, max_length=5)
    assert (whole.ids, whole.dropped) == ((1, 2, 3, 4), 0)
    (cut,) = made_up([("a", "bcdef")], uniform, max_length=3, answer_only=True)
    assert (cut.ids, cut.segments, cut.dropped) == ((4, 5), ("answer", "answer"), 3)
    (none,) = made_up([("abc", "de")], uniform, max_length=1)
    assert (none.ids, none.dropped) == ((), 4)


def test_requests_with_the_same_input_share_its_computation() -> None:
    # the four letters of one question differ in their last token alone: "abcd" is computed once
    spy: list[Any] = []
    scoring = made_up([("abcd", letter) for letter in "efgh"], uniform, spy=spy, answer_only=True)
    assert cost(scoring) == (4, 16)
    assert [table.ids for table in scoring] == [(4,), (5,), (6,), (7,)]
    assert spy == [("hidden", (1, 4), 4), ("head", (1, 1), 0)], "one row, one position of the head"
    mixed = made_up([("abc", "d"), ("abc", "d"), ("abce", ""), ("abd", "e")], uniform)
    assert cost(mixed) == (6, 12)


def test_shared_inputs_keep_each_requests_own_tokens_and_values() -> None:
    def rising(last: int) -> list[float]:
        return [float(last * k % 7) for k in range(VOCABULARY)]

    texts = [("abc", "d"), ("abc", "e"), ("ab", "ce"), ("abce", "")]
    together = made_up(texts, rising, moments=True)
    assert together == [made_up([text], rising, moments=True)[0] for text in texts]
    assert together[0].segments == ("prompt", "prompt", "answer")
    assert together[2].segments == ("prompt", "answer", "answer")


def test_the_vocabulary_never_meets_the_whole_batch() -> None:
    spy: list[Any] = []
    texts = [("abcdefgh"[k:] * 40 + "ijk"[n], "") for k in range(8) for n in range(3)]
    scoring = made_up(texts, uniform, max_length=1000, bucket_tokens=100_000, spy=spy)
    heads = [shape[0] for name, shape, _ in spy if name == "head"]
    assert max(heads) <= ROWS_PER_CHUNK
    assert sum(heads) == cost(scoring)[0] > 3 * ROWS_PER_CHUNK
    assert len([name for name, *_ in spy if name == "hidden"]) == 1


def test_buckets_hold_at_most_their_tokens_padding_included() -> None:
    spy: list[Any] = []
    lengths = [3, 30, 31, 8, 7, 64, 70, 5, 20]
    made_up([("abcdefghij"[k % 10] * length, "") for k, length in enumerate(lengths)], uniform, spy=spy)
    shapes = [shape for name, shape, _ in spy if name == "hidden"]
    assert all(rows * width <= 64 or rows == 1 for rows, width in shapes)
    assert sum(rows for rows, _ in shapes) == len(lengths)
    assert len(shapes) <= 6, "short texts are not computed one by one"


def test_a_bos_is_kept_where_a_text_is_cut() -> None:
    text = Rendered(ids=(9, 1, 2, 3, 4), segments=("bos", "prompt", "prompt", "answer", "answer"))
    assert last_tokens(text, 3) == (Rendered(ids=(9, 3, 4), segments=("bos", "answer", "answer")), 2)
    assert last_tokens(text, 5) == (text, 0)
    assert last_tokens(text, 1)[0].ids == (4,)
    plain = Rendered(ids=(9, 1, 2, 3, 4), segments=("prompt",) * 5)
    assert last_tokens(plain, 3) == (Rendered(ids=(2, 3, 4), segments=("prompt",) * 3), 2)


@pytest.mark.parametrize(("adds_bos", "bos"), [(False, "always"), (True, "model")])
def test_a_cut_text_is_scored_after_its_bos(tmp_path: Path, adds_bos: bool, bos: Any) -> None:
    folder = save_model(tmp_path, byte_tokenizer(adds_bos=adds_bos))
    backend = TransformersBackend(ModelSpec(path=str(folder), engine="transformers", max_length=12, bos=bos))
    (table,) = backend.score([ScoreRequest(prompt="The quick brown fox jumps over the lazy dog. " * 3)])
    ids = [backend.tokenizer.bos_token_id, *table.ids]
    assert (len(table.ids), table.dropped > 0) == (11, True)
    with torch.inference_mode():
        logits = backend.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    expected = [float(logits[t, token]) for t, token in enumerate(table.ids)]
    assert table.logprobs == pytest.approx(expected, abs=1e-4)


def test_unused_rows_of_minus_infinity_keep_the_fast_path(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    folder = save_model(tmp_path, kind="phi")  # its head has a bias
    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        model.lm_head.bias[-5:] = float("-inf")
    model.save_pretrained(folder)
    backend = TransformersBackend(ModelSpec(path=str(folder), engine="transformers"))
    assert backend._exact_head
    assert backend.tree_limit > 0
    requests = [ScoreRequest(prompt=f"The sky is {word} and stays so.", moments=True) for word in ("blue", "red")]
    fast = backend.score(requests)
    backend._exact_head, backend.tree_limit = False, 0
    for ours, theirs in zip(fast, backend.score(requests), strict=True):
        assert_close(ours, theirs)
        assert all(math.isfinite(value) for value in (*ours.logprobs, *ours.means, *ours.stds))


def test_words_that_a_forward_bars_are_barred_on_the_fast_path(tiny: Path) -> None:
    backend = TransformersBackend(ModelSpec(path=str(tiny), engine="transformers"))
    plain = backend.model.forward

    def masked(*arguments: Any, **options: Any) -> Any:
        output = plain(*arguments, **options)
        output.logits[..., 20:40] = torch.finfo(torch.float32).min
        return output

    backend.model.forward = masked
    backend._exact_head = backend._head_is_plain()
    assert backend._exact_head
    requests = [ScoreRequest(prompt="The sky is blue and stays so.")]
    fast = backend.score(requests)
    backend._exact_head, backend.tree_limit = False, 0
    assert_close(fast[0], backend.score(requests)[0])
