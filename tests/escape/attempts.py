"""The attempts as data: what is tried, and how it must end.

An attempt is a block of Python that runs in a real worker behind toolbox.py. It ends in one word:

    EPERM, ENOSYS, ...    the number of the OSError that ended it
    MemoryError, ...      the class of another exception
    held                  it looked itself, and printed `held`; if it printed else, that is a hole
    returned              it came to its end
    SIGSYS                the worker was killed for a forbidden system call
    violation             the worker was killed for breaking the protocol
    time                  it was interrupted, or killed, for its time was up
    died                  the worker ended otherwise

`expect` has the words that are right, the first being the usual one: where several are, a layer
that not every machine has answers before another.
"""

import dataclasses
import importlib
from typing import Dict, List

GROUPS = ("files", "network", "processes", "kernel", "memory", "time", "supervisor", "others",
          "secrets")


@dataclasses.dataclass(frozen=True)
class Attempt:
    group: str
    name: str
    code: str
    expect: str

    @property
    def words(self) -> List[str]:
        return self.expect.split()


class Group:
    """Collects what one file of attempts has; `arguments` are added to those of its run."""

    def __init__(self, name: str, *arguments: str):
        self.name = name
        self.arguments = arguments
        self.attempts: Dict[str, Attempt] = {}

    def add(self, name: str, expect: str, code: str):
        if name in self.attempts:
            raise ValueError(f"two attempts named {name}")
        self.attempts[name] = Attempt(self.name, name, code.strip("\n"), expect)

    def each(self, expect: str, **codes: str):
        """Several that are to end alike."""
        for name, code in codes.items():
            self.add(name, expect, code)


def load() -> List[Group]:
    return [importlib.import_module("attempt_" + name).GROUP for name in GROUPS]
