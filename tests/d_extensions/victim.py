# SPDX-License-Identifier: Apache-2.0
"""Makes system calls that nobody else makes: lseek(77, VALUE), on a descriptor that is not open.

    victim.py VALUES N...     one for each number
    victim.py THREADS T N     from T threads at once, each with 0 to N - 1
    victim.py TEXTS SIZE...   write(77, text of this size), and prints their MD5
    victim.py LIST N          the address of a list of N nodes
    victim.py PARENT N        getppid(), N times
"""

import ctypes
import hashlib
import os
import sys
import threading

CLOSED = 77


def seek(value):
    try:
        os.lseek(CLOSED, value, 0)
    except OSError:
        pass


def tell(text):
    os.write(1, f"{text}\n".encode())  # At once: the tracer writes there, too.


def main(what, numbers):
    if what == "VALUES":
        for value in numbers:
            seek(value)
    if what == "THREADS":
        threads = [threading.Thread(target=lambda: [seek(it) for it in range(numbers[1])])
                   for _ in range(numbers[0])]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    if what == "TEXTS":
        for size in numbers:
            text = bytes((7 * it + size) % 256 for it in range(size))
            tell(hashlib.md5(text).hexdigest())
            try:
                os.write(CLOSED, text)
            except OSError:
                pass
    if what == "LIST":
        nodes = (ctypes.c_uint64 * (2 * numbers[0]))()
        first = ctypes.addressof(nodes)
        for i in range(numbers[0] - 1):
            nodes[2 * i] = first + 16 * (i + 1)
        seek(first)
    if what == "PARENT":
        for _ in range(numbers[0]):
            os.getppid()
    tell("done")


main(sys.argv[1], [int(it) for it in sys.argv[2:]])
