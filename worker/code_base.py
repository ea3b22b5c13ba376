"""Work on an input that was made of files: by path and by line.

Each docstring is shown to the model by help(). A line ends with "\\n" alone; lines count from 1.
"""

import itertools
import json
import re
from typing import NamedTuple

from arguments import check_text, check_whole, plain
from calling import called
from file_index import BYTES, TOKENS
from file_tree import human, tree_text
from languages import language_of
from outlines import KNOWN, NotOutlined, outline_of
from search import line_finder

# Other libraries' names of the arguments.
PATH = dict.fromkeys("file filename file_path filepath name folder directory dir root".split(),
                     "path")
GLOB = {**dict.fromkeys("pattern path_pattern globs".split(), "glob"), "context": "ctx"}
LINES = {**PATH, **dict.fromkeys("start first start_line line_start from_line".split(), "a"),
         **dict.fromkeys("end last end_line line_end to_line".split(), "b"), "context": "ctx"}
PATTERN = {
    **dict.fromkeys("query regex text string".split(), "pattern"),
    **dict.fromkeys("path paths files include folder".split(), "glob"),
    **dict.fromkeys("ignorecase case_insensitive icase i".split(), "ignore_case"),
    "context": "ctx",
}


class Line(NamedTuple):
    path: str
    line: int
    text: str


class CodeBase:
    def __init__(self):
        self.inputs = {}

    @called({**PATH, "max_depth": "depth", "levels": "depth", "context": "ctx"})
    def tree(self, path="", depth=2, *, ctx=None):
        """The files below a folder as text: folders with what is in them, sizes, languages.

        depth: levels that are shown. It is shortened to some 3,600 characters, and
        says so: tree("src/net") then shows one folder in full.
        """
        files = self._files("tree", ctx)
        path = self._path("tree", path)
        depth = check_whole("tree", "depth", depth, 1)
        index, base = files.index, path + "/" if path else ""
        if path in files:
            return (f"{path}  {human(len(files[path].encode('utf-8', 'surrogatepass')))}, "
                    f"{language_of(path) or 'unknown language'}; read_lines(), outline() show it")
        paths, sizes, tokens = index.paths(), index.column(BYTES), index.column(TOKENS)
        chosen = files.places
        if base:
            chosen = [place for place in chosen if paths[place].startswith(base)]
        if not chosen:
            raise ValueError(f"tree(): there is no folder {path!r}{files.near(path)}")
        if len(chosen) < len(paths):
            paths, sizes, tokens = ([column[place] for place in chosen]
                                    for column in (paths, sizes, tokens))
        return tree_text(paths, sizes, sum(tokens), base, depth)

    @called(GLOB)
    def find_files(self, glob, *, ctx=None):
        """The paths that match a glob, a list of str in their order.

        "*" does not cross "/", "**" does: "src/*.c" is of one folder, "**/*.py" of all.
        A folder, as "src/net/", stands for all below it; {a,b} for either.
        """
        files = self._files("find_files", ctx)
        check_text("find_files", "glob", glob)
        path = files.index.path
        return [path(place) for place in files.matching(plain(glob))]

    @called(PATTERN)
    def grep(self, pattern, glob=None, ignore_case=False, *, ctx=None):
        """The lines in which a regular expression matches: named tuples (path, line, text).

        glob: only files that it matches, as for find_files(); or a list of them.
        Lines count from 1, and `text` is the line without its end. Raises re.error
        if the pattern is wrong.
        """
        files = self._files("grep", ctx)
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        if isinstance(pattern, re.Pattern):
            flags |= pattern.flags & ~re.UNICODE
            pattern = pattern.pattern
        check_text("grep", "pattern", pattern)
        chosen = None
        if glob is not None:
            globs = [glob] if isinstance(glob, str) else list(glob)
            chosen = set()
            for each in globs:
                check_text("grep", "glob", each)
                chosen.update(files.matching(plain(each)))
        find = line_finder(re.compile(plain(pattern), flags))
        path, result = files.index.path, []
        for place, text, first, end in files.texts(chosen):
            found = list(find(text, first, end))
            if found:
                name = path(place)
                result += [Line(name, number, line) for number, line in found]
        return result

    @called(LINES)
    def read_lines(self, path, a=1, b=None, *, ctx=None):
        """The text of lines a to b of a file, both inclusive, with their ends; all without b."""
        files = self._files("read_lines", ctx)
        path = self._path("read_lines", path)
        a = check_whole("read_lines", "a", a, 1)
        b = None if b is None else check_whole("read_lines", "b", b, 1)
        if b is not None and b < a:
            raise ValueError(f"read_lines(): b, {b}, is before a, {a}")
        text = files[path]
        start = behind(text, a - 1)
        if start is None or start == len(text) and a > 1:
            count = text.count("\n") + (not text.endswith("\n") and bool(text))
            raise ValueError(f"read_lines(): {path} has {count} lines, and none is {a}")
        end = None if b is None else behind(text, b)
        return text[start:end]

    @called({**PATH, "context": "ctx"})
    def outline(self, path, *, ctx=None):
        """The definitions in a file: a list of named tuples (line, kind, name), in order."""
        files = self._files("outline", ctx)
        path = self._path("outline", path)
        try:
            language, found = outline_of(path, files[path])
        except NotOutlined as error:
            raise ValueError(f"outline(): {path} cannot be outlined: {error}; read_lines() and "
                             "grep() show what is in it") from None
        if language is None:
            raise ValueError(
                f"outline(): the language of {path} is not one of those that it knows: "
                + ", ".join(KNOWN)
            )
        return found

    @called({"context": "ctx"})
    def changes(self, *, ctx=None):
        """The changed files of a comparison (--diff): a list of dicts, one for each file.

        "path"; "status": "added", "modified", "deleted" or "untracked"; "hunks": a
        list of dicts with "start" and "end", the lines of the new file that a hunk
        shows, and its "text", as git writes it; a rename and a change of the mode
        ("rename from ...", "old mode ...") are hunks of their own. [] of what was
        deleted, and of what was left out of the input (lock files, binary ones,
        secrets). Of a part its own files, and all that have no text here. Raises
        ValueError where nothing was compared.
        """
        files = self._files("changes", ctx)
        found = files.index.changes()
        if not found:
            raise ValueError("changes(): nothing was compared; the files are all there is "
                             "(find_files, grep), none of them is new or old")
        # A part knows its own files alone: what has hunks is loaded, be it elsewhere.
        return [each for each in json.loads(found)
                if each["path"] in files
                or not each["hunks"] and files.index.place(each["path"]) is None]

    def _files(self, function, ctx):
        """Those of `ctx`, or of the first input that was made of files."""
        if ctx is not None:
            files = getattr(ctx, "files", None)
            if files is None:
                raise TypeError(f"{function}(): ctx must be an input that was made of files, or a "
                                "part of one: context.subset(...)")
            return files
        for value in self.inputs.values():
            files = getattr(value, "files", None)
            if files is not None:
                return files
        raise ValueError(f"{function}(): no input was made of files. `context` is one text: "
                         "search_context(pattern) finds where something is in it")

    @staticmethod
    def _path(function, path):
        check_text(function, "path", path)
        path = plain(path)
        while path.startswith("./"):
            path = path[2:]
        return "" if path in (".", "/") else path.rstrip("/")


CodeBase.outline.__doc__ += f"""
        It knows {", ".join(KNOWN[:10])},
        {", ".join(KNOWN[10:18])},
        {", ".join(KNOWN[18:])}. A list that is empty says that nothing is defined;
        raises ValueError where that cannot be told, and for another language.
        """


def behind(text, count):
    """The position behind so many line feeds; None: there are fewer."""
    if not count:
        return 0
    match = next(itertools.islice(re.finditer("\n", text), count - 1, None), None)
    return match.end() if match else None
