"""A tree of files through the real program: what its model is told, and what its sub-runs get."""

import json
import re
import unittest

from harness import block
from model import Reply
from providers import ProviderTest, final

FILES = {
    "README.md": "# Net\n\nA small library.\n",
    "src/main.c": "#include \"net/tcp.h\"\n\nint main(void)\n{\n\treturn dial();\n}\n",
    "src/net/tcp.c": "int dial(void)\n{\n\treturn 0; /* never */\n}",
    "src/net/tcp.h": "int dial(void);\n",
    "src/net/\u00fcdp.c": "/* \u20ac */\n",
    "tools/run": "#!/bin/sh\necho dial\n",
}
LOOK = """
print(json.dumps([dict(context.files), [[*each] for each in grep("dial")], find_files("**/*.c"),
                  read_lines("src/net/tcp.c", 2, 3), [[*each] for each in outline("src/net/tcp.c")],
                  len(context)]))
"""


class CodeBase(ProviderTest):
    def setUp(self):
        super().setUp()
        for path, text in FILES.items():
            self.write(f"tree/{path}", text)

    def printed(self, request):
        return json.loads(re.search(r"^\[\[?\{.*|^\[\{.*", request.last_user, re.M).group())

    def run_over(self, task_of_root, *arguments):
        """The view of a sub-run that the root's code started, as `LOOK` prints it."""
        server = self.serve("openai")
        seen = []

        def reply(request):
            if "SUB-RLM at depth" not in request.system:
                return Reply(text=block(task_of_root)) if request.turn == 0 else final()
            if request.turn == 0:
                return Reply(text=block("import json", LOOK))
            seen.append(request)
            return final()

        server.script(None, reply)
        self.ask(server, "-c", "tree", "--downgrade", "0", *arguments)
        return seen

    def test_helpers_are_told_of_where_there_are_files(self):
        server = self.serve("openai", final())
        self.ask(server, "-c", "tree")
        request = server.requests[0]
        for name in ("tree(", "find_files(", "grep(", "read_lines(", "outline(", "context.subset("):
            self.assertIn(name, request.system)
        self.assertIn("to read first: README.md, src/main.c\n", request.last_user)
        self.assertRegex(request.last_user, r"\nsrc/  4 files, 1\d\d B\n  net/  3 files, ")

    def test_subset(self):
        """Whole paths, the same functions, exact lines; nothing else of the tree."""
        for code, chosen in (
            ("rlm_query('look', ctx=context.subset('src/net/'))",
             [path for path in FILES if path.startswith("src/net/")]),
            ("part = context.subset('README.md', 'src/net')\n"
             "batch_rlm_query([{'task': 'look', 'context': part}])",
             [path for path in FILES if path.startswith(("src/net/", "README"))]),
            ("rlm_query('look', ctx=context)", list(FILES)),
            ("rlm_query('look', ctx=repo.subset('src/net'))", ["src/net/tcp.c", "src/net/tcp.h",
                                                               "src/net/\u00fcdp.c"]),
        ):
            with self.subTest(code):
                (request,) = self.run_over(code, "-c", "repo=tree")
                files, found, globbed, lines, outline, size = self.printed(request)
                self.assertEqual(files, {path: FILES[path] for path in chosen})
                self.assertEqual(globbed, [path for path in chosen if path.endswith(".c")])
                self.assertEqual(lines, "{\n\treturn 0; /* never */\n")
                self.assertEqual(outline, [[1, "function", "dial"]])
                self.assertEqual(found, [
                    [path, number, line] for path in chosen
                    for number, line in enumerate(FILES[path].split("\n"), 1) if "dial" in line])
                self.assertIn("grep(pattern", request.system)
                self.assertIn(f"{len(chosen)} files in `context.files`", request.messages[1][1])
                self.assertIn(f": {size} characters", request.messages[1][1])

    def test_subset_of_a_subset(self):
        server = self.serve("openai")
        told = []

        def reply(request):
            depth = re.search(r"SUB-RLM at depth (\d)", request.system)
            if depth is None:
                code = "rlm_query('a', ctx=context.subset('src/'))"
            elif depth.group(1) == "1":
                code = "rlm_query('b', ctx=context.subset('src/net/tcp.*'))"
            else:
                code = "print(list(context.files), context.files['src/net/tcp.h'])"
                if request.turn:
                    told.append(request.last_user)
            return Reply(text=block(code)) if request.turn == 0 else final()

        server.script(None, reply)
        self.ask(server, "-c", "tree", "--downgrade", "0", "--max-depth", "3")
        self.assertIn("['src/net/tcp.c', 'src/net/tcp.h'] int dial(void);", told[0])

    def test_a_path_that_is_not_there(self):
        server = self.serve("openai", Reply(text=block("open('tcp.c')")),
                            Reply(text=block("read_lines('net/tcp.c', 1, 1)")), final())
        self.ask(server, "-c", "tree")
        self.assertIn("context.files['src/net/tcp.c'] is its text", server.requests[1].last_user)
        self.assertIn("near it: 'src/net/tcp.c'", server.requests[2].last_user)


if __name__ == "__main__":
    unittest.main()
