"""`context` made of several files: their concatenation, that also knows the files."""

from collections.abc import Mapping


class SourceText(str):
    """A str; `.files` is an ordered mapping of path -> text of that file."""

    __slots__ = ()  # what lies in a memory file has no room for a field: mapped_text.c
    _files = {}  # of each instance, by its id: an input lives as long as its session

    def set_index(self, index):
        """index: a FileIndex"""
        self._files[id(self)] = Files(self, index)

    def __reduce__(self):
        """Pickled, it is its text alone."""
        return str, (str.__str__(self),)

    @property
    def files(self):
        files = self._files.get(id(self))
        if files is None:
            raise AttributeError("only an input that was made of files has them")
        return files


class Files(Mapping):
    """path -> text, in order; a text is sliced out when it is asked for."""

    def __init__(self, text, index):
        self._text = text
        self._index = index

    def __getitem__(self, path):
        place = self._index.place(path) if isinstance(path, str) else None
        if place is None:
            raise KeyError(path)
        first, end = self._index.span(place)
        return self._text[first:end]

    def __iter__(self):
        return map(self._index.path, range(len(self._index)))

    def __contains__(self, path):
        return isinstance(path, str) and self._index.place(path) is not None

    def __len__(self):
        return len(self._index)

    def __repr__(self):
        shown = ", ".join(repr(self._index.path(place)) for place in range(min(10, len(self))))
        more = ", ..." if len(self) > 10 else ""
        return f"<files: {len(self)} texts by path: {shown}{more}>"
