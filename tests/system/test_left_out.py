"""Text that looks like a secret is not in the context of a directory: left out, counted, named; and
sent where somebody names the file itself. The keys here are made up, and put together from pieces,
so that this file may be in a context."""

import json
import subprocess
import unittest

from harness import GuardedTest, block, turn

RANDOM = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2g3H4"

NAMES = (
    ".env", ".env.local", ".ENV", ".envrc", "id_rsa", "id_ed25519", "server.pem", "tls.KEY", "store.p12",
    ".netrc", ".git-credentials", "credentials", "prod.tfvars", "secrets.yaml", ".pgpass",
    ".ssh/config", ".aws/config", "a/.kube/config",
)

CONTENTS = {
    "aws": "AKIA" + "ABCDEFGH12345678",
    "example": "AKIA" + "IOSFODNN7EXAMPLE",
    "github": "ghp_" + RANDOM[:36],
    "pat": "github_pat_" + RANDOM[:60],
    "gitlab": "glpat-" + RANDOM[:20],
    "openai": "sk-" + RANDOM[:48],
    "project": "sk-proj-" + RANDOM[:48],
    "anthropic": "sk-ant-api03-" + RANDOM,
    "slack": "xoxb-" + "123456789012-" + RANDOM[:24],
    "google": "AIza" + RANDOM[:35],
    "npm": "npm_" + RANDOM[:36],
    "pem": "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIE\n-----END " + "RSA PRIVATE KEY-----",
    "openssh": "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
    "pkcs8": "-----BEGIN " + "PRIVATE KEY-----",
}

HONEST = {
    "environment.py": "import os", "env": "x", "keys.txt": "the key to success", "id_rsa.pub": "ssh-rsa AAAA",
    "task.txt": "task-" + RANDOM, "word.css": ".sk-fading-circle-animation-with-a-long-name { }",
    "short.txt": "sk-abc AKIA ghp_ xoxb-",
    "variable.npmrc": "x", ".npmrc": "save-exact=true", ".pypirc": "[distutils]",
    "certificate.txt": "-----BEGIN " + "CERTIFICATE-----", "lines.txt": "-----BEGIN \n" + "PRIVATE KEY",
    "inside.txt": "x" + "AKIA" + "ABCDEFGH12345678",
}


class LeftOut(GuardedTest):
    def sent(self, *arguments):
        """The text that the model's code has, and what was said of it."""
        outcome = self.replay([turn(block("FINAL(context)"))], *arguments)
        self.assertEqual(outcome.status, 0, outcome.err)
        return outcome.out, outcome.err

    def test_names(self):
        for name in NAMES:
            self.write("tree/" + name, f"password of {name}")
        self.write("tree/main.py", "code")
        text, err = self.sent("-c", "tree")
        self.assertEqual(text, "===== main.py =====\ncode\n")
        self.assertIn(f"tree: skipped {len(NAMES)} files that look like secrets: ", err)
        for name in NAMES:
            self.assertIn(name + " (", err)
        self.assertIn("; to send one, name it itself", err)

    def test_rlmdignore(self):
        """Of a directory, of one below it, and of a revision; a file that is named is sent."""
        for name in ("keep.c", "drop.txt", "sub/keep.c", "sub/old/drop.c"):
            self.write("tree/" + name, "text")
        self.write("tree/.rlmdignore", "*.txt\n/sub/old/\n.rlmdignore\n")
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
            subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words],
                           cwd=self.dir / "tree", check=True, env=self.environment())
        whole = "===== keep.c =====\ntext\n===== sub/keep.c =====\ntext\n"
        for source, wanted in (("tree", whole), ("tree/sub", "===== keep.c =====\ntext\n")):
            text, err = self.sent("-c", source)
            self.assertEqual(text, wanted)
            self.assertRegex(err, "skipped [123] files? that .rlmdignore leaves out: ")
        for name in ("tree/.git", "tree/.rlmdignore"):
            (self.dir / name).rename(self.dir / "away")
            text, _ = self.sent("-c", "tree")
            self.assertEqual("drop" in text, name == "tree/.rlmdignore")
            (self.dir / "away").rename(self.dir / name)
        outcome = self.rlmd("exec", "-p", "replay", "--replay",
                            self.script(turn(block("FINAL(context)"))), "-c", "git:HEAD", "--",
                            "task", cwd=self.dir / "tree")
        self.assertEqual(outcome.out, whole)
        self.write("names", "drop.txt\n")
        text, _ = self.sent("-c", "tree", "--files-from", "names")
        self.assertEqual(text, "===== drop.txt =====\ntext\n")

    def test_outputs_of_a_notebook(self):
        """Its other lines keep their numbers, and where it is named it is whole."""
        cell = {"cell_type": "code", "outputs": [{"data": {"image/png": "iVBOR" * 50000}}],
                "source": ["strcpy(a, b)\n"]}
        text = json.dumps({"cells": [cell] * 3, "nbformat": 4}, indent=1) + "\n"
        self.write("tree/a.ipynb", text)
        sent, err = self.sent("-c", "tree")
        self.assertIn("skipped 1 notebook's outputs: a.ipynb; ", err)
        self.assertNotIn("iVBOR", sent)
        rows = sent.rstrip("\n").splitlines()[1:]
        self.assertEqual([(number, row) for number, row in enumerate(rows) if "strcpy" in row],
                         [(number, row) for number, row in enumerate(text.splitlines())
                          if "strcpy" in row])
        self.assertEqual(len(rows), len(text.splitlines()))
        self.assertEqual(json.loads("\n".join(rows))["cells"][2],
                         {"cell_type": "code", "outputs": [], "source": ["strcpy(a, b)\n"]})
        self.assertEqual(self.sent("-c", "tree/a.ipynb")[0], text + "\n")

    def test_contents(self):
        for name, secret in CONTENTS.items():
            for place, text in (("alone", secret), ("within", f"x = 1\nkey='{secret}'\nmore\n")):
                self.write(f"tree/{name}-{place}", text)
        self.write("tree/main.py", "code")
        text, err = self.sent("-c", "tree")
        self.assertEqual(text, "===== main.py =====\ncode\n")
        self.assertIn(f"skipped {2 * len(CONTENTS)} files that look like secrets", err)

    def test_contents_behind_an_escape(self):
        """As JSON and logs write a line's end: the letter before the secret is none of its word."""
        for name, secret in CONTENTS.items():
            for escape in ("\\n", "\\r\\n", "\\t"):
                text = f'{{"log": "x{escape}{secret}"}}'
                self.write(f"tree/{name}-{len(escape)}{escape[-1]}", text)
        self.write("tree/main.py", "code")
        text, err = self.sent("-c", "tree")
        self.assertEqual(text, "===== main.py =====\ncode\n")
        self.assertIn(f"skipped {3 * len(CONTENTS)} files that look like secrets", err)

    def test_registries(self):
        for name, text in ((".npmrc", "//registry/:_authToken=x"), (".pypirc", "password: x")):
            with self.subTest(name):
                self.write("tree/a", "text")
                self.write("tree/" + name, text)
                self.assertNotIn(text, self.sent("-c", "tree")[0])

    def test_what_is_no_secret(self):
        for name, text in HONEST.items():
            self.write("tree/" + name, text)
        text, err = self.sent("-c", "tree")
        self.assertNotIn("secret", err)
        for each in HONEST:
            self.assertIn(f"===== {each} =====\n", text)

    def test_far_into_a_large_file(self):
        """Wherever it stands: at the edge of what is read at once, and far behind."""
        secret = CONTENTS["github"]
        for place in ((1 << 20) - 20, (1 << 20) - len(secret), (1 << 20) + 65500, 3 << 20):
            with self.subTest(place):
                self.write("tree/large", "-" * place + secret + "-" * (1 << 20))
                self.write("tree/small", "text")
                text, err = self.sent("-c", "tree")
                self.assertEqual(text, "===== small =====\ntext\n")
                self.assertIn("large (a GitHub token)", err)

    def test_one_that_is_named(self):
        """By whoever wants it to be sent; its neighbours stay where they are."""
        self.write("tree/.env", "A=1")
        self.write("tree/key", CONTENTS["aws"])
        self.write("tree/main.py", "code")
        self.assertEqual(self.sent("-c", "tree/.env")[0], "A=1\n")
        text, err = self.sent("-c", "tree", "-c", "tree/.env")
        self.assertIn("A=1", text)
        self.assertNotIn(CONTENTS["aws"], text)
        self.assertIn("skipped 1 file that looks like a secret: tree/key", err)

    def test_what_is_sent_is_not_called_left_out(self):
        """Neither to the user nor to the model, under whatever path or name it is sent."""
        self.write("tree/.env", "A=1")
        self.write("tree/main.py", "code")
        for named in ("tree/.env", "tree/../tree/.env", "settings=tree/.env"):
            with self.subTest(named):
                answer = "FINAL(context + globals().get('settings', ''))"
                outcome = self.replay([turn(block(answer))], "-c", "tree", "-c", named)
                self.assertIn("A=1", outcome.out)
                self.assertNotIn("skipped", outcome.err)
                dry = self.replay([turn("FINAL(x)")], "--dry-run", "-c", "tree", "-c", named)
                self.assertNotIn("left out", dry.out.partition("first turn")[2] + dry.err)

    def test_in_every_form(self):
        """In the result's warnings, before anything is sent (--dry-run), and of a named variable."""
        self.write("tree/.env", "A=1")
        self.write("tree/main.py", "code")
        result = self.replay([turn("FINAL(x)")], "--json", "-c", "tree").result
        (warning,) = result["warnings"]
        self.assertIn("skipped 1 file that looks like a secret: .env (an environment file)", warning)
        self.assertNotIn("A=1", json.dumps(result))
        dry = self.replay([turn("FINAL(x)")], "--dry-run", "-c", "x=tree")
        self.assertIn("skipped 1 file that looks like a secret", dry.err)

    def test_nothing_but_secrets(self):
        self.write("tree/.env", "A=1")
        outcome = self.replay([turn("FINAL(x)")], "-c", "tree")
        self.assertEqual((outcome.status, outcome.out), (8, ""))
        self.assertIn("there is no text file in the directory tree; tree: skipped 1 file that looks", outcome.err)


if __name__ == "__main__":
    unittest.main()
