# SPDX-License-Identifier: Apache-2.0
"""What it costs sqlite3 to have its allocations counted by stack."""

import re
import shutil
import subprocess
from pathlib import Path

from reading import has_loads
from table import Row, Sample, interleave
from tracing import Bpftrace, Clew

QUERY = ('from e in entry("libc.so.6!malloc") group by e.ustack(10) '
         "select new { calls = count() }")
# Each statement allocates for its text, its program and its rows.
WORK = """
CREATE TABLE word (number INTEGER, text TEXT);
INSERT INTO word WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
  SELECT i, printf('%x-%d', i * 7919 % 100003, i) FROM n;
CREATE INDEX word_by_text ON word (text);
SELECT count(DISTINCT substr(text, 1, 3)), group_concat(DISTINCT number % 7) FROM word;
SELECT count(*) FROM word AS a JOIN word AS b ON a.text = replace(b.text, '-', '-');
DROP TABLE word;
"""


class Sqlite:
    """An sqlite3 that says what processor time each statement took."""

    def __init__(self):
        self.process = subprocess.Popen(["sqlite3", ":memory:"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(".timer on\n")

    def seconds(self):
        """Of the processor, for all of the work."""
        self.process.stdin.write(WORK + ".print end\n")
        self.process.stdin.flush()
        spent = 0.0
        for line in self.process.stdout:
            if line.strip() == "end":
                return spent
            found = re.match(r"Run Time: real \S+ user (\S+) sys (\S+)", line)
            spent += sum(map(float, found.groups())) if found else 0
        raise RuntimeError("sqlite3 has ended")

    def libc(self):
        lines = Path(f"/proc/{self.process.pid}/maps").read_text().splitlines()
        return next(line.split()[-1] for line in lines if line.endswith("/libc.so.6"))

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.stdin.close()
        self.process.wait()


def sqlite_row(repetitions):
    limit = 2 if has_loads() else None
    row = Row("sqlite3, malloc by a stack of ten frames", f"<= {limit} x" if limit else "", "x",
              limit)
    if shutil.which("sqlite3") is None:
        return row.fail("sqlite3 is not installed")
    calls = []
    with Sqlite() as sqlite:
        sqlite.seconds()  # Warm.

        def traced():
            with Clew(sqlite.process.pid, QUERY) as session:
                spent = sqlite.seconds()
            calls.append(sum(line["calls"] for line in session.rows))
            return spent

        def under_bpftrace():
            probe = f"uprobe:{sqlite.libc()}:malloc /pid == {sqlite.process.pid}/"
            with Bpftrace(probe + " { @[ustack(10)] = count(); }"):
                return sqlite.seconds()

        measures = {"untraced": sqlite.seconds, "clew": traced}
        if Bpftrace.usable():
            measures["bpftrace"] = under_bpftrace
        found = interleave(repetitions, measures, row.measure)
    base, other = found["untraced"], found.get("bpftrace")
    for key in ("untraced", "clew"):
        if isinstance(found[key], str):
            return row.fail(found[key])
    ratio = found["clew"].against(base, lambda mine, plain: mine / plain)
    peer = f"{other.median / base.median:.1f} x" if isinstance(other, Sample) else ""
    return row.set(ratio.median, ratio.spread, peer,
                   f"{max(calls):,} calls in {base.median:.2f} s")
