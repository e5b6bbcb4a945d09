# SPDX-License-Identifier: Apache-2.0
"""The victim, scripts beside it, and what a process looks like from outside."""

import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

TIMEOUT_S = 60
NOBODY = 65534


class Wrong(Exception):
    """Something is not as it should be."""


def expect(condition, what, output=""):
    if not condition:
        raise Wrong(f"expected {what}" + (f"; printed:\n{output}" if output else ""))


def expect_equal(got, wanted, what):
    def short(it):
        text = str(it)
        return text if len(text) < 400 else text[:200] + " ... " + text[-200:]

    expect(got == wanted, f"{what} {short(wanted)}, not {short(got)}")


class Victim:
    """A process under test."""

    def __init__(self, path, user=None, prepare=None):
        self.process = subprocess.Popen([path], preexec_fn=prepare, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, user=user, group=user)
        self.process.stdout.readline()
        self.pid = self.process.pid

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        """The number that it answers: its calls so far."""
        self.send(line)
        return int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.process.communicate("quit\n", timeout=TIMEOUT_S)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()

    def status(self):
        self.process.communicate("quit\n", timeout=TIMEOUT_S)
        return self.process.returncode


class Trace:
    """A D script beside a process, from the moment when it is armed."""

    def __init__(self, clew, pid, text, flags=()):
        target = ["-p", str(pid)] if pid else []
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [clew, "dtrace", "-q", "-v", *flags, *target, "-n",
             'BEGIN { printf("armed\\n"); } ' + text],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        for line in self.process.stdout:  # How stable the script is comes first (-v).
            if line == "armed\n":
                return
        self.process.kill()
        raise Wrong(f"expected it to be armed: {self.said()}")

    def said(self):
        self.process.wait()
        self.errors.seek(0)
        return self.errors.read()

    def said_so_far(self):
        with open(f"/proc/self/fd/{self.errors.fileno()}", encoding="utf-8") as errors:
            return errors.read()

    def read_line(self):
        """The next line that is not empty, past the buffers that communicate() does not know."""
        line = b""
        while not line.endswith(b"\n") or not line.strip():
            line += os.read(self.process.stdout.fileno(), 1)
        return line.decode().strip()

    def end(self):
        """Ends it by Ctrl-C; what it printed."""
        self.process.send_signal(signal.SIGINT)
        return self.rest()

    def rest(self, status=0):
        """What it printed until it ended by itself."""
        try:
            output, _ = self.process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Wrong(f"does not end within {TIMEOUT_S} s") from None
        expect_equal(self.process.returncode, status, f"({self.said().strip()}) exit status")
        return output

    def inline(self):
        """How many probes were inline, and how many were not."""
        text = self.said()
        found = re.findall(r"process \d+: (\d+) probes inline(.*)", text)
        expect(found, "a line about inline probes", text)
        others = sum(int(it) for _, rest in found for it in re.findall(r"(\d+) by uprobes", rest))
        return sum(int(count) for count, _ in found), others


def wait_for(condition, what):
    """Until it holds; what it waits for happens in another process."""
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        expect(time.monotonic() < end, what)


class Bench:
    """What the cases need."""

    def __init__(self, clew, victim):
        self.clew = clew
        self.path = victim

    def victim(self, user=None, prepare=None):
        return Victim(self.path, user, prepare)

    def trace(self, victim, text, flags=()):
        return Trace(self.clew, victim.pid if victim else 0, text, flags)

    def run(self, text, *lines, flags=()):
        """(output, numbers of calls) of a script beside a victim that does this."""
        with self.victim() as victim:
            trace = self.trace(victim, text, flags)
            answers = [victim.ask(line) for line in lines]
            return trace.end(), answers, trace


def mappings(pid):
    """Lines of /proc/PID/maps whose place and rights a session must not change."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line for line in lines if "[heap]" not in line and "[stack]" not in line]


def descriptors(pid):
    return sorted(os.readlink(it) for it in Path(f"/proc/{pid}/fd").iterdir())


def address_of(victim, path, function):
    """Of a program whose first segment begins at its file's first byte."""
    symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    offset = re.search(rf"^(\w+) . {function}$", symbols, re.MULTILINE).group(1)
    lines = Path(f"/proc/{victim.pid}/maps").read_text().splitlines()
    first = next(it for it in lines if it.endswith(path))
    return int(first.split("-")[0], 16) + int(offset, 16)


def changed_text(pid):
    """Places where the process's code is not that of its files."""
    found = []
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in mappings(pid):
            span, rights, offset, _, inode, *path = line.split()
            if "x" not in rights or "s" in rights or inode == "0" or not path:
                continue
            begin, end = (int(it, 16) for it in span.split("-"))
            memory.seek(begin)
            text = memory.read(end - begin)
            data = Path(path[0]).read_bytes()[int(offset, 16):][:end - begin]
            found += [hex(begin + i) for i in range(len(data)) if data[i] != text[i]][:3]
    return found


def ours_in(pid):
    """Mappings that a session made; the victim's own file may be in a folder named clew."""
    def path(line):
        return line.split(maxsplit=5)[5:]

    return [it for it in mappings(pid)
            if any(name.startswith(("/memfd:clew", "anon_inode:bpf-map")) for name in path(it))]


class Footprint:
    """That nothing is left behind in a process."""

    def __init__(self, pid):
        self.pid = pid
        self.before = (mappings(pid), descriptors(pid))

    def check(self):
        expect_equal(changed_text(self.pid), [], "changed text")
        # Threads leave stacks behind that the C library keeps.
        expect_equal(ours_in(self.pid), [], "mappings left")
        expect_equal(descriptors(self.pid), self.before[1], "descriptors")
