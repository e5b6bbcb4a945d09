# SPDX-License-Identifier: Apache-2.0
"""What a recording takes beside what its probes cost: the start of a command whose files were
recorded before, the time that a process stands for a snap, and the time to open one."""

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from table import Row, Sample, interleave

THREADS = 100
START_MS, STOOD_MS, OPEN_MS = 50, 20, 1000
STARTED = {"ls": ["/bin/ls", "/"], "python3": ["/usr/bin/python3", "-S", "-c", "pass"]}
STOOD = re.compile(r"and stood for ([0-9.]+) ms")


def wall_ms(command, **options):
    begin = time.monotonic()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, **options)
    return 1000 * (time.monotonic() - begin)


def start_rows(clew, repetitions):
    """The second recording of a program finds what the first one kept."""
    rows = []
    for name, command in STARTED.items():
        row = Row(f"recording, start of {name} whose files are known", f"<= {START_MS} ms", "ms",
                  START_MS)
        recorded = [clew, "record", "--", *command]
        wall_ms(recorded)
        found = interleave(3 * repetitions, {"plain": lambda command=command: wall_ms(command),
                                             "recorded": lambda recorded=recorded:
                                             wall_ms(recorded)}, row.measure)
        if any(isinstance(sample, str) for sample in found.values()):
            rows.append(row.fail(str(found)))
            continue
        more = found["recorded"].against(found["plain"], lambda mine, base: mine - base)
        rows.append(row.set(more.median, more.spread,
                            note=f"more than the {found['plain'].median:.1f} ms of the command"))
    return rows


def snap_rows(clew, programs, repetitions):
    stood_row = Row(f"recording, snap of {THREADS} threads: time they stand", f"<= {STOOD_MS} ms",
                    "ms", STOOD_MS)
    open_row = Row(f"recording, clew show of {THREADS} lobes", f"<= {OPEN_MS} ms", "ms", OPEN_MS)
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as place:
        log = Path(place) / "log"
        environment = {**os.environ, "CLEW_LOG": str(log)}
        crowd = subprocess.Popen([clew, "record", "-o", place, "--", str(programs / "crowd"),
                                  str(THREADS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, env=environment, text=True)
        try:
            if crowd.stdout.readline() != "ready\n":
                return [stood_row.fail("the program did not begin"), open_row]
            target = Path(f"/proc/{crowd.pid}/task/{crowd.pid}/children").read_text().split()[0]
            shown = []
            for _ in range(3 * repetitions):
                subprocess.run([clew, "snap", target, "-o", place], check=True,
                               stdout=subprocess.DEVNULL)
                snap = max(Path(place).glob("*.snap"), key=lambda one: one.stat().st_mtime_ns)
                shown.append(wall_ms([clew, "show", str(snap)]))
        finally:
            crowd.stdin.close()
            crowd.wait()
        stood = Sample(map(float, STOOD.findall(log.read_text())))
        opened = Sample(shown)
        stood_row.set(stood.median, stood.spread, note=f"{len(stood.values)} snaps")
        open_row.set(opened.median, opened.spread)
    return [stood_row, open_row]
