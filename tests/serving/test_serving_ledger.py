"""The ledger gives back what was written, bit for bit, and survives whatever is done to its files."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.ledger import Answer, Ledger, batch_key, request_key
from serving.records import Completion, Message, Request, Sampling, ScoreRequest, TokenScores

PRINT = "f" * 64


def request(text: str = "a", **sampling: float) -> Request:
    return Request(prompt=text, sampling=Sampling(max_tokens=4, **sampling))  # type: ignore[arg-type]


def completion(text: str = "b") -> Completion:
    return Completion(text=text, finish_reason="stop", prompt_tokens=1, output_tokens=1)


def write(ledger: Ledger, requests: list[Request | ScoreRequest], answers: list[Answer]) -> None:
    ledger.append(role="r", fingerprint=PRINT, mode="lockstep", requests=requests, answers=answers, seconds=0.1)


def key(request: Request | ScoreRequest) -> str:
    return request_key(PRINT, request)


def ledger_of(folder: Path, *texts: str) -> Ledger:
    """A ledger with one batch of one request per text (answer: the text in capitals)."""
    ledger = Ledger(folder)
    for text in texts:
        write(ledger, [request(text)], [completion(text.upper())])
    ledger.close()
    return ledger


def only_segment(folder: Path) -> Path:
    (segment,) = folder.glob("*.jsonl")
    return segment


# exactness

AWKWARD = (
    "",
    "\n\r\u2028\u2029\x85\x00\x1f",
    "lone \ud800 surrogate \udfff",
    "a pair that is two lone ones: \ud83d\ude00, and one that is not: \U0001f600",
    '"quoted\\" {"batch": 1}',
    "x" * 2_000_000,
)


@pytest.mark.parametrize("text", AWKWARD, ids=["empty", "newlines", "surrogates", "pair", "json", "2 MB"])
def test_texts_come_back_exactly(text: str, tmp_path: Path) -> None:
    asked = Request(
        prompt=(Message(role="system", content=text), Message(role="user", content="q")),
        sampling=Sampling(max_tokens=3, temperature=0.7, top_p=0.9, seed=2**31 - 1, stop=("\n", "x")),
        schema='{"type":"string"}',
    )
    answer = Completion(
        text=text, reasoning=text[::-1], finish_reason="length", complete=False, prompt_tokens=3, output_tokens=4
    )
    ledger = Ledger(tmp_path)
    write(ledger, [asked], [answer])
    for reader in (ledger, Ledger(tmp_path)):
        assert reader.find_request(key(asked)) == answer
        assert reader.find_batch(batch_key(PRINT, [key(asked)])) == [answer]
        assert reader.bad_lines == 0


def test_numbers_come_back_bit_for_bit(tmp_path: Path) -> None:
    values = (0.1 + 0.2, -1e-320, 1e308, -math.inf, math.inf, -0.0, 3.0, float.fromhex("0x1.fffffffffffffp-3"))
    table = TokenScores(
        ids=tuple(range(8)),
        logprobs=values,
        segments=("bos", "template", "prompt", *["answer"] * 5),  # type: ignore[arg-type]
        means=values,
        stds=(math.nan,) * 8,
        entropies=values,
        ranks=(2**40,) * 8,
        greedy=(True, False) * 4,
        dropped=7,
    )
    asked = ScoreRequest(prompt="p", continuation="c", bos="never", answer_only=True, moments=True)
    write(Ledger(tmp_path), [asked], [table])
    back = Ledger(tmp_path).find_request(key(asked))
    assert isinstance(back, TokenScores)
    assert [value.hex() for value in back.logprobs] == [value.hex() for value in values]
    assert all(math.isnan(value) for value in back.stds)
    assert (back.ids, back.segments, back.ranks, back.greedy) == (table.ids, table.segments, table.ranks, table.greedy)
    assert back.dropped == 7


@given(st.text(st.characters(exclude_categories=[])), st.floats(allow_nan=False))
def test_any_text_and_number_survive_a_line(text: str, number: float) -> None:
    from serving.ledger import _line, _parse

    line = _line({"text": text, "number": number})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert _parse(line) == {"text": text, "number": number}


# keys


def test_a_key_depends_on_everything_that_is_asked() -> None:
    chat = (Message(role="user", content="a"),)
    different = [
        request("a"),
        request("b"),
        request("a", temperature=0.5),
        request("a", top_p=0.5),
        request("a", seed=1),
        Request(prompt="a", sampling=Sampling(max_tokens=5)),
        Request(prompt="a", sampling=Sampling(max_tokens=4, stop=("x",))),
        Request(prompt="a", sampling=Sampling(max_tokens=4), schema="{}"),
        Request(prompt=chat, sampling=Sampling(max_tokens=4)),
        Request(prompt=(Message(role="assistant", content="a"),), sampling=Sampling(max_tokens=4)),
        ScoreRequest(prompt="a"),
        ScoreRequest(prompt=chat),
        ScoreRequest(prompt="a", moments=True),
        ScoreRequest(prompt="a", bos="never"),
        ScoreRequest(prompt="a", continuation="b"),
        ScoreRequest(prompt="a", continuation="b", answer_only=True),
        ScoreRequest(prompt="ab"),
    ]
    keys = [key(r) for r in different]
    assert len(set(keys)) == len(keys)
    assert request_key("other", different[0]) != keys[0]
    assert batch_key(PRINT, keys) != batch_key(PRINT, keys[::-1])
    assert batch_key(PRINT, keys) != batch_key(PRINT, keys[:-1])


def test_equal_requests_have_one_key() -> None:
    assert request("a", temperature=0, top_p=1) == request("a")
    assert key(request("a", temperature=0, top_p=1)) == key(request("a"))
    assert key(request("a")) == "85afae7682eea1e4460c93c9b6396af31856b3d23c6f93751565d257f7fecaa2", (
        "keys changed: every ledger on disk is lost"
    )


# damage


def test_a_truncated_tail_is_not_yet_written(tmp_path: Path) -> None:
    ledger_of(tmp_path, "a", "b")
    segment = only_segment(tmp_path)
    data = segment.read_bytes()
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    for length in (last + 1, last + 20, len(data) - 1):
        segment.write_bytes(data[:length])
        reader = Ledger(tmp_path)
        assert (len(reader), reader.bad_lines) == (1, 0)
        assert reader.find_request(key(request("b"))) is None
        assert reader.find_request(key(request("a"))) == completion("A")
    for length in range(0, data.find(b"\n") + 1):
        segment.write_bytes(data[:length])
        assert (len(Ledger(tmp_path)), Ledger(tmp_path).bad_lines) == (0, 0)


def test_a_flipped_byte_costs_its_line_alone(tmp_path: Path) -> None:
    ledger_of(tmp_path / "one", "a", "b", "c")
    ledger_of(tmp_path / "one", "d")
    segment = min((tmp_path / "one").glob("*.jsonl"), key=lambda path: -path.stat().st_size)
    data = segment.read_bytes()
    starts = [0, *(i + 1 for i, byte in enumerate(data) if byte == 10)]
    begin, end = starts[2], starts[3] - 1  # the line of "b"
    for at in range(begin, end, 7):
        damaged = bytearray(data)
        damaged[at] ^= 0x55 if damaged[at] ^ 0x55 != 10 else 0x54
        segment.write_bytes(damaged)
        reader = Ledger(tmp_path / "one")
        assert (reader.bad_lines, len(reader)) == (1, 3), at
        assert reader.find_request(key(request("b"))) is None
        for text in "acd":
            assert reader.find_request(key(request(text))) == completion(text.upper())


def test_a_line_that_is_lost_can_be_written_again(tmp_path: Path) -> None:
    ledger_of(tmp_path, "a", "b")
    segment = only_segment(tmp_path)
    segment.write_bytes(segment.read_bytes().replace(b'"A"', b'"X"'))
    again = Ledger(tmp_path)
    assert (again.bad_lines, len(again)) == (1, 1)
    write(again, [request("a")], [completion("A")])
    assert again.find_request(key(request("a"))) == completion("A")
    assert Ledger(tmp_path).find_request(key(request("a"))) == completion("A")


def test_garbage_files_are_counted_and_do_no_harm(tmp_path: Path) -> None:
    ledger_of(tmp_path, "a")
    (tmp_path / "zz.jsonl").write_bytes(b"\xff\xfe\n\n[1]\n00000000 {}\n%08x [1]\n" % zlib.crc32(b"[1]"))
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "notes.txt").write_bytes(b"not a segment")
    reader = Ledger(tmp_path)
    assert (reader.bad_lines, len(reader)) == (5, 1)


def test_another_schema_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    body = json.dumps({"schema": 99, "created": 0}).encode()
    (tmp_path / "future.jsonl").write_bytes(b"%08x %s\n" % (zlib.crc32(body), body))
    with pytest.raises(
        ValueError, match=r"future\.jsonl has schema 99, this version reads 1; move the run folder away"
    ):
        Ledger(tmp_path)


def test_a_segment_that_changes_under_a_reader_is_an_error(tmp_path: Path) -> None:
    ledger_of(tmp_path, "a")
    reader = Ledger(tmp_path)
    segment = only_segment(tmp_path)
    segment.write_bytes(segment.read_bytes().replace(b'"A"', b'"X"'))
    with pytest.raises(RuntimeError, match="changed while it was read"):
        reader.find_request(key(request("a")))


# writers and readers


def test_two_writers_keep_apart_and_both_are_read(tmp_path: Path) -> None:
    first, second = Ledger(tmp_path), Ledger(tmp_path)
    for number in range(5):
        write(first, [request(f"f{number}")], [completion(f"F{number}")])
        write(second, [request(f"s{number}")], [completion(f"S{number}")])
    assert first.find_request(key(request("s1"))) is None, "a ledger is read once, at start"
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    reader = Ledger(tmp_path)
    for number in range(5):
        assert reader.find_request(key(request(f"f{number}"))) == completion(f"F{number}")
        assert reader.find_request(key(request(f"s{number}"))) == completion(f"S{number}")


def test_a_segment_is_never_reopened(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, "a")
    before = only_segment(tmp_path).read_bytes()
    write(ledger, [request("b")], [completion("B")])
    ledger.close()
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    assert before in [path.read_bytes() for path in tmp_path.glob("*.jsonl")]
    assert len(Ledger(tmp_path)) == 2


def test_inputs_are_read_and_not_written(tmp_path: Path) -> None:
    ledger_of(tmp_path / "earlier", "a")
    ledger = Ledger(tmp_path / "own", inputs=[tmp_path / "earlier", tmp_path / "missing"])
    assert ledger.find_request(key(request("a"))) == completion("A")
    write(ledger, [request("b")], [completion("B")])
    assert len(list((tmp_path / "earlier").glob("*"))) == 1
    assert len(Ledger(tmp_path / "own")) == 1


def test_lookup_is_by_batch_and_by_request(tmp_path: Path) -> None:
    texts = ["a", "b", "c"]
    write(Ledger(tmp_path), [request(t) for t in texts], [completion(t.upper()) for t in texts])
    ledger = Ledger(tmp_path)
    keys = [key(request(text)) for text in texts]
    assert ledger.find_batch(batch_key(PRINT, keys)) == [completion(text.upper()) for text in texts]
    assert ledger.find_request(keys[1]) == completion("B")
    assert ledger.find_batch(batch_key(PRINT, keys[:2])) is None
    assert ledger.find_batch(batch_key(PRINT, keys[::-1])) is None
    assert ledger.find_batch(batch_key("other", keys)) is None
    assert len(ledger) == 3


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger(None)
    write(ledger, [request("a")], [completion("A")])
    ledger.close()
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys
from pathlib import Path
from serving.ledger import Ledger
from serving.records import Completion, Request, Sampling
ledger = Ledger(Path(sys.argv[1]))
for number in range(100_000):
    asked = Request(prompt=str(number), sampling=Sampling(max_tokens=4))
    text = "x" * 20_000 + str(number)
    answer = Completion(text=text, finish_reason="stop", prompt_tokens=1, output_tokens=1)
    ledger.append(role="r", fingerprint="f" * 64, mode="fast", requests=[asked], answers=[answer], seconds=0.1)
    print(number, flush=True)
"""


def test_a_writer_killed_in_the_middle_leaves_all_it_reported(tmp_path: Path) -> None:
    for pause in (0.0, 0.03, 0.1):
        folder = tmp_path / str(pause)
        writer = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(pause)
        os.kill(writer.pid, signal.SIGKILL)
        reported = [0, *(int(line) for line in writer.stdout.read().splitlines() if line.isdigit())]
        writer.wait()
        reader = Ledger(folder)
        assert reader.bad_lines == 0
        assert len(reader) >= len(reported)
        for number in reported:
            assert reader.find_request(key(request(f"{number}"))) == completion("x" * 20_000 + str(number))
