# SPDX-License-Identifier: Apache-2.0
"""How the scripts of examples/d are started beside a workload, and how their output is read."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path


HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples" / "d"
TIMEOUT_S = 30
SKIPPED = 77
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


class Skip(Exception):
    """What a case needs is not on this machine."""


class Wrong(Exception):
    """The script printed something else than it should have."""


class Bench:
    """The folder of the run, and how to start scripts and workloads in it."""

    def __init__(self, clew, folder):
        self.clew = clew
        self.folder = Path(folder)
        self.name = "d_victim"
        self.victim = self.folder / self.name
        self.environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}

    def build_victim(self):
        compiler = os.environ.get("CXX", "c++")
        subprocess.run([compiler, "-std=c++20", "-O1", "-g", "-fno-omit-frame-pointer",
                        "-pthread", "-o", str(self.victim),
                        str(HERE / "victims" / "victim.cc")], check=True)

    def own(self, folder):
        """A bench whose victim has a name of its own, as other runs may be on the machine."""
        bench = Bench(self.clew, folder)
        bench.name = "d_" + os.urandom(3).hex()
        bench.victim = bench.folder / bench.name
        os.link(self.victim, bench.victim)
        return bench

    def copy_of(self, program):
        """A program under the victim's name."""
        self.victim.unlink()
        shutil.copy(shutil.which(program), self.victim)
        return str(self.victim)

    def command(self, script, flags=(), arguments=()):
        return [self.clew, "dtrace", *flags, "-s", str(EXAMPLES / f"{script}.d"),
                *(self.name if it == "d_victim" else it for it in arguments)]

    def start(self, command, **kinds):
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, text=True,
                                errors="replace", **kinds)

    def around(self, script, workload, arguments=(), flags=()):
        """The script's output while it runs `workload` as its command."""
        process = self.start(self.command(script, [*flags, "-c", workload], arguments),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        return self.finish(process)

    def around_victim(self, script, verb, count, arguments=(), flags=()):
        return self.around(script, f"{self.victim} {verb} {count}", arguments, flags)

    def beside(self, script, pid, work, arguments=()):
        """The script's output about process `pid`, while `work` is done; ends by Ctrl-C."""
        process = self.start(self.command(script, ["-p", str(pid)], arguments),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        first = process.stdout.readline()
        if first:
            work()
            process.send_signal(signal.SIGINT)
        output, errors = self.finish(process)
        return first.replace(self.name, "d_victim") + output, errors

    def finish(self, process):
        """What the script printed; the victim is called d_victim there."""
        try:
            output, errors = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Wrong(f"does not end within {TIMEOUT_S} s") from None
        if process.returncode != 0:
            raise Wrong(f"exit status {process.returncode}: {errors.strip()}")
        return output.replace(self.name, "d_victim"), errors


def expect(condition, what, output):
    if not condition:
        raise Wrong(f"expected {what}; printed:\n{output}")


def row(output, pattern):
    """The match of the only line that fits `pattern`."""
    found = [match for line in output.splitlines() if (match := re.search(pattern, line))]
    expect(len(found) == 1, f"one line like {pattern!r}, not {len(found)}", output)
    return found[0]


def number(output, pattern):
    return int(row(output, pattern)[1])


def count_is(output, pattern, wanted):
    got = number(output, pattern)
    expect(got == wanted, f"{wanted} at {pattern!r}, not {got}", output)


def lines_are(output, pattern, wanted):
    got = sum(1 for line in output.splitlines() if re.search(pattern, line))
    expect(got == wanted, f"{wanted} lines like {pattern!r}, not {got}", output)


def quantized(output):
    """The rows of the quantize tables: (value, count)."""
    return [(int(value), int(count))
            for value, count in re.findall(r"^\s*(-?\d+) \|[@ ]*?\s+(\d+)\s*$", output,
                                           re.MULTILINE)]


def total_quantized(output):
    return sum(count for _, count in quantized(output))


def section(output, heading):
    """The quantize table that stands under the line that fits `heading`."""
    found = re.search(heading + r"[^\n]*\n(.*?)(\n\n|\Z)", output, re.DOTALL)
    expect(found, f"a table under {heading!r}", output)
    return found[1]


def usage(errors):
    """What the victim says of itself: {"pid": ..., "slept": ..., "faults": ..., ...}."""
    line = re.search(r"victim (\d+): slept (\d+) preempted (\d+) faults (\d+) cpu_us (\d+) "
                     r"calls (\d+)", errors)
    expect(line, "the victim's own line", errors)
    names = ("pid", "slept", "preempted", "faults", "cpu_us", "calls")
    return dict(zip(names, map(int, line.groups())))
