"""The names of ours in the namespace: put back before every block, and said where that undoes
something."""

import builtins

from _rlmd import agree

NAMES_MAX = 5  # that one note shows
DELETED = object()

# The words for one name, and for several.
INPUT = "is the input and is all there", "are inputs and are all there"
FUNCTION = "is a function of this session and is that", "are functions of this session and are that"
NAME = "is a name of this session and means that", "are names of this session and mean that"


class Reserved:
    def __init__(self, namespace, functions):
        self._namespace = namespace
        self._inputs = {}
        self._ours = dict(functions)
        self._all = {"__name__": "__main__", "__builtins__": builtins, **functions}
        self._told = set()
        self.add({"context": ""}, {})  # every run has one, and so there is room for it
        self.restore()

    def add(self, inputs, functions):
        """Adds the names of a run's inputs and functions."""
        self._inputs = inputs
        for names in (functions, inputs):
            self._ours.update(names)
            self._all.update(names)

    def restore(self):
        if not agree(self._namespace, self._all):
            self._namespace.update(self._all)

    def undone(self):
        """Notes on names that the block bound to something else or deleted; once each."""
        if agree(self._namespace, self._ours):
            return []
        found = {}
        for name, ours in self._ours.items():
            value = self._namespace.get(name, DELETED)
            if value is not ours and name not in self._told and not same(value, ours):
                self._told.add(name)
                found.setdefault((self._kind(name), value is DELETED), []).append(name)
        return [tell(names, *key) for key, names in found.items()]

    def _kind(self, name):
        if name in self._inputs:
            return INPUT
        return NAME if isinstance(self._ours[name], type) else FUNCTION


def tell(names, kind, deleted):
    shown = ", ".join(f"`{name}`" for name in names[:NAMES_MAX])
    if len(names) > NAMES_MAX:
        shown += f" and {len(names) - NAMES_MAX} more"
    what = kind[len(names) > 1]
    if deleted:
        return f"{shown} {what}: you deleted it; it is there again in the next block"
    return (f"{shown} {what} again in the next block: what this block put in its place is "
            "dropped. Use another name for yours")


def same(value, ours):
    """Whether it makes no difference, without asking an object of the user's."""
    if isinstance(ours, str):
        return type(value) is str and str.__eq__(value, ours)
    return type(value) is type(ours) is not type and callable(ours) and value == ours
