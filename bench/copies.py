# SPDX-License-Identifier: Apache-2.0
"""What it costs programs that their functions run from copies: the processor's time of the command,
without what it took to make the copies, beside the same command as it is."""

import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from table import Row, Sample, interleave
from tracing import Redis

TESTS = Path(__file__).resolve().parent.parent / "tests/copies"
sys.path.insert(0, str(TESTS))
from workloads import copy_of, fill, workloads  # noqa: E402  # pylint: disable=import-error

SCALE = 16
GOAL, GOAL_OF_ONE, GOAL_OF_SERVER = 1.03, 1.05, 94
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONHASHSEED": "0",
               "HOME": "/nonexistent"}


class Timed:
    """One workload in a folder of its own; its outputs must always be the same."""

    def __init__(self, workload, runner, inputs, place):
        self.workload, self.runner = workload, runner
        self.folder, self.report = copy_of(inputs, place), f"{place}.report"
        self.outputs = None

    def seconds(self, prefix=()):
        """User and system time of the command and what it waited for."""
        stdin = (f"{self.folder}/{self.workload.stdin}" if self.workload.stdin else os.devnull)
        with open(stdin, "rb") as given, tempfile.TemporaryFile() as output:
            process = subprocess.Popen([*prefix, *self.workload.command], cwd=self.folder,
                                       stdin=given, stdout=output, stderr=subprocess.DEVNULL,
                                       env=ENVIRONMENT)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            self.compare(output.read() if self.workload.stdout else b"", process.returncode)
        return usage.ru_utime + usage.ru_stime

    def compare(self, output, status):
        files = {it.name: it.read_bytes() for it in Path(self.folder).iterdir()}
        if self.outputs is None:
            self.outputs = output, status, files
        elif self.outputs != (output, status, files):
            raise RuntimeError(f"{self.workload.name}: another output")

    def on_copies(self):
        self.seconds([self.runner, "--report", self.report])
        found = re.search(r"seconds user=([\d.]+) system=([\d.]+)", Path(self.report).read_text())
        return float(found[1]) + float(found[2])

    def row(self, repetitions):
        row = Row(f"copies, {self.workload.name}: CPU time", f"<= {GOAL_OF_ONE} x", "x",
                  GOAL_OF_ONE)
        found = interleave(repetitions, {"plain": self.seconds, "copies": self.on_copies},
                           self.workload.name)
        for sample in found.values():
            if isinstance(sample, str):
                return row.fail(sample)
        ratio = found["copies"].against(found["plain"], lambda mine, base: mine / base)
        return row.set(ratio.median, ratio.spread,
                       note=f"plain {found['plain'].median:.2f} s, same output")


def workload_rows(what, goal, timed, repetitions, quick):
    """timed: of a workload, the folder of its inputs and a place: has a row()."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as place:
        inputs = f"{place}/inputs"
        os.mkdir(inputs)
        fill(inputs, SCALE)
        for workload in workloads():
            if workload.command is None or (quick and workload.large):
                continue
            rows.append(timed(workload, inputs, f"{place}/{len(rows)}").row(repetitions))
    ratios = [row.value for row in rows if row.value is not None]
    mean = Row(f"{what}, all: CPU time, geometric mean", f"<= {goal} x", "x", goal)
    if not ratios:
        return [*rows, mean.fail("no workload")]
    value = math.exp(sum(map(math.log, ratios)) / len(ratios))
    mean.set(value, (min(ratios), max(ratios)), note=f"{len(ratios)} workloads: {value:.4f}")
    return [*rows, mean]


class Load:
    """Throughput of one server, and its own time a request."""

    def __init__(self, redis, requests):
        self.redis, self.requests, self.cpu = redis, requests, []

    def measure(self, test):
        before = self.redis.cpu_seconds()
        value = self.redis.throughput(test, self.requests)
        self.cpu.append((self.redis.cpu_seconds() - before) / self.requests)
        return value


def server_rows(what, goal, runner, repetitions, requests):
    """runner: the words in front of the server's command."""
    rows = []
    with Redis() as plain, Redis(runner) as other:
        for test in ("set", "get"):
            row = Row(f"{what}, redis {test.upper()} -P 16: throughput left", f">= {goal} %", "%",
                      goal, at_most=False)
            loads = {"plain": Load(plain, requests), what: Load(other, requests)}
            found = interleave(repetitions, {name: lambda load=load: load.measure(test)
                                             for name, load in loads.items()}, row.measure)
            if any(isinstance(sample, str) for sample in found.values()):
                rows.append(row.fail(str(found)))
                continue
            left = found[what].against(found["plain"], lambda mine, base: 100 * mine / base)
            cpu = Sample(loads[what].cpu).median / Sample(loads["plain"].cpu).median
            rows.append(row.set(left.median, left.spread,
                                note=f"plain {found['plain'].median / 1e6:.2f} M/s, "
                                     f"server CPU a request {cpu:.2f} x"))
    return rows


def copies_rows(build, repetitions, requests, quick):
    runner = str((build / "tests/copies/run_on_copies").resolve())

    def timed(workload, inputs, place):
        return Timed(workload, runner, inputs, place)

    return (workload_rows("copies", GOAL, timed, repetitions, quick)
            + server_rows("copies", GOAL_OF_SERVER, [runner], repetitions, requests))
