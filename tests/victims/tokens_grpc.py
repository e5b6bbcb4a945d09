# SPDX-License-Identifier: Apache-2.0
"""Victim: requests that go on by gRPC, with tokens in its metadata. It takes commands as the others
do (victim.h): `serve N` answers N calls, `ask N` makes N in each of four threads.

    tokens_grpc.py LIBRARY SOCKET
"""

import ctypes
import sys
import threading
from concurrent import futures

import grpc

THREADS = 4
METHOD = "/tokens.Orders/Order"
CLEW = ctypes.CDLL(sys.argv[1])
SOCKET = f"unix:{sys.argv[2]}"


def number(value):
    return ctypes.c_uint64(value)


def send(request):
    """The token, as metadata of the request."""
    token = ctypes.create_string_buffer(33)
    CLEW.clew_cause_begin()
    CLEW.receive(number(request))
    CLEW.clew_cause_send_text(token)
    CLEW.clew_cause_end()
    return [("clew", token.value.decode())]


class Orders(grpc.GenericRpcHandler):
    def __init__(self, count):
        self.left = count
        self.lock = threading.Lock()
        self.is_done = threading.Event()

    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(self.order) if details.method == METHOD else None

    def order(self, request, context):
        token = dict(context.invocation_metadata()).get("clew", "").encode()
        CLEW.clew_cause_receive_text(token, ctypes.c_size_t(len(token)))
        CLEW.work(number(int(request)))
        CLEW.clew_cause_end()
        with self.lock:
            self.left -= 1
            if self.left == 0:
                self.is_done.set()
        return b"ok"


def serve(count):
    orders = Orders(count)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=THREADS))
    server.add_generic_rpc_handlers((orders,))
    server.add_insecure_port(SOCKET)
    server.start()
    print("listens 1", flush=True)
    orders.is_done.wait()
    server.stop(grace=10).wait()
    print(f"served {count}")


def ask(count):
    def ask_some(thread):
        order = channel.unary_unary(METHOD)
        for i in range(count):
            request = (thread + 1) * 1_000_000 + i
            answers.append(order(str(request).encode(), metadata=send(request), timeout=50))

    answers = []
    with grpc.insecure_channel(SOCKET) as channel:
        threads = [threading.Thread(target=ask_some, args=(i,)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(f"answers {answers.count(b'ok')}")


def main():
    print("ready", flush=True)
    for line in sys.stdin:
        name, argument = line.split()
        {"serve": serve, "ask": ask}[name](int(argument))
        print("end", flush=True)


if __name__ == "__main__":
    main()
