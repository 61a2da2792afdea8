"""The server engine before a real vLLM server: two adapters of one base, and structured answers that go wrong."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from serving.endpoint import failure_file, read_endpoint, write_failure
from serving.engines.server_engine import ServerEngine
from serving.engines.transformers_engine import TransformersBackend
from serving.errors import EngineError
from serving.model.spec import ModelSpec
from serving.records import Completion, Request, Sampling
from serving.server_process import Server
from tests.serving.adapter_models import base_model, make_adapter, merge

PROMPTS = ("Question: Which planet is known as the red one?", "The quick brown fox", "What is 2 + 2? It is")
FREE = [Request(prompt=prompt, sampling=Sampling(max_tokens=12)) for prompt in PROMPTS]
MARK = {"verdict": {"type": "string", "enum": ["right", "wrong"]}, "mark": {"type": "integer", "enum": [1, 2]}}
VERDICT = {"type": "object", "properties": MARK, "required": list(MARK), "additionalProperties": False}


def asked(schema: object, tokens: int) -> Request:
    return Request(prompt=PROMPTS[0], sampling=Sampling(max_tokens=tokens), schema=json.dumps(schema))


class Served:
    """Adapters ``x`` and ``y`` of one base on one server, each with its engine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        base = base_model(folder / "base")
        adapters = {name: make_adapter(base, folder / name, seed=n) for n, name in enumerate("xy", 1)}
        self.merged = {name: merge(base, adapter, folder / f"merged-{name}") for name, adapter in adapters.items()}
        self.specs = {
            name: ModelSpec(
                path=str(base),
                adapter=str(adapter),
                engine="server",
                dtype="float32",
                max_num_seqs=8,
                patience=20,
                endpoint=str(folder / "serving" / f"{name}.json"),
            )
            for name, adapter in adapters.items()
        }
        self.server = Server(self.specs, folder / "serving", say=lambda text: None)
        self.server.start()
        self.engines = {
            name: ServerEngine(spec, fingerprint=ServerEngine.fingerprint_of(spec, "fast"), mode="fast")
            for name, spec in self.specs.items()
        }

    def close(self) -> None:
        for engine in self.engines.values():
            engine.close()
        self.server.stop()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed (pip install 'proctor[gpu]' or 'proctor[cpu]')")
    made = Served(tmp_path_factory.mktemp("served"))
    yield made
    made.close()


@pytest.mark.slow
def test_adapters_on_one_server_answer_as_their_merged_models(served: Served) -> None:
    """Asked at the same time, so that the server has both in one step."""
    assert served.engines["x"].fingerprint != served.engines["y"].fingerprint
    with ThreadPoolExecutor() as pool:
        futures = {name: pool.submit(engine.generate, FREE) for name, engine in served.engines.items()}
        found = {name: [_whole(one.text) for one in future.result()] for name, future in futures.items()}
    assert found["x"] != found["y"]
    for name, folder in served.merged.items():
        alone = TransformersBackend(ModelSpec(path=str(folder), engine="transformers", dtype="float32"))
        assert found[name] == [_whole(one.text) for one in alone.generate(FREE)]


@pytest.mark.slow
def test_structured_answers_and_what_goes_wrong_with_them(served: Served) -> None:
    engine = served.engines["x"]
    (answer,) = engine.generate([asked(VERDICT, 60)])
    assert json.loads(answer.text)["verdict"] in ("right", "wrong")
    assert (answer.finish_reason, answer.complete) == ("stop", True)
    (cut,) = engine.generate([asked(VERDICT, 4)])
    assert (cut.finish_reason, cut.complete, cut.output_tokens) == ("length", False, 4)
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        json.loads(cut.text)
    # a pattern that is no regular expression: refused by the server at once, never waited for, and it goes on
    broken = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(["}}, "required": ["a"]}
    with pytest.raises(EngineError, match="refuses a request"):
        engine.generate([asked(broken, 30)])
    again: list[Completion] = engine.generate([asked(VERDICT, 60), *FREE])
    assert again[0] == answer
    assert all(one.output_tokens for one in again)


@pytest.mark.slow
def test_a_server_that_ended_or_failed(served: Served) -> None:
    """Last of this file: the server is stopped. Whoever waits is told when it has failed, at once."""
    served.server.stop()
    endpoint = served.folder / "serving" / "x.json"
    there = read_endpoint(endpoint)
    assert there is not None
    assert there.ended
    write_failure(endpoint, "out of memory")
    spec = served.specs["x"]
    engine = ServerEngine(spec, fingerprint=served.engines["x"].fingerprint, mode="fast")
    with pytest.raises(EngineError, match=r"has failed: out of memory; mend it, and start 'proctor serve' again"):
        engine.generate(FREE)
    assert failure_file(endpoint).name == "x.failed"


def _whole(text: str) -> str:
    """Without a last character that the tokens broke off in the middle of."""
    return text.rstrip("\ufffd")
