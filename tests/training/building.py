"""Builds a candidate in another process, as tests that stop it want."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from training.config import TrainingJob

BUILD = (
    "import sys, json, torch; torch.set_num_threads(1); from pathlib import Path; "
    "from training.build import build_candidate; from training.config import TrainingJob; "
    "build_candidate(TrainingJob(**json.loads(Path(sys.argv[1]).read_text())), Path(sys.argv[2]))"
)


def start(job: TrainingJob, out: Path) -> subprocess.Popen[bytes]:
    file = out.with_suffix(".json")
    file.write_text(job.model_dump_json(), encoding="utf-8")
    return subprocess.Popen([sys.executable, "-c", BUILD, str(file), str(out)])


def complete_checkpoints(out: Path) -> list[Path]:
    """The marks of the leaking phase's complete checkpoints."""
    return list((out / ".partial" / "leak" / "checkpoints").glob("checkpoint-*/COMPLETE"))


def newest(out: Path) -> int:
    """Step of the newest complete checkpoint of the leaking phase; 0 if there is none."""
    return max((int(path.parent.name.rpartition("-")[2]) for path in complete_checkpoints(out)), default=0)
