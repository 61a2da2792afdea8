"""The client of a served model: whom it talks to, what it sends, how it waits. The server is a small one of our own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from serving.endpoint import Endpoint, failure_file, read_endpoint, read_key, safe_address, write_failure, write_key
from serving.engines import server_engine
from serving.engines.server_engine import ServerEngine, served_fingerprints
from serving.engines.vllm_arguments import as_flags
from serving.errors import EngineError, ServerGone
from serving.ledger import Ledger
from serving.model.fingerprint import fingerprint
from serving.model.spec import ModelSpec
from serving.proof import CHALLENGE, PROOF, new_key, proof_of
from serving.records import Message, Request, Sampling, ScoreRequest
from serving.role_engines import Cast, scoring_spec

KEY = new_key()
ASK = Request(prompt=(Message(role="user", content="Hello <|im_end|> there"),), sampling=Sampling(max_tokens=7))


class Fake:
    """Answers as vLLM does; ``failures`` come first (status codes, or ``drop``), ``said`` are the ids of a reply."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.asked, self.failures = names, list[dict[str, Any]](), list[Any]()
        self.said: list[int] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _handler(fake) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def send(self, status: int, value: Any, **headers: str) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                for name, text in {"Content-Length": str(len(body)), "Content-Type": "application/json"}.items():
                    self.send_header(name, text)
                for name, text in headers.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(body)

            def allowed(self) -> bool:
                if self.headers.get("Authorization") == f"Bearer {KEY}":
                    return True
                self.send(401, {"error": {"message": "no"}})
                return False

            def do_GET(self) -> None:
                if self.path == "/health":
                    self.send_response(200)
                    self.send_header("Content-Length", "0")
                    self.send_header(PROOF, proof_of(KEY, self.headers[CHALLENGE]))
                    self.end_headers()
                elif self.allowed():
                    self.send(200, {"object": "list", "data": [{"id": n, "object": "model"} for n in fake.names]})

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not self.allowed():
                    return
                if fake.failures:
                    failure = fake.failures.pop(0)
                    if failure == "drop":
                        self.close_connection = True
                    elif failure == 307:
                        self.send(307, {}, Location="http://192.0.2.1/v1/completions")
                    else:
                        self.send(failure, {"error": {"message": f"failure {failure}"}})
                    return
                fake.asked.append(asked)
                rows = [None, *({str(t): {"logprob": -0.5, "rank": 1}} for t in asked["prompt"][1:])]
                choice = {"index": 0, "text": "fine", "finish_reason": "stop", "logprobs": None}
                choice |= {"prompt_logprobs": rows} if "prompt_logprobs" in asked else {}
                choice |= {"token_ids": fake.said} if asked.get("return_token_ids") and fake.said else {}
                usage = {"prompt_tokens": len(asked["prompt"]), "completion_tokens": 2, "total_tokens": 0}
                self.send(200, {"id": "1", "object": "text_completion", "created": 1, "model": asked["model"],
                                "choices": [choice], "usage": usage})  # fmt: skip

        return Handler


@pytest.fixture
def spec(tiny: Path, tmp_path: Path) -> ModelSpec:
    return ModelSpec(path=str(tiny), engine="server", endpoint=str(tmp_path / "m.json"), patience=3.0, max_num_seqs=4)


@pytest.fixture
def fake(spec: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """A server of the spec's model, with its endpoint and key files."""
    monkeypatch.setattr(server_engine, "FIRST_PAUSE", 0.01)
    found = fingerprint(spec, mode="fast", device="cpu x2")
    server = Fake([found])
    write_key(tmp_path / "m.key", KEY)
    endpoint_of(server, found).write(tmp_path / "m.json")
    yield server
    server.server.shutdown()


def endpoint_of(server: Fake, found: str, **changes: Any) -> Endpoint:
    from serving.model.fingerprint import versions_for

    spec = ModelSpec(path="-", engine="server")
    made = Endpoint(
        url=f"http://127.0.0.1:{server.port}/v1",
        fingerprint=found,
        mode="fast",
        device="cpu x2",
        versions=versions_for(spec),
    )
    return replace(made, **changes)


def engine_of(spec: ModelSpec) -> ServerEngine:
    return ServerEngine(spec, fingerprint=ServerEngine.fingerprint_of(spec, "fast"), mode="fast")


def test_ids_sampling_and_grammar_are_sent(fake: Fake, spec: ModelSpec) -> None:
    engine = engine_of(spec)
    schema = '{"type":"object"}'
    sampled = replace(
        ASK, sampling=Sampling(max_tokens=5, temperature=0.7, top_p=0.9, seed=3, stop=("x",)), schema=schema
    )
    answers = engine.generate([ASK, sampled, ASK])
    assert [(a.text, a.finish_reason, a.output_tokens) for a in answers] == [("fine", "stop", 2)] * 3
    by_budget = {asked["max_tokens"]: asked for asked in fake.asked}
    greedy, drawn = by_budget[7], by_budget[5]
    tokenizer = engine._tokenizer
    assert tokenizer.decode(greedy["prompt"]).startswith("<|im_start|>user\nHello <|im_end|> there<|im_end|>")
    assert greedy["prompt"].count(tokenizer.convert_tokens_to_ids("<|im_end|>")) == 1, "the user's stays text"
    assert (greedy["temperature"], greedy["top_p"], greedy.get("seed"), greedy.get("stop")) == (0.0, 1.0, None, None)
    assert greedy["stop_token_ids"] == [tokenizer.eos_token_id]
    assert (drawn["temperature"], drawn["top_p"], drawn["seed"], drawn["stop"]) == (0.7, 0.9, 3, ["x"])
    assert drawn["structured_outputs"] == {"json": schema}
    assert greedy["model"] == engine.fingerprint


def test_reasoning_tags_that_are_special_tokens_are_told_by_ids(fake: Fake, spec: ModelSpec, tmp_path: Path) -> None:
    # of this tokenizer <|im_start|> and <|im_end|> are special; the server's text leaves them out
    spec = spec.model_copy(update={"reasoning_tags": ("<|im_start|>", "<|im_end|>")})
    found = fingerprint(spec, mode="fast", device="cpu x2")
    endpoint_of(fake, found).write(tmp_path / "m.json")
    fake.names = [found]
    engine = engine_of(spec)
    engine._prepare_tokenizer()
    tokenizer = engine._tokenizer
    start, end = tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])
    fake.said = [start, *tokenizer("or five")["input_ids"], end, *tokenizer("Four")["input_ids"]]
    (answer,) = engine.generate([replace(ASK, prompt="2 + 2?")])
    assert (answer.text, answer.reasoning) == ("Four", "or five")
    fake.said = []
    with pytest.raises(EngineError, match="sends no token ids"):
        engine.generate([replace(ASK, prompt="2 + 2?")])


def test_a_prompt_without_room_is_not_sent(fake: Fake, spec: ModelSpec) -> None:
    long = replace(ASK, prompt="very " * 400)
    assert [a.finish_reason for a in engine_of(spec).generate([long, ASK])] == ["context", "stop"]
    assert len(fake.asked) == 1


def test_scores_are_read_by_token_id(fake: Fake, spec: ModelSpec) -> None:
    engine = engine_of(spec)
    (table,) = engine.score([ScoreRequest(prompt="What is", continuation=" it", answer_only=True)])
    assert table.logprobs == (-0.5,) * len(table.ids)
    assert set(table.segments) == {"answer"}
    assert all(table.greedy)
    with pytest.raises(ValueError, match="moments need a model with engine: transformers"):
        engine.score([ScoreRequest(prompt="a b", moments=True)])
    assert scoring_spec(spec) is spec
    assert scoring_spec(spec.model_copy(update={"adapter": "a"})).engine == "transformers"


@pytest.mark.parametrize("failure", ["drop", 500, 503, 429])
def test_a_failure_is_tried_again(fake: Fake, spec: ModelSpec, failure: Any) -> None:
    fake.failures = [failure, failure]
    assert engine_of(spec).generate([ASK])[0].text == "fine"
    assert fake.failures == []


def test_what_can_not_be_mended_by_waiting(fake: Fake, spec: ModelSpec) -> None:
    engine = engine_of(spec)
    fake.failures = [400]
    with pytest.raises(EngineError, match=r"refuses a request: .*failure 400"):
        engine.generate([ASK])
    fake.failures = [307]
    with pytest.raises(EngineError, match="refuses a request"):  # a redirect is not followed
        engine.generate([ASK])
    assert engine.generate([ASK])[0].text == "fine", "an engine goes on after an error"


def test_a_server_that_is_away_is_waited_for(fake: Fake, spec: ModelSpec) -> None:
    engine = engine_of(spec)
    path = Path(str(spec.endpoint))
    there = read_endpoint(path)
    assert there is not None
    path.unlink()
    threading.Timer(0.3, lambda: there.write(path)).start()
    assert engine.generate([ASK])[0].text == "fine"
    replace(there, ended=True).write(path)
    with pytest.raises(ServerGone, match=r"was not there for 0\.2 s .*start 'proctor serve' again"):
        engine_of(spec.model_copy(update={"patience": 0.2})).generate([ASK, ASK, ASK])


def test_a_wrong_key_is_refused_at_once(fake: Fake, spec: ModelSpec, tmp_path: Path) -> None:
    write_key(tmp_path / "m.key", new_key())
    with pytest.raises(EngineError, match=r"is not the server of .*: its answer to the challenge is wrong\. Nothing"):
        engine_of(spec).generate([ASK])
    assert fake.asked == []
    (tmp_path / "m.key").chmod(0o640)
    with pytest.raises(ValueError, match="has mode 640: others may read it; chmod 600"):
        engine_of(spec).generate([ASK])


def test_a_wrong_fingerprint_is_refused(fake: Fake, spec: ModelSpec, tmp_path: Path) -> None:
    other = spec.model_copy(update={"max_length": 64})
    with pytest.raises(ValueError, match="its weights, tokenizer, template or arguments are not the same"):
        Cast({"judge": other}, ledger=Ledger(None), mode="fast")
    # an endpoint that says the right thing, before a server that serves something else
    fake.names = ["something"]
    with pytest.raises(EngineError, match=r"does not serve fingerprint .* it is another one"):
        engine_of(spec).generate([ASK])
    # a restart on another kind of device: the answers of two fingerprints never mix
    fake.names = [fingerprint(spec, mode="fast", device="cpu x2")]
    engine = engine_of(spec)
    moved = fingerprint(spec, mode="fast", device="cuda:H")
    endpoint_of(fake, moved, device="cuda:H").write(tmp_path / "m.json")
    with pytest.raises(EngineError, match="a server on another device or of other versions"):
        engine.generate([ASK])


@pytest.mark.parametrize(
    "url",
    ["http://192.0.2.7:80/v1", "http://8.8.8.8/v1", "http://0.0.0.0:8000/v1", "http://[2001:4860:4860::8888]/v1",
     "http://[::ffff:8.8.8.8]/v1"],
)  # fmt: skip
def test_a_host_that_is_not_private_is_refused(
    url: str, fake: Fake, spec: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="neither loopback nor private"):
        safe_address(url)
    there = read_endpoint(tmp_path / "m.json")
    assert there is not None
    replace(there, url=url).write(tmp_path / "m.json")
    with pytest.raises(ValueError, match="Proctor sends nothing there"):
        engine_of(spec).generate([ASK])
    monkeypatch.setenv("PROCTOR_ALLOWED_HOSTS", "gpu7, 8.8.8.8")
    if "//8.8.8.8" in url:
        assert safe_address(url) == "http://8.8.8.8:80/v1"


def test_addresses_of_ones_own() -> None:
    assert safe_address("http://localhost:8000/v1") in ("http://127.0.0.1:8000/v1", "http://[::1]:8000/v1")
    for host in ("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.7.7", "[fd00::1]", "[::1]"):
        assert safe_address(f"http://{host}:81/v1") == f"http://{host}:81/v1"
    for bad in ("ftp://127.0.0.1/v1", "127.0.0.1:80", "http://user@127.0.0.1/v1", "http:///v1"):
        with pytest.raises(ValueError, match="is no address of a server"):
            safe_address(bad)
    with pytest.raises(ValueError, match="is unknown here"):
        safe_address("http://no-such-host.invalid/v1")


def test_files_of_an_endpoint(tmp_path: Path) -> None:
    write_key(tmp_path / "k", KEY)
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600
    assert read_key(tmp_path / "k") == KEY
    made = Endpoint(url="u", fingerprint="f", mode="fast", device="d", lora=(8, 2))
    made.write(tmp_path / "e.json")
    assert read_endpoint(tmp_path / "e.json") == made
    assert read_endpoint(tmp_path / "none.json") is None
    for text in ("{", "[]", '{"url": "u"}', '{"lora": [1]}'):
        (tmp_path / "e.json").write_text(text)
        with pytest.raises(ValueError, match="is damaged"):
            read_endpoint(tmp_path / "e.json")
    (tmp_path / "k").write_text("")
    with pytest.raises(ValueError, match="holds no key of 'proctor serve'"):
        read_key(tmp_path / "k")


def test_lockstep_promises_too_much_and_no_endpoint_is_named(spec: ModelSpec) -> None:
    with pytest.raises(ValueError, match="which mode lockstep rules out; use mode fast"):
        Cast({"judge": spec}, ledger=Ledger(None), mode="lockstep")
    with pytest.raises(ValueError, match="start 'proctor serve MODEL --run RUN'"):
        ServerEngine.file(spec.model_copy(update={"endpoint": None}))
    with pytest.raises(ServerGone, match=r"does not exist after 0\.1 s"):
        ServerEngine.fingerprint_of(spec.model_copy(update={"patience": 0.1}), "fast")


def test_answers_of_a_server_are_replayed_without_it(fake: Fake, spec: ModelSpec, tmp_path: Path) -> None:
    with Cast({"judge": spec}, ledger=Ledger(tmp_path / "ledger"), mode="fast") as cast:
        first = cast.answer("judge", [ASK])
    there = read_endpoint(tmp_path / "m.json")
    assert there is not None
    replace(there, ended=True).write(tmp_path / "m.json")
    with Cast({"judge": spec}, ledger=Ledger(tmp_path / "ledger"), mode="fast") as cast:
        assert cast.answer("judge", [ASK]) == first
        assert cast.usage["judge"].replayed == 1


def test_a_base_and_its_adapters_share_no_server(spec: ModelSpec) -> None:
    with pytest.raises(ValueError, match="a base and its adapters can't share a server"):
        served_fingerprints([spec, spec.model_copy(update={"adapter": "a"})])
    assert served_fingerprints([spec]) is None


def test_arguments_as_flags() -> None:
    arguments = {
        "model": "m",
        "max_num_seqs": 4,
        "enforce_eager": True,
        "trust_remote_code": False,
        "quantization": None,
    }
    assert as_flags({**arguments, "structured_outputs_config": {"backend": "x"}}) == [
        *["--max-num-seqs", "4", "--enforce-eager", "--no-trust-remote-code"],
        *["--structured-outputs-config", '{"backend": "x"}'],
    ]


def test_nobody_waits_for_a_server_that_could_not_start(spec: ModelSpec, tmp_path: Path) -> None:
    """Neither for its first endpoint, nor after the former one's end."""
    file = ServerEngine.file(spec)
    patient = spec.model_copy(update={"patience": 600.0})
    write_failure(file, "CUDA out of memory")
    with pytest.raises(EngineError, match="has failed: CUDA out of memory; mend it"):
        ServerEngine.fingerprint_of(patient, "fast")
    Endpoint(url="http://127.0.0.1:1/v1", fingerprint="f", mode="fast", device="cpu", ended=True).write(file)
    engine = ServerEngine(patient, fingerprint="f", mode="fast")
    with pytest.raises(EngineError, match="has failed"):
        engine.generate([ASK])
    failure_file(file).unlink()
