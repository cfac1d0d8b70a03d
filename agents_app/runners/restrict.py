"""Restricts the calling thread and the processes that it starts: Landlock, no new privileges, no
capabilities, and a filter of system calls. Other threads of the process keep their rights.

Standard library only, Python 3.9 or newer: the shim of host-user runs imports this file, too."""

import contextlib
import ctypes
import errno
import os
import stat
import struct
import sys

TYPE_CHECKING = False  # the shim starts faster without typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, value
    CallNumbers = tuple[int, int, int, tuple[int, ...], tuple[int, ...]]

# Landlock has the same numbers on all architectures.
SYS_CREATE_RULESET, SYS_ADD_RULE, SYS_RESTRICT_SELF = 444, 445, 446
CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH = 1
PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS = 28, 38
# Root gets no capabilities by exec; each bit with its lock. Also: no ambient capabilities.
SECUREBITS = 0b1100_0011
CAPABILITY_VERSION_3 = 0x20080522
SYS_PRCTL = {"x86_64": 157, "aarch64": 167}
SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}
SECCOMP_SET_MODE_FILTER, SECCOMP_GET_ACTION_AVAIL = 1, 2
# Without it the processes would get the slow mitigations against speculation on old kernels.
SECCOMP_FILTER_FLAG_SPEC_ALLOW = 4

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
# All rights that a kernel knows, by the first version of Landlock that knows them.
RIGHTS_SINCE = ((1, (1 << 13) - 1), (2, 1 << 13), (3, TRUNCATE), (5, IOCTL_DEV))
READ_RIGHTS = EXECUTE | READ_FILE | READ_DIR
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
SCOPES_SINCE = 6
# Why a path cannot be opened that the program could not open, either.
LEFT_OUT = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP)
SCOPED = 0b11  # abstract Unix sockets and signals

MACHINE = os.uname().machine
_SUPPORTED = sys.platform.startswith("linux") and MACHINE in SYS_SECCOMP
# PyDLL keeps the interpreter's lock: these calls are shorter than giving the lock away.
_libc = ctypes.PyDLL(None, use_errno=True) if _SUPPORTED else None


def landlock_version() -> int:
    """The version of Landlock that this kernel has; 0: none."""
    with contextlib.suppress(OSError):
        return _call(SYS_CREATE_RULESET, None, 0, CREATE_RULESET_VERSION)
    return 0


def has_system_call_filter() -> bool:
    with contextlib.suppress(OSError):
        action = struct.pack("=I", 0x00050000)
        return _call(SYS_SECCOMP.get(MACHINE, -1), SECCOMP_GET_ACTION_AVAIL, 0, action) == 0
    return False


def give_up_rights(*, filter_calls: bool, drop_capabilities: bool) -> None:
    """Restrict this thread, and the threads that it starts from now on, for ever: no new
    privileges, the filter of system calls, no capabilities. OSError if the kernel refuses."""
    if drop_capabilities:
        _drop_capabilities()
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if filter_calls:
        _filter_calls()


def restrict_files(ruleset: int) -> None:
    """Restrict this thread, which must have given up its rights, to the files of a ruleset for
    ever; OSError if the kernel refuses."""
    _call(SYS_RESTRICT_SELF, ruleset, 0)


def _call(number: int, *arguments: "int | bytes | None") -> int:
    """A system call; numbers fill whole registers, which ctypes leaves open for `int`."""
    if _libc is None:
        raise OSError(errno.ENOSYS, "not Linux on x86_64 or aarch64")
    values: list[Any] = [
        ctypes.c_long(each) if isinstance(each, int) else each for each in arguments
    ]
    result: int = _libc.syscall(ctypes.c_long(number), *values)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _prctl(option: int, value: int) -> None:
    _call(SYS_PRCTL[MACHINE], option, value, 0, 0, 0)


# --- files ----------------------------------------------------------------------------------


def known_rights(version: int) -> int:
    """The rights of files that this version of Landlock controls."""
    return sum(rights for since, rights in RIGHTS_SINCE if version >= since)


class OpenRules:
    """Files and directories that may be read and executed, and others that may also be written.

    They are opened once, so that many runs can use them. A path that does not exist, or that this
    user cannot reach, is left out; OSError if one cannot be opened for another reason."""

    def __init__(self, read: "Iterable[str]", write: "Iterable[str]", version: int) -> None:
        self._fds: list[int] = []
        self.rules: list[bytes] = []
        for path in read:
            self._add(path, READ_RIGHTS)
        for path in write:
            self._add(path, known_rights(version))

    def _add(self, path: str, rights: int) -> None:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in LEFT_OUT:
                return
            self.close()
            raise
        self._fds.append(fd)
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= FILE_RIGHTS
        self.rules.append(struct.pack("=Qi", rights, fd))

    def close(self, close: "Callable[[int], None]" = os.close) -> None:
        """`close` is bound here: modules are emptied before the last objects when Python exits."""
        while self._fds:
            close(self._fds.pop())

    __del__ = close


def new_ruleset(version: int, rules: OpenRules) -> int:
    """A descriptor, which the caller closes, of a ruleset for this version of Landlock."""
    scoped = SCOPED if version >= SCOPES_SINCE else 0
    attributes = struct.pack("=QQQ", known_rights(version), 0, scoped)
    ruleset = _call(SYS_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        add_rules(ruleset, rules)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def add_rules(ruleset: int, added: OpenRules) -> None:
    """As `_call` does, with the numbers converted once: a run has about thirty rules."""
    assert _libc is not None
    system_call = _libc.syscall
    number, target = ctypes.c_long(SYS_ADD_RULE), ctypes.c_long(ruleset)
    kind, no_flags = ctypes.c_long(RULE_PATH_BENEATH), ctypes.c_long(0)
    for rule in added.rules:
        if system_call(number, target, kind, rule, no_flags) < 0:
            raise OSError(ctypes.get_errno(), "Landlock refused a rule")


# --- capabilities ---------------------------------------------------------------------------


def _drop_capabilities() -> None:
    # Refused in a container without CAP_SETPCAP; there no_new_privs keeps exec from raising them.
    with contextlib.suppress(OSError):
        _prctl(PR_SET_SECUREBITS, SECUREBITS)
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    _call(SYS_CAPSET[MACHINE], header, bytes(24))


# --- system calls ---------------------------------------------------------------------------

RET_ALLOW = 0x7FFF0000
RET_REFUSE = 0x00050000 | errno.EPERM
RET_UNKNOWN = 0x00050000 | errno.ENOSYS
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
X32_BIT = 0x40000000  # of numbers in the x32 mode of x86_64, which needs a list of its own

# The audit number of each architecture that a kernel can execute, and the numbers of its calls.
ARCHITECTURES = {
    "x86_64": (
        (0xC000003E, (302, 141, 251, (203, 142, 144, 314), (101, 310, 311))),
        (0x40000003, (340, 97, 289, (241, 154, 156, 351), (26, 347, 348))),
    ),
    "aarch64": (
        (0xC00000B7, (261, 140, 30, (122, 118, 119, 274), (117, 270, 271))),
        (0x40000028, (369, 97, 314, (241, 154, 156, 380), (26, 376, 377))),
    ),
}


def _argument(index: int, high: bool = False) -> "Instruction":
    return (LOAD, 0, 0, 16 + 8 * index + 4 * high)


def _rules(numbers: "CallNumbers") -> "Iterator[tuple[int, list[Instruction]]]":
    """The calls that reach other processes: allowed on the caller itself, which is number 0."""
    prlimit, setpriority, ioprio_set, scheduling, tracing = numbers
    allow, refuse = (RETURN, 0, 0, RET_ALLOW), (RETURN, 0, 0, RET_REFUSE)
    own = [_argument(0), (EQUAL, 0, 1, 0), allow, refuse]
    # Reading the limits of others is allowed: the new limit is NULL.
    reads = [_argument(2), (EQUAL, 0, 3, 0), _argument(2, high=True), (EQUAL, 0, 1, 0), allow]
    yield prlimit, [_argument(0), (EQUAL, 0, 1, 0), allow, *reads, refuse]
    # All processes of the user are another kind than a process or a group.
    for number, all_of_user in ((setpriority, 2), (ioprio_set, 3)):
        who = [_argument(1), (EQUAL, 0, 1, 0), allow, refuse]
        yield number, [_argument(0), (EQUAL, 3, 0, all_of_user), *who]
    for number in scheduling:
        yield number, own
    for number in tracing:
        yield number, [refuse]


def filter_program(machine: str) -> bytes:
    """The program of the filter: refuses the calls above with EPERM and allows all others."""
    program: list[Instruction] = [(LOAD, 0, 0, 4)]
    for audit, numbers in ARCHITECTURES[machine]:
        block: list[Instruction] = [(LOAD, 0, 0, 0)]
        if audit == 0xC000003E:
            block += [(AT_LEAST, 0, 1, X32_BIT), (RETURN, 0, 0, RET_UNKNOWN)]
        for number, body in _rules(numbers):
            block += [(EQUAL, 0, len(body), number), *body]
        block.append((RETURN, 0, 0, RET_ALLOW))
        program += [(EQUAL, 0, len(block), audit), *block]
    program.append((RETURN, 0, 0, RET_UNKNOWN))
    return b"".join(struct.pack("=HBBI", code, yes, no, k) for code, yes, no, k in program)


_program = ctypes.create_string_buffer(filter_program(MACHINE)) if _SUPPORTED else None


def _filter_calls() -> None:
    assert _program is not None, "this machine has no sandbox"
    count = (len(_program) - 1) // 8
    address = ctypes.addressof(_program)
    # A 16-bit count, padding, and the address.
    header = struct.pack("=HxxxxxxQ", count, address)
    number = SYS_SECCOMP[MACHINE]
    try:
        _call(number, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, header)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        _call(number, SECCOMP_SET_MODE_FILTER, 0, header)
