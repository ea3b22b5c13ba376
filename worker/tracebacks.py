"""Tracebacks as the model needs them: its own lines, and of no file of this machine."""

import linecache
import os
import sys
import threading
import traceback
import warnings

_sources = {}


def remember(filename, source):
    """Lets tracebacks, inspect and warnings show the lines of a block without a file."""
    text = source.replace("\r\n", "\n").replace("\r", "\n") if "\r" in source else source
    lines = [line + "\n" for line in text.split("\n")]
    linecache.cache[filename] = _sources[filename] = (len(source), None, lines, filename)


def forget():
    """Forgets the arguments of remember()."""
    _sources.clear()
    linecache.clearcache()


def is_foreign(filename):
    """Whether code is not the user's: ours and the libraries' has the whole path of a file."""
    return filename.startswith(("/", "<frozen "))


def install():
    """Makes what user code prints of tracebacks look like ours, for the process's life."""
    for name in ("walk_tb", "walk_stack", "_walk_tb_with_full_positions"):
        walk = getattr(traceback, name, None)
        if walk is not None:
            setattr(traceback, name, _walk_of_the_users(walk))
    threading.excepthook = _tell_of_thread
    sys.unraisablehook = _tell_of_ignored
    warnings.formatwarning = _of_no_file(warnings.formatwarning)


def _walk_of_the_users(walk):
    def walk_some(*start):
        for frame, place in walk(*start):
            if not is_foreign(frame.f_code.co_filename):
                yield frame, place

    walk_some.__name__ = walk_some.__qualname__ = walk.__name__
    walk_some.__doc__ = walk.__doc__
    return walk_some


def _tell_of_thread(args):
    if args.exc_type is not SystemExit:
        name = args.thread.name if args.thread else threading.get_ident()
        sys.stderr.write(f"Exception in thread {name}:\n{render(args.exc_value)}")


def _tell_of_ignored(args):
    """Tells of exceptions that cannot be caught: out of __del__() and the like."""
    error = args.exc_type() if args.exc_value is None else args.exc_value
    place = getattr(args.object, "__qualname__", type(args.object).__name__)
    sys.stderr.write(f"{args.err_msg or 'Exception ignored in'}: {place}\n{render(error)}")


def _of_no_file(write):
    """warnings.formatwarning(), which names a library's module and not where it lies."""

    def formatwarning(message, category, filename, lineno, line=None):
        if is_foreign(filename):
            filename, line = os.path.basename(filename), line or ""  # else the file is looked for
        return write(message, category, filename, lineno, line)

    return formatwarning


def render(error, advice=None):
    """The traceback of `error`, with its causes; never raises but KeyboardInterrupt."""
    linecache.cache.update(_sources)  # user code may have cleared it
    try:
        told = traceback.TracebackException(type(error), error, error.__traceback__)
        _trim(told, error, set())
        return with_advice("".join(told.format()), advice)
    except Exception as failure:
        return plain(error) + f"\n(no traceback: {type(failure).__name__} while it was made)\n"


def render_syntax(error, advice=None):
    """An error of compilation: there is no frame of the user's yet."""
    return with_advice("".join(traceback.format_exception_only(type(error), error)), advice)


def with_advice(told, advice):
    return f"{told}Hint: {advice}.\n" if advice else told


def plain(error):
    """One line, whatever the exception's own methods do."""
    try:
        text = str(error)
    except Exception:
        text = "(its str() failed)"
    return f"{type(error).__name__}: {text}"


def _trim(told, error, seen):
    if told is None or id(told) in seen:
        return
    seen.add(id(told))
    told.stack[:] = [frame for frame in told.stack if not is_foreign(frame.filename)]
    _hide_paths(told, error)
    _trim(told.__cause__, getattr(error, "__cause__", None), seen)
    _trim(told.__context__, getattr(error, "__context__", None), seen)
    parts = getattr(told, "exceptions", None) or ()
    errors = getattr(error, "exceptions", None) or [None] * len(parts)
    for part, its_error in zip(parts, errors):
        _trim(part, its_error, seen)


def _hide_paths(told, error):
    """Where the words of the exception itself tell where a module lies."""
    if isinstance(error, ImportError) and isinstance(error.path, str):
        told._str = told._str.replace(f" ({error.path})", "")
    filename = getattr(told, "filename", None)
    if isinstance(error, SyntaxError) and isinstance(filename, str) and os.path.isabs(filename):
        told.filename = os.path.basename(filename)
