"""A TCP proxy that cuts connections after it has passed on a given text, once for each text."""

import socket
import threading
from collections.abc import Sequence


class CuttingProxy:
    def __init__(self, port: int, cut_after: Sequence[bytes]) -> None:
        self._target = port
        self._texts = list(cut_after)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            for pair in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, to: socket.socket, answers: bool) -> None:
        try:
            while data := source.recv(65536):
                sent = self._until_cut(data) if answers else data
                to.sendall(sent)
                if sent != data:
                    break
        except OSError:
            pass
        for each in (source, to):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def _until_cut(self, data: bytes) -> bytes:
        """The data, without what follows the event with the next text, and its last byte."""
        with self._lock:
            if not self._texts or self._texts[0] not in data:
                return data
            text = self._texts.pop(0)
            self.cuts += 1
        end = data.index(b"\n\n", data.index(text)) + 2
        return data[:end] if end < len(data) else data[:-1]
