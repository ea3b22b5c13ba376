#!/usr/bin/env python3
"""search_context()'s way through a text, beside `re` on the same text in the same run.

usage: search.py WORKER_DIRECTORY SAMPLES [MILLIONS OF CHARACTERS]

The floor is `re` with regard to letter case; what it takes without is what there was before.
"""

import itertools
import random
import re
import sys
import time

PATTERNS = "needle", r"\b(?:the\s+)?needle\w*\b", r"\w+ needle\b"
SOME = 997  # every so many characters is not ASCII


def made(characters):
    source = random.Random(1)
    words = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(2, 9)))
             for _ in range(2000)]
    words += [word.capitalize() for word in words[:400]]
    return " ".join(source.choices(words, k=characters // 6))


def with_some(text, character):
    return "".join(character if not i % SOME else c for i, c in enumerate(text))


def fastest(samples, search):
    best = None
    for _ in range(samples):
        start = time.perf_counter()
        search()
        took = time.perf_counter() - start
        best = took if best is None else min(best, took)
    return best * 1000


def main(directory, samples, millions="4"):
    sys.path.insert(0, directory)
    import search

    ascii_text = made(int(float(millions) * 1e6))
    print(f"{'pattern':<24}{'text':<8}{'case matters':>14}{'re, any case':>14}{'ours':>10}"
          f"{'of re':>8}{'of floor':>10}")
    texts = (("ASCII", ascii_text), ("é", with_some(ascii_text, "é")),
             ("emoji", with_some(ascii_text, "\U0001f600")))
    for pattern, (name, text) in itertools.product(PATTERNS, texts):
        sensitive, ignoring = re.compile(pattern), re.compile(pattern, search.FLAGS)
        floor, before, ours = (
            fastest(int(samples), look)
            for look in (
                lambda: sum(1 for _ in sensitive.finditer(text)),
                lambda: sum(1 for _ in ignoring.finditer(text)),
                lambda: sum(1 for _ in search.spans(pattern, text)),
            )
        )
        print(f"{pattern:<24}{name:<8}{floor:>11.2f} ms{before:>11.2f} ms{ours:>7.2f} ms"
              f"{ours / before:>8.2f}{ours / floor:>10.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
