"""Tracebacks as the model needs them: its own lines, without ours around them."""

import linecache
import traceback

OURS = set()  # file names of our modules' code
_sources = {}


def hide(*functions):
    """The frames of the modules that these are in are not shown."""
    OURS.update(function.__code__.co_filename for function in functions)


def remember(filename, source):
    """Lets tracebacks, inspect and warnings show the lines of a block without a file."""
    lines = [text + "\n" for text in source.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    linecache.cache[filename] = _sources[filename] = (len(source), None, lines, filename)


def render(error):
    """The traceback of `error`, with its causes; never raises but KeyboardInterrupt."""
    linecache.cache.update(_sources)  # user code may have cleared it
    try:
        told = traceback.TracebackException(type(error), error, error.__traceback__)
        _trim(told, set())
        return "".join(told.format())
    except Exception as failure:
        return plain(error) + f"\n(no traceback: {type(failure).__name__} while it was made)\n"


def render_syntax(error):
    """An error of compilation: there is no frame of the user's yet."""
    return "".join(traceback.format_exception_only(type(error), error))


def plain(error):
    """One line, whatever the exception's own methods do."""
    try:
        text = str(error)
    except Exception:
        text = "(its str() failed)"
    return f"{type(error).__name__}: {text}"


def _trim(told, seen):
    if told is None or id(told) in seen:
        return
    seen.add(id(told))
    told.stack[:] = [frame for frame in told.stack if frame.filename not in OURS]
    _trim(told.__cause__, seen)
    _trim(told.__context__, seen)
    for part in getattr(told, "exceptions", None) or ():
        _trim(part, seen)
