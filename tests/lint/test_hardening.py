"""All that is built and installed is hardened: read from the ELF files themselves."""
import json
import re
import shlex
import subprocess
import unittest

import tree

PROGRAM = tree.BUILD / "rlmd"
LIBRARY = (tree.BUILD / "librlmd.so").resolve()
MODULE = tree.BUILD / "worker/_rlmd.abi3.so"  # in every worker
LISTER = tree.BUILD / "helper/rlmd-lister"
WHOLE = (PROGRAM, LIBRARY, MODULE, LISTER)

# A function that may be jumped to begins with one of these: endbr64; bti c, paciasp.
LANDING = {"X86-64": (bytes.fromhex("f30f1efa"),),
           "AArch64": (bytes.fromhex("5f2403d5"), bytes.fromhex("3f2303d5"))}


def options():
    told = subprocess.run(["meson", "introspect", "--buildoptions", str(tree.BUILD)], check=True,
                          capture_output=True, text=True).stdout
    return {option["name"]: option["value"] for option in json.loads(told)}


def readelf(file, *arguments):
    return subprocess.run(["readelf", "-W", *arguments, str(file)], check=True, text=True,
                          capture_output=True).stdout


def imports(file):
    return set(re.findall(r" UND (\w+)", readelf(file, "--dyn-syms")))


def commands():
    """source -> the words of the command that compiles it, of what is installed."""
    with open(tree.BUILD / "compile_commands.json", encoding="utf-8") as file:
        return {each["file"]: shlex.split(each["command"]) for each in json.load(file)
                if re.match(r"\.\./(src|worker)/", each["file"])}


def compiler_takes(words, *flags):
    compiler = words[:1 + words[0].endswith("ccache")]
    return subprocess.run([*compiler, "-O2", "-Werror", *flags, "-x", "c", "-S", "-o", "/dev/null",
                           "-"],
                          input="#include <stdio.h>\n", text=True, capture_output=True,
                          check=False).returncode == 0


class HardeningTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        built = options()
        if built["b_sanitize"] != "none" or built["b_coverage"] or built["optimization"] not in "23s":
            raise unittest.SkipTest("this build is to find faults, not to be installed")

    def test_addresses_are_random(self):
        for file in WHOLE:
            with self.subTest(file.name):
                self.assertRegex(readelf(file, "-h"), r"Type: +DYN ")
                self.assertNotIn("TEXTREL", readelf(file, "-d"))
        for file in (PROGRAM, LISTER):
            self.assertRegex(readelf(file, "-d"), r"FLAGS_1.*\bPIE\b")

    def test_tables_are_read_only_once_it_runs(self):
        for file in WHOLE:
            with self.subTest(file.name):
                self.assertIn("GNU_RELRO", readelf(file, "-l"))
                self.assertRegex(readelf(file, "-d"), r"FLAGS\b.*\bBIND_NOW\b|FLAGS_1.*\bNOW\b")

    def test_nothing_is_both_written_and_run(self):
        for file in WHOLE:
            with self.subTest(file.name):
                segments = readelf(file, "-l")
                self.assertRegex(segments, r"GNU_STACK .* RW +0x")
                self.assertNotRegex(segments, r"(?m)^ +\w+ +0x.* RWE ")

    def test_the_stack_and_buffers_are_guarded(self):
        for file in WHOLE:
            with self.subTest(file.name):
                self.assertIn("__stack_chk_fail", imports(file))
                self.assertTrue([name for name in imports(file)
                                 if re.match(r"__(?!stack)\w+_chk$", name)])

    def test_assertions_are_there(self):
        """They guard memory."""
        for file in (PROGRAM, LIBRARY):
            with self.subTest(file.name):
                self.assertIn("__assert_fail", imports(file))

    def test_jumps_have_places_to_land(self):
        """Functions that can be called through a pointer begin with the processor's mark."""
        machine = re.search(r"Machine: .*?(X86-64|AArch64)", readelf(PROGRAM, "-h"))
        if not machine:
            self.skipTest("this processor has no such mark that is known here")
        for file in (LIBRARY, MODULE):
            with self.subTest(file.name):
                text = re.search(r" \.text +PROGBITS +(\w+) (\w+) ", readelf(file, "-S"))
                shift = int(text[1], 16) - int(text[2], 16)
                with open(file, "rb") as code:
                    functions = re.findall(r": (\w+) +\d+ FUNC +GLOBAL +DEFAULT +\d+ (\w+)",
                                           readelf(file, "--dyn-syms"))
                    self.assertTrue(functions)
                    for address, name in functions:
                        code.seek(int(address, 16) - shift)
                        self.assertIn(code.read(4), LANDING[machine[1]], f"{file.name}: {name}")

    def test_every_source_is_compiled_so(self):
        """With what the compiler has of it, as far as a file cannot tell it afterwards."""
        every = commands()
        self.assertGreater(len(every), 100)
        words = next(iter(every.values()))
        wanted = [flag for flag in ("-fstack-protector-strong", "-fstack-clash-protection",
                                    "-fcf-protection", "-mbranch-protection=standard",
                                    "-D_FORTIFY_SOURCE=3") if compiler_takes(words, flag)]
        self.assertGreaterEqual(len(wanted), 3)
        for source, words in every.items():
            self.assertEqual([flag for flag in wanted if flag not in words], [], source)
            self.assertNotIn("-DNDEBUG", words, source)
            self.assertIn(words[max(i for i, word in enumerate(words) if word.startswith("-O"))],
                          ("-O2", "-O3"), source)


class LibrariesTest(unittest.TestCase):
    def test_no_library_that_parses_repositories_has_the_keys(self):
        """libgit2 is in the program that is sealed, and nowhere else."""
        self.assertIn("libgit2", readelf(LISTER, "-d"))
        for file in (PROGRAM, LIBRARY):
            self.assertNotIn("libgit2", readelf(file, "-d"), file.name)


if __name__ == "__main__":
    unittest.main()
