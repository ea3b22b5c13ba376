"""The instructions of operations on the hot path (bench/counts.def), whatever the time."""
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.environ["RLMD_SOURCE_ROOT"], "bench"))
import counts

BUILD = os.environ["RLMD_BUILD_ROOT"]


def counted(planted=None):
    try:
        return counts.count(BUILD, planted)
    except counts.CannotCount as why:
        raise unittest.SkipTest(str(why)) from None


class CountsTest(unittest.TestCase):
    def test_each_is_within_its_limits(self):
        self.assertEqual(list(counts.complaints(counted(), counts.load_table())), [])

    def test_a_planted_slowdown_is_found(self):
        """A quarter more work in one of them: it, and no other, is named."""
        said = list(counts.complaints(counted("stream_event"), counts.load_table()))
        self.assertEqual([line.partition(":")[0] for line in said], ["stream_event"])
        self.assertRegex(said[0], r"^stream_event: \d+ instructions, \d+ were allowed: \+2\d %, at "
                                  r"most \d+ % more may be \(one event of .*tools/bench --counts")

    def test_what_was_won_is_kept(self):
        table = {"a": (1000, 5, "A"), "b": (1000, 5, "B"), "c": (1000, 5, "C")}
        said = list(counts.complaints({"a": 900, "b": 951, "c": 1050}, table))
        self.assertEqual(said, ["a: 900 instructions, 1000 were allowed: -10 %. Keep that with "
                                "`tools/bench --counts --update`"])


class TableTest(unittest.TestCase):
    TEXT = ('/* COUNT(name, instructions, growth, meaning): of what. */\n'
            'COUNT(one,       100,     5, "is one")\nCOUNT(more,   20000,    10, "are more")\n')

    def setUp(self):
        reading = mock.mock_open(read_data=self.TEXT)
        patch = mock.patch.object(counts, "open", reading, create=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.written = reading().write

    def test_it_is_read(self):
        self.assertEqual(counts.load_table(),
                         {"one": (100, 5, "is one"), "more": (20000, 10, "are more")})

    def test_it_is_written(self):
        """With new figures in their columns; all else as it was."""
        counts.update({"one": 99, "more": 123456})
        self.written.assert_called_once_with(
            self.TEXT.replace("      100", "       99").replace("   20000", "  123456"))


if __name__ == "__main__":
    unittest.main()
