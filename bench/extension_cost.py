# SPDX-License-Identifier: Apache-2.0
"""How much slower C is in a probe than C by clang -O2: the programs of Fay's Table IV."""

import json
import subprocess

from table import Row, Sample, progress

# name -> (what it is, the required ratio, Fay's).
KERNELS = {
    "md5": ("MD5", 1.30, 2.84),
    "lld": ("logical disk", 1.5, 6.5),
    "hotlist": ("hot list", 1.3, 14.9),
}


def extension_rows(build):
    progress("extensions: three programs, twice each in turns")
    run = subprocess.run([str(build / "bench/extension_bench")], capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip() or "extension_bench failed")
    rows = []
    for line in run.stdout.splitlines():
        found = json.loads(line)
        what, required, fay = KERNELS[found["kernel"]]
        row = Row(f"extension: {what}, against clang -O2", f"<= {required}x", "x", required)
        ratios = Sample(found["ratios"])
        rows.append(row.set(ratios.median, ratios.spread,
                            note=f"{found['bytes']} bytes of code; Fay {fay}x"))
    return rows
