"""A large context is in memory once, however many runs have it, and nobody else has anything of it."""

import pathlib
import re
import unittest

import leaks
from harness import block
from model import Reply
from providers import ProviderTest

MIB, GIB = 1 << 20, 1 << 30
AMPLE = ("--max-tokens", "1000000000000", "--downgrade", "0", "--no-stream")
LARGE = ("--max-file-size", "1G")
# At every page, also where a character has two bytes.
LOOK = "print(len(context), context[::2048].count('.') > 1000, context[-4:])"
HOLD = "llm_query('hold')"


def memory_of(pid):
    """Its memory: {"RssAnon": bytes, "RssShmem": bytes, ...}"""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace")
    return {name: int(kib) << 10 for name, kib in re.findall(r"(\w+):\s+(\d+) kB", status)}


def available_memory():
    found = re.search(r"MemAvailable:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    return int(found.group(1)) << 10


class SharedContext(ProviderTest):
    def hold(self, count, look, *sources, asks=None):
        """As many sub-runs over one context, each of which has looked at all of it, and waits.

        Gives what the template has, and what each of their workers has.
        """
        server = self.serve("openai")

        def reply(request):
            if request.last_user.startswith("hold"):
                return Reply(text="late", delay=3600)
            if "TASK: look" in request.messages[1][1]:
                return Reply(text=block(look, HOLD))
            return Reply(text=block(asks or f"batch_rlm_query(['look'] * {count})"))

        server.script(None, reply)
        process = self.start(
            *self.arguments(server, *self.prices(m=(1, 1)), *AMPLE, "-j", str(count), *sources),
            env=self.environment(**server.environment()),
        )
        held = lambda server: sum(r.last_user[:4] == "hold" for r in server.requests)
        self.assertTrue(server.wait(lambda server: held(server) >= count or process.poll()))
        self.assertEqual(held(server), count, process.poll() and process.communicate())
        children = sorted(pid for (pid, _start), (parent, state, _) in leaks.processes().items()
                          if parent == process.pid and state not in "ZX")
        memory = [memory_of(pid) for pid in children]
        self.assertEqual(len(memory), 1 + 1 + count)  # the template, the root's, theirs
        template = min(memory, key=lambda each: each["RssShmem"])
        if asks:  # where the root has a copy, it has more of its own than they
            memory.remove(template)
            return template, sorted(memory, key=lambda each: each["RssAnon"])[:count]
        workers = sorted(memory, key=lambda each: each["RssShmem"])[-count:]
        return template, workers

    def fill(self, path, size, end):
        with open(path, "w", encoding="utf-8") as file:
            for _ in range(size // MIB):
                file.write("." * MIB)
            file.write(end)

    def assert_shared(self, template, workers, size):
        """They have seen all of it, and it is none of their own memory."""
        self.assertGreater(min(each["RssShmem"] for each in workers), size - MIB)
        own = [each["RssAnon"] + each.get("VmSwap", 0) - template["RssAnon"] for each in workers]
        self.assertLess(sum(own) + size, 2 * size, own)
        self.assertLess(max(own), 16 * MIB)

    def test_fifty_sub_runs(self):
        """50 sub-runs over 1 GB fit in 2 GB, and so they do with less, where memory is short."""
        size = GIB if available_memory() > 8 * GIB else 256 * MIB
        self.fill(self.dir / "big", size, "end.")
        self.assert_shared(*self.hold(50, LOOK, "-c", self.dir / "big"), size)

    def test_other_characters(self):
        """Of a text that is not ASCII they share the bytes, and keep a few of its characters."""
        size = 96 * MIB
        self.fill(self.dir / "wide", size, " 🙂\n.")
        self.assert_shared(*self.hold(6, LOOK, "-c", self.dir / "wide"), size)

    def test_directory(self):
        """`context.files` lends from the same text."""
        size = 64 * MIB
        (self.dir / "tree").mkdir()
        self.fill(self.dir / "tree" / "a.txt", size, "end.")
        self.fill(self.dir / "tree" / "b.txt", 0, "two")
        look = "print(list(context.files)), print(context.files['b.txt'] == 'two' or 1 / 0)"
        self.assert_shared(
            *self.hold(6, LOOK + "\n" + look, *LARGE, "-c", self.dir / "tree"), size)

    def test_part_of_a_directory(self):
        """The files of a folder lie where the caller has them, whatever characters others have."""
        size = 64 * MIB
        for part, end in (("a", "\u20ac"), ("b", "end."), ("c", " \u20ac\n."), ("d", "\u2026")):
            (self.dir / "tree" / part).mkdir(parents=True)
            self.fill(self.dir / "tree" / part / "one", size // 2, "end.\n")
            self.fill(self.dir / "tree" / part / "two", size // 2, end)
        for part in ("b", "c"):
            with self.subTest(part):
                asks = (f"part = context.subset('{part}/')\n"
                        "batch_rlm_query([{'task': 'look', 'context': part}] * 4)")
                look = f"print(list(context.files) == ['{part}/one', '{part}/two'] or 1 / 0)"
                self.assert_shared(*self.hold(
                    4, LOOK + "\n" + look, *LARGE, "-c", self.dir / "tree", asks=asks), size)


if __name__ == "__main__":
    unittest.main()
