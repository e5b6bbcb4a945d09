# SPDX-License-Identifier: Apache-2.0
"""A process that ends servers and removes their folder when the test bed goes, however it goes: it
reads from a pipe whose other end only the bed has."""

import contextlib
import os
import select
import shutil
import signal

PATIENCE_S = 10


class Guardian:
    def __init__(self, folder):
        commands, self._commands = os.pipe()
        self._done, done = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(self._commands)
            os.close(self._done)
            os.setsid()  # What ends the bed's group does not end the guardian.
            if os.fork() == 0:
                _guard(commands, folder)
            os._exit(0)
        os.waitpid(child, 0)
        os.close(commands)
        os.close(done)

    def watch(self, pid, ends_by):
        """`pid` is a child that nobody has waited for, so that the number is its own."""
        os.write(self._commands, f"{pid} {int(ends_by)}\n".encode())

    def end(self):
        """Ends all, the last one first, and waits for that."""
        os.close(self._commands)
        os.read(self._done, 1)
        os.close(self._done)


def _guard(commands, folder):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    watched = []
    try:
        with os.fdopen(commands) as lines:
            for line in lines:
                pid, ends_by = map(int, line.split())
                with contextlib.suppress(ProcessLookupError):
                    watched.append((os.pidfd_open(pid), ends_by))
        for process, ends_by in reversed(watched):
            _end_process(process, ends_by)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os._exit(0)


def _end_process(process, ends_by):
    for number in (ends_by, signal.SIGKILL):
        try:
            signal.pidfd_send_signal(process, number)
        except ProcessLookupError:
            return
        if select.select([process], [], [], PATIENCE_S)[0]:
            return
