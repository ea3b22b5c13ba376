"""librlmd.so: what it gives to those who link it, and no more."""

import re
import shutil
import subprocess
import unittest

from public import BUILD, LIBRARY, all_functions


def symbols(*flags):
    """{name without its version: the letter of its kind}"""
    told = subprocess.run([shutil.which("nm"), "-D", *flags, str(LIBRARY)],
                          check=True, capture_output=True, text=True).stdout
    found = {}
    for line in told.splitlines():
        *_, kind, name = line.split()
        found[name.split("@")[0]] = kind
    return found


class SymbolsTest(unittest.TestCase):
    def test_exports_are_the_headers(self):
        exported = symbols("--defined-only")
        self.assertEqual(exported.pop("RLMD_0.1"), "A")
        self.assertEqual(sorted(exported), sorted(all_functions()))
        self.assertEqual(set(exported.values()), {"T"}, "functions, no data")

    def test_each_has_a_version(self):
        told = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", str(LIBRARY)],
                              check=True, capture_output=True, text=True).stdout
        for line in told.splitlines():
            self.assertRegex(line, r"@@RLMD_\d+\.\d+$| A RLMD_0\.1$")

    def test_what_it_asks_of_the_c_library(self):
        """Nothing that ends the process, prints on standard output, or changes the environment
        or what signals do.

        What tells that memory is out writes to standard error, just before abort(). _exit() is
        called between vfork() and exec() only, in a child.
        """
        asked = set(symbols("--undefined-only"))
        forbidden = {"exit", "_Exit", "quick_exit", "setenv", "unsetenv", "putenv", "clearenv",
                     "stdout", "printf", "__printf_chk", "puts", "putchar", "perror", "setlocale",
                     "umask", "atexit", "system", "sigaction", "signal", "__sysv_signal",
                     "sigset", "siginterrupt", "sigaltstack"}
        self.assertEqual(asked & forbidden, set())
        self.assertIn("abort", asked, "the test reads what it should")

    def test_name(self):
        """The one that programs ask for changes with the ABI, not with each release."""
        told = subprocess.run(["readelf", "-d", str(LIBRARY)], check=True, capture_output=True,
                              text=True).stdout
        self.assertEqual(re.findall(r"\(SONAME\).*\[(.*)\]", told), ["librlmd.so.0"])
        self.assertEqual((BUILD / "librlmd.so").resolve(), (BUILD / "librlmd.so.0").resolve())


if __name__ == "__main__":
    unittest.main()
