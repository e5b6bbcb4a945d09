# SPDX-License-Identifier: Apache-2.0
"""A program that says which calls it is in, by Python's own word, before it crashes or waits there.

    scripts.py WAY

A line for each call, the innermost first: thread, line, function, file. Of Python 3.11.
"""

import asyncio
import ctypes
import os
import signal
import sys
import threading


def tell():
    """All callers; false, so that it can stand in front of what they do next."""
    frame = sys._getframe(1)
    lines = []
    while frame is not None:
        code = frame.f_code
        lines.append(f"{threading.get_native_id()}\t{frame.f_lineno}\t{code.co_qualname}\t"
                     f"{code.co_filename}\n")
        frame = frame.f_back
    os.write(1, "".join(lines).encode())
    return False


def die():
    return tell() or signal.raise_signal(signal.SIGSEGV)


class Box:
    def open(self, count):
        if count:
            return self.open(count - 1)
        return self.fault()

    @staticmethod
    def fault():
        return tell() or (ctypes.
                          string_at(0))


def crash():
    """Through sort, a generator and a method that calls itself: loops within loops."""
    def generate():
        yield Box().open(3)

    def key(_):
        return next(generate())

    sorted([1, 2], key=key)


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        die()


def kinds():
    """In code of many kinds, each called by the one below it."""
    def text():
        exec(compile("def größer():\n\n    die()\ngrößer()", "<täxt>", "exec"), globals())

    class Manager:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            text()

    def decorate(function):
        return [function(it) for it in (lambda: (1, 2))()]

    def places():
        @decorate
        def decorated(_):
            with Manager():
                class Inner:
                    text = "in a class"
                return Inner.text

    async def ticks():
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    async def inner():
        return [places() async for it in ticks() if it == 2]

    async def outer():
        await asyncio.gather(inner(), asyncio.sleep(0))

    asyncio.run(outer())


def deep():
    def down(count):
        return down(count - 1) if count else die()

    sys.setrecursionlimit(5000)
    down(3000)


def fork():
    child = os.fork()
    if child == 0:
        die()
    os.waitpid(child, 0)


def other_thread():
    started = threading.Event()

    main = threading.get_ident()

    def work():
        started.wait()
        while sys._current_frames()[main].f_code.co_name != "_wait_for_tstate_lock":
            os.sched_yield()
        die()

    thread = threading.Thread(target=work)
    thread.start()
    tell() or started.set() or thread.join()


def scribble():
    """Its caller's caller is itself."""
    frame = ctypes.c_uint64.from_address(id(sys._getframe()) + 24).value
    caller = ctypes.c_uint64.from_address(frame + 48).value
    ctypes.c_uint64.from_address(caller + 48).value = frame
    signal.raise_signal(signal.SIGSEGV)


def threads():
    """Each waits or computes in its own functions, until a line comes."""
    lock = threading.Lock()
    lock.acquire()
    ready = threading.Semaphore(0)

    def wait_for_lock():
        ready.release()
        tell() or lock.acquire()

    def spin():
        tell()
        ready.release()
        while True: pass  # noqa: E701

    def called_by_c():
        compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

        def block(_one, _other):
            ready.release()
            return tell() or lock.acquire()

        ctypes.CDLL(None).qsort((ctypes.c_int * 2)(), 2, 4, compare(block))

    for work in (wait_for_lock, spin, called_by_c):
        threading.Thread(target=work, daemon=True).start()
    for _ in range(3):
        ready.acquire()
    tell() or os.read(0, 1)
    os._exit(9)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
