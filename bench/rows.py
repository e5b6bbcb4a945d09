# SPDX-License-Identifier: Apache-2.0
"""How many single events a session takes a second: the processor's time of the tracer, which has a
core for itself, while a program emits them in bursts that its ring can hold."""

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from probe_cost import EVENT, entry
from table import Row, Sample, interleave
from tracing import Clew, Program

BACK = (f"from e in {entry('empty_frame')} group by kind = e.arg1 % 100 "
        "select new { kind, n = count(), most = max(e.arg0), last = max(e.time) }")

# At most a quarter of a ring at once, some three million a second.
CALLS, BURSTS, REST_US = 8000, 120, 2500


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Session:
    """A session whose rows nobody takes while it runs, or that go into a file."""

    def __init__(self, pid, arguments, output):
        self.arguments = [Clew.command, "run", EVENT, "-p", str(pid), "--json", *arguments]
        self.output = output

    def __enter__(self):
        stdout = self.output or subprocess.PIPE
        self.process = subprocess.Popen(self.arguments, stdout=stdout, stderr=subprocess.PIPE,
                                        text=True)
        for line in self.process.stderr:
            if line.startswith("clew: tracing "):
                return self
        raise RuntimeError("clew ended before it was armed")

    def __exit__(self, *unused):
        self.process.send_signal(signal.SIGINT)
        answer, said = self.process.communicate(timeout=120)
        if self.process.returncode != 0:
            raise RuntimeError(said.strip())
        if self.output:
            self.output.seek(0)
            answer = self.output.read()
        summary = json.loads(answer.rstrip().rpartition("\n")[2])["summary"]
        self.dropped = sum(summary["dropped"].values())


def millions_per_second(program, arguments, output):
    """Of the events that were taken. A machine that is busy otherwise drops some."""
    with Session(program.pid, arguments, output) as session:
        before = processor_seconds(session.process.pid)
        answer = program.ask(f"time empty_frame 1 0 {BURSTS} {CALLS} {REST_US}")
        taken = processor_seconds(session.process.pid) - before
    events = answer["calls"] - session.dropped
    if events < answer["calls"] // 2:
        raise RuntimeError(f"{session.dropped} of {answer['calls']} events were dropped")
    return events / max(taken, 1e-3) / 1e6


def back_per_second(program, spill):
    """Millions: to the file, and from there through a query in groups; all that the file has."""
    forth = millions_per_second(program, ["--spill", str(spill)], None)
    begin = time.monotonic()
    answer = subprocess.run([Clew.command, "run", "--from", str(spill), BACK, "--json"],
                            capture_output=True, text=True, check=True).stdout
    seconds = time.monotonic() - begin
    events = sum(json.loads(line)["n"] for line in answer.splitlines()[:-1])
    return 1 / (1 / forth + seconds * 1e6 / events)


def rows_rows(folder, repetitions):
    """The rows of the table about single events."""
    with Program(folder / "hot_loop") as program, tempfile.TemporaryDirectory() as place:
        spill, answer = Path(place) / "spill", Path(place) / "answer"

        def to_file():
            with answer.open("w+") as output:
                return millions_per_second(program, [], output)

        def to_spill():
            return millions_per_second(program, ["--spill", str(spill)], None)

        def back():
            return back_per_second(program, spill)

        found = interleave(repetitions, {"json": to_file, "spill": to_spill, "back": back}, "rows")
    rows = []
    for name, what, limit in (("spill", "single events to --spill, of one core", 3),
                              ("back", "single events to disk and back through a query", 1),
                              ("json", "single events to a file as JSON, of one core", 1)):
        row = Row(what, f">= {limit} M/s", "M/s", limit, at_most=False)
        sample = found[name]
        rows.append(row.set(sample.median, sample.spread) if isinstance(sample, Sample)
                    else row.fail(sample))
    return rows
