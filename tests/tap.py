#!/usr/bin/env python3
"""tests/tap.py [--part N/ALL] FILE [NAME...] - runs a file of unittest tests and speaks TAP.

One line a test method; a failed subTest fails its method. NAME picks classes and methods
(`Class`, `Class.method`); --part 2/3 the second, the fifth and so on of the tests, so that a long
file can be run by several at a time. Whatever the tests print goes to standard error. Fails when
a test failed or when none ran.
"""
import faulthandler
import importlib.util
import os
import signal
import sys
import unittest
from pathlib import Path


class TapResult(unittest.TestResult):
    """Prints a line as each test ends."""

    def __init__(self, out):
        super().__init__()
        self.out = out
        self.number = 0
        self.bad = False
        self.begin()

    def begin(self):
        self.good = False
        self.directive = ""
        self.details = []

    def startTest(self, test):
        super().startTest(test)
        self.begin()

    def stopTest(self, test):
        super().stopTest(test)
        self.say(test)
        self.begin()

    def say(self, test):
        self.number += 1
        self.bad = self.bad or not self.good or bool(self.details)
        verdict = "ok" if self.good and not self.details else "not ok"
        name = test.id()
        if isinstance(test, unittest.TestCase):
            name = name.split(".", 1)[1]
        print(f"{verdict} {self.number} - {name}{self.directive}", file=self.out)
        for line in "\n".join(self.details).splitlines():
            print(f"# {line}", file=self.out)
        self.out.flush()

    def say_outside(self, test):
        """For what happens in setUpClass or setUpModule, where no test has started."""
        if not isinstance(test, unittest.TestCase):
            self.say(test)
            self.begin()

    def fail_with(self, test, error):
        self.details.append(self._exc_info_to_string(error, test))
        self.say_outside(test)

    def addSuccess(self, test):
        self.good = True

    def addError(self, test, err):
        self.fail_with(test, err)

    def addFailure(self, test, err):
        self.fail_with(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.details.append(f"{subtest._subDescription()}:")
            self.details.append(self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        self.good = True
        self.directive = " # SKIP " + " ".join(str(reason).split())
        self.say_outside(test)


def load(path):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def tests_in(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from tests_in(each)
        else:
            yield each


def part_of(suite, part):
    """The tests of a part, in their order; a part without any would fail, for none ran."""
    number, parts = map(int, part.split("/"))
    return unittest.TestSuite(list(tests_in(suite))[number - 1 :: parts])


def take_signals():
    """The program that starts us may ignore some, as nohup does; so would all that we start."""
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def main(arguments):
    part = None
    if arguments[:1] == ["--part"]:
        part, arguments = arguments[1], arguments[2:]
    if not arguments:
        sys.exit("usage: tests/tap.py [--part N/ALL] FILE [NAME...]")
    take_signals()
    faulthandler.enable()
    faulthandler.register(signal.SIGTERM, chain=True)  # where it hung

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.dont_write_bytecode = True

    module = load(Path(arguments[0]).resolve())
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromModule(module)
    if arguments[1:]:
        suite = loader.loadTestsFromNames(arguments[1:], module)
    if part:
        suite = part_of(suite, part)

    print("TAP version 13", file=out, flush=True)
    result = TapResult(out)
    suite.run(result)
    print(f"1..{result.number}", file=out, flush=True)
    return 1 if result.bad or result.number == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
