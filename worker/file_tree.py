"""A tree of files as text: sizes, languages, what to read first, within so many characters."""

from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import accumulate

from languages import OF_NAME, RANK, entries, language_of

ROOM = 3600      # characters of all lines: some 1,200 tokens
AFTER_SLASH = chr(ord("/") + 1)
LANGUAGES_MAX = 6
ENTRIES_MAX = 10
NAME_MAX = 80    # characters of one name that are shown
LINE_LEAST = 10  # characters that an entry takes
FEWEST = 4       # entries of a folder, where it is shown at all


class Files:
    """Paths in the order of their characters, so that what is below a folder stands together.

    There may be very many: what is done for each of them is done in rows, and a folder is
    looked into only where it is shown.
    """

    def __init__(self, paths, sizes):
        self.paths = sorted(paths)
        if self.paths != paths:
            size_of = dict(zip(paths, sizes))
            sizes = [size_of[path] for path in self.paths]
        self.sizes = sizes
        self.sums = [0, *accumulate(sizes)]

    def names(self):
        """Without their folders, in small letters."""
        return [path[path.rfind("/") + 1:].lower() for path in self.paths]


class Folder:
    """`first` to `end` of the files, whose paths have so many characters up to its own slash."""

    def __init__(self, files, first, end, start, name):
        self.name = name
        self._files, self._first, self._end, self._start = files, first, end, start
        self.count = end - first
        self.size = files.sums[end] - files.sums[first]
        self._content = None

    def content(self):
        """([its folders], [names of its files], [their sizes])"""
        if self._content is None:
            self._content = [], [], []
            folders, names, sizes = self._content
            files, at, start = self._files, self._first, self._start
            while at < self._end:
                path = files.paths[at]
                slash = path.find("/", start)
                if slash < 0:
                    names.append(path[start:])
                    sizes.append(files.sizes[at])
                    at += 1
                    continue
                end = bisect_left(files.paths, path[:slash] + AFTER_SLASH, at, self._end)
                folders.append(Folder(files, at, end, slash + 1, path[start:slash]))
                at = end
        return self._content

    def shortened(self):
        """This one, or the only folder in it, and so on: (name, folder)"""
        name, folder = self.name, self
        while True:
            folders, names, _sizes = folder.content()
            if len(folders) != 1 or names:
                return name, folder
            folder = folders[0]
            name += "/" + folder.name


def human(size):
    """Bytes, for people."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            break
        size /= 1000
    else:
        unit = "GB"
    return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"


def counted(count, what):
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def shown(name):
    return name if len(name) <= NAME_MAX else name[:NAME_MAX - 3] + "..."


def tree_text(paths, sizes, tokens, base, depth):
    """Of files, whose paths begin with `base`, "" or "folder/"; tokens: of all together."""
    files = Files(paths, sizes)
    names = files.names()
    root = Folder(files, 0, len(paths), len(base), "")
    lines = [
        f"{base or 'all'}: {counted(root.count, 'file')}, {human(root.size)}, "
        f"about {tokens:,} tokens. {spoken(languages_of(names, files.sizes), root.size)}"
    ]
    known = RANK.keys() & set(names)
    first = [path for path, name in zip(files.paths, names) if name in known] if known else []
    if first:
        lines.append("to read first: " + ", ".join(map(shown, entries(first, ENTRIES_MAX))))
    parts, elided = expand(root, depth, ROOM - sum(map(len, lines)))
    render(root, parts, 0, lines)
    if elided:
        lines.append('(shortened; tree("folder") shows one in full, find_files(glob) lists)')
    return "\n".join(lines)


def languages_of(names, sizes):
    """{language: bytes}"""
    of_suffix, languages = defaultdict(int), Counter()
    for suffix, size in zip([name[name.rfind("."):] for name in names], sizes):
        of_suffix[suffix] += size
    for suffix, size in of_suffix.items():
        languages[language_of("x" + suffix) or "other"] += size
    if not OF_NAME.keys().isdisjoint(names):
        for name, size in zip(names, sizes):
            if name in OF_NAME:
                languages[language_of("x" + name[name.rfind("."):]) or "other"] -= size
                languages[OF_NAME[name]] += size
    return languages


def spoken(languages, size):
    """The languages that are a hundredth of it at least, the largest first."""
    named = [(name, part) for name, part in languages.most_common() if name != "other"]
    told = [f"{name} {100 * part / size:.0f} %" for name, part in named[:LANGUAGES_MAX]
            if part * 100 >= size > 0]
    rest = len(named) - len(told)
    return ", ".join(told + [f"{rest} more"] * (rest > 0 and bool(told)))


def expand(root, depth, room):
    """Which entries of which folders are shown: {folder: lists}, and whether some are not.

    Level by level, so that what is near the root comes before what is far from it; the
    folders of a level have the same share, and what a small one leaves is the others'.
    """
    parts, elided, level = {}, False, [root]
    for below in range(depth):
        nexts, limit = [], room * 2 // 3 if depth > 1 and below == 0 else room
        room -= limit
        level.sort(key=lambda each: sum(map(len, each.content()[:2])))
        for place, folder in enumerate(level):
            chosen, cost, whole = choose(folder, below, limit // (len(level) - place))
            elided |= not whole
            if chosen is not None:
                parts[folder] = chosen
                limit -= cost
                nexts += [each for _name, each in chosen[0]]
        room += limit
        level = nexts
    return parts, elided


def choose(folder, below, room):
    """As many entries as there is room for: (folders, files, how many are left out of each)."""
    folders, names, sizes = folder.content()
    largest = sorted(range(len(names)), key=sizes.__getitem__, reverse=True)
    by_size = sorted(folders, key=lambda each: -each.size)
    most = min(len(folders) + len(names), max(room // LINE_LEAST, FEWEST))
    while True:
        kept = [each.shortened() for each in by_size[:most]]
        rest = max(0, most - len(kept))
        some = [(names[place], sizes[place]) for place in largest[:rest]]
        cost = sum(len(shown(name)) + 24 + 2 * below for name, _ in kept)
        cost += sum(len(shown(name)) + 9 + 2 * below for name, _ in some)
        whole = len(kept) == len(folders) and len(some) == len(names)
        if cost <= room:
            break
        if most <= FEWEST:
            if below:
                return None, 0, False
            break
        most = max(FEWEST, most * 3 // 4)
    left = len(folders) - len(kept), len(names) - len(some)
    return (sorted(kept, key=lambda each: each[0]), sorted(some), left), cost, whole


def render(folder, parts, indent, lines):
    if folder not in parts:
        return
    kept, some, (folders, files) = parts[folder]
    space = "  " * indent
    for name, each in kept:
        lines.append(f"{space}{shown(name)}/  {counted(each.count, 'file')}, {human(each.size)}")
        render(each, parts, indent + 1, lines)
    lines += [f"{space}{shown(name)}  {human(size)}" for name, size in some]
    left = [counted(count, f"more {what}")
            for count, what in ((folders, "folder"), (files, "file")) if count]
    if left:
        lines.append(f"{space}... and {' and '.join(left)}")
