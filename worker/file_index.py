"""The index of an input's files as the supervisor wrote it: src/source/file_index.c.

It is looked at where it lies, in a memory file that all workers share: nothing is decoded
before it is asked for.
"""

HEAD = 3    # words: records, bytes of the paths, bytes of the changes
RECORD = 10 # words: see below
WORD = 8    # bytes
FIRST, CHARACTERS, FIRST_BYTE, BYTES, PATH, PATH_SIZE, TOKENS = range(7)


class FileIndex:
    """Of each file, by its place from 0: the path, and where its text is."""

    def __init__(self, view):
        """view: a memoryview of bytes."""
        self._count, paths, changes = view[:HEAD * WORD].cast("Q")
        start = HEAD * WORD
        end = start + self._count * RECORD * WORD
        self._words = view[start:end].cast("Q")
        start, end = end, end + self._count * 4
        self._sorted = view[start:end].cast("I")
        start, end = end, end + paths
        self._paths = view[start:end]
        self._changes = view[end:end + changes]
        if len(self._changes) != changes:
            raise ValueError("the index of the files is shorter than announced")

    def __len__(self):
        return self._count

    def word(self, place, what):
        return self._words[place * RECORD + what]

    def span(self, place):
        """(first character, the one behind the last) of the file's text."""
        first = self._words[place * RECORD + FIRST]
        return first, first + self._words[place * RECORD + CHARACTERS]

    def path(self, place):
        return str(self._path(place), "utf-8")

    def _path(self, place):
        start = self._words[place * RECORD + PATH]
        return self._paths[start:start + self._words[place * RECORD + PATH_SIZE]]

    def paths(self):
        """All of them, in order, at once: that takes a fiftieth of one by one."""
        found = str(self._paths, "utf-8").split("\0")[:-1]
        if len(found) != self._count:  # some are hidden by others of the same name
            found = [self.path(place) for place in range(self._count)]
        return found

    def column(self, what):
        """One of the words of each file, in order."""
        return self._words[what::RECORD].tolist()

    def place(self, path):
        """The file of that path; None: there is none."""
        wanted = path.encode("utf-8", "surrogatepass")
        first, end = 0, self._count
        while first < end:
            middle = (first + end) // 2
            found = bytes(self._path(self._sorted[middle]))
            if found == wanted:
                return self._sorted[middle]
            if found < wanted:
                first = middle + 1
            else:
                end = middle
        return None

    def changes(self):
        """JSON, or nothing."""
        return str(self._changes, "utf-8")
