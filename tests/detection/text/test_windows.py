from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from detection import detectors
from detection.audit import audit_dialogue
from detection.method import Context, Text, table
from detection.text.windows import complete
from serving.records import Ask, Completion, Message, Sampling, Score, TokenScores


class Words:
    """An engine whose tokens are words with the space before them, and whose log-probability tells the place."""

    def __init__(self, text, context):
        self.text, self.context = text, context
        self.spans = [match.span() for match in re.finditer(r"\s?\S+|\s", text)]
        self.contexts = {}  # of a piece's first token, by where it begins; of the last attempt

    def __call__(self, demand):
        joint = f"{demand.prompt}{demand.continuation}"
        begin = self.text.index(joint) if joint in self.text else -1
        assert begin >= 0
        places = [i for i, (start, stop) in enumerate(self.spans) if start >= begin and stop <= begin + len(joint)]
        cut = max(0, len(places) - self.context)
        kept = places[cut:]
        edge = begin + len(demand.prompt) if demand.continuation else begin + len(joint) + 1
        wanted = [i for i in kept[1:] if not demand.answer_only or self.spans[i][1] > edge]
        if demand.answer_only and wanted:
            self.contexts[edge] = (wanted[0], wanted[0] - kept[0])
        return TokenScores(
            ids=tuple(wanted),
            logprobs=tuple(-float(i) for i in wanted),
            segments=tuple("answer" if self.spans[i][1] > edge else "prompt" for i in wanted),
            dropped=cut,
            asked_tokens=len(kept),
        )


@pytest.mark.parametrize("context", [8, 10, 33])
@pytest.mark.parametrize("prompt_words", [0, 1, 40])
def test_every_token_is_scored_once_with_half_a_context(drive, context, prompt_words):
    rng = random.Random(context)
    words = ["".join(rng.choices("abcdefgh", k=rng.randint(1, 20))) for _ in range(120)]
    text = " ".join(words[:60]) + " " + " ".join(f"{i}" for i in range(60))  # dense at the end
    cut = len(" ".join(words[:prompt_words]))
    own = Text(id=1, text=text, prompt=text[:cut])
    engine = Words(text, context)
    demand = table(own, False)
    (whole,), _ = drive(complete([demand], [engine(demand)]), engine)
    assert whole.ids == tuple(range(1, 120))
    assert whole.logprobs == tuple(-float(i) for i in range(1, 120))
    assert whole.dropped == 0
    assert whole.segments == tuple("prompt" if i < prompt_words or not prompt_words else "answer" for i in whole.ids)
    assert all(n >= min(first, context - context // 2) for first, n in engine.contexts.values())


def test_what_fits_and_what_is_no_plain_text_stays_as_it_is(tokens, drive):
    chat = Score(role="candidate", prompt=(Message(role="user", content="hi"),))
    answer = Score(role="candidate", prompt="a", continuation="b", answer_only=True)
    ask = Ask(role="candidate", prompt="a", sampling=Sampling(max_tokens=1))
    reply = Completion(text="", finish_reason="length", prompt_tokens=1, output_tokens=1)
    replies = [tokens([-1.0]), tokens([-1.0], dropped=3), tokens([-1.0], dropped=3), reply]
    found, asked = drive(complete([Score(role="candidate", prompt="a"), chat, answer, ask], replies), None)
    assert found == replies
    assert asked == []


def test_the_policy_decides_and_is_counted(drive):
    text = Text(id="long", text=" ".join("abcdefghij" * 3))
    chosen = detectors.build(["loss"])
    engine = Words(text.text, 10)
    cut, _ = drive(audit_dialogue(text, chosen), engine)
    assert (cut["overlong"], cut["dropped"], cut["tokens"]) == (20, 20, 9)
    assert cut["scores"]["loss"] == -sum(range(21, 30)) / 9
    whole, asked = drive(audit_dialogue(text, chosen, long_texts="window"), engine)
    assert (whole["overlong"], whole["dropped"], whole["tokens"]) == (20, 0, 29)
    assert whole["scores"]["loss"] == -sum(range(1, 30)) / 29
    assert asked[0] == [table(text, False)]
    short, asked = drive(audit_dialogue(Text(id=1, text="a b c"), chosen, long_texts="window"), Words("a b c", 10))
    assert (short["overlong"], short["tokens"], len(asked)) == (0, 2, 1)


def test_a_text_without_spaces_is_cut_anywhere(drive):
    text = "字" * 50

    class Characters(Words):
        def __init__(self):
            super().__init__(text, 12)
            self.spans = [(i, i + 1) for i in range(50)]

        def __call__(self, demand):
            joint = len(demand.prompt) + len(demand.continuation)
            places = list(range(joint))  # all characters are alike: only counts can be checked
            cut = max(0, joint - self.context)
            edge = len(demand.prompt) if demand.continuation else joint
            wanted = [i for i in places[cut:][1:] if not demand.answer_only or i >= edge]
            return TokenScores(ids=tuple(wanted), logprobs=(-1.0,) * len(wanted), segments=("answer",) * len(wanted),
                               dropped=cut)  # fmt: skip

    engine = Characters()
    demand = Score(role="candidate", prompt=text)
    (whole,), _ = drive(complete([demand], [engine(demand)]), engine)
    assert len(whole.ids) == 49


def test_windows_of_a_real_tokenizer_give_the_ids_of_the_whole_text(drive, tiny_model: Path):
    from serving.engines.transformers_engine import TransformersBackend
    from serving.model.spec import ModelSpec

    spec = ModelSpec(path=str(tiny_model), engine="transformers", dtype="float32", score_dtype="float32")
    whole_context = TransformersBackend(spec)
    narrow = TransformersBackend(spec.model_copy(update={"max_length": 32}))
    prompt = "Question: how far is it from here to the sea, and who said so first?\nA. ten miles\nB. twelve\nAnswer:"
    text = Text(id=1, text=prompt + " B. twelve miles, as the crow flies over hills and woods" * 3, prompt=prompt)
    demand = table(text, True)
    (expected,) = whole_context.score([demand.request()])
    truncated = narrow.score([demand.request()])[0]
    assert truncated.dropped > 0
    (found,), _ = drive(complete([demand], [truncated]), lambda d: narrow.score([d.request()])[0])
    assert found.ids == expected.ids
    assert found.segments == expected.segments
    assert len(found.means) == len(found.ids)
    # tokens that have the same context in both: those of the first window
    first = narrow.score([Score(role="candidate", prompt=prompt[:40], moments=True).request()])[0]
    same = len(first.ids) - 1
    assert found.logprobs[:same] == pytest.approx(expected.logprobs[:same], abs=1e-4)


def test_a_detector_that_needs_the_whole_text_gets_it(drive):
    text = Text(id="x", text=" ".join("abcdefghij" * 3))
    context = Context(reference=True)
    chosen = detectors.build(["reference"], context)
    engine = Words(text.text, 10)
    cut, _ = drive(audit_dialogue(text, chosen), engine)
    assert cut["scores"]["reference"] is None
    whole, _ = drive(audit_dialogue(text, chosen, long_texts="window"), engine)
    assert whole["scores"]["reference"] == 0.0
