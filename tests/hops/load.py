# SPDX-License-Identifier: Apache-2.0
"""Load with an id of its own in each request, and a check of each answer."""

import random
import re
import socket
import threading
import time

import network
from servers import APPLICATIONS, ASKING_PATH, MEMCACHED_PATH, REDIS_PATH

ID = re.compile(r"h[0-9a-f]{16}")
APPLICATION_PATHS = tuple(APPLICATIONS.values())
PATHS = (MEMCACHED_PATH, *APPLICATION_PATHS)
TIMEOUT_S = 60
STORED_AT_ONCE = 500


def new_ids(count):
    return [f"h{random.getrandbits(64):016x}" for _ in range(count)]


def id_in(text):
    """The id in a text that a server has seen, or None."""
    found = ID.search(text) if text else None
    return found.group() if found else None


def expected_answer(path, identity):
    if path == MEMCACHED_PATH:
        return f"memcached-{identity}"
    if path == ASKING_PATH:
        return f"{identity} {identity[::-1]}"
    if path == REDIS_PATH:
        return f"{identity} redis-{identity}"
    return f"{identity} redis-{identity} {identity[::-1]}"


class Connection:
    def __init__(self, address):
        self._socket = network.connect(address, TIMEOUT_S)
        self._bytes = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, text):
        self._socket.sendall(text.encode())

    def line(self):
        while b"\r\n" not in self._bytes:
            self._receive()
        line, self._bytes = self._bytes.split(b"\r\n", 1)
        return line.decode()

    def take(self, size):
        while len(self._bytes) < size:
            self._receive()
        taken, self._bytes = self._bytes[:size], self._bytes[size:]
        return taken.decode()

    def _receive(self):
        more = self._socket.recv(65536)
        if not more:
            raise ConnectionError("the server has closed the connection")
        self._bytes += more

    def http_answer(self):
        """(status line, body) of the next answer."""
        status, size = self.line(), 0
        while header := self.line():
            name, value = header.split(":", 1)
            if name.lower() == "content-length":
                size = int(value)
        return status, self.take(size)


def store(bed, ids):
    """What memcached and redis are going to be asked for."""
    with Connection(bed.address("memcached")) as memcached, \
            Connection(bed.address("redis")) as redis:
        for first in range(0, len(ids), STORED_AT_ONCE):
            some = ids[first:first + STORED_AT_ONCE]
            values = [(i, expected_answer(MEMCACHED_PATH, i)) for i in some]
            memcached.send("".join(f"set /{MEMCACHED_PATH}/{i} 0 0 {len(value)}\r\n{value}\r\n"
                                   for i, value in values))
            redis.send("".join(f"SET hops:{i} redis-{i}\r\n" for i in some))
            replies = {memcached.line() for _ in some}, {redis.line() for _ in some}
            if replies != ({"STORED"}, {"+OK"}):
                raise AssertionError(f"not stored: {replies}")


class Load:
    """Sends a request for each id, to paths in turn, over `concurrency` connections that stay; with
    `pipeline` > 1 so many at once before their answers; and at most `rate` requests a second, if
    not 0. Raises AssertionError at a wrong answer."""

    def __init__(self, address, paths, concurrency=8, pipeline=1, rate=0):
        self._address = address
        self._paths = paths
        self._concurrency = concurrency
        self._pipeline = pipeline
        self._turn_s = concurrency * pipeline / rate if rate else 0
        self.sent = {}  # id -> path
        self.latencies_s = []
        self._failures = []

    def run(self, ids):
        requests = [(self._paths[i % len(self._paths)], identity)
                    for i, identity in enumerate(ids)]
        self.sent.update({identity: path for path, identity in requests})
        threads = [threading.Thread(target=self._send_some,
                                    args=(requests[i::self._concurrency],))
                   for i in range(self._concurrency)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _send_some(self, requests):
        try:
            random.shuffle(requests)  # Or each connection would keep to few paths.
            turn = time.monotonic() + random.random() * self._turn_s
            with Connection(self._address) as connection:
                for first in range(0, len(requests), self._pipeline):
                    time.sleep(max(0, turn - time.monotonic()))
                    turn += self._turn_s
                    self._send_at_once(connection, requests[first:first + self._pipeline])
        except Exception as failure:  # Told by run().
            self._failures.append(failure)

    def _send_at_once(self, connection, requests):
        begun = time.monotonic()
        connection.send("".join(f"GET /{path}/{identity} HTTP/1.1\r\nHost: hops\r\n\r\n"
                                for path, identity in requests))
        for path, identity in requests:
            status, body = connection.http_answer()
            if "200" not in status or body != expected_answer(path, identity):
                raise AssertionError(f"/{path}/{identity}: {status}: {body}")
        self.latencies_s.append(time.monotonic() - begun)

    def latency_ms(self, quantile):
        ordered = sorted(self.latencies_s)
        return 1000 * ordered[min(len(ordered) - 1, int(quantile * len(ordered)))]
