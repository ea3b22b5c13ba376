"""Work on texts, without any model: in `context` where no other text is given.

Each docstring is shown to the model by help().
"""

import json
import re

from arguments import check_text
from search import spans


class Texts:
    def __init__(self, context):
        self._context = context

    def chunk_text(self, text, size=10000, overlap=500):
        """Cuts a text into a list of pieces.

        size: characters in a piece; the last one may be shorter.
        overlap: characters at the end of a piece that the next one repeats.

        Raises ValueError unless 0 <= overlap < size.
        """
        check_text("chunk_text", "text", text)
        if size <= 0:
            raise ValueError(f"chunk_text(): size must be positive, not {size}")
        if not 0 <= overlap < size:
            raise ValueError(
                f"chunk_text(): overlap must be at least 0 and less than size, "
                f"but overlap is {overlap} and size is {size}"
            )
        if not text:
            return []
        last = max(1, len(text) - overlap)
        return [text[start:start + size] for start in range(0, last, size - overlap)]

    def search_context(self, pattern, window=200, text=None):
        """Finds a regular expression, letters in any case, in `context` or in `text`.

        Returns a list of dicts, one for each match: "match" (the matched
        text), "start" (its position, in characters), "context" (the match
        with up to `window` characters before and after it). ^ and $ match at
        every line. Raises re.error if the pattern is wrong.
        """
        text = self._searched("search_context", text)
        return [
            {
                "match": text[start:end],
                "start": start,
                "context": text[max(0, start - window):end + window],
            }
            for start, end in spans(pattern, text)
        ]

    def count_matches(self, pattern, text=None):
        """Counts what search_context() would find, without keeping it. Returns an int."""
        text = self._searched("count_matches", text)
        return sum(1 for _span in spans(pattern, text))

    def extract_json(self, text=None):
        """Finds JSON in `context` or in `text`, also in a fence or between other words.

        Returns it parsed: the whole text's value where that is JSON, else the
        longest object or array in it; None if there is none.
        """
        text = self._searched("extract_json", text)
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

    def extract_sections(self, pattern, text=None):
        """Cuts `context` or `text` at each match of a header's regular expression.

        Returns a list of dicts, one for each match, in order: "header" (the
        matched text), "content" (what stands between it and the next match),
        "start" (the header's position, in characters). Letters match in any
        case, ^ and $ at every line.
        """
        text = self._searched("extract_sections", text)
        found = list(spans(pattern, text))
        nexts = [start for start, _end in found[1:]] + [len(text)]
        return [
            {"header": text[start:end], "content": text[end:following], "start": start}
            for (start, end), following in zip(found, nexts)
        ]

    def _searched(self, function, text):
        if text is None:
            return self._context
        check_text(function, "text", text)
        return text
