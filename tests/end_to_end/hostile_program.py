"""The program of an agent that prints, as JSON, what it reached of the targets in its file."""

HOSTILE = r"""#!/usr/bin/env python3
import ctypes, json, os, resource, socket

with open(os.path.join(os.environ["DROVER_AGENT_DIR"], "targets.json")) as file:
    targets = json.load(file)
got = []
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE = 0x4206


def attempt(what, act):
    try:
        if act() is not False:
            got.append(what)
    except (OSError, ValueError):
        pass


def read(path):
    with open(path, "rb") as file:
        return file.read(1) != b""


def write(path):
    open(path, "ab").close()


def plant(directory):
    path = os.path.join(directory, "planted")
    open(path, "x").close()
    os.unlink(path)


def limit(pid):
    resource.prlimit(pid, resource.RLIMIT_CORE, resource.prlimit(pid, resource.RLIMIT_CORE))


def slow_down(pid):
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))


def ask_redis(login=b""):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(targets["redis"])
        client.sendall(login + b"INFO server\r\n")
        answer = b""
        while b"redis_version" not in answer:
            if b"-NOAUTH" in answer:
                return False
            answer += client.recv(4000) or b"-NOAUTH"
        return True


def log_in_to_redis():
    with open(targets["password"], "rb") as file:
        return ask_redis(b"AUTH " + file.read().strip() + b"\r\n")


for path in targets["files"]:
    attempt("read " + path, lambda: read(path))
    attempt("write " + path, lambda: write(path))
for path in targets["directories"]:
    attempt("list " + path, lambda: os.listdir(path))
    attempt("plant " + path, lambda: plant(path))
for pid in targets["processes"]:
    attempt(f"signal {pid}", lambda: os.kill(pid, 0))
    attempt(f"environ {pid}", lambda: read(f"/proc/{pid}/environ"))
    attempt(f"memory {pid}", lambda: open(f"/proc/{pid}/mem", "rb").close())
    attempt(f"descriptors {pid}", lambda: os.readlink(f"/proc/{pid}/fd/1"))
    attempt(f"directory {pid}", lambda: os.listdir(f"/proc/{pid}/cwd/"))
    attempt(f"limit {pid}", lambda: limit(pid))
    attempt(f"priority {pid}", lambda: slow_down(pid))
    attempt(f"trace {pid}", lambda: libc.ptrace(PTRACE_SEIZE, pid, 0, 0) == 0)
attempt("redis", ask_redis)
attempt("redis with its password", log_in_to_redis)
print(json.dumps(got), flush=True)
"""
