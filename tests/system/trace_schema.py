"""Holds traces to share/trace.schema.json: every event that a test's program has written."""

import functools
import json
import pathlib

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "share" / "trace.schema.json"
HEAD = b'{"event":'
LARGEST = 64 << 20  # bytes of a file that is read


@functools.cache
def _validator():
    import jsonschema

    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _form(value):
    """Equal for values that differ in strings and numbers alone: one of them is enough."""
    if isinstance(value, dict):
        return tuple((name, _form(value[name])) for name in sorted(value))
    if isinstance(value, list):
        return tuple(sorted({repr(_form(item)) for item in value}))
    return type(value).__name__


@functools.cache
def _members(event):
    """The names that the schema knows for events of this name."""
    schema = _validator().schema
    return {*schema["properties"], *schema["$defs"][event].get("properties", {})}


_seen = set()


def check(events):
    """ValueError names the first event that the schema refuses, or does not describe."""
    for event in events:
        if event["seq"] == 0 and "formatVersion" not in event:
            raise ValueError(f"the first event has no formatVersion: {str(event)[:500]}")
        form = event["event"], event.get("kind"), event.get("answerSource"), _form(event)
        if form in _seen:
            continue
        _seen.add(form)
        wrong = [f"{list(error.path)}: {error.message}"
                 for error in _validator().iter_errors(event)]
        if event["event"] != "result":
            wrong += [f"{name} is not described"
                      for name in sorted(event.keys() - _members(event["event"]))]
        if wrong:
            raise ValueError(f"{wrong[0][:500]} of {str(event)[:500]}")


def check_lines(lines):
    """The events of a trace; a line that was cut is no event."""
    events = []
    for line in lines.splitlines():
        if not line.startswith(HEAD):
            continue
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if "seq" in event:
            events.append(event)
    check(events)


def check_files(directory):
    """All traces in a directory, and how many there are."""
    count = 0
    for path in directory.glob("**/*"):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
            continue
        try:
            with path.open("rb") as file:
                if file.read(len(HEAD)) != HEAD:
                    continue
                check_lines(HEAD + file.read())
        except PermissionError:
            continue
        except ValueError as wrong:
            raise ValueError(f"{path}: {wrong}") from None
        count += 1
    return count
