"""`context` made of several files: their concatenation, that also knows the files."""

from collections.abc import Mapping


class SourceText(str):
    """A str; `.files` is an ordered mapping of path -> text of that file."""

    __slots__ = ()  # what lies in a memory file has no room for a field: mapped_text.c
    _files = {}  # of each instance, by its id: an input lives as long as its session

    def set_index(self, index):
        """index: [[path, first character, characters], ...]"""
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
        self._places = {path: (first, first + length) for path, first, length in index}

    def __getitem__(self, path):
        first, end = self._places[path]
        return self._text[first:end]

    def __iter__(self):
        return iter(self._places)

    def __contains__(self, path):
        return path in self._places

    def __len__(self):
        return len(self._places)

    def __repr__(self):
        shown = ", ".join(map(repr, list(self._places)[:10]))
        more = ", ..." if len(self._places) > 10 else ""
        return f"<files: {len(self._places)} texts by path: {shown}{more}>"
