"""What `meson install` would put on a system: what its users can use, and nothing else."""
import json
import re
import shutil
import subprocess
import unittest

import tree


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        meson = shutil.which("meson")
        if meson is None:
            raise unittest.SkipTest("meson is not in PATH")
        told = subprocess.run([meson, "introspect", "--installed", str(tree.BUILD)],
                              check=True, capture_output=True, text=True).stdout
        cls.places = sorted(json.loads(told).values())

    def those(self, pattern):
        return [place for place in self.places if re.search(pattern, place)]

    def test_the_program_and_its_files(self):
        for pattern in (r"/bin/rlmd$", r"/rlmd/prices\.json$", r"/rlmd/worker/repl\.py$",
                        r"/rlmd/worker/messages\.py$", r"/rlmd/worker/_rlmd\.abi3\.so$"):
            with self.subTest(pattern):
                self.assertEqual(len(self.those(pattern)), 1, self.places)

    def test_nothing_that_cannot_be_linked(self):
        """A header is of use with a library and the file that tells pkg-config of it, or not."""
        headers = self.those(r"/include/|\.h$")
        libraries = self.those(r"/librlmd\.(a|so)")
        configuration = self.those(r"/pkgconfig/.*\.pc$")
        self.assertEqual([bool(headers), bool(libraries), bool(configuration)],
                         [bool(libraries)] * 3, self.places)

    def test_documents_promise_no_other_library(self):
        """What README.md and docs/plans.md tell C programs is true of what is installed."""
        if self.those(r"/librlmd\."):
            return
        for document in ("README.md", "docs/plans.md", "docs/architecture.md"):
            text = " ".join(tree.read(document).split())
            with self.subTest(document):
                self.assertNotRegex(text, r"C programs (have|use|through|link)")
                self.assertNotRegex(text, r"all but plans|but for plans")


if __name__ == "__main__":
    unittest.main()
