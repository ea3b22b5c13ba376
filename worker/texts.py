"""Work on texts, without any model: in `context` where no other text is given.

Each docstring is shown to the model by help().
"""

import itertools
import json
import re

from arguments import check_text, check_whole
from calling import called
from search import compiled, spans

PATTERN_MAX = 500  # characters: what is longer, and longer than the text beside it, is no pattern

# Other libraries' names of the arguments.
TEXT = dict.fromkeys("context ctx document doc string content haystack".split(), "text")
PATTERN = {
    **TEXT, **dict.fromkeys("query regex keyword term word header_pattern".split(), "pattern"),
}
SEARCH = {
    **PATTERN,
    **dict.fromkeys("top_k limit k n max_matches num_results".split(), "max_results"),
    **dict.fromkeys("context_window context_chars context_size window_size".split(), "window"),
}
PIECES = {
    **TEXT,
    **dict.fromkeys("chunk_size max_chars max_size max_length chars".split(), "size"),
    **dict.fromkeys("chunk_overlap overlap_size".split(), "overlap"),
}
CHARS = {name: "chars" if own == "size" else own for name, own in PIECES.items()}
CHARS["size"] = CHARS.pop("chars")


def text_first(_self, given, named):
    """(number, text) for (text, number)."""
    if len(given) > 1 and isinstance(given[1], str) and not isinstance(given[0], str):
        given[:2] = given[1], given[0]


def text_anywhere(_self, given, named):
    """Of a text and numbers, the text may come first or last."""
    for place, value in enumerate(given):
        if isinstance(value, str) and "text" not in named:
            named["text"] = given.pop(place)
            break


def pattern_first(self, given, named):
    """(pattern, text), and (text, pattern) where only one of them can be the pattern."""
    if len(given) > 1 and isinstance(given[1], (str, re.Pattern)) and "text" not in named:
        named["text"] = given.pop(1)
    text = named.get("text")
    if given and text is not None and self.is_searched(given[0], text):
        given[0], named["text"] = text, given[0]


class Found(tuple):
    """(match, before, after), with the keys of search_context(): "match", "start", "context"."""

    def __new__(cls, text, start, end, window):
        before, after = text[max(0, start - window):start], text[end:end + window]
        found = tuple.__new__(cls, (text[start:end], before, after))
        found.start = start
        return found

    def __getitem__(self, key):
        if key == "context":
            return f"{self[1]}{self[0]}{self[2]}"
        if key == "start":
            return self.start
        return tuple.__getitem__(self, 0 if key == "match" else key)


def text_before_pattern(self, given, named):
    """search(text, pattern), and (pattern, text) where only that can be meant; context=500."""
    if isinstance(named.get("text"), int):
        named["window"] = named.pop("text")
    if len(given) > 1 and isinstance(given[1], (str, re.Pattern)) and "text" not in named:
        named["text"] = given.pop(1 if self.is_searched(given[1], given[0]) else 0)


def lines_of(text):
    """(number from 1, line) of each; one at a time, for a text may have very many."""
    number, start = 0, 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        number += 1
        yield number, text[start:end]
        start = end + 1


class Texts:
    def __init__(self):
        self.context = ""

    def is_searched(self, text, other):
        """Whether of two the first is the text, and the other one the pattern."""
        if isinstance(text, re.Pattern) or other is self.context:
            return False
        if text is self.context or isinstance(other, re.Pattern):
            return True
        if not isinstance(text, str) or not isinstance(other, str) or len(text) <= len(other):
            return False
        return len(text) > PATTERN_MAX or "\n" in text and not text.startswith("(?")

    @called(PIECES, text_first)
    def chunk_text(self, text, size=10000, overlap=500):
        """Cuts a text into a list of pieces.

        size: characters in a piece; the last one may be shorter.
        overlap: characters at the end of a piece that the next one repeats.

        Raises ValueError unless 0 <= overlap < size.
        """
        check_text("chunk_text", "text", text)
        return pieces("chunk_text", text, "size", size, overlap)

    @called(SEARCH, pattern_first)
    def search_context(self, pattern, window=200, text=None, max_results=None):
        """Finds a regular expression, letters in any case, in `context` or in `text`.

        Returns a list of dicts, one for each match, or for the first `max_results`:
        "match" (the matched text), "start" (its position, in characters), "context"
        (the match with up to `window` characters before and after it). ^ and $ match
        at every line. Raises re.error if the pattern is wrong.
        """
        text = self._searched("search_context", pattern, text)
        window = check_whole("search_context", "window", window, 0)
        if max_results is not None:
            max_results = check_whole("search_context", "max_results", max_results, 0)
        return [
            {
                "match": text[start:end],
                "start": start,
                "context": text[max(0, start - window):end + window],
            }
            for start, end in itertools.islice(spans(pattern, text), max_results)
        ]

    @called(PATTERN, pattern_first)
    def count_matches(self, pattern, text=None):
        """Counts what search_context() would find, without keeping it. Returns an int."""
        text = self._searched("count_matches", pattern, text)
        return sum(1 for _span in spans(pattern, text))

    @called(TEXT)
    def extract_json(self, text=None):
        """Finds JSON in `context` or in `text`, also in a fence or between other words.

        Returns it parsed: the whole text's value where that is JSON, else the
        longest object or array in it; None if there is none.
        """
        text = self._given("extract_json", text)
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
        decoder, found, longest, position = json.JSONDecoder(), None, 0, 0
        opening = re.compile(r"[{\[]")
        while True:
            match = opening.search(text, position)
            if match is None:
                return found
            try:
                value, position = decoder.raw_decode(text, match.start())
            except (ValueError, RecursionError):
                position = match.end()
                continue
            if position - match.start() > longest:
                found, longest = value, position - match.start()

    @called(PATTERN, pattern_first)
    def extract_sections(self, pattern, text=None):
        """Cuts `context` or `text` at each match of a header's regular expression.

        Returns a list of dicts, one for each match, in order: "header" (the
        matched text), "content" (what stands between it and the next match),
        "start" (the header's position, in characters). Letters match in any
        case, ^ and $ at every line.
        """
        text = self._searched("extract_sections", pattern, text)
        found = list(spans(pattern, text))
        nexts = [start for start, _end in found[1:]] + [len(text)]
        return [
            {"header": text[start:end], "content": text[end:following], "start": start}
            for (start, end), following in zip(found, nexts)
        ]

    # The helpers of the library that the functions above are from; aliases.py has their names.

    @called(SEARCH, text_before_pattern)
    def search(self, pattern, window=500, text=None, max_results=None):
        """Finds a text, or else a regular expression, letters in any case, as minrlm does.

        Returns a list of tuples (match, before, after) with up to `window` characters each.
        """
        text = self._searched("search", pattern, text)
        window = check_whole("search", "window", window, 0)
        if max_results is not None:
            max_results = check_whole("search", "max_results", max_results, 0)
        found = []
        if isinstance(pattern, str):
            found = list(itertools.islice(spans(re.escape(pattern), text), max_results))
        found = found or itertools.islice(spans(pattern, text), max_results)
        return [Found(text, start, end, window) for start, end in found]

    @called(PATTERN, pattern_first)
    def find_line(self, pattern, text=None):
        """The lines that match: a list of (number, line), numbers from 1, letters in any case."""
        text = self._searched("find_line", pattern, text)
        search = compiled(pattern).search
        return [(number, line) for number, line in lines_of(text) if search(line)]

    @called(PATTERN, pattern_first)
    def count_lines(self, pattern=None, text=None):
        """How many lines there are, or how many match, letters in any case."""
        if text is None and isinstance(pattern, str) and (
            pattern is self.context or "\n" in pattern
        ):
            pattern, text = None, pattern
        if pattern is None:
            return self._given("count_lines", text).count("\n") + 1
        text = self._searched("count_lines", pattern, text)
        search = compiled(pattern).search
        return sum(1 for _number, line in lines_of(text) if search(line))

    @called({**TEXT, "line": "n", "number": "n", "line_number": "n"}, text_anywhere)
    def get_line(self, n, text=None):
        """Line n, from 1, without its end; an empty str where there is none."""
        text = self._given("get_line", text)
        n = check_whole("get_line", "n", n, 0)
        return next((line for number, line in lines_of(text) if number == n), "")

    @called({**PATTERN, "quote": "pattern"}, pattern_first)
    def quote_match(self, pattern, max_length=100, text=None):
        """The first match, cut to max_length characters and "...", or None."""
        text = self._searched("quote_match", pattern, text)
        max_length = check_whole("quote_match", "max_length", max_length, 0)
        for start, end in spans(pattern, text):
            return text[start:end] if end - start <= max_length else (
                text[start:start + max_length] + "..."
            )
        return None

    @called(TEXT, text_anywhere)
    def chunk_by_headers(self, level=2, text=None):
        """Cuts a Markdown text at its headers of one level, 2 being those with ##.

        Returns a list of dicts: "header" (the line), "content" (what follows it, up to the next
        such header, without space around it), "start" (the header's position, in characters).
        """
        text = self._given("chunk_by_headers", text)
        level = check_whole("chunk_by_headers", "level", level, 1)
        found = [match.span() for match in re.finditer(f"(?m)^#{{{level}}} .+$", text)]
        nexts = [start for start, _end in found[1:]] + [len(text)]
        return [
            {"header": text[start:end], "content": text[end:following].strip(), "start": start}
            for (start, end), following in zip(found, nexts)
        ]

    @called(CHARS, text_anywhere)
    def chunk_by_size(self, chars=50000, overlap=0, text=None):
        """Cuts a text into a list of pieces of so many characters, as chunk_text() does."""
        text = self._given("chunk_by_size", text)
        return pieces("chunk_by_size", text, "chars", chars, overlap)

    def _given(self, function, text):
        if text is None:
            return self.context
        check_text(function, "text", text)
        return text

    def _searched(self, function, pattern, text):
        """The text, once both are what they should be."""
        right = f"{function}(pattern, text=...), without text= in `context`"
        if pattern is self.context and pattern and text is None:
            raise ValueError(f"{function}(): the pattern is missing. The call is {right}")
        if not isinstance(pattern, (str, re.Pattern)):
            hint = ': one for several words is "|".join(words)' if isinstance(
                pattern, (list, tuple, set)) else f". The call is {right}"
            raise TypeError(
                f"{function}(): the pattern must be a str, not {type(pattern).__name__}{hint}"
            )
        return self._given(function, text)


def pieces(function, text, what, size, overlap):
    size = check_whole(function, what, size, 1)
    overlap = check_whole(function, "overlap", overlap, 0)
    if overlap >= size:
        raise ValueError(
            f"{function}(): overlap must be less than {what}, "
            f"but overlap is {overlap} and {what} is {size}"
        )
    if not text:
        return []
    last = max(1, len(text) - overlap)
    return [text[start:start + size] for start in range(0, last, size - overlap)]
