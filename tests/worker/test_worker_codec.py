"""Messages as bytes: worker/encode.c and decode.c, held to Python's own json and to the table."""

import json
import os
import random
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(os.environ["RLMD_BUILD_ROOT"]) / "worker"))

import _rlmd
import messages
from channel import Attachment

TEXTS = ["", "a", "é🙂\0\x1f\x7f\"\\/\b\f\n\r\t", "\u2028\ufffe", "x" * messages.TEXT_INLINE_MAX]
GOOD = {
    "BOOLEAN": [True, False],
    "INTEGER": [0, 1, messages.INTEGER_MAX],
    "STRING": ["", "m", "é" * (messages.STRING_MAX // 2), '"\\\x01'],
    "TEXT": TEXTS,
    "INTEGERS": [[], [0, 5], list(range(messages.ELEMENTS_MAX))],
    "STRINGS": [[], ["a", ""]],
    "TEXTS": [[], [None], TEXTS, ["y" * 1000] * 500],
    "STRINGS_NULL": [[], [None, "a"]],
}
BAD = {
    "BOOLEAN": [None, 0, "true"],
    "INTEGER": [None, -1, messages.INTEGER_MAX + 1, 1 << 70, 1.0, True, "1"],
    "STRING": [None, 1, b"a", "x" * (messages.STRING_MAX + 1), "é" * messages.STRING_MAX, "\udc80"],
    "TEXT": [None, 5.5, b"a", type("Text", (str,), {})("a")],
    "INTEGERS": [None, [None], [-1], [True], (1,), [0] * (messages.ELEMENTS_MAX + 1)],
    "STRINGS": [None, [None], [5], ("a",)],
    "TEXTS": [None, "a", [5.5], ["a"] * (messages.ELEMENTS_MAX + 1)],
    "STRINGS_NULL": [None, [5], "a"],
}
for kind in ("INTEGER", "STRING", "TEXT"):
    GOOD[kind + "_NULL"] = [None] + GOOD[kind]
    BAD[kind + "_NULL"] = BAD[kind][1:]


def said_by(sender):
    return {name: fields for name, (by, fields) in messages.MESSAGES.items() if by == sender}


def values(fields, table):
    """The first value of each field, and then every other one of each."""
    first = {key: GOOD[kind][0] for key, kind in fields.items()}
    yield dict(first)
    for key, kind in fields.items():
        for value in table[kind]:
            yield {**first, key: value}


def framed(body):
    return struct.pack(">I", len(body)) + body


class Encoding(unittest.TestCase):
    def sent(self, name, fields):
        """A reader that knows the rules finds the fields again, and the sizes."""
        frame, attached = _rlmd.encode(name, fields, Attachment)
        self.assertEqual(len(frame) - 4, struct.unpack(">I", frame[:4])[0])
        message = json.loads(frame[4:].decode("utf-8"))
        sizes = message.pop("attachments", [])
        texts = [b"".join(each.slices()) for each in attached]
        self.assertEqual(sizes, [len(text) for text in texts])
        self.assertEqual(message.pop("type"), name)
        for key, kind in messages.MESSAGES[name][1].items():
            if kind.startswith("TEXT"):
                several = type(message[key]) is list
                found = [
                    texts[value].decode() if type(value) is int else value
                    for value in (message[key] if several else [message[key]])
                ]
                message[key] = found if several else found[0]
        return message, sizes

    def test_every_message_comes_out_as_it_went_in(self):
        for name, fields in said_by("worker").items():
            for given in values(fields, GOOD):
                with self.subTest(name):
                    self.assertEqual(self.sent(name, given)[0], given)

    def test_what_is_long_is_attached(self):
        """By its bytes; contexts always; and of many short ones those beyond a quarter of a frame."""
        most = messages.TEXT_INLINE_MAX
        usual = {"tasks": ["t"], "models": [None], "contexts": [None], "subsets": [], "id": 1}
        for text, attached in (("x" * most, 0), ("x" * (most + 1), 1), ("é" * (most // 2), 0),
                               ("é" * (most // 2 + 1), 1), ("\udcff", 1)):
            frame, found = _rlmd.encode("rlm_query", {**usual, "tasks": [text]}, Attachment)
            self.assertEqual(len(found), attached)
        self.assertEqual(self.sent("rlm_query", {**usual, "contexts": ["c"]})[1], [1])
        sizes = self.sent("rlm_query", {**usual, "tasks": ["x" * 1000] * 600})[1]
        self.assertIn(len(sizes), range(330, 345))

    def test_what_may_not_be_sent(self):
        for name, fields in said_by("worker").items():
            good = next(values(fields, GOOD))
            for key, kind in fields.items():
                for value in BAD[kind]:
                    with self.subTest(name=name, key=key, value=str(value)[:50]):
                        with self.assertRaises(_rlmd.ProtocolError):
                            _rlmd.encode(name, {**good, key: value}, Attachment)
            for wrong in ({**good, "more": 1}, dict(list(good.items())[1:]), [], None):
                with self.assertRaises(_rlmd.ProtocolError):
                    _rlmd.encode(name, wrong, Attachment)
        for name in ("exec", "nonsense"):
            with self.assertRaises(_rlmd.ProtocolError):
                _rlmd.encode(name, {"block": 1, "code": ""}, Attachment)

    def test_too_much(self):
        call = {"id": 1, "tasks": [], "models": ["m" * 200] * 6000, "contexts": [], "subsets": []}
        with self.assertRaisesRegex(_rlmd.ProtocolError, "frame too large"):
            _rlmd.encode("rlm_query", call, Attachment)
        call = {"id": 1, "tasks": ["t"] * 2, "models": [None] * 2, "subsets": [],
                "contexts": ["c" * (65 << 20)] * 2}
        with self.assertRaisesRegex(_rlmd.ProtocolError, "more than 128 MiB"):
            _rlmd.encode("rlm_query", call, Attachment)

    def test_an_attachment_that_fails(self):
        def fail(_text):
            raise MemoryError

        with self.assertRaises(MemoryError):
            _rlmd.encode("run_plan", {"id": 1, "plan": "\ud800"}, fail)


class Decoding(unittest.TestCase):
    def test_every_message_comes_out_as_it_went_in(self):
        for name, fields in said_by("supervisor").items():
            for given in values(fields, GOOD):
                for shape in ({}, {"ensure_ascii": False}, {"indent": 1}):
                    message = {"type": name, **given}
                    frame = framed(json.dumps(message, **shape).encode())
                    self.assertEqual(_rlmd.message(frame + b"more"), (message, None, len(frame)))

    def test_what_may_not_be_said(self):
        for name, fields in said_by("supervisor").items():
            good = next(values(fields, GOOD))
            for key, kind in fields.items():
                for value in BAD[kind]:
                    if type(value) in (tuple, bytes) or isinstance(value, str):
                        continue  # JSON has no such thing, or the supervisor may say it
                    self.assert_refused({"type": name, **good, key: value})
            self.assert_refused({"type": name, **good, "more": 1})
            self.assert_refused({"type": name, **dict(list(good.items())[1:])} if good else {})
        self.assert_refused({"type": "done"})
        self.assert_refused({"type": 5})

    def assert_refused(self, message):
        try:
            body = json.dumps(message).encode()
        except ValueError:
            return
        with self.subTest(body[:100]), self.assertRaises(ValueError):
            _rlmd.message(framed(body))

    def test_in_pieces(self):
        whole = framed(b'{"type":"exit"}')
        for size in range(len(whole)):
            self.assertIsNone(_rlmd.message(whole[:size]))
        with self.assertRaises(_rlmd.ProtocolError):
            _rlmd.message(struct.pack(">I", messages.FRAME_MAX + 1))
        self.assertIsNone(_rlmd.message(struct.pack(">I", messages.FRAME_MAX)))

    def test_attachments(self):
        said = b'{"type":"reply","id":1,"values":[1,null,"x",0],"errors":[],"messages":[],"degraded":[]'
        fields, sizes, _size = _rlmd.message(framed(said + b',"attachments":[3,4]}'))
        self.assertEqual(sizes, [3, 4])
        self.assertEqual(_rlmd.place(fields, ["abc", "defg"])["values"], ["defg", None, "x", "abc"])
        for sizes in (b"5", b'["a"]', b"[-1]", b"[1.5]", b"null", b"{}"):
            with self.assertRaises(ValueError):
                _rlmd.message(framed(said + b',"attachments":' + sizes + b"}"))
        fields, _sizes, _size = _rlmd.message(framed(said + b',"attachments":[3]}'))
        with self.assertRaises(_rlmd.ProtocolError):
            _rlmd.place(fields, ["abc"])  # 1 names none

    def test_strings(self):
        """The escapes that there are and no others; UTF-8 and no surrogate by itself."""
        for text, meant in ((rb"\"\\\/\b\f\n\r\t", '"\\/\b\f\n\r\t'), (rb"\u00e9\u0000\uD83D\ude42", "é\0🙂"),
                            ("é🙂".encode(), "é🙂"), (b"\x7f", "\x7f"), (rb"a\u2028b", "a\u2028b")):
            frame = framed(b'{"type":"get","name":"' + text + b'"}')
            self.assertEqual(_rlmd.message(frame)[0]["name"], meant)
        for text in (rb"\x", rb"\u12", rb"\u12g4", rb"\ud800", rb"\ud800\u0041", rb"\udc00", b"\xff",
                     b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x1f", b"\0", b"\\", b"a\\"):
            for around in (b"", b"\\n"):
                frame = framed(b'{"type":"get","name":"' + around + text + b'"}')
                with self.subTest(text), self.assertRaises(ValueError):
                    _rlmd.message(frame)

    def test_damaged_frames_are_refused_or_mean_what_json_means(self):
        dice = random.Random(5)
        bodies = [
            json.dumps({"type": name, **given}, ensure_ascii=dice.random() < 0.5).encode()
            for name, fields in said_by("supervisor").items() for given in values(fields, GOOD)
        ]
        bodies = [body for body in bodies if len(body) < 1000]
        taken = 0
        for _ in range(30000):
            body = bytearray(dice.choice(bodies))
            for _ in range(dice.randint(1, 2)):
                place = dice.randrange(len(body))
                piece = bytes(dice.choices(b'{}[],:"\\u0159e-. \ntnaf\x00\x80\xe9', k=dice.randint(0, 2)))
                body[place:place + dice.randint(0, 2)] = piece
            try:
                found = _rlmd.message(framed(bytes(body)))[0]
            except ValueError:
                continue
            taken += 1
            self.assertEqual(found, json.loads(body.decode("utf-8")), body)
        self.assertGreater(taken, 100)


if __name__ == "__main__":
    unittest.main()
