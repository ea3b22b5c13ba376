"""SIGINT ends user code and nothing else; no signal ever breaks a frame."""

import random
import time
import unittest

import patience
from supervisor import Worker, reply_frame


class WorkerTest(unittest.TestCase):
    def setUp(self):
        self.worker = Worker()
        self.addCleanup(self.worker.__exit__)

    def assert_goes_on(self):
        done = self.worker.run("kept, llm_query('still')")
        self.assertIsNone(done["error"], done["error"])
        self.assertEqual(done["stdout"], "(1, '<still>')\n")


class Interrupts(WorkerTest):
    def interrupt_in(self, code):
        """Interrupts a block after it called budget(), its sign that it has begun."""
        self.worker.start_block(code)
        self.worker.serve(self.worker.receive())
        time.sleep(patience.seconds(0.05))
        self.worker.interrupt()
        return self.worker.until("done")

    def test_interrupts_user_code(self):
        """LIB-12: the namespace survives."""
        for code in ("while True: pass", "import time\ntime.sleep(1000)",
                     "import re\nre.match('(a*)*b', 'a' * 40)",
                     "import threading\nthreading.Event().wait()",
                     "import threading, time\n"
                     "t = threading.Thread(target=time.sleep, args=(9,), daemon=True)\n"
                     "t.start()\nt.join()"):
            with self.subTest(code):
                done = self.interrupt_in("print('before')\nkept = 1\nbudget()\n" + code)
                self.assertIn("KeyboardInterrupt: this block was interrupted", done["error"])
                self.assertRegex(done["error"], 'File "<block ')
                self.assertNotIn("interrupts.py", done["error"])
                self.assertEqual(done["stdout"], "before\n")
                self.assert_goes_on()

    def test_can_be_caught(self):
        done = self.interrupt_in("kept = 1\ndef spin():\n    while True: pass\nbudget()\n"
                                 "try: spin()\nexcept KeyboardInterrupt: print('caught')")
        self.assertIsNone(done["error"])
        self.assertEqual(done["stdout"], "caught\n")
        self.assert_goes_on()

    def test_while_a_call_is_waited_for(self):
        """Its reply comes late and is nobody's."""
        for calls in ("llm_query('slow')", "batch_rlm_query(['a', 'b'])"):
            with self.subTest(calls):
                self.worker.start_block(f"kept = 1\nbudget()\n{calls}")
                self.worker.serve(self.worker.receive())
                late = self.worker.receive()
                time.sleep(patience.seconds(0.05))
                self.worker.interrupt()
                done = self.worker.until("done")
                self.assertIn("KeyboardInterrupt", done["error"])
                self.assertNotIn("channel.py", done["error"])
                self.worker.reply(late["id"], ["late", "later"])
                self.assert_goes_on()

    def test_while_another_thread_reads(self):
        self.worker.run(
            "import threading\nheard = []\n"
            "t = threading.Thread(target=lambda: heard.append(llm_query('t')))"
        )
        self.worker.start_block("kept = 1\nt.start()\nllm_query('main')")
        both = self.worker.receive(), self.worker.receive()
        calls = {call["prompts"][0]: call["id"] for call in both}
        time.sleep(patience.seconds(0.05))
        self.worker.interrupt()
        self.assertIn("KeyboardInterrupt", self.worker.until("done")["error"])
        self.worker.reply(calls["main"], ["late"])
        self.worker.reply(calls["t"], ["for t"])
        self.assertEqual(self.worker.run("t.join()\nheard")["stdout"], "['for t']\n")
        self.assert_goes_on()

    def test_does_not_break_a_frame_in_either_direction(self):
        """Struck in the midst of large frames, they are finished first."""
        self.worker.run("kept = 1")
        self.worker.start_block("llm_query('x' * 20_000_000)")
        time.sleep(patience.seconds(0.1))  # the pipe is full, nobody reads
        self.worker.interrupt()
        time.sleep(patience.seconds(0.1))
        call = self.worker.receive()
        self.assertEqual(len(call["prompts"][0]), 20_000_000)
        self.assertIn("KeyboardInterrupt", self.worker.until("done")["error"])
        self.assert_goes_on()
        self.worker.start_block("llm_query('x')")
        call = self.worker.receive()
        data = reply_frame(call["id"], [b"y" * 1_000_000])
        self.worker.write(data[:500_000])
        time.sleep(patience.seconds(0.05))
        self.worker.interrupt()
        time.sleep(patience.seconds(0.05))
        self.worker.write(data[500_000:])
        self.assertIn("KeyboardInterrupt", self.worker.until("done")["error"])
        self.assert_goes_on()

    def test_outside_of_blocks_it_is_ignored(self):
        self.worker.run("kept = 1")
        for _ in range(20):
            self.worker.interrupt()
        time.sleep(patience.seconds(0.05))
        self.assert_goes_on()

    def test_interrupts_the_rendering_of_a_variable(self):
        self.worker.run(
            "kept = 1\nclass E:\n    def __repr__(self):\n"
            "        budget()\n        while True: pass\ne = E()"
        )
        self.worker.send("get", name="e")
        self.worker.serve(self.worker.receive())
        time.sleep(patience.seconds(0.05))
        self.worker.interrupt()
        self.assertIn("KeyboardInterrupt", self.worker.until("value")["value"])
        self.worker.run("del e")
        self.assert_goes_on()

    def test_interrupts_an_endless_str_of_an_exception(self):
        done = self.interrupt_in("kept = 1\nclass E(Exception):\n    def __str__(self):\n"
                                 "        budget()\n        while True: pass\nraise E()")
        self.assertIn("E", done["error"])
        self.assert_goes_on()

    def test_a_changed_handler_is_put_right(self):
        self.worker.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nkept = 1")
        self.assertIn("KeyboardInterrupt", self.interrupt_in("budget()\nwhile True: pass")["error"])
        self.assert_goes_on()

    def test_at_any_moment(self):
        """Calls of all sizes, interrupted where chance will: every frame stays whole."""
        dice = random.Random(3)
        self.worker.run(
            "kept = 1\nimport threading\n"
            "def check(n):\n"
            "    assert llm_query('p' * n) == '<' + 'p' * n + '>'\n"
            "    print(n)\n"
            "def other():\n"
            "    while not stop.is_set(): check(3)\n"
            "stop = threading.Event()\n"
            "thread = threading.Thread(target=other)\nthread.start()"
        )
        self.worker.answer = lambda call: [
            b"<" + (p.encode() if type(p) is str else p) + b">" if len(p) > 4 else f"<{p}>"
            for p in call["prompts"]
        ]
        for number in range(150):
            size = dice.choice((1, 10, 20000, 100000))
            self.worker.start_block(f"while True: check({size})")
            until = time.monotonic() + dice.random() * 0.02
            while True:
                if time.monotonic() > until:  # again where it came before the block began
                    self.worker.interrupt()
                    until += 0.5
                message = self.worker.receive()
                if message["type"] == "done":
                    break
                self.worker.serve(message)
            self.assertIn("KeyboardInterrupt", message["error"], number)
            self.assertNotIn("AssertionError", message["error"])
        self.worker.run("stop.set()\nthread.join()")
        self.worker.answer = lambda call: [f"<{p}>" for p in call["prompts"]]
        self.assert_goes_on()


class Alarms(WorkerTest):
    """Handlers of the user's own may raise, as in the common idiom of a time limit."""

    LIMIT = ("import signal, time\nkept = 1\n"
             "class Late(Exception): pass\n"
             "def on_alarm(number, frame): raise Late()\n"
             "signal.signal(signal.SIGALRM, on_alarm)\n")

    def stop_alarms(self):
        """One may strike the block that would stop them."""
        while self.worker.run("signal.setitimer(signal.ITIMER_REAL, 0)")["error"]:
            pass

    def test_an_alarm_ends_a_call(self):
        self.worker.start_block(self.LIMIT + "signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
                                "try: llm_query('slow')\nexcept Late: print('late')")
        call = self.worker.receive()
        self.assertEqual(self.worker.until("done")["stdout"], "late\n")
        self.worker.reply(call["id"], ["too late"])
        self.assert_goes_on()

    def test_alarms_at_any_moment_break_no_frame(self):
        often = 0.0007 * patience.slowness()
        done = self.worker.run(
            self.LIMIT + f"signal.setitimer(signal.ITIMER_REAL, {1.6 * often}, {often})\n"
            f"late = good = 0\nuntil = time.monotonic() + {patience.hung()}\n"
            "while (late < 300 or good < 300) and time.monotonic() < until:\n"
            "    try:\n"
            "        try:\n"
            "            assert llm_query('x' * 30) == '<' + 'x' * 30 + '>'\n"
            "            good += 1\n"
            "        except Late: late += 1\n"
            "    except Late: late += 1\n"
            "signal.setitimer(signal.ITIMER_REAL, 0)\n"
            "print(late >= 300 and good >= 300)"
        )
        if done["error"] is None:
            self.assertEqual(done["stdout"], "True\n")
        else:
            self.assertIn("Late", done["error"])
        self.stop_alarms()
        self.assert_goes_on()

    def test_alarms_do_not_strike_the_end_of_a_block(self):
        """However often they come: a block may be lost by one, its `done` not."""
        self.worker.run(self.LIMIT)
        for _ in range(200):
            done = self.worker.run("signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)\n"
                                   "raise ValueError")
            self.assertRegex(done["error"], "Late|ValueError")
            self.stop_alarms()
        self.assert_goes_on()

    def test_an_alarm_between_blocks_strikes_nothing(self):
        self.worker.run(self.LIMIT + "signal.setitimer(signal.ITIMER_REAL, 0.02)")
        time.sleep(patience.seconds(0.08))
        self.assert_goes_on()

    def test_a_handler_may_go_on(self):
        done = self.worker.run("import signal\nkept = 1\nticks = []\n"
                               "signal.signal(signal.SIGALRM, lambda *a: ticks.append(ask()))\n"
                               "def ask():\n"
                               "    try: llm_query('nested')\n"
                               "    except RuntimeError as e: return str(e)\n"
                               "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
                               "for n in range(300): llm_query('p')\n"
                               "signal.setitimer(signal.ITIMER_REAL, 0)\n"
                               "print(len(ticks) > 0)")
        self.assertIsNone(done["error"], done["error"])
        self.assertEqual(done["stdout"], "True\n")
        self.assert_goes_on()


if __name__ == "__main__":
    unittest.main()
