# SPDX-License-Identifier: Apache-2.0
"""What a cluster costs its root: queries on thousands of nodes, intervals of thousands of keys."""

import json
import subprocess

from table import Row, Sample, progress

INSTALL_SECONDS = 1.0
ROWS_A_SECOND = 100_000


def cluster_rows(build):
    progress("cluster: 10 to 10,000 nodes without processes")
    run = subprocess.run([str(build / "bench/cluster_bench")], capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip() or "cluster_bench failed")
    rows = []
    for line in run.stdout.splitlines():
        found = json.loads(line)
        rows += install_rows(found) if found["what"] == "install" else [merge_row(found)]
    return rows


def install_rows(found):
    limit = INSTALL_SECONDS if found["nodes"] == 10_000 else None
    rows = []
    for what in ("armed", "ended"):
        seconds = Sample(found[what])
        row = Row(f"cluster: query {what} on {found['nodes']:,} nodes", "<= 1 s" if limit else "",
                  "s", limit)
        rows.append(row.set(seconds.median, seconds.spread,
                            note="1 % dead, 1 % slow by up to 0.5 s"))
    return rows


def merge_row(found):
    rates = Sample(found["rates"])
    row = Row(f"cluster: {found['nodes']:,} nodes of {found['keys']:,} keys, merged and "
              "told", f">= {ROWS_A_SECOND:,}", "rows/s", ROWS_A_SECOND,
              at_most=False)
    return row.set(rates.median, rates.spread)
