"""examples/batch/work.slurm on a Slurm of one node, which is set up here: as root, where its packages
are installed (slurmctld, slurmd, slurm-client, munge)."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(os.environ.get("RLMD_SOURCE_ROOT", pathlib.Path(__file__).parents[2]))
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "system")]

import patience  # noqa: E402
import postgres  # noqa: E402
import servers  # noqa: E402
from harness import RLMD  # noqa: E402
from providers import ProviderTest, final  # noqa: E402

os.environ["PATH"] += ":/usr/sbin:/sbin"
MISSING = [name for name in ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
           if not shutil.which(name)]
CONFIGURATION = """
ClusterName=rlmd
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=8192 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def setUpModule():
    servers.wanted("`tools/test --suite real` runs it on a Slurm of one node")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@unittest.skipIf(MISSING, f"Slurm is not installed: {', '.join(MISSING)}")
@unittest.skipIf(postgres.missing(), postgres.missing())
@unittest.skipIf(os.geteuid(), "only root sets up a Slurm that starts jobs")
class SlurmTest(ProviderTest):
    JOBS, NODES = 12, 3

    def setUp(self):
        super().setUp()
        self.store = postgres.PostgresServer().start()
        self.addCleanup(self.store.remove)
        for name in ("state", "spool"):
            (self.dir / name).mkdir()
        self.write("munge.key", os.urandom(128))
        (self.dir / "munge.key").chmod(0o600)
        self.write("slurm.conf", CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], dir=self.dir, cpus=os.cpu_count(),
            ports=free_ports(2)))
        self.variables = {**os.environ, "SLURM_CONF": str(self.dir / "slurm.conf")}
        self.daemon("munged", "--foreground", "--force", f"--key-file={self.dir}/munge.key",
                    f"--socket={self.dir}/munge.socket", f"--pid-file={self.dir}/munged.pid",
                    f"--log-file={self.dir}/munged.log", f"--seed-file={self.dir}/munge.seed")
        self.until(lambda: (self.dir / "munge.socket").exists())
        self.daemon("slurmctld", "-D")
        self.daemon("slurmd", "-D")
        self.until(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"))

    def daemon(self, *command):
        with open(self.dir / f"{command[0]}.out", "wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, env=self.variables,
                                       cwd=self.dir, start_new_session=True)

        def end():
            process.send_signal(signal.SIGTERM)
            process.wait()

        self.addCleanup(end)

    def ask(self, *command, **more):
        return subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**self.variables, **more}).stdout

    def until(self, condition):
        end = time.monotonic() + patience.hung()
        while not condition():
            self.assertLess(time.monotonic(), end, "Slurm does not get on")
            time.sleep(0.1)

    def test_an_array(self):
        """As many machines as the array has members; each job is done by one of them, once."""
        server = self.serve("openai").script(None, final())
        self.write("jobs.jsonl", "".join(
            json.dumps({"custom_id": f"job {i}", "task": f"task {i}"}) + "\n"
            for i in range(self.JOBS)))
        store = ["--store", self.store.url]
        outcome = self.rlmd("batch", *store, "--submit", "jobs.jsonl")
        self.assertEqual(outcome.status, 0, outcome.err)
        env = {**self.environment(**server.environment()), "RLMD_JOBS": self.store.url,
               "RLMD": RLMD, "RLMD_PROVIDER": "openai", "RLMD_MODEL": "m"}
        submitted = self.ask("sbatch", "--parsable", f"--array=1-{self.NODES}", "--mem=0",
                             "--cpus-per-task=1", "--chdir", str(self.dir), "--output=%a.out",
                             str(ROOT / "examples/batch/work.slurm"), "jobs.jsonl", **env)
        self.assertTrue(submitted.strip().isdigit(), submitted)
        self.until(lambda: not self.ask("squeue", "-h").strip())
        told = [path.read_text() for path in sorted(self.dir.glob("*.out"))
                if path.stem.isdigit()]
        self.assertEqual(len(told), self.NODES)
        for each in told:
            self.assertIn(f"{self.JOBS} jobs: {self.JOBS} succeeded", each)
        outcome = self.rlmd("results", *store, "-o", "results.jsonl")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(len(server.requests), self.JOBS)


if __name__ == "__main__":
    unittest.main()
