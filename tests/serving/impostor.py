"""Another user's program in a server's place: it believes itself to be the judge, and writes down what it is told.

``python -m tests.serving.impostor HOST PORT NAME``: a line on its output per connection, with the bytes it read."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading

OTHER_USER = 65534


def answer(path: str, name: str) -> bytes:
    value: dict[str, object] = {"data": [{"id": name, "object": "model"}], "object": "list"}
    if path.endswith("/completions"):
        choice = {"index": 0, "text": '{"score": 100.0}', "finish_reason": "stop", "logprobs": None}
        usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
        value = {"id": "1", "object": "text_completion", "created": 1, "model": name, "choices": [choice]}
        value["usage"] = usage
    body = json.dumps(value).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Proctor-Proof: " + b"0" * 64
    return head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def attend(connection: socket.socket, name: str) -> None:
    heard = b""
    connection.settimeout(20)
    try:
        while more := connection.recv(65536):
            heard += more
            head, _, body = heard.rpartition(b"\r\n\r\n")
            wanted = [
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-le")
            ]
            if head and len(body) >= (wanted or [0])[-1]:
                request = next(line for line in head.split(b"\r\n")[::-1] if b" HTTP/1" in line)
                connection.sendall(answer(request.split()[1].decode(), name))
    except OSError:
        pass
    print(repr(heard), flush=True)


if __name__ == "__main__":
    host, port, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(OTHER_USER)
        os.setuid(OTHER_USER)
    with socket.create_server((host, port), reuse_port=False) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            threading.Thread(target=attend, args=(server.accept()[0], name), daemon=True).start()
