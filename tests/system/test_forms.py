"""Some hundred replies in the forms that families of models write, each through the whole program.

forms.jsonl has them, one a line: who writes it ("of"), the reply, and what it means: the answer that
the run gives; null, where the model is told what is wrong; "ran", where its code printed 42. `cut`
replies ended at their limit. What matters most is that none gives another answer than was meant.
"""

import json
import re
import unittest
from pathlib import Path

from model import Reply
from providers import ProviderTest

FORMS = Path(__file__).with_name("forms.jsonl")


def what_happened(request):
    """The second reply of a run: it says what became of the first."""
    ran = re.search(r"^42$", request.last_user, re.M)
    return Reply(text="FINAL(ran)" if ran else "FINAL(told)")


class Forms(ProviderTest):
    def test_none_is_misread(self):
        forms = [json.loads(line) for line in FORMS.read_text("utf-8").splitlines()]
        jobs = [{"custom_id": str(i), "task": f"form {i}.", "context": "20\n22\n"}
                for i in range(len(forms))]

        def answer(request):
            if sum(role == "assistant" for role, _ in request.messages) > 1:
                return what_happened(request)
            form = forms[int(re.search(r"TASK: form (\d+)\.", request.last_user).group(1))]
            return Reply(text=form["reply"], finish="length" if form.get("cut") else "stop")

        server = self.serve("openai").script(None, answer)
        self.write("jobs.jsonl", "".join(json.dumps(job) + "\n" for job in jobs))
        outcome = self.rlmd("batch", "-o", "results.jsonl", "-p", "openai", "-m", "m", "jobs.jsonl",
                            env=self.environment(**server.environment()))
        self.assertEqual(outcome.status, 0, outcome.err)
        lines = (self.dir / "results.jsonl").read_text("utf-8").splitlines()
        got = {int(each["custom_id"]): each["output"] for each in map(json.loads, lines)}
        self.assertEqual(len(got), len(forms))
        for i, form in enumerate(forms):
            with self.subTest(line=i + 1, of=form["of"], reply=form["reply"]):
                self.assertEqual(got[i], form["means"] or "told")


if __name__ == "__main__":
    unittest.main()
