"""More jobs at once than the machine has files for: they wait in line, and none is lost."""

import base64
import resource
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import client  # noqa: E402

FILES = 128
AT_WORK = (FILES - 32) // 6  # batch/concurrency.h


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


class Line(client.ServeTest):
    START = {"task": "How long is it?", "model": "client"}

    def open_small(self, **serves):
        process = self.start("serve", "--stdio", stdin=subprocess.PIPE, preexec_fn=few_files)
        peer = client.Client(process, {name.replace("_", ".", 1): serve
                                       for name, serve in serves.items()})
        peer.initialize()
        return peer

    def begin(self, peer, count, **params):
        return [peer.call("job.start", **self.START, **params)["job"] for _ in range(count)]

    @staticmethod
    def asked(peer):
        return [each["params"]["job"] for each in peer.asked]

    def answer(self, peer, place):
        peer.send({"id": peer.asked[place]["id"], "result": {"text": "FINAL(done)"}})

    def test_all_are_done(self):
        peer = self.open_small(model_request=client.model("FINAL_VAR(context)"))
        numbers = [peer.begin("job.start", **self.START, contexts=[{"text": f"é{number} "}])
                   for number in range(200)]
        jobs = [peer.end(number)["job"] for number in numbers]
        results = [peer.result(job) for job in jobs]
        self.assertEqual([each["output"] for each in results], [f"é{i} " for i in range(200)])
        self.assertEqual(self.close(peer), (0, ""))

    def test_in_their_order(self):
        peer = self.open_small()
        jobs = self.begin(peer, AT_WORK + 3)
        peer.wait(lambda: len(peer.asked) == AT_WORK)
        self.assertEqual(peer.call("job.status", job=jobs[-1])["turn"], 0)
        self.assertEqual(sorted(self.asked(peer)), sorted(jobs[:AT_WORK]))
        for more in range(3):
            self.answer(peer, more)
            peer.wait(lambda: len(peer.asked) == AT_WORK + more + 1)
            self.assertEqual(self.asked(peer)[-1], jobs[AT_WORK + more])
        self.assertEqual(self.close(peer), (0, ""))

    def test_one_that_waits_is_cancelled(self):
        peer = self.open_small()
        jobs = self.begin(peer, AT_WORK + 3)
        for job, method in ((jobs[-1], "cancel"), (jobs[-3], "interrupt")):
            peer.call(f"job.{method}", job=job)
            self.assertEqual(peer.result(job)["error"]["kind"], "cancelled")
        peer.wait(lambda: len(peer.asked) == AT_WORK)
        self.answer(peer, 0)
        peer.wait(lambda: len(peer.asked) == AT_WORK + 1)
        self.assertEqual(self.asked(peer)[-1], jobs[-2])
        self.assertEqual(self.close(peer), (0, ""))

    def test_what_can_be_known_is_told_at_once(self):
        peer = self.open_small()
        self.begin(peer, AT_WORK + 1)
        for params, kind in (({"contexts": [{"text": 7}]}, "usage"), ({"contexts": [{"blob": "b9"}]}, "usage"),
                             ({"options": {"nothing": 1}}, "usage"),
                             ({"tools": [{"name": "1", "doc": "x"}]}, "usage")):
            with self.subTest(params):
                self.assertEqual(self.refused(peer, "job.start", **self.START, **params).kind, kind)
        self.assertEqual(self.close(peer), (0, ""))

    def test_a_blob_is_there_until_its_job_has_read_it(self):
        peer = self.open_small()
        self.begin(peer, AT_WORK)
        blob = peer.call("blob.begin")["blob"]
        peer.call("blob.append", blob=blob, base64=base64.b64encode("größe 🙂".encode()).decode())
        peer.call("blob.end", blob=blob)
        (job,) = self.begin(peer, 1, contexts=[{"blob": blob}])
        peer.call("blob.free", blob=blob)
        self.assertEqual(self.refused(peer, "blob.free", blob=blob).kind, "usage")
        peer.wait(lambda: len(peer.asked) == AT_WORK)
        self.answer(peer, 0)
        peer.wait(lambda: len(peer.asked) == AT_WORK + 1)
        peer.send({"id": peer.asked[-1]["id"], "result": {"text": "FINAL_VAR(context)"}})
        self.assertEqual(peer.result(job)["output"], "größe 🙂")
        self.assertEqual(self.close(peer), (0, ""))

    def test_clients_take_turns(self):
        """One that has many jobs at work comes behind one that has none."""
        process = self.listen(preexec_fn=few_files)
        first, second = self.connect(process), self.connect(process)
        self.begin(first, AT_WORK + 20)
        first.wait(lambda: len(first.asked) == AT_WORK)
        (job,) = self.begin(second, 1)
        self.answer(first, 0)
        second.wait(lambda: second.asked)
        self.assertEqual(self.asked(second), [job])
        self.assertEqual(len(first.asked), AT_WORK)
        self.leave(first)  # whose end gives all its turns to others
        many = self.begin(second, AT_WORK + 1)
        second.wait(lambda: len(second.asked) == AT_WORK)
        self.answer(second, 0)
        second.wait(lambda: len(second.asked) == AT_WORK + 1)
        self.assertEqual(set(self.asked(second)[1:]), set(many[:AT_WORK]))

    def test_a_client_that_starts_too_many(self):
        """One that is not trusted cannot fill the memory with jobs that wait."""
        process = self.listen(preexec_fn=few_files)
        peer = self.connect(process)
        numbers = [peer.begin("job.start", **self.START) for _ in range(10001)]
        with self.assertRaises(client.Refused) as refused:
            peer.end(numbers[-1])
        self.assertIn("10000 jobs", str(refused.exception))
        job = peer.end(numbers[-2])["job"]
        peer.call("job.cancel", job=job)
        self.assertEqual(peer.result(job)["error"]["kind"], "cancelled")
        self.begin(peer, 1)
        process.kill()

    def test_the_end_of_the_server(self):
        """Jobs that wait are told that they were not begun."""
        process = self.listen(preexec_fn=few_files)
        peer = self.connect(process)
        jobs = self.begin(peer, AT_WORK + 2)
        peer.wait(lambda: len(peer.asked) == AT_WORK)
        process.terminate()
        for job in jobs[-2:]:
            self.assertEqual(peer.result(job)["error"]["kind"], "cancelled")


if __name__ == "__main__":
    unittest.main()
