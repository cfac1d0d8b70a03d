"""Files and addresses of one installation: keys, sockets, the embedded Redis.

Belongs here: locations and private files below the data directory.
Does not belong here: settings (conf) and processes (stack).
"""

from agents_app.installation.broker import transport_options
from agents_app.installation.gateway_socket import (
    SOCKET_MODE,
    gateway_socket_path,
    socket_directory,
)
from agents_app.installation.loopback import is_loopback
from agents_app.installation.permissions import (
    allow_passage,
    create_data_directory,
    create_private_database,
    database_files,
    find_open_paths,
    repair_permissions,
)
from agents_app.installation.private_files import (
    create_private_directory,
    create_private_file,
    open_private_file,
    read_or_create_private,
    read_or_create_secret,
    write_private,
)
from agents_app.installation.redis_server import (
    client_url,
    find_server,
    redis_password,
    redis_socket_path,
    redis_url,
    server_argv,
)
from agents_app.installation.secret_key import read_secret_key
from agents_app.installation.state_directories import (
    remove_run_directory,
    remove_state_directory,
    run_directories,
    state_directory,
)
from agents_app.installation.up_lock import (
    DRAIN_SIGNAL,
    drain_up,
    hold_lock,
    record_holder,
    running_address,
    running_up,
    stop_up,
)

__all__ = [
    "DRAIN_SIGNAL",
    "SOCKET_MODE",
    "allow_passage",
    "client_url",
    "create_data_directory",
    "create_private_database",
    "create_private_directory",
    "create_private_file",
    "database_files",
    "drain_up",
    "find_open_paths",
    "find_server",
    "gateway_socket_path",
    "hold_lock",
    "is_loopback",
    "open_private_file",
    "read_or_create_private",
    "read_or_create_secret",
    "read_secret_key",
    "record_holder",
    "redis_password",
    "redis_socket_path",
    "redis_url",
    "remove_run_directory",
    "remove_state_directory",
    "repair_permissions",
    "run_directories",
    "running_address",
    "running_up",
    "server_argv",
    "socket_directory",
    "state_directory",
    "stop_up",
    "transport_options",
    "write_private",
]
