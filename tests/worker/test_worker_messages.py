"""The table of messages is the same on both sides, and nothing in it is passed over."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["RLMD_SOURCE_ROOT"])
BUILT = Path(os.environ["RLMD_BUILD_ROOT"]) / "worker"
TABLE = SOURCE / "src/wire/messages.def"
BOUNDS = SOURCE / "src/wire/bounds.h"
PLAN = SOURCE / "include/rlmd/plan.h"

sys.path.insert(0, str(BUILT))


class Messages(unittest.TestCase):
    def generate(self, table):
        with tempfile.TemporaryDirectory() as folder:
            source, output = Path(folder, "messages.def"), Path(folder, "messages.py")
            source.write_text(table)
            result = subprocess.run(
                [sys.executable, SOURCE / "worker/generate_messages.py", source, BOUNDS, PLAN,
                 output],
                stderr=subprocess.PIPE, text=True,
            )
            return result, output.read_text() if output.exists() else None

    def test_every_row_arrives(self):
        import messages

        table = TABLE.read_text().split("*/", 1)[1]
        self.assertEqual(len(messages.MESSAGES), len(re.findall(r"\bMESSAGE\(", table)))
        fields = sum(len(fields) for _sender, fields in messages.MESSAGES.values())
        self.assertEqual(fields, len(re.findall(r"\bFIELD\(", table)))
        self.assertEqual(messages.MESSAGES["reply"], ("supervisor", {
            "id": "INTEGER", "values": "TEXTS", "errors": "STRINGS_NULL", "messages": "TEXTS",
            "degraded": "STRINGS_NULL"}))

    def test_built_file_is_up_to_date(self):
        self.assertEqual(self.generate(TABLE.read_text())[1], (BUILT / "messages.py").read_text())

    def test_what_is_not_understood_fails_the_build(self):
        for row in ('MESSAGE(X, "x", NOBODY, IN(IDLE), "")',
                    'FIELD(READY, x, STRING, FRAME, "not in its place")',
                    "OTHER(X)", 'MESSAGE(X, "x", WORKER, IN(IDLE), "")\n  FIELD(X, y, FLOAT, FRAME, "")'):
            with self.subTest(row):
                result, output = self.generate(TABLE.read_text() + row + "\n")
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("not understood", result.stderr)
                self.assertIsNone(output)


if __name__ == "__main__":
    unittest.main()
