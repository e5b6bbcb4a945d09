# SPDX-License-Identifier: Apache-2.0
"""An application in Python: one thread reads all connections, and the threads of an executor ask
redis for GET /r/ID.

    python_pool.py PORT HOST:PORT
"""

import selectors
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

WORKERS = 8
behind = threading.local()


def connect(address):
    host, port = address.split(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def answer(client, identity):
    if not hasattr(behind, "redis"):
        behind.redis = connect(sys.argv[2])
    behind.redis.sendall(f"GET hops:{identity}\r\n".encode())
    value = b""
    while value.count(b"\r\n") < 2:
        value += behind.redis.recv(4096)
    body = f"{identity} {value.split()[1].decode()}"
    client.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


def main():
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
    watched = selectors.DefaultSelector()
    watched.register(listener, selectors.EVENT_READ)
    with ThreadPoolExecutor(WORKERS) as pool:
        while True:
            for key, _ in watched.select():
                if key.fileobj is listener:
                    client = listener.accept()[0]
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    watched.register(client, selectors.EVENT_READ)
                    continue
                request = key.fileobj.recv(4096)  # Clients send each in one piece.
                if not request:
                    watched.unregister(key.fileobj)
                    key.fileobj.close()
                    continue
                path = request.split(b" ", 2)[1].decode()
                pool.submit(answer, key.fileobj, path.rsplit("/", 1)[1])


main()
