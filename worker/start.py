"""The first script of a template: says hello, then lets template.py do the rest.

Short, for a script is compiled at each start, and old in its language: Python 2 and the first of 3
must get this far to be told that they are too old.
"""

import os
import sys

CONTROL = 3
OLDEST = (3, 8)


def greet():
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < OLDEST:
        text = "Python %s is too old: 3.8 or later is needed" % version
        os.write(CONTROL, ('{"error": "%s", "kind": "usage"}' % text).encode("ascii"))
        os._exit(1)
    os.write(CONTROL, ('{"hello": "%s"}' % version).encode("ascii"))


if __name__ == "__main__":
    greet()
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    import template

    template.main(here)
