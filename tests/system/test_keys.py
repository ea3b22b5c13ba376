"""A provider's key: where it comes from, to whom it is shown, and that it is found nowhere else."""

import json
import os
import pathlib
import unittest

import leaks
from harness import block
from model import PROVIDERS, Reply
from providers import CLOUD, ProviderTest, code, final

VARIABLE = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "ollama": "OLLAMA_API_KEY",
}
HEADER = {
    "openai": ("authorization", "Bearer %s"),
    "anthropic": ("x-api-key", "%s"),
    "ollama": ("authorization", "Bearer %s"),
}
KEY = "sk-" "secret-0123456789-ABCDEFG"  # in two, so that `-c .` does not leave this file out


class Origin(ProviderTest):
    def key_file(self, content, mode=0o600):
        path = self.write("key", content)
        os.chmod(path, mode)
        return ["--key-file", path]

    def sent(self, server):
        name, form = HEADER[server.provider]
        self.assertEqual({request.headers.get(name) for request in server.requests}, {form % KEY})

    def test_environment(self):
        """LIB-18 to LIB-20: the provider's own variable, and its own header."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider, final())
                self.ask(server, **{VARIABLE[provider]: KEY})
                self.sent(server)

    def test_file(self):
        """It wins over the environment; white space around it is not part of it."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server = self.serve(provider, final())
                self.ask(
                    server, *self.key_file(f"  {KEY}\r\n\n"), **{VARIABLE[provider]: "another-key"}
                )
                self.sent(server)

    def test_withheld(self):
        """One of the environment is not for an address of the command line: told before anything is
        asked and again where the server wants a key, with how it gets one."""
        for provider in CLOUD:
            with self.subTest(provider=provider):
                server = self.serve(provider, Reply(error="auth"), final(), final())
                env = {**server.environment(), VARIABLE[provider]: KEY}
                (url,) = [name for name in env if name.endswith(("_BASE_URL", "_HOST"))]
                address = env.pop(url)
                words = f"{VARIABLE[provider]} was not sent to "

                def ask(*arguments, **more):
                    return self.rlmd("exec", "-p", provider, "-m", "m", *arguments, "task",
                                     env=self.environment(**env, **more))

                outcome = ask("--base-url", address)
                self.assertEqual(outcome.status, 4, outcome.err)
                warning, error = [line for line in outcome.err.splitlines() if words in line]
                self.assertIn("rlmd: warning: " + words + address.split("/v1")[0], warning)
                self.assertIn(f"set {url} to this address, or give a file", warning)
                self.assertIn("status 401", error)
                self.assertIn(words, error)
                self.assertNotIn("check the key", outcome.err)
                self.assertNotIn(KEY, outcome.err)
                outcome = ask(**{url: address})
                self.assertEqual((outcome.status, words in outcome.err), (0, False), outcome.err)
                outcome = ask("--base-url", address, *self.key_file(KEY))
                self.assertEqual((outcome.status, words in outcome.err), (0, False), outcome.err)
                name, form = HEADER[provider]
                self.assertEqual([request.headers.get(name) for request in server.requests],
                                 [None, form % KEY, form % KEY])

    def test_bad_files(self):
        """Exit status 4 before anything is sent; what is wrong with the file, not what is in it."""
        server = self.serve("openai")
        cases = [
            (self.key_file(KEY, 0o644), "chmod 600"),
            (["--key-file", "/nowhere"], "No such file"),
            (["--key-file", "/dev/null"], "regular"),
        ]
        for option, words in cases:
            self.assertIn(words, self.fails(server, 4, "auth", *option)["message"])
        bad = ["", " \n", "two words " + KEY, KEY + "\r\nX-Evil: 1", "\u00e9" + KEY, "x" * 20000]
        for content in bad:
            with self.subTest(content=content[:20]):
                message = self.fails(server, 4, "auth", *self.key_file(content))["message"]
                self.assertIn("key", message)
                self.assertNotIn(KEY, message)
        self.assertEqual(server.requests, [])

    def test_bad_environment(self):
        """No header can be smuggled in."""
        server = self.serve("openai")
        error = self.fails(server, 4, "auth", OPENAI_API_KEY=KEY + "\nX-Evil: 1")
        self.assertNotIn(KEY, error["message"])
        self.assertEqual(server.requests, [])

    def test_missing(self):
        """The provider's own address needs one: the variable is named, nothing is asked."""
        for provider in CLOUD:
            with self.subTest(provider=provider):
                outcome = self.rlmd("exec", "-p", provider, "-m", "m", "task")
                self.assertEqual(outcome.status, 4, outcome.err)
                self.assertIn(VARIABLE[provider], outcome.err)

    def test_bound_to_its_host(self):
        """A key from the environment goes where the environment says, one from a file anywhere."""
        for provider in CLOUD:
            with self.subTest(provider=provider):
                server, home = self.serve(provider, final(), final(), final()), self.serve(provider)
                other = self.environment(**home.environment())
                self.ask(server, "--base-url", server.url, **other)
                header = HEADER[provider][0]
                self.assertNotIn(header, server.requests[0].headers)
                self.assertNotIn(home.key.encode(), repr(server.requests[0].headers).encode())
                self.ask(server, "--base-url", server.url, *self.key_file(KEY), **other)
                self.assertIn(KEY, server.requests[1].headers[header])
                self.ask(server, "--base-url", server.url)
                self.assertIn(server.key, server.requests[2].headers[header])


class Secrecy(ProviderTest):
    def look(self, process):
        """The files in which the kernel shows a process; the environment perhaps to nobody."""
        seen = b""
        for name in ("cmdline", "limits", "environ"):
            try:
                seen += pathlib.Path(f"/proc/{process}/{name}").read_bytes()
            except PermissionError:
                pass
        return seen

    def spy(self, found):
        """A reply that looks at all processes of the run before it comes."""

        def reply(_):
            for (process, _), name in leaks.descendants().items():
                found[f"{name} {process}"] = self.look(process)
            return final("the key is a secret")

        return reply

    def run_all(self, provider):
        """A run that tells and keeps everything, of a server that repeats the key where it can."""
        key = KEY
        soon = {"retry-after-ms": "1"}
        echo = Reply(
            status=400,
            body=b'{"error":{"message":"bad header Authorization: Bearer %s, '
            b'x-api-key: %s"}}' % (key.encode(), key.encode()),
        )
        html = Reply(status=403, body=b"<html><title>no %s here</title></html>" % key.encode())
        nonsense = Reply(body=b"<p>" + key.encode(), content_type="text/html", headers=soon)
        streamed = Reply(body=b'{"error":{"message":"%s is bad"}}' % key.encode(), headers=soon)
        calls = block(
            "import os",
            "print(dict(os.environ))",
            "for error in batch_llm_query(['q'] * 5):",
            "    print(repr(error), vars(error))",
        )
        found = {}
        server = self.serve(provider, Reply(text=calls), echo, html, nonsense, nonsense, streamed)
        server.script(None, self.spy(found))
        outcome = self.ask(
            server,
            "-vv",
            "-j",
            "1",
            "--jsonl",
            "--trace",
            str(self.dir / "trace"),
            "--record",
            str(self.dir / "record"),
            **{VARIABLE[provider]: key},
        )
        return server, outcome, found

    def test_found_nowhere(self):
        """A20: not in argv, /proc, workers, their errors, trace, recording, events or the log."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                server, outcome, found = self.run_all(provider)
                self.assertIn(KEY, repr(server.requests[0].headers))
                self.assertIn(str(self.dir / "trace").encode(), b"".join(found.values()))
                self.assertGreaterEqual(len(found), 3, "the program, its template and a worker")
                for name, seen in found.items():
                    self.assertNotIn(KEY.encode(), seen, name)
                    self.assertRegex(seen, rb"Max core file size +0 +0")
                self.assertNotIn(KEY, outcome.out + outcome.err)
                self.assertIn("***", outcome.out)
                written = [path for path in self.dir.rglob("*") if path.is_file()]
                self.assertGreater(len(written), 5)
                for path in written:
                    self.assertNotIn(KEY.encode(), path.read_bytes(), path)

    def test_the_root_is_refused(self):
        """A server that repeats the refused key does not get it into the message."""
        for provider in CLOUD:
            with self.subTest(provider=provider):
                server = self.serve(provider, Reply(error="auth"))
                outcome = self.ask(server, status=4, **{VARIABLE[provider]: KEY})
                self.assertNotIn(KEY, outcome.out + outcome.err)
                self.assertIn("***", outcome.result["error"]["message"])

    def test_an_answer_that_repeats_the_key(self):
        """Neither what is printed, nor the trace, nor a recording, nor code gets to see it."""
        for provider in PROVIDERS:
            for option in ([], ["--no-stream"]):
                with self.subTest(provider=provider, option=option):
                    trace = self.dir / f"{provider}{len(option)}"
                    server = self.serve(
                        provider,
                        code(f"print('{KEY}', llm_query('what?'))", thinking=f"with {KEY}"),
                        Reply(text=f"ask {KEY} or {KEY}"), final(f"it is {KEY}", model=f"m-{KEY}"),
                    )
                    outcome = self.ask(
                        server, *option, "--trace", str(trace), **{VARIABLE[provider]: KEY}
                    )
                    self.assertEqual(outcome.result["output"], "it is ***")
                    self.assertEqual(outcome.executions()[0]["stdout"], "*** ask *** or ***\n")
                    self.assertNotIn(KEY, outcome.out + outcome.err + trace.read_text())

    def test_a_refusal_that_repeats_the_key(self):
        message = {"content": None, "refusal": f"no, {KEY}"}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
        server = self.serve("openai", Reply(body=body.encode(), whole=True))
        outcome = self.ask(server, "--no-stream", status=10, OPENAI_API_KEY=KEY)
        self.assertNotIn(KEY, outcome.out + outcome.err)
        self.assertIn("no, ***", outcome.err)

    def test_a_failed_answer_that_has_the_key_as_its_model(self):
        """The model's name is told of calls that failed, too."""
        for provider in PROVIDERS:
            with self.subTest(provider=provider):
                trace = self.dir / provider
                half = Reply(text="words " * 40, model=f"m-{KEY}", cut_after=400)
                server = self.serve(provider)
                server.script(None, half)
                outcome = self.ask(
                    server, "--trace", str(trace), "--record",
                    str(self.dir / f"{provider}.record"), status=5, **{VARIABLE[provider]: KEY}
                )
                events = [json.loads(line) for line in trace.read_text().splitlines()]
                models = [event["model"] for event in events if event["event"] == "llm_call"]
                self.assertEqual(models, ["m-***"])
                written = [path for path in self.dir.rglob("*") if path.is_file()]
                texts = "".join(path.read_text() for path in written)
                self.assertNotIn(KEY, outcome.out + outcome.err + texts)

    def test_a_dummy_key_is_a_word(self):
        """Local servers take any key: an answer may have it as the word that it is."""
        server = self.serve("openai", final("ask ollama"))
        outcome = self.ask(server, OPENAI_API_KEY="ollama")
        self.assertEqual(outcome.result["output"], "ask ollama")

    def test_a_recording_of_an_answer_that_repeats_the_key(self):
        server = self.serve("openai", code(f"print('{KEY}')"), final())
        self.ask(server, "--record", str(self.dir / "record"), OPENAI_API_KEY=KEY)
        files = list((self.dir / "record").iterdir())
        self.assertEqual(len(files), 2)
        for path in files:
            self.assertNotIn(KEY, path.read_text())
            self.assertEqual(path.stat().st_mode & 0o077, 0)


if __name__ == "__main__":
    unittest.main()
