"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from serving.endpoint import Endpoint
from serving.files import beside, read_json, read_jsonl, write_bytes, write_json, write_jsonl, write_text
from training.launch import write_json as write_training_json


def test_bytes_are_written_whole_and_replace_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.png"
    write_bytes(file, b"\x89PNG\r\n\x00")
    assert file.read_bytes() == b"\x89PNG\r\n\x00"
    write_bytes(file, b"")
    assert file.read_bytes() == b""
    assert [path.name for path in file.parent.iterdir()] == ["a.png"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_bytes(tmp_path / "folder", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    (tmp_path / "a.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "{}"


def test_texts_of_models_are_kept(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "one\r\ntwo \ud83d")
    assert (tmp_path / "a.txt").read_bytes() == b"one\r\ntwo \\ud83d"
    rows = [{"text": "\ud83d \u2028 \x00"}, {"text": ""}]
    write_jsonl(tmp_path / "a.jsonl", rows)
    assert read_jsonl(tmp_path / "a.jsonl") == rows


def test_what_cannot_be_read(tmp_path: Path) -> None:
    assert read_json(tmp_path / "missing.json") == {}
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2 is damaged"):
        read_jsonl(tmp_path / "a.jsonl")


def test_no_link_is_written_through(tmp_path: Path) -> None:
    """Whoever may write to the folder can guess a process's number, and lay links at all temporary names made of it."""
    victim, file = tmp_path / "precious", tmp_path / "shared" / "metrics.json"
    victim.write_text("kept")
    file.parent.mkdir()
    for number in range(max(2, os.getpid() - 50), os.getpid() + 50):
        for name in (f".{file.name}.{number}", f".{file.name}.{number}.partial", f"{file.name}.{number}"):
            (file.parent / name).symlink_to(victim)
    write_json(file, {})
    write_training_json(file, {})
    Endpoint(url="u", fingerprint="f", mode="fast", device="d").write(file)
    file.unlink()
    file.symlink_to(victim)
    write_bytes(file, b"x")
    assert not file.is_symlink()
    assert victim.read_text() == "kept"


def test_temporary_names_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a name that was guessed."""
    monkeypatch.setattr(secrets, "token_hex", lambda size: "00" * size)
    (tmp_path / f".a.{'00' * 8}").symlink_to(tmp_path / "precious")
    with pytest.raises(FileExistsError):
        write_bytes(tmp_path / "a", b"x")
    assert not (tmp_path / "precious").exists()


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    """The kernel's error of a write has no name; a limit on the size of files stands for the disk."""
    code = (
        "import resource, signal, sys; from pathlib import Path; from proctor import cli; from serving import files\n"
        "from serving.ledger import Ledger; from serving.records import Completion, Request, Sampling\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))\n"
        "what, folder = sys.argv[1], Path(sys.argv[2])\n"
        "def fill(**_):\n"
        "    if what == 'file': files.write_bytes(folder / 'records.jsonl', bytes(9999))\n"
        "    if what == 'copy':\n"
        "        import shutil; shutil.copyfile(sys.executable, folder / 'copy')\n"
        "    if what == 'ledger':\n"
        "        one = Completion(text='x' * 9999, finish_reason='stop', prompt_tokens=1, output_tokens=1)\n"
        "        asked = Request(prompt='q', sampling=Sampling(max_tokens=1))\n"
        "        Ledger(folder / 'ledger').append(role='r', fingerprint='f', mode='fast', seconds=1.0,"
        " requests=[asked], answers=[one])\n"
        "cli.app = fill; cli.main()"
    )
    for what, named in (("file", "records.jsonl"), ("copy", "copy"), ("ledger", "ledger/")):
        done = subprocess.run([sys.executable, "-c", code, what, str(tmp_path)], capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        assert f"{tmp_path}/{named}" in done.stderr
        assert done.stderr.rstrip().endswith("File too large")


def test_a_full_disk_under_weights_names_the_file(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    import numpy as np
    from safetensors.numpy import save_file

    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        with (
            pytest.raises(OSError, match="No space left on device") as caught,
            beside(tmp_path / "m.safetensors") as name,
        ):
            save_file({"w": np.zeros(1_000_000)}, name)
        assert caught.value.filename == str(tmp_path / "m.safetensors")
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)
