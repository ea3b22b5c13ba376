"""`context` made of several files: their concatenation, that also knows the files.

A part of them is a Subset: a context of its own, which a sub-run gets by a reference to its
files and not as bytes.
"""

import json
from bisect import bisect_right
from collections.abc import Mapping

from file_index import BYTES, CHARACTERS, FIRST, FIRST_BYTE
from globs import matcher

NEAR_MAX = 5          # paths that an error names
RUNS_MAX = 200_000    # of neighbours, that may be told
GUESSED_MAX = 3000    # paths that are compared letter by letter for that
HEADER = len("=====  =====\n")  # characters that stand before a file's text, beside its path


class NoSuchFile(KeyError):
    """Its message as it is, and not as the repr of a key."""

    def __str__(self):
        return self.args[0]


NoSuchFile.__qualname__, NoSuchFile.__module__ = "KeyError", "builtins"


class SourceText(str):
    """A str; `.files` is an ordered mapping of path -> text of that file."""

    __slots__ = ()  # what lies in a memory file has no room for a field: mapped_text.c
    _files = {}  # of each instance, by its id: an input lives as long as its session

    def set_index(self, index, number, utf8=None):
        """index: a FileIndex; number: which of the inputs it is; utf8: a memoryview of its bytes,
        where characters are decoded as they are touched."""
        self._files[id(self)] = Files(self, index, number, range(len(index)), utf8=utf8)

    def __reduce__(self):
        """Pickled, it is its text alone."""
        return str, (str.__str__(self),)

    @property
    def files(self):
        files = self._files.get(id(self))
        if files is None:
            raise AttributeError("only an input that was made of files has them")
        return files

    def subset(self, *selected):
        """A part of the files, as a context: "src/net/" (a folder), "a/b.c", "**/*.py", or several.

        Paths stay whole. Use it as rlm_query(task, ctx=context.subset("src/net/")), which shares
        memory; it is a str too, and has .files and .subset().
        """
        return Subset.of(self.files, selected)


class Subset(SourceText):
    """A part of an input's files, put together as the input is."""

    @classmethod
    def of(cls, files, selected):
        places = files.select("subset", selected)
        pieces, firsts, at = [], [], 0
        for start, end, begins in files.stretches(places):
            if pieces and not pieces[-1].endswith("\n"):
                pieces.append("\n")
                at += 1
            firsts += [at + begin - start for begin in begins]
            pieces.append(files.whole[start:end])
            at += end - start
        subset = str.__new__(cls, "".join(pieces))
        subset._own = Files(subset, files.index, files.number, places, firsts, files.whole)
        return subset

    @property
    def files(self):
        return self._own


def reference(text):
    """The supervisor's reference to an input with files, or to a part of one: JSON, or None."""
    if not isinstance(text, SourceText):
        return None
    try:
        files = text.files
    except AttributeError:
        return None
    found = runs(files.places)
    if not 0 < len(found) <= RUNS_MAX:
        return None
    return json.dumps([files.number] + [number for run in found for number in run],
                      separators=(",", ":"))


def runs(places):
    """[first, count] of each row of neighbours among ascending places."""
    found = []
    for place in places:
        if found and sum(found[-1]) == place:
            found[-1][1] += 1
        else:
            found.append([place, 1])
    return found


class Files(Mapping):
    """path -> text, in order; a text is sliced out when it is asked for.

    `places`: those of the index that belong to it, ascending; `firsts`: of a part, where each has
    its header in the text. With `utf8` a file is decoded by itself: most are narrower than the
    widest one.
    """

    def __init__(self, text, index, number, places, firsts=None, whole=None, utf8=None):
        self._text = text
        self.index = index
        self.number = number
        self.places = places
        self._firsts = firsts
        self._utf8 = utf8
        self.whole = text if whole is None else whole

    def begin(self, place):
        """Where in the whole input a file's header begins."""
        return self.index.span(place)[0] - len(self.index.path(place)) - HEADER

    def end(self, place):
        return self.index.span(place)[1]

    def stretches(self, places):
        """[start, end, where headers begin] in the whole input of what stands together."""
        found = []
        for place in places:
            begin = self.begin(place)
            if found and begin <= found[-1][1] + 1:  # a line feed that belongs to no file
                found[-1][2].append(begin)
            else:
                found.append([begin, 0, [begin]])
            found[-1][1] = self.end(place)
        return found

    def select(self, function, selected):
        """The places that folders, paths and globs stand for, ascending."""
        if len(selected) == 1 and not isinstance(selected[0], str):
            selected = list(selected[0])
        if not selected:
            raise ValueError(f'{function}(): which files? For example {function}("src/")')
        places = set()
        for each in selected:
            if not isinstance(each, str):
                raise TypeError(f"{function}(): a path or a glob is a str, not "
                                f"{type(each).__name__}")
            found = self.matching(each)
            if not found:
                raise ValueError(f"{function}(): no file is {each!r} or below it"
                                 + self.near(each))
            places.update(found)
        return sorted(places)

    def matching(self, glob):
        """The places of the files that a glob, a folder or a path stands for."""
        match, paths = matcher(glob), self.index.paths()
        return [place for place in self.places if match(paths[place])]

    def spans(self):
        """(place, first character, the one behind the last) of each, in this text."""
        if self._firsts is None:
            firsts, sizes = self.index.column(FIRST), self.index.column(CHARACTERS)
            for place in self.places:
                yield place, firsts[place], firsts[place] + sizes[place]
            return
        for place, first in zip(self.places, self._firsts):
            yield place, *self._moved(place, first)

    def texts(self, chosen=None):
        """(place, text, first character, the one behind the last) of each, or of those places.

        The text may have more than the file.
        """
        if self._utf8 is None:
            for place, first, end in self.spans():
                if chosen is None or place in chosen:
                    yield place, self._text, first, end
            return
        for place in self.places:
            if chosen is None or place in chosen:
                text = self._decoded(place)
                yield place, text, 0, len(text)

    def _decoded(self, place):
        first = self.index.word(place, FIRST_BYTE)
        utf8 = self._utf8[first:first + self.index.word(place, BYTES)]
        return str(utf8, "utf-8", "surrogateescape")

    def _moved(self, place, first):
        start, end = self.index.span(place)
        first += len(self.index.path(place)) + HEADER
        return first, first + end - start

    def span(self, path):
        """(first character, the one behind the last) of a file; None: there is none."""
        place = self.index.place(path) if isinstance(path, str) else None
        if place is None:
            return None
        if self._firsts is None:
            return self.index.span(place)
        at = bisect_right(self.places, place) - 1
        if at < 0 or self.places[at] != place:
            return None
        return self._moved(place, self._firsts[at])

    def near(self, path):
        """Suggestions for a path that is not there: words, or nothing."""
        paths = self.index.paths()
        found = nearest(str(path), [paths[place] for place in self.places])
        return f"; near it: {', '.join(map(repr, found))}" if found else ""

    def __getitem__(self, path):
        span = self.span(path)
        if span is None:
            raise NoSuchFile(f"there is no file {path!r}{self.near(path)}")
        if self._utf8 is not None:
            return self._decoded(self.index.place(path))
        return self._text[span[0]:span[1]]

    def get(self, path, default=None):
        return self[path] if path in self else default

    def __iter__(self):
        return map(self.index.path, self.places)

    def __contains__(self, path):
        return self.span(path) is not None

    def __len__(self):
        return len(self.places)

    def __repr__(self):
        shown = ", ".join(repr(self.index.path(place)) for place in self.places[:10])
        more = ", ..." if len(self) > 10 else ""
        return f"<files: {len(self)} texts by path: {shown}{more}>"


def nearest(wanted, paths):
    """Paths with the same end, the same name, or with similar letters."""
    wanted = wanted.strip().strip("/")
    while wanted.startswith("./"):
        wanted = wanted[2:]
    name = wanted.rpartition("/")[2].lower()
    if not name:
        return []
    ends = [path for path in paths if path.endswith("/" + wanted) or wanted.endswith("/" + path)]
    if ends:
        return ends[:NEAR_MAX]
    same = [path for path in paths if path.rpartition("/")[2].lower() == name]
    if same:
        return sorted(same, key=lambda path: -shared(path, wanted))[:NEAR_MAX]
    folders = {path[:at] + "/" for path in paths for at in slashes(path)}
    ends = [folder for folder in folders if f"/{folder}".endswith(f"/{wanted}/")]
    if ends:
        return sorted(ends)[:NEAR_MAX]
    import difflib

    parts = sorted({*paths, *folders}, key=lambda path: -shared(path, wanted))[:GUESSED_MAX]
    return difflib.get_close_matches(wanted, parts, NEAR_MAX, 0.6)


def slashes(path):
    return [at for at, character in enumerate(path) if character == "/"]


def shared(path, wanted):
    """How many characters they begin with together."""
    count = 0
    for one, other in zip(path, wanted):
        if one != other:
            break
        count += 1
    return count
