"""Each block of Python in docs/python.md and python/README.md runs, one after the other."""

import contextlib
import io
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import test_client  # noqa: E402
from model import ModelServer, Reply  # noqa: E402


def reply(request):
    if "failed most often" in request.first_turn:
        return Reply(text='FINAL({"name": "web-1", "failures": 7})')
    if "customer 7" in request.first_turn:
        if not request.turn:
            return Reply(text=test_client.code("town = customer(7)['town']"))
        return Reply(text="FINAL_VAR(town)")
    return Reply(text="FINAL(web-1)")


class Documents(test_client.PythonTest):
    def setUp(self):
        super().setUp()
        server = ModelServer(provider="openai")
        server.script(None, reply)
        self.addCleanup(server.stop)
        server.start()
        test_client.os.environ.update(server.environment())
        test_client.os.environ["OPENAI_API_KEY"] = server.key
        self.write("big.log", "web-1 failed\nweb-2 failed\nweb-3 is well\n")

    def check(self, page, printed):
        blocks = re.findall(r"(?s)```python\n(.*?)```", (test_client.ROOT / page).read_text())
        names = {"__name__": "page"}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            for block in blocks:
                exec(compile(block, page, "exec", dont_inherit=True), names)
        for text in printed:
            self.assertIn(text, out.getvalue())
        self.assertEqual(len(blocks), len(printed))

    def test_the_page(self):
        self.check("docs/python.md", ["web-1 0.", "web-1\nweb-1\n", "FINAL(web-1)", "London", "web-1 7", "\n", "3 London\n",
                                     "'calls': 9999", "web-1 0.", "big.log web-1\n"])

    def test_the_readme(self):
        self.check("python/README.md", ["web-1 0."])


if __name__ == "__main__":
    unittest.main()
