# SPDX-License-Identifier: Apache-2.0
"""How many instructions the verifier judges in a second."""

import json
import subprocess

from table import Row, Sample, progress

REQUIRED = 200_000


def verifier_rows(build):
    progress("verifier: bodies of random programs")
    run = subprocess.run([str(build / "bench/verify_bench")], capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip() or "verify_bench failed")
    rows = []
    for line in run.stdout.splitlines():
        found = json.loads(line)
        rates = Sample(found["rates"])
        row = Row(f"verifier: {found['what']}, instructions a second", f">= {REQUIRED:,}", "",
                  REQUIRED, at_most=False)
        rows.append(row.set(rates.median, rates.spread,
                            note=f"{found['bodies']} bodies, {found['instructions']:,} "
                                 "instructions"))
    return rows
