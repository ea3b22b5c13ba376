"""Tells code that looks for files, programs or a network of the kernel's refusal, in a sentence.

The walls refuse all of it without this module: nothing here protects anything. It only says, to
whoever wrote the code, that there is no such thing here and what serves instead, and lets files
that the code wrote itself be read again (memory_tree.py). So functions are replaced at the lowest
common place (open() and those of os), and a few others retell the error that they met. All that
worked before works as before.

The template calls install() once, early, and close() when it needs no file any more. Names that
other modules took with `from os import ...` are replaced in them too; a module that is imported
later is seen to by imported(), which library.py calls.
"""

import builtins
import errno
import functools
import io
import os
import sys
import types

import _io
import memory_tree
import posix
from memory_files import NoFile

FILES = (
    "there are no files of the machine here. The input is in the variable `context`; "
    "io.StringIO(context) reads like a file"
)
PROCESSES = (
    "no program or other process can be started here. Python's own functions serve instead, "
    "threads (concurrent.futures.ThreadPoolExecutor), and batch_llm_query() for many questions at "
    "once"
)
NETWORK = (
    "there is no network here, so no name is resolved and no address is reached; trying again does "
    "not help. The input is in the variable `context`, and llm_query() asks a model"
)
DATABASES = "there are no files here: a database lives in memory, by sqlite3.connect(':memory:')"
SHARED = "memory cannot be shared or mapped here: a bytearray or an array.array serves"
SOURCES = (
    "the source of a library's code is not here, only that of your own blocks; help() tells what "
    "it does"
)
LOCALES = "no such locale here: there are 'C' and ''"
NOTHING = "there are no files, no network and no other processes here"

# Functions of os that are refused without asking the kernel.
REFUSED = {
    PROCESSES: "fork forkpty posix_spawn posix_spawnp execv execve pipe pipe2 popen2 openpty",
    FILES: "symlink mkfifo mknod statvfs pathconf memfd_create setxattr getxattr removexattr",
}
# Functions of os that a Tree has by another name.
RENAMED = {
    "open": "os_open", "unlink": "remove", "replace": "rename", "lchown": "chown",
    "fdatasync": "fsync",
}
# Functions that meet the error themselves and then tell it in our words: module, name, words.
RETOLD = (
    ("socket", "socket.__init__", NETWORK),
    ("socket", "getaddrinfo", NETWORK),
    ("socket", "gethostbyname", NETWORK),
    ("socket", "gethostbyname_ex", NETWORK),
    ("socket", "gethostbyaddr", NETWORK),
    ("multiprocessing.synchronize", "SemLock.__init__", PROCESSES),
    ("multiprocessing.shared_memory", "SharedMemory.__init__", SHARED),
    ("sqlite3", "connect", DATABASES),
    ("sqlite3.dbapi2", "connect", DATABASES),
    ("inspect", "findsource", SOURCES),
    ("locale", "setlocale", LOCALES),
)
# Functions that answer "nothing there" and do not raise: who calls them is told by a note.
SILENT = frozenset(
    "exists lexists isfile isdir islink is_file is_dir access walk glob glob0 glob1 glob2 iglob "
    "rglob iterdir".split()
)
ASKING = frozenset(["os", "posixpath", "genericpath", "pathlib", "glob"])  # modules they are in
OURS = frozenset([__name__, memory_tree.__name__])
KEEPING = frozenset(["pathlib", "glob"])  # modules whose classes keep functions of os
KERNEL = (posix, _io)  # these modules keep what really asks the kernel
SHELL_FAILED = 127 << 8  # what os.system() gives where no shell can be started
LATER, NEVER = -3, -4  # EAI_AGAIN, which asks for another try, and EAI_FAIL
UMASK = 0o022
USER = "user"

_inputs = {}
_notes = {}     # subject -> text
_replaced = {}  # id of a function -> (it, what stands for it)
_zones = None    # zones.Zones, of length 0 where the machine has no data
tree = None      # the files, once there are no others


# -- what a session says and asks --


def set_inputs(inputs):
    """The variables of the run, so that an error can name the one that holds a file."""
    global _inputs
    _inputs = inputs


def take_notes():
    """The notes for the block, a line each."""
    if not _notes:
        return ""
    notes = "".join(f"[note] {text}\n" for text in _notes.values())
    _notes.clear()
    return notes


def note(subject, text):
    """Of each subject, a block is told once."""
    _notes.setdefault(subject, text)


def explain(error):
    """Notes what the kernel's bare refusal means, where it came past everything below."""
    if type(error) is PermissionError and error.strerror == os.strerror(errno.EPERM):
        note("kernel", f"'{error.strerror}': {NOTHING}. The input is in the variable `context`")


# -- what is not there --


def wrote(path):
    """Whether the code wrote a file of that path."""
    return tree is not None and tree.wrote(path)


def absent(path, key):
    """The error for a path that the code did not write; names the input that has it."""
    shown = os.fsdecode(path)
    place = input_of(shown)
    if place:
        text = f"there are no files here, but the input has {shown!r}: {place} is its text"
    else:
        text = f"{shown!r} is not there: {FILES}. Files that your code wrote can be read again"
    return NoFile(errno.ENOENT, text, path)


def input_of(path):
    """An expression for the text of a directory's file, by its path or an unambiguous end of it."""
    wanted = os.path.normpath(path).lstrip("/")
    for name, value in _inputs.items():
        files = getattr(value, "files", None)
        if not files:
            continue
        if wanted in files:
            return f"{name}.files[{wanted!r}]"
        found = [one for one in files if one.endswith("/" + wanted) or wanted.endswith("/" + one)]
        if len(found) == 1:
            return f"{name}.files[{found[0]!r}]"
    return None


def asked(path, silent):
    """Notes that something was not found, where code of a block called what says nothing of it."""
    frame = sys._getframe(1)
    name = None
    while frame is not None:
        module = str(frame.f_globals.get("__name__")).partition(".")[0]
        if module in ASKING:
            name = frame.f_code.co_name
        elif module not in OURS:
            break
        frame = frame.f_back
    if frame is None or not frame.f_code.co_filename.startswith("<block "):
        return
    if name is not None and not name.startswith("select") and name.strip("_") not in SILENT:
        return  # (select...: the steps of a glob that is a generator)
    if name is None and not silent:
        return
    place = input_of(os.fsdecode(path))
    where = f" The text of that one is {place}." if place else ""
    note(
        "files",
        f"nothing was found at {os.fsdecode(path)!r}: {FILES}.{where} Only what your code wrote is "
        "found",
    )


# -- installation --


def install():
    """Has functions stand for those that look for files and processes, in all that is loaded.

    Until close() they call the real ones. So it is best done early: what is loaded later may keep
    them wherever it likes.
    """
    for words, names in REFUSED.items():
        for name in names.split():
            replace(os, name, lambda real, words=words: refusing(real, words))
    for name in dir(memory_tree.Tree):
        if not name.startswith("_") and hasattr(os, name) and name != "open":
            replace(os, name, lambda real, name=name: instead(real, name))
    for name, method in RENAMED.items():
        replace(os, name, lambda real, method=method: instead(real, method))
    replace(os, "system", lambda real: standing(real, system))
    replace(os, "umask", lambda real: standing(real, lambda _mask: UMASK))
    replace(os, "getlogin", lambda real: standing(real, lambda: USER))
    replace(builtins, "open", lambda real: standing(real, open_file))
    replace(io, "open_code", lambda real: standing(real, lambda path: tree.open(path, "rb")))
    for module in list(sys.modules.values()):
        adopt(module)
        imported(module)


def close(zones):
    """From now on there are no files but those in memory. `zones`: zones.Zones."""
    global tree, _zones
    _zones = zones
    tree = memory_tree.Tree(absent, asked, zones)
    for name in ("USER", "LOGNAME"):
        os.environ[name] = USER
    os.environ["HOME"] = "/"


def replace(module, name, make):
    real = getattr(module, name, None)
    if real is not None:
        _replaced[id(real)] = real, make(real)


def adopt(module):
    """Puts what stands for the replaced functions wherever the module has one by name."""
    if not isinstance(module, types.ModuleType) or module in KERNEL:
        return
    if module.__name__ in OURS or module.__name__.startswith(("importlib", "_frozen_importlib")):
        return
    names = vars(module)
    if not _replaced.keys().isdisjoint(map(id, names.values())):
        for name, value in list(names.items()):
            if id(value) in _replaced:
                names[name] = _replaced[id(value)][1]
    if module.__name__.partition(".")[0] in KEEPING:
        for value in names.values():
            if isinstance(value, type) and value.__module__ == module.__name__:
                adopt_class(value)


def adopt_class(holder):
    for name, value in list(vars(holder).items()):
        value = getattr(value, "__func__", value)
        if id(value) in _replaced:
            setattr(holder, name, staticmethod(_replaced[id(value)][1]))


def instead(real, method):
    """The tree's method, but for descriptors, which the kernel knows unless they are the tree's."""

    @functools.wraps(real)
    def call(*arguments, **named):
        known = arguments and isinstance(arguments[0], int)
        if tree is None or known and not tree.has(arguments[0]):
            return real(*arguments, **named)
        return getattr(tree, method)(*arguments, **named)

    return call


def standing(real, ours):
    @functools.wraps(real)
    def call(*arguments, **named):
        return (real if tree is None else ours)(*arguments, **named)

    return call


def refusing(real, words):
    def refuse(*_arguments, **_named):
        raise PermissionError(errno.EPERM, words)

    return standing(real, refuse)


def open_file(*arguments, **named):
    return tree.open(*arguments, **named)


def system(command):
    note("system", f"os.system(): {PROCESSES}")
    return SHELL_FAILED


# -- single modules --


def imported(module):
    """Sees to a module that was loaded: what its functions' errors say, and what else it needs."""
    if not isinstance(module, types.ModuleType):
        return
    name = module.__name__
    for owner, path, words in RETOLD:
        if owner == name:
            retell(module, path, words)
    special = SPECIAL.get(name)
    if special:
        special(module)


def retell(module, path, words):
    """Where the function fails for what is not here, the error keeps its type and says `words`."""
    holder, name = module, path
    if "." in path:
        holder, name = getattr(module, path.split(".")[0], None), path.split(".")[1]
    real = getattr(holder, name, None)
    if real is None or hasattr(real, "__wrapped__"):
        return

    @functools.wraps(real)
    def call(*arguments, **named):
        try:
            return real(*arguments, **named)
        except Exception as error:
            told = in_words(error, words)
            if told is None:
                raise
        raise told

    setattr(holder, name, call)


def in_words(error, words):
    """The same error in our words; None where it is about something else."""
    kind = type(error).__name__
    if isinstance(error, OSError) and error.errno in (errno.EPERM, errno.EACCES):
        return type(error)(error.errno, words)
    if kind in ("gaierror", "herror"):
        return type(error)(NEVER if error.errno == LATER else error.errno, words)
    if kind == "OperationalError" and "unable to open" in str(error):
        return type(error)(f"{error}: {words}")
    if kind == "OSError" and "source code" in str(error) or kind == "Error":
        return type(error)(words)
    return None


def see_to_mmap(module):
    """Memory that is nobody's but ours need not be shared; a file's cannot be mapped."""
    real = module.mmap

    class mmap(real):
        __doc__ = real.__doc__

        def __new__(cls, fileno, length, *arguments, **named):
            if fileno == -1 and not arguments and not named:
                named["flags"] = module.MAP_PRIVATE | module.MAP_ANONYMOUS
            try:
                return real.__new__(cls, fileno, length, *arguments, **named)
            except PermissionError as error:
                raise PermissionError(error.errno, SHARED) from None

    mmap.__module__, mmap.__qualname__ = real.__module__, "mmap"
    module.mmap = mmap


class Notifier:
    """A pool's notice of a change, between threads."""

    def __init__(self):
        import threading

        self._reader = None
        self._noticed = threading.Event()

    def put(self, _notice):
        self._noticed.set()

    def wait(self, seconds):
        self._noticed.wait(seconds)
        self._noticed.clear()


def see_to_thread_pools(module):
    """multiprocessing.pool.ThreadPool wakes itself by a pipe, as if it had processes."""

    class Context:
        SimpleQueue = Notifier

        def __getattr__(self, name):
            return getattr(module.get_context(), name)

    def __init__(self, processes=None, initializer=None, initargs=()):
        module.Pool.__init__(self, processes, initializer, initargs, context=Context())

    def wait_for_updates(sentinels, notifier, timeout=None):
        if isinstance(notifier, Notifier):
            notifier.wait(timeout)
        else:
            real(sentinels, notifier, timeout)

    real = module.Pool._wait_for_updates
    module.ThreadPool.__init__ = __init__
    module.Pool._wait_for_updates = staticmethod(wait_for_updates)


def see_to_shutil(module):
    module._use_fd_functions = False  # directories have no descriptors


def see_to_locale(module):
    """'' stands for what the environment names, whose files the C library cannot read here."""
    retold = module.setlocale

    @functools.wraps(retold)
    def setlocale(category, locale=None):
        if locale == "":
            return retold(category, None)
        return retold(category, locale)

    module.setlocale = setlocale


def see_to_zones(module):
    real = module.load_tzdata

    @functools.wraps(real)
    def load_tzdata(key):
        try:
            return real(key)
        except module.ZoneInfoNotFoundError:
            if _zones:
                raise
        raise module.ZoneInfoNotFoundError(
            f"{key}: this machine has no data of time zones; "
            "datetime.timezone(timedelta(hours=...)) serves where the offset is known"
        )

    module.load_tzdata = load_tzdata


def see_to_metadata(module):
    """Of what was preloaded the version that it tells itself: there is no list of packages."""
    real = module.version

    @functools.wraps(real)
    def version(name):
        try:
            return real(name)
        except module.PackageNotFoundError:
            told = getattr(sys.modules.get(name.replace("-", "_")), "__version__", None)
            if told is None:
                raise
            return told

    module.version = version


SPECIAL = {
    "importlib.metadata": see_to_metadata,
    "mmap": see_to_mmap,
    "multiprocessing.pool": see_to_thread_pools,
    "shutil": see_to_shutil,
    "locale": see_to_locale,
    "zoneinfo._common": see_to_zones,
}
