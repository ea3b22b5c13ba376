"""Names that everybody knows, for code that uses them without their import."""

import importlib
import re
import sys

# Where they were loaded before the walls went up: nobody is told that one of these is missing.
PRELOADED = {"np": "numpy", "numpy": "numpy", "pd": "pandas", "pandas": "pandas"}
# Imported where every use of the name is of something that the module has.
MODULES = {name: name for name in """
    argparse array ast asyncio base64 binascii bisect calendar collections contextlib copy csv
    dataclasses datetime decimal difflib enum fnmatch fractions functools glob gzip hashlib heapq
    html inspect io itertools json keyword locale logging math numbers operator os pathlib pickle
    platform pprint queue random re secrets shlex shutil statistics string struct sys tempfile
    textwrap threading time timeit traceback types typing unicodedata uuid warnings zlib
    """.split()}
MODULES.update({
    "concurrent": "concurrent.futures", "urllib": "urllib.parse", "xml": "xml.etree.ElementTree",
    **PRELOADED,
})

# Imported from their module where they cannot be taken for anything else.
NAMES = {
    name: module
    for module, names in {
        "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple",
        "concurrent.futures": "ThreadPoolExecutor as_completed",
        "dataclasses": "asdict dataclass",
        "datetime": "datetime timedelta timezone",
        "decimal": "Decimal",
        "difflib": "SequenceMatcher get_close_matches",
        "enum": "Enum",
        "fractions": "Fraction",
        "functools": "lru_cache partial reduce",
        "io": "BytesIO StringIO",
        "itertools": "combinations groupby islice permutations zip_longest",
        "pathlib": "Path",
        "pprint": "pprint",
        "textwrap": "dedent",
        "typing": "Any Callable Dict Iterable Iterator List Optional Sequence Tuple Union",
    }.items()
    for name in names.split()
}
USUAL = frozenset(MODULES) | frozenset(NAMES)
CODE = type((lambda: None).__code__)


def names_in(code, found=None):
    """The usual names that a code object and those within it look up, or have as attributes."""
    found = set() if found is None else found
    if not USUAL.isdisjoint(code.co_names):
        found.update(USUAL.intersection(code.co_names))
    for constant in code.co_consts:
        if type(constant) is CODE:
            names_in(constant, found)
    return found


def is_read(name, text):
    """Whether a name can stand in a block's text other than as an attribute."""
    return re.search(rf"(?<![\w.]){name}\b", text) is not None


def find(name, attributes):
    """(what the name stands for, the import that gives it), or None where it is not clear."""
    if name in MODULES and None not in attributes:
        module = load(MODULES[name]) and sys.modules[MODULES[name].partition(".")[0]]
        if module is not None and all(hasattr(module, each) for each in attributes):
            shown = MODULES[name]
            if name in PRELOADED and name != shown:
                shown += f" as {name}"
            return module, f"import {shown}"
    if name in NAMES:
        value = getattr(load(NAMES[name]), name, None)
        wanted = [each for each in attributes if each is not None]
        if value is not None and all(hasattr(value, each) for each in wanted):
            return value, f"from {NAMES[name]} import {name}"
    return None


def load(path):
    if path in PRELOADED.values():
        return sys.modules.get(path)
    try:
        return importlib.import_module(path)
    except Exception:
        return None
