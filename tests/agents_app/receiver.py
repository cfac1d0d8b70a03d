"""A real HTTP server on loopback that keeps what it was sent, and answers as it is told."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Answer = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    method: str = "POST"


@dataclass
class Receiver:
    port: int = 0
    requests: list[Received] = field(default_factory=list)
    # One after the other, then `status` for ever.
    answers: list[Answer] = field(default_factory=list)
    status: int = 200
    pace: str = ""
    raw: bytes | None = None
    names_told: list[str | None] = field(default_factory=list)
    certificate: Path = Path()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def next_answer(self) -> Answer:
        return self.answers.pop(0) if self.answers else (self.status, {}, b"ok")


@contextmanager
def receiving(tls_for: str = "", directory: Path = Path()) -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.requests.append(Received(self.path, headers, body, self.command))
            with suppress(OSError):
                _answer(self, receiver)
            self.close_connection = True

        do_PUT = do_POST

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Some clients hang up on purpose."""

    server = Server(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    if tls_for:
        server.socket = _tls(receiver, tls_for, directory).wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield receiver
    server.shutdown()
    server.server_close()


def _answer(handler: BaseHTTPRequestHandler, receiver: Receiver) -> None:
    if receiver.raw is not None:
        handler.wfile.write(receiver.raw)
        return
    if receiver.pace == "silent":
        time.sleep(2)
        return
    if receiver.pace == "trickling":
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 20:
            handler.wfile.write(bytes([byte]))
            time.sleep(0.1)
        return
    status, headers, body = receiver.next_answer()
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def _tls(receiver: Receiver, name: str, directory: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    whom = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(whom, whom, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    receiver.certificate = directory / "certificate.pem"
    receiver.certificate.write_bytes(certificate.public_bytes(pem))
    key_file = directory / "key.pem"
    key_file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(receiver.certificate, key_file)
    context.sni_callback = lambda _socket, told, _context: receiver.names_told.append(told)
    return context
