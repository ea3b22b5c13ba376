"""A tree of files as text: sizes, languages, what to read first, within so many characters."""

from collections import Counter

from languages import entries, language_of

ROOM = 3600      # characters of all lines: some 1,200 tokens
LANGUAGES_MAX = 6
ENTRIES_MAX = 10
NAME_MAX = 80    # characters of one name that are shown
FEWEST = 4       # entries of a folder, where it is shown at all


class Folder:
    def __init__(self, name):
        self.name = name
        self.folders = {}
        self.files = []
        self.count = self.size = 0

    def add(self, parts, size):
        """A file of so many bytes; `parts` of its path from here."""
        folder = self
        for part in parts[:-1]:
            folder.count += 1
            folder.size += size
            folder = folder.folders.setdefault(part, None) or folder.make(part)
        folder.count += 1
        folder.size += size
        folder.files.append((parts[-1], size))

    def make(self, name):
        self.folders[name] = folder = Folder(name)
        return folder

    def shortened(self):
        """This one, or the only folder in it, and so on: (name, folder)"""
        name, folder = self.name, self
        while len(folder.folders) == 1 and not folder.files:
            folder = next(iter(folder.folders.values()))
            name += "/" + folder.name
        return name, folder


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


def tree_text(files, base, depth):
    """files: (path, bytes, tokens) of each, whose paths begin with `base`, "" or "folder/"."""
    root, languages, tokens, paths = Folder(""), Counter(), 0, []
    for path, size, some in files:
        root.add(path[len(base):].split("/"), size)
        languages[language_of(path) or "other"] += size
        tokens += some
        paths.append(path)
    lines = [
        f"{base or 'all'}: {counted(root.count, 'file')}, {human(root.size)}, "
        f"about {tokens:,} tokens. {spoken(languages, root.size)}"
    ]
    first = entries(paths, ENTRIES_MAX)
    if first:
        lines.append("to read first: " + ", ".join(map(shown, first)))
    parts, elided = expand(root, depth, ROOM - sum(map(len, lines)))
    render(root, parts, 0, lines)
    if elided:
        lines.append('(shortened; tree("folder") shows one in full, find_files(glob) lists)')
    return "\n".join(lines)


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
        level.sort(key=lambda each: len(each.folders) + len(each.files))
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
    folders = [each.shortened() for each in folder.folders.values()]
    files = folder.files
    most = len(folders) + len(files)
    while True:
        kept = sorted(folders, key=lambda each: -each[1].size)[:most]
        rest = max(0, most - len(kept))
        some = sorted(files, key=lambda each: -each[1])[:rest]
        cost = sum(len(shown(name)) + 24 + 2 * below for name, _ in kept)
        cost += sum(len(shown(name)) + 9 + 2 * below for name, _ in some)
        whole = len(kept) == len(folders) and len(some) == len(files)
        if cost <= room:
            break
        if most <= FEWEST:
            if below:
                return None, 0, False
            break
        most = max(FEWEST, most * 3 // 4)
    left = len(folders) - len(kept), len(files) - len(some)
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
