# SPDX-License-Identifier: Apache-2.0
"""What it costs programs to be recorded: the processor's time of the command beside the same
command as it is, without what it took to make the copies; and what is left of a server's
throughput. The peer is uftrace, which traces functions alone, and of unmodified programs those that
have symbols."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from copies import ENVIRONMENT, Timed, server_rows, workload_rows
from table import Row, Sample, interleave

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


def recording_rows(clew, repetitions, requests, quick):
    clew = str(Path(clew).resolve())  # Workloads have folders of their own.

    def recorded(workload, inputs, place):
        return Recorded(workload, clew, inputs, place)

    return (workload_rows("recording", GOAL, recorded, repetitions, quick)
            + server_rows("recording", GOAL_OF_SERVER, [clew, "record", "--"], repetitions,
                          requests))
