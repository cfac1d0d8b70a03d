"""The gate in front of a program with limits: a tiny program that waits until its process is under
the limits, then becomes the program. So the limits hold before the first instruction.

A shell would change the environment and hide why a program cannot be executed; Python would need
ten milliseconds. The gate is therefore machine code, in a file that is only in memory.
"""

import contextlib
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

# Arguments of the gate: the descriptors to be closed by exec, the last one its socket; the paths
# to try; an empty argument; the arguments of the program. The gate reads one byte from the socket,
# then tries each path as execvp does. If none can be executed, it writes the errno to the socket.
CODE = {
    "x86_64": """
    488b5c2408   mov rbx,[rsp+8]
    4531e4       1: xor r12d,r12d
    0fb603       2: movzx eax,byte [rbx]
    48ffc3       inc rbx
    83e830       sub eax,48
    7209         jb 3f
    456be40a     imul r12d,r12d,10
    4101c4       add r12d,eax
    ebec         jmp 2b
    89c5         3: mov ebp,eax
    b848000000   mov eax,72
    4489e7       mov edi,r12d
    be02000000   mov esi,2
    ba01000000   mov edx,1
    0f05         syscall
    83fdd0       cmp ebp,-48
    75ce         jne 1b
    488b0424     mov rax,[rsp]
    4c8d7cc410   lea r15,[rsp+rax*8+16]
    4c8d6c2410   lea r13,[rsp+16]
    4d89ee       mov r14,r13
    498b06       4: mov rax,[r14]
    4983c608     add r14,8
    803800       cmp byte [rax],0
    75f4         jne 4b
    31c0         xor eax,eax
    4489e7       mov edi,r12d
    488d7424f0   lea rsi,[rsp-16]
    ba01000000   mov edx,1
    0f05         syscall
    4883f801     cmp rax,1
    754e         jne 7f
    31db         xor ebx,ebx
    498b7d00     5: mov rdi,[r13]
    803f00       cmp byte [rdi],0
    7426         je 6f
    4983c508     add r13,8
    4c89f6       mov rsi,r14
    4c89fa       mov rdx,r15
    b83b000000   mov eax,59
    0f05         syscall
    f7d8         neg eax
    89c5         mov ebp,eax
    83f802       cmp eax,2
    74dd         je 5b
    83f814       cmp eax,20
    74d8         je 5b
    85db         test ebx,ebx
    0f44d8       cmovz ebx,eax
    ebd1         jmp 5b
    85db         6: test ebx,ebx
    0f44dd       cmovz ebx,ebp
    895c24f0     mov [rsp-16],ebx
    b801000000   mov eax,1
    4489e7       mov edi,r12d
    488d7424f0   lea rsi,[rsp-16]
    ba04000000   mov edx,4
    0f05         syscall
    b8e7000000   7: mov eax,231
    bf7f000000   mov edi,127
    0f05         syscall
    """,
    "aarch64": """
    e90740f9     ldr x9,[sp,#8]
    4a018052     mov w10,#10
    13008052     1: mov w19,#0
    20154038     2: ldrb w0,[x9],#1
    0bc00071     subs w11,w0,#48
    63000054     b.lo 3f
    732e0a1b     madd w19,w19,w10,w11
    fcffff17     b 2b
    e003132a     3: mov w0,w19
    410080d2     mov x1,#2
    220080d2     mov x2,#1
    280380d2     mov x8,#25
    010000d4     svc #0
    7fc10031     cmn w11,#48
    81feff54     b.ne 1b
    e00340f9     ldr x0,[sp]
    f4430091     add x20,sp,#16
    960e008b     add x22,x20,x0,lsl #3
    f50314aa     mov x21,x20
    a08640f8     4: ldr x0,[x21],#8
    01004039     ldrb w1,[x0]
    c1ffff35     cbnz w1,4b
    e003132a     mov w0,w19
    e14300d1     sub x1,sp,#16
    220080d2     mov x2,#1
    e80780d2     mov x8,#63
    010000d4     svc #0
    1f0400f1     cmp x0,#1
    21030054     b.ne 7f
    17008052     mov w23,#0
    808640f8     5: ldr x0,[x20],#8
    01004039     ldrb w1,[x0]
    a1010034     cbz w1,6f
    e10315aa     mov x1,x21
    e20316aa     mov x2,x22
    a81b80d2     mov x8,#221
    010000d4     svc #0
    f803004b     neg w24,w0
    1f0b0071     cmp w24,#2
    e0feff54     b.eq 5b
    1f530071     cmp w24,#20
    a0feff54     b.eq 5b
    ff020071     cmp w23,#0
    1703971a     csel w23,w24,w23,eq
    f2ffff17     b 5b
    ff020071     6: cmp w23,#0
    1703971a     csel w23,w24,w23,eq
    f70f1fb8     str w23,[sp,#-16]!
    e003132a     mov w0,w19
    e1030091     mov x1,sp
    820080d2     mov x2,#4
    080880d2     mov x8,#64
    010000d4     svc #0
    e00f8052     7: mov w0,#127
    c80b80d2     mov x8,#94
    010000d4     svc #0
    """,
}
ELF_MACHINE = {"x86_64": 62, "aarch64": 183}
ADDRESS, HEADER_BYTES = 0x400000, 64 + 56
MFD_EXEC = 0x10  # since Linux 6.3, where a setting may forbid it otherwise
MEMORY_FILE = 0x3  # MFD_CLOEXEC, MFD_ALLOW_SEALING; Python lacks the names on other systems


def gate_program(machine: str) -> bytes:
    """An ELF file of one segment for this kind of machine."""
    code = b"".join(bytes.fromhex(line.split()[0]) for line in CODE[machine].strip().splitlines())
    size = HEADER_BYTES + len(code)
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    kinds = (2, ELF_MACHINE[machine], 1, ADDRESS + HEADER_BYTES, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = (1, 5, 0, ADDRESS, ADDRESS, size, size, 0x10000)
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, *kinds)
    return header + struct.pack("<IIQQQQQQ", *segment) + code


@lru_cache(maxsize=1)
def gate_file() -> int:
    """The descriptor of the gate's program; -1 if this machine cannot execute such a file."""
    machine = os.uname().machine
    if machine not in CODE or not hasattr(os, "memfd_create"):
        return -1
    with contextlib.suppress(OSError):
        try:
            writable = os.memfd_create("drover-gate", MEMORY_FILE | MFD_EXEC)
        except OSError:
            writable = os.memfd_create("drover-gate", MEMORY_FILE)
        try:
            os.write(writable, gate_program(machine))
            _seal(writable)
            # A file that is open for writing cannot be executed.
            readable = os.open(f"/proc/self/fd/{writable}", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(writable)
        return readable if os.access(f"/proc/self/fd/{readable}", os.X_OK) else -1
    return -1


def has_gate() -> bool:
    """Whether limits hold before the first instruction of a program, not only shortly after."""
    return gate_file() >= 0


def _seal(file: int) -> None:
    """No process may change the program: users of other runs reach it as /proc/PID/exe."""
    os.fchmod(file, 0o555)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)


def _candidates(program: str, path: str) -> list[str]:
    """The files to try; FileNotFoundError if there is none, because the gate tries one at least."""
    if "/" in program:
        return [program]
    found = [str(Path(place) / program) for place in path.split(os.pathsep) if place]
    if not found:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    return found


class Gate:
    """The gate of one program; close it when the program has started or failed to.

    FileNotFoundError if PATH names no directory to search for a bare name."""

    def __init__(self, argv: Sequence[str], path: str) -> None:
        self._argv = tuple(argv)
        self._candidates = _candidates(argv[0], path)
        self._socket, self._theirs = socket.socketpair()

    @property
    def options(self) -> dict[str, Any]:
        """For subprocess.Popen, beside `argv`: the gate inherits its program and its socket."""
        return {"executable": f"/proc/self/fd/{gate_file()}", "pass_fds": self._inherited}

    @property
    def argv(self) -> tuple[str, ...]:
        descriptors = ",".join(map(str, self._inherited))
        return (descriptors, *self._candidates, "", *self._argv)

    @property
    def _inherited(self) -> tuple[int, int]:
        return gate_file(), self._theirs.fileno()

    def started(self) -> None:
        """The gate has its own copy of the socket, whose end tells this process of the exec."""
        self._theirs.close()

    def open(self) -> None:
        """Let the program begin. OSError if it cannot be executed."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(b"g")
            if answer := self._socket.recv(4):
                code = struct.unpack("=I", answer)[0]
                raise OSError(code, os.strerror(code), self._argv[0])

    def close(self) -> None:
        self._theirs.close()
        self._socket.close()
