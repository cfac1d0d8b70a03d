"""The path of the gateway's Unix socket, which runs without a network use.

Its directory contains nothing else, because runs see the whole directory. Other users may enter
but not list it; a client still needs the token of a running run.
"""

import hashlib
import os
from pathlib import Path

from agents_app.installation.private_files import private_directory

# The kernel's limit is 108 bytes with the closing NUL.
_LONGEST_PATH = 107
# Not tempfile.gettempdir(): the gateway and the workers must use the same directory.
_SHORT_ROOT = Path("/tmp")  # noqa: S108
DIRECTORY_MODE, SOCKET_MODE = 0o711, 0o666


def gateway_socket_path(data: Path) -> Path:
    """In the data directory, unless its path is too long for a socket's address."""
    path = data / "gateway" / "gateway.sock"
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    return _SHORT_ROOT / f"drover-gateway-{os.getuid()}-{digest}" / "gateway.sock"


def socket_directory(data: Path) -> Path:
    """The directory of the socket; created if missing, and owned by this user."""
    return private_directory(gateway_socket_path(data).parent, DIRECTORY_MODE)
