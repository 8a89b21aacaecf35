"""The entry point of the command ``tensorsplit``: Ctrl-C ends it without a traceback.

It is beside the package, which takes some milliseconds to load, and needs nothing that Python has
not loaded when it starts. ``signal`` is loaded later, too.
"""

import _signal  # type: ignore[import-not-found]  # typeshed has no types of it

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # else it is ignored
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from tensorsplit.__main__ import main

__all__ = ["main"]
