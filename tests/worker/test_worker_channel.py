"""Frames, attachments and calls of worker/channel.py, from several threads, whole and in pieces."""

import os
import random
import select
import struct
import unittest

from supervisor import Gone, Worker, reply_frame


class Channel(unittest.TestCase):
    def setUp(self):
        self.worker = Worker()
        self.addCleanup(self.worker.__exit__)

    def out(self, code):
        done = self.worker.run(code)
        self.assertIsNone(done["error"], done["error"])
        return done["stdout"]


class Texts(Channel):
    def test_lengths_around_the_limit_go_and_come(self):
        """Inline up to 1 KiB of UTF-8, attached beyond."""
        self.worker.answer = lambda call: call["prompts"]
        for length in (0, 1, 1023, 1024, 1025, 16384, 65536, 65537, 3_000_001):
            for letter in ("a", "é", "\0", "🙂"):
                with self.subTest(length=length, letter=letter):
                    size = length * len(letter.encode())
                    self.assertEqual(
                        self.out(f"llm_query({letter!r} * {length}) == {letter!r} * {length}"),
                        "True\n",
                    )
                    prompt, = self.worker.calls[-1]["prompts"]
                    self.assertEqual(type(prompt), bytes if size > 1024 else str)

    def test_lone_surrogates(self):
        """The bytes they stand for, and a ? where they stand for none."""
        for code, received in (
            ("llm_query('a\\udcffb')", b"a\xffb"), ("llm_query('a\\ud800b')", b"a?b"),
            ("llm_query('x' * 70000 + '\\udc80')", b"x" * 70000 + b"\x80"),
        ):
            self.out(code)
            self.assertEqual(self.worker.calls[-1]["prompts"], [received])

    def test_contexts_are_byte_exact(self):
        with Worker(context=b"ab\xff\xfe\r\n\0" * 20000) as worker:
            worker.run("rlm_query('t', context[1:])")
            self.assertEqual(worker.calls[0]["contexts"], [(b"ab\xff\xfe\r\n\0" * 20000)[1:]])

    def test_values_may_be_any_bytes(self):
        self.worker.answer = lambda _call: [b"\xff" + "é".encode()]
        self.assertEqual(self.out("llm_query('p')"), "'\\udcffé'\n")

    def test_code_may_be_an_attachment(self):
        code = b"x = 1\n" * 10000 + b"print('end')"
        self.worker.send("exec", [code], block=1, code=0)
        self.assertEqual(self.worker.until("done")["stdout"], "end\n")


class Replies(Channel):
    def test_in_pieces_of_a_byte(self):
        self.worker.start_block("batch_llm_query(['a', 'b'])")
        call = self.worker.receive()
        for byte in reply_frame(call["id"], [b"xyz", "é"]):
            os.write(self.worker.out, bytes([byte]))
        self.assertEqual(self.worker.until("done")["stdout"], "['xyz', 'é']\n")

    def test_two_frames_in_one_piece(self):
        self.worker.start_block("import threading\nr = {}\n"
                                "def ask(n): r[n] = llm_query(str(n))\n"
                                "ts = [threading.Thread(target=ask, args=(n,)) for n in range(2)]\n"
                                "for t in ts: t.start()\n"
                                "for t in ts: t.join()\n"
                                "r[0], r[1]")
        calls = [self.worker.receive(), self.worker.receive()]
        self.worker.write(
            b"".join(reply_frame(call["id"], ["re " + call["prompts"][0]]) for call in calls)
        )
        self.assertEqual(self.worker.until("done")["stdout"], "('re 0', 're 1')\n")

    def test_to_many_threads_in_any_order(self):
        """The thread that reads hands over messages of others, and gives up the lead when it is
        served."""
        dice = random.Random(7)
        self.worker.start_block(
            "import threading, concurrent.futures as futures\n"
            "def ask(n): return all(llm_query(f'{n}.{k}') == f'<{n}.{k}>' for k in range(100))\n"
            "with futures.ThreadPoolExecutor(12) as pool:\n"
            "    rest = pool.map(ask, range(12))\n"
            "    mine = ask('main')\n"
            "    print(mine, all(rest))"
        )
        waiting = []
        for _ in range(13 * 100):
            while len(waiting) < dice.randint(1, 6) and (waiting == [] or self.is_more()):
                waiting.append(self.worker.receive())
            call = waiting.pop(dice.randrange(len(waiting)))
            self.worker.reply(call["id"], [f"<{call['prompts'][0]}>"])
        self.assertEqual(self.worker.until("done")["stdout"], "True True\n")

    def is_more(self):
        return self.worker.unread or select.select([self.worker.into], [], [], 0)[0]

    def test_threads_go_on_between_blocks(self):
        self.worker.run("import threading\nheard = []\n"
                        "def run():\n"
                        "    for n in range(3): heard.append(llm_query(f'late {n}'))\n"
                        "thread = threading.Thread(target=run)")
        self.worker.start_block("thread.start()")
        first = self.worker.receive()
        second = self.worker.receive()
        call = second if first["type"] == "done" else first
        self.worker.serve(call)
        self.worker.serve(self.worker.receive())
        third = self.worker.receive()
        self.worker.start_block("1")  # read by the thread, meant for the main one, or the other way
        self.worker.reply(third["id"], ["<late 2>"])
        self.assertEqual(self.worker.until("done")["stdout"], "1\n")
        self.assertEqual(self.out("thread.join()\nheard"), "['<late 0>', '<late 1>', '<late 2>']\n")

    def test_a_thread_reads_while_the_main_one_works(self):
        self.worker.run("import threading, time\ngo = threading.Event()\n"
                        "def run():\n    llm_query('a')\n    go.set()\n")
        self.assertEqual(self.out("threading.Thread(target=run).start()\ngo.wait(3600)"), "True\n")


class Violations(Channel):
    def assert_ends(self, status):
        with self.assertRaises(Gone) as gone:
            while True:
                self.worker.receive()
        self.assertEqual(gone.exception.args[0], status, gone.exception)

    def test_end_of_file_is_an_orderly_end(self):
        """Between blocks, in a call, and in the midst of a frame."""
        for begin in (lambda: None, lambda: self.worker.start_block("llm_query('x')"),
                      lambda: os.write(self.worker.out, b"\0\0")):
            with Worker() as self.worker:
                begin()
                os.close(self.worker.out)
                self.worker.out = os.dup(0)
                self.assert_ends(0)

    def test_what_is_not_in_the_table(self):
        for body in (b"{}", b"[]", b"5", b"nonsense", b'{"type":"done"}', b'{"type":"get"}',
                     b'{"type":"get","name":5}', b'{"type":"get","name":"x","more":1}',
                     b'{"type":"exec","block":-1,"code":"x"}',
                     b'{"type":"exec","block":1,"code":0}',
                     b'{"type":"exec","block":1.5,"code":""}',
                     b'{"type":"reply","id":1,"values":"x","errors":[],"messages":[],'
                     b'"degraded":[]}',
                     b'{"type":"\xff"}', b'{"type":"exit","attachments":[-1]}'):
            with self.subTest(body):
                with Worker() as self.worker:
                    self.worker.write(struct.pack(">I", len(body)) + body)
                    self.assert_ends(70)

    def test_frame_over_its_limit(self):
        self.worker.write(struct.pack(">I", (1 << 20) + 1))
        self.assert_ends(70)


if __name__ == "__main__":
    unittest.main()
