"""Memory that is kept back, for the time when code has used up the rest.

Without it a full session could not even compile `del x`, which would make room
again, nor show where its memory ended.
"""

import mmap

SIZE = 4 << 20


class Reserve:
    """Taken by the template for all that fork from it: nobody touches it, so it costs no page."""

    def __init__(self):
        self.held = None
        self.keep()

    def keep(self):
        """Takes it again, if as much is left besides."""
        try:
            mmap.mmap(-1, 2 * SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
            self.held = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (MemoryError, OSError):
            pass  # the next block may leave more

    def give(self):
        """Whether there was one to be given."""
        held, self.held = self.held, None
        if held is None:
            return False
        held.close()
        return True
