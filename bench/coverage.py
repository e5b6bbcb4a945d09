# SPDX-License-Identifier: Apache-2.0
"""Which share of a binary's functions can be traced without a trap: tools/site_survey, per file."""

import re
import subprocess
from pathlib import Path

from table import Row, progress
from tracing import module_of

FILES = ["redis-server", "/usr/lib/x86_64-linux-gnu/libc.so.6",
         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/sbin/nginx",
         "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0"]


def survey(program, path):
    """Parses what tools/site_survey prints: kind -> (taken, all), and refusals by reason."""
    done = subprocess.run([str(program), path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or "site_survey failed")
    shares, reasons = {}, {}
    for line in done.stdout.splitlines():
        share = re.match(r" +(entries|exits) +(\d+) of +(\d+)", line)
        reason = re.match(r" +([a-z][a-z0-9-]+) +(\d+)$", line)
        if share:
            shares[share.group(1)] = (int(share.group(2)), int(share.group(3)))
        elif reason:
            reasons[reason.group(1)] = int(reason.group(2)) + reasons.get(reason.group(1), 0)
    return shares, reasons


def coverage_rows(build):
    """Entries taken, and functions of which every exit is taken, in each of FILES and in all."""
    program = build / "tools" / "site_survey"
    rows, totals, all_reasons = [], {"entries": [0, 0], "exits": [0, 0]}, {}
    for name in FILES:
        path = module_of(name)
        progress(f"sites of {path}")
        shares, reasons = survey(program, path)
        for kind, (taken, total) in shares.items():
            totals[kind][0] += taken
            totals[kind][1] += total
            rows.append(share_row(f"{kind} of {Path(path).name}", (taken, total), None))
        for reason, count in reasons.items():
            all_reasons[reason] = all_reasons.get(reason, 0) + count
    rows.append(share_row("entries taken without a trap", totals["entries"], 99))
    rows.append(share_row("functions with all exits taken", totals["exits"], 93))
    rows[-1].note += "; refused: " + ", ".join(
        f"{reason} {count}" for reason, count in
        sorted(all_reasons.items(), key=lambda item: -item[1]))
    return rows


def share_row(measure, share, limit):
    row = Row(measure, f">= {limit} %" if limit else "", "%", limit, at_most=False)
    return row.set(100 * share[0] / share[1], note=f"{share[0]} of {share[1]}")
