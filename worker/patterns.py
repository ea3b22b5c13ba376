"""Regular expressions that are compiled when they are first used: most workers use none of them."""

import re


class Pattern:
    """Like what re.compile() gives."""

    def __init__(self, pattern, flags=0):
        self.source = pattern, flags

    def __getattr__(self, name):
        value = getattr(re.compile(*self.source), name)
        setattr(self, name, value)
        return value
