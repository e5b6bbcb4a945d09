# SPDX-License-Identifier: Apache-2.0
"""What it costs programs to be recorded: the processor's time of the command beside the same
command as it is, without what it took to make the copies; and what is left of a server's
throughput. The peer is uftrace, which traces functions alone, and of unmodified programs those that
have symbols."""

import math
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from copies import ENVIRONMENT, SCALE, Load, Timed
from table import Row, Sample, interleave
from tracing import Redis
from workloads import fill, workloads

GOAL, GOAL_OF_ONE, GOAL_OF_SERVER = 1.25, 1.6, 85
REFUSED = "[unwinding]"


class Recorded(Timed):
    """One workload; runners are tools that run it as their child."""

    def __init__(self, workload, clew, inputs, place):
        super().__init__(workload, None, inputs, place)
        self.clew, self.data = clew, f"{place}.uftrace"

    def seconds_under(self, runner):
        """User and system time of the runner's children, which are the workload."""
        stdin = (f"{self.folder}/{self.workload.stdin}" if self.workload.stdin else os.devnull)
        with (open(stdin, "rb") as given, tempfile.TemporaryFile() as output,
              tempfile.TemporaryFile() as said):
            process = subprocess.Popen([*runner, *self.workload.command], cwd=self.folder,
                                       stdin=given, stdout=output, stderr=said, env=ENVIRONMENT)
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            process.wait()
            said.seek(0)
            errors = said.read().decode(errors="replace")
            if REFUSED in errors:
                raise RuntimeError(errors.strip())
            output.seek(0)
            self.compare(output.read() if self.workload.stdout else b"", process.returncode)
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def recorded(self):
        return self.seconds_under([self.clew, "record", "--"])

    def by_uftrace(self):
        try:
            return self.seconds_under(["uftrace", "record", "--force", "--no-libcall", "-P", ".",
                                       "-d", self.data])
        finally:
            shutil.rmtree(self.data, ignore_errors=True)

    def row(self, repetitions):
        row = Row(f"recording, {self.workload.name}: CPU time", f"<= {GOAL_OF_ONE} x", "x",
                  GOAL_OF_ONE)
        measures = {"plain": self.seconds, "recorded": self.recorded}
        if shutil.which("uftrace"):
            measures["uftrace"] = self.by_uftrace
        found = interleave(repetitions, measures, self.workload.name)
        plain, mine, other = (found.get(name, "") for name in ("plain", "recorded", "uftrace"))
        for sample in (plain, mine):
            if isinstance(sample, str):
                return row.fail(sample)
        ratio = mine.against(plain, lambda value, base: value / base)
        note = f"plain {plain.median:.2f} s, same output; uftrace "
        if isinstance(other, Sample):
            note += f"{other.against(plain, lambda value, base: value / base).median:.2f} x"
        else:
            note += other or "is not installed"
        return row.set(ratio.median, ratio.spread, note=note)


def workload_rows(clew, repetitions, quick):
    rows = []
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as place:
        inputs = f"{place}/inputs"
        os.mkdir(inputs)
        fill(inputs, SCALE)
        for workload in workloads():
            if workload.command is None or (quick and workload.large):
                continue
            rows.append(Recorded(workload, clew, inputs, f"{place}/{len(rows)}").row(repetitions))
    ratios = [row.value for row in rows if row.value is not None]
    mean = Row("recording, all: CPU time, geometric mean", f"<= {GOAL} x", "x", GOAL)
    if not ratios:
        return [*rows, mean.fail("no workload")]
    value = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return [*rows, mean.set(value, (min(ratios), max(ratios)), note=f"{len(ratios)} workloads")]


def server_rows(clew, repetitions, requests):
    rows = []
    with Redis() as plain, Redis([clew, "record", "--"]) as recorded:
        for test in ("set", "get"):
            row = Row(f"recording, redis {test.upper()} -P 16: throughput left",
                      f">= {GOAL_OF_SERVER} %", "%", GOAL_OF_SERVER, at_most=False)
            loads = {"plain": Load(plain, requests), "recorded": Load(recorded, requests)}
            found = interleave(repetitions, {name: lambda load=load: load.measure(test)
                                             for name, load in loads.items()}, row.measure)
            if any(isinstance(sample, str) for sample in found.values()):
                rows.append(row.fail(str(found)))
                continue
            left = found["recorded"].against(found["plain"], lambda mine, base: 100 * mine / base)
            cpu = Sample(loads["recorded"].cpu).median / Sample(loads["plain"].cpu).median
            rows.append(row.set(left.median, left.spread,
                                note=f"plain {found['plain'].median / 1e6:.2f} M/s, "
                                     f"server CPU a request {cpu:.2f} x"))
    return rows


def recording_rows(clew, repetitions, requests, quick):
    return (workload_rows(clew, repetitions, quick)
            + server_rows(clew, repetitions, requests))
