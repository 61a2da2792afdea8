"""What models were asked and answered is nobody else's on a shared machine: folders of results have mode 0700."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.run_folder.single import once
from serving.files import output_folder, write_jsonl
from tests.proctor.command import proctor, write_experiment
from tests.proctor.scripted import scripted
from tests.serving.impostor import OTHER_USER


@pytest.fixture(autouse=True)
def _usual_umask() -> object:
    former = os.umask(0o022)
    yield
    os.umask(former)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def others_read(folder: Path) -> bool:
    """Whether another user can read the records below a folder. Skips where there is none to be."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as another user")
    for parent in list(folder.parents)[:4]:  # pytest's own are 0700, which would hide what is tested
        if parent != parent.parent and parent.stat().st_mode & 0o055 != 0o055:
            parent.chmod(parent.stat().st_mode | 0o055)
    file = next(folder.rglob("records.jsonl"))
    code = (
        f"import os; os.setgroups([]); os.setgid({OTHER_USER}); os.setuid({OTHER_USER})\n"
        f"try:\n    open({str(file)!r}); print('read')\nexcept PermissionError:\n    print('kept out')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout == "read\n"


def test_a_run_folder_is_its_users_alone(tmp_path: Path) -> None:
    file = write_experiment(tmp_path, scripted(exams={"static": {"protocol": "static"}}, detection=None))
    assert proctor("run", file, "--out", tmp_path / "run", "--only", "exam").returncode == 0
    assert mode(tmp_path / "run") == 0o700
    write_jsonl(tmp_path / "run" / "stages" / "kieval.one" / "records.jsonl", [])
    assert not others_read(tmp_path / "run")
    assert proctor("run", file, "--out", tmp_path / "run", "--only", "static.two", "--share").returncode == 0
    assert mode(tmp_path / "run") == 0o755
    assert others_read(tmp_path / "run")


def test_folders_of_single_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def body(folder: Path, report: object) -> list[str]:
        (folder / "records.jsonl").write_text("{}\n")
        return ["records.jsonl"]

    assert once(tmp_path / "new" / "out", {}, body)
    assert (mode(tmp_path / "new"), mode(tmp_path / "new" / "out")) == (0o755, 0o700)
    (tmp_path / "open").mkdir(mode=0o755)
    assert once(tmp_path / "open", {}, body)
    assert mode(tmp_path / "open") == 0o755, "a folder that is there keeps its mode"
    monkeypatch.setenv("PROCTOR_SHARE", "1")
    assert once(tmp_path / "shared", {}, body)
    assert mode(tmp_path / "shared") == 0o755
    os.umask(0o027)
    output_folder(tmp_path / "group")
    assert mode(tmp_path / "group") == 0o750, "as far as the umask lets others in"
