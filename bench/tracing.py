# SPDX-License-Identifier: Apache-2.0
"""Programs under measurement and the tracers that attach to them."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path


class Program:
    """A program that takes commands on standard input and answers with `name value` lines."""

    def __init__(self, path):
        self.path = str(path)
        self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{path} did not start")

    @property
    def pid(self):
        return self.process.pid

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = {}
        for line in self.process.stdout:
            if line.strip() == "end":
                return answer
            name, value = line.split()
            answer[name] = float(value) if "." in value else int(value)
        raise RuntimeError(f"{self.path} ended during: {command}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.stdin.close()
        self.process.wait()


class Clew:
    """A session of `clew run` on a process, from armed to detached."""

    command = None  # Path of the binary; set by bench/run.

    def __init__(self, pid, query, arguments=(), environment=None):
        self.arguments = [self.command, "run", query, "-p", str(pid), "--json", *arguments]
        self.environment = {**os.environ, **(environment or {})}
        self.rows, self.summary, self.armed_ms, self.said = [], {}, 0.0, ""

    def __enter__(self):
        start = time.monotonic()
        self.output = tempfile.TemporaryFile("w+")  # A full pipe would hold up the collector.
        self.process = subprocess.Popen(self.arguments, stdout=self.output, env=self.environment,
                                        stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            self.said += line
            if line.startswith("clew: tracing "):
                self.armed_ms = (time.monotonic() - start) * 1000
                return self
        self.process.wait()
        raise RuntimeError(self.said.strip() or "clew ended before it was armed")

    def __exit__(self, *unused):
        self.process.send_signal(signal.SIGINT)
        self.said += self.process.communicate(timeout=120)[1]
        with self.output:
            self.output.seek(0)
            self._read_answer(self.output)
        if self.process.returncode != 0:
            raise RuntimeError(self.said.strip())

    def _read_answer(self, lines):
        for line in lines:
            row = json.loads(line)
            if "summary" in row:
                self.summary = row["summary"]
            else:
                self.rows.append(row)

    def lost(self):
        """All losses that the summary names, summed."""
        return sum(sum(self.summary.get(kind, {}).values()) for kind in ("missed", "dropped"))


class Dtrace:
    """A session of `clew dtrace`, from BEGIN's output to the end."""

    def __init__(self, program, arguments=(), quiet=True):
        self.arguments = [Clew.command, "dtrace", *(["-q"] if quiet else []), *arguments, "-n",
                          program + ' BEGIN { printf("armed\\n"); }']
        self.lines, self.said, self.armed_ms, self.ended_ms = [], "", 0.0, 0.0

    def __enter__(self):
        start = time.monotonic()
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if "armed" in line:
                self.armed_ms = (time.monotonic() - start) * 1000
                return self
        raise RuntimeError(self.process.communicate()[1].strip() or "clew dtrace ended early")

    def __exit__(self, *unused):
        start = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        output, self.said = self.process.communicate(timeout=120)
        self.ended_ms = (time.monotonic() - start) * 1000
        self.lines = output.splitlines()
        if self.process.returncode != 0:
            raise RuntimeError(self.said.strip())

    @property
    def matched(self):
        """Probes that the program named, without -q."""
        return sum(int(count) for count in re.findall(r"matched (\d+) probe", self.said))

    def total(self, pattern):
        """Sum of the aggregations' values in lines that match `pattern`."""
        values = [re.search(r"(\d+) *$", line) for line in self.lines if re.search(pattern, line)]
        return sum(int(value.group(1)) for value in values if value)

    def losses(self):
        """What the command says of drops and errors, or ''."""
        return " ".join(line for line in self.said.splitlines() if re.search("drop|error", line))


class Bpftrace:
    """The peer: kernel uprobes with a bpftrace program."""

    def __init__(self, program):
        # What a program prints appears only when all its probes are attached.
        self.text = program + ' interval:ms:50 { printf("armed\\n"); }'

    wanted = True  # bench/run --no-peer clears it.

    @classmethod
    def usable(cls):
        return cls.wanted and shutil.which("bpftrace") is not None and os.geteuid() == 0

    def __enter__(self):
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(["bpftrace", "-e", self.text], stdout=subprocess.PIPE,
                                        stderr=self.output, text=True)
        for line in self.process.stdout:
            if line.startswith("armed"):
                return self
        self.process.wait()
        self.output.seek(0)
        raise RuntimeError("bpftrace: " + self.output.read().strip())

    def __exit__(self, *unused):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=120)
        self.output.close()


class Redis:
    """A redis-server of our own on a socket in a temporary folder. `runner`: the words of a command
    that runs it as its child."""

    def __init__(self, runner=()):
        self.folder = tempfile.TemporaryDirectory(prefix="clew-bench-")
        self.socket = str(Path(self.folder.name) / "redis.sock")
        self.process = subprocess.Popen(
            [*runner, shutil.which("redis-server"), "--port", "0", "--unixsocket", self.socket,
             "--save", "", "--dir", self.folder.name], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while not self._answers():
            if time.monotonic() > deadline:
                raise RuntimeError("redis-server does not answer")
        self.pid = int(re.search(r"process_id:(\d+)", self._asked("info", "server"))[1])
        if os.cpu_count() > 1:  # The load and the server, each on its own CPU.
            os.sched_setaffinity(self.pid, {0})

    def _asked(self, *words):
        return subprocess.run(["redis-cli", "-s", self.socket, *words], capture_output=True,
                              text=True, check=False).stdout

    def _answers(self):
        return self._asked("ping").strip() == "PONG"

    def cpu_seconds(self):
        """What all threads of the server have spent so far, by the scheduler's own clock: ticks are
        too coarse for a second or two (clock_getcpuclockid(3))."""
        process_clock = (~self.pid << 3) | 2
        return time.clock_gettime(process_clock)

    def throughput(self, test, requests, pipeline=16):
        """Requests a second of redis-benchmark for one command."""
        command = ["redis-benchmark", "-s", self.socket, "-P", str(pipeline), "-n", str(requests),
                   "-t", test, "--csv"]
        if os.cpu_count() > 1:
            command = ["taskset", "-c", "1", *command]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(done.stdout.splitlines()[-1].split(",")[1].strip('"'))

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        os.kill(self.pid, signal.SIGTERM)
        self.process.wait()
        self.folder.cleanup()


def module_of(path):
    """The path of the file itself: Debian's redis-server is a link."""
    return os.path.realpath(shutil.which(path) or path)
