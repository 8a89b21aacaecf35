"""OpenVINO IR: reading it, and running what is made of split layers."""

from __future__ import annotations

LAYER_PATH = "org.openvinotoolkit.layer"
"""The key in a node's metadata of what messages call it, such as ``layer 'cut' (id 3)``."""

LAYER_VERSION = "org.openvinotoolkit.version"
"""The key in a node's metadata of the version of a layer, if there is no record of it."""

LAYER_PORTS = "org.openvinotoolkit.ports."
"""The start of the key in a node's metadata of the ports that a body is joined to; see `port_maps`.

The name of the body follows, such as ``then_body``.
"""

LAYER_LIMITS = "org.openvinotoolkit.limits"
"""The key in an input's metadata of the axes of which the largest length is declared."""
