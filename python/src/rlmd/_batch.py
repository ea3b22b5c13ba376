"""Batches: tasks in a file, whose answers outlive this process."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union, cast

from ._answer import Answer
from ._errors import Error, UsageError, error_of
from ._server import SOCKET, command

Job = Mapping[str, Any]
Jobs = Union[str, "os.PathLike[str]", Iterable[Job]]
ERROR = "rlmd: error: "
# Statuses of `rlmd batch` with which nothing ran, or it could not go on: see rlmd-batch(1).
NOTHING_RAN = {1: "internal", 2: "usage", 7: "sandbox", 8: "input"}


class Batch(Dict[str, Any]):
    """The object of `rlmd batch --json`; answers() has what each job came to."""

    def __init__(self, report: Dict[str, Any], results: str):
        super().__init__(report)
        self.results = results

    @property
    def success(self) -> bool:
        return bool(self["success"])

    @property
    def cost(self) -> float:
        """US dollars, of all starts."""
        return float(self["cost"])

    def answers(self) -> Iterator[Tuple[str, Union[Answer, Error]]]:
        """(custom_id, Answer, or the Error for which there is none) of each job that is over, in the
        order in which they ended."""
        with open(self.results, encoding="utf-8") as lines:
            for line in lines:
                result = json.loads(line)
                error = result.get("error")
                yield result["custom_id"], (
                    error_of(error["kind"], error["message"], result) if error else Answer(result))


def batch(jobs: Jobs, results: "str | os.PathLike[str]", /, *, binary: Optional[str] = None,
          **options: Any) -> Batch:
    """Answers each job and appends its result to the file `results`: `rlmd batch`.

    jobs: a file as rlmd-batch(1) has it, or dicts like its lines, with "custom_id" and "task";
    those are written to a file beside the results. The options are those of the command. Ended in
    any way, also killed, the same call goes on with the jobs that are left, and pays nothing twice.
    Jobs that fail are no exception: they are in the report and among its answers. UsageError,
    InputError, SandboxError where nothing ran. Ctrl-C stops after the jobs that are at work; once
    more at once.
    """
    results = os.fspath(results)
    argv = command(binary)
    if argv[0].startswith(SOCKET):
        raise UsageError("a batch needs the program rlmd, not a server at a socket")
    path = os.fspath(jobs) if isinstance(jobs, (str, os.PathLike)) else write_jobs(jobs, results)
    process = subprocess.Popen([*argv, "batch", "--json", *flags(options), "-o", results, "--", path],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    out, err = wait_for(process)
    status = process.returncode
    report: Dict[str, Any] = json.loads(out) if out.strip() else {}
    if status in NOTHING_RAN or not report:
        told: Dict[str, str] = report.get("error") or {}
        raise error_of(told.get("kind", "") or NOTHING_RAN.get(status, "internal"),
                       told.get("message") or said(err) or f"rlmd ended (status {status})")
    return Batch(report, results)


def said(errors: bytes) -> str:
    """The last error, or the last line."""
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    wrong = [line.partition(ERROR)[2] for line in lines if line.startswith(ERROR)]
    return ([""] + lines + wrong)[-1]


def wait_for(process: "subprocess.Popen[bytes]") -> Tuple[bytes, bytes]:
    """The program has Ctrl-C, too, and says in its report how far it came."""
    while True:
        try:
            return process.communicate()
        except KeyboardInterrupt:
            continue
        except BaseException:
            process.kill()
            process.wait()
            raise


def write_jobs(jobs: Iterable[Job], results: str) -> str:
    path = results + ".jobs.jsonl"
    lines = [json.dumps(dict(job), ensure_ascii=False) + "\n" for job in jobs]
    new = path + ".new"
    with open(new, "w", encoding="utf-8") as file:
        file.writelines(lines)
    os.replace(new, path)
    return path


def flags(options: Mapping[str, Any]) -> List[str]:
    """max_cost=1 is --max-cost=1, sort=True is --sort=yes, preload=["a", "b"] is --preload twice."""
    found: List[str] = []
    for name, value in options.items():
        name = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            found.append(f"{name}={'yes' if value else 'no'}")
        elif isinstance(value, (list, tuple)):
            found += [f"{name}={each}" for each in cast(Iterable[Any], value)]
        elif value is not None:
            found.append(f"{name}={value}")
    return found
