"""A real SLURM on localhost, in a temporary folder: munged, slurmctld, slurmd, and one node with two pretended GPUs."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.proctor.command import descendants

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
CONFIGURATION = """\
ClusterName=proctor
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=10
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=50000,batch_sched_delay=0,requeue_delay=1
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=5
KillWait=2
MinJobAge=300
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobRequeue=1
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=16000 Gres=gpu:a100:2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
GPUS = "Name=gpu Type=a100 File=/dev/null\nName=gpu Type=a100 File=/dev/zero\n"


def missing() -> str | None:
    """Why SLURM can't be started here, or None."""
    if os.geteuid() != 0:
        return "SLURM's daemons need root here"
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)} (apt-get install slurm-wlm munge)" if absent else None


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = socket.gethostname().partition(".")[0]
        self.configuration = folder / "slurm.conf"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        text = CONFIGURATION.format(
            host=self.host, folder=self.folder, controller_port=_free_port(), node_port=_free_port()
        )
        self.configuration.write_text(text, encoding="utf-8")
        (self.folder / "gres.conf").write_text(GPUS, encoding="utf-8")
        os.environ["SLURM_CONF"] = str(self.configuration)
        files = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        options = [f"--{option}={self.folder}/munge.{name}" for option, name in files.items()]
        self._daemon("munged", "--force", "--foreground", f"--key-file={key}", *options)
        wait_for((self.folder / "munge.socket").exists, 60, "munged")
        self._daemon("slurmctld", "-D", "-c", "-f", str(self.configuration))
        self.start_node()

    def start_node(self) -> None:
        self._daemon("slurmd", "-D", "-f", str(self.configuration), "-N", self.host)
        wait_for(lambda: self.node_state() in ("idle", "mixed", "allocated"), 60, "the node to be ready")

    def node_state(self) -> str:
        done = subprocess.run(["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True, timeout=60)
        return done.stdout.strip().rstrip("*")  # nothing while the controller starts

    def kill_node(self) -> None:
        """What the loss of a node is like: slurmd and everything that it started are gone, and nobody says so."""
        daemon = self._daemons["slurmd"]
        steps = [pid for pid, command in _processes() if command.startswith("slurmstepd") and _is_ours(pid, self)]
        everything = [daemon.pid, *steps, *(pid for step in steps for pid in descendants(step))]
        for pid in everything:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        daemon.wait()

    def stop(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
            _call("scancel", f"--user={os.getuid()}", "--signal=KILL", "--full")
            _call("scancel", f"--user={os.getuid()}")
            wait_for(lambda: not queue(), 10, "the queue to empty")
        for daemon in reversed(self._daemons.values()):
            daemon.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(timeout=20)
            daemon.kill()
            daemon.wait()
        os.environ.pop("SLURM_CONF", None)

    def _daemon(self, *command: str) -> None:
        """Starts it so that it ends with this process, however that ends."""
        null = subprocess.DEVNULL
        self._daemons[command[0]] = subprocess.Popen(
            command, stdin=null, stdout=null, stderr=null, start_new_session=True, preexec_fn=_end_with_parent
        )


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def queue() -> dict[str, str]:
    """State by job (array tasks as JOB_TASK) of all that have not ended."""
    lines = _call("squeue", "--noheader", "--array", "--format=%i|%T").splitlines()
    return dict(line.split("|") for line in lines)


def job_state(job: str) -> str:
    """The state of a job or of one array task, also after its end."""
    lines = _call("squeue", "--noheader", "--array", "--states=all", f"--jobs={job}", "--format=%T").split()
    return lines[0] if lines else ""


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.1)


def wait_for_end(seconds: float = 240) -> None:
    wait_for(lambda: not queue(), seconds, f"the queue to empty; it holds {queue()}")


def _call(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _is_ours(pid: int, cluster: Cluster) -> bool:
    """Whether a step was started by this cluster's slurmd: another test process may have its own."""
    try:
        return str(cluster.folder).encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _processes() -> list[tuple[int, str]]:
    return [(int(entry.name), _command(int(entry.name))) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
