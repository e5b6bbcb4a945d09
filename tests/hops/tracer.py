# SPDX-License-Identifier: Apache-2.0
"""`clew run` beside the test bed."""

import json
import signal
import subprocess
import tempfile

ARMED = "clew: tracing "
PATIENCE_S = 120


class Tracer:
    """Is armed when it is made, or has ended with an error. `pids` are processes of the bed, whose
    guardian ends the tracer before them."""

    def __init__(self, bed, command, query, pids, options):
        every_pid = [word for pid in pids for word in ("-p", str(pid))]
        self._output = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [command, "run", query, *every_pid, "--follow", "--json", *options],
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.PIPE, text=True)
        bed.guardian.watch(self._process.pid, signal.SIGINT)
        self._said = []
        for line in self._process.stderr:
            self._said.append(line)
            if line.startswith(ARMED):
                break

    @property
    def ended(self):
        return not (self._said and self._said[-1].startswith(ARMED))

    def finish(self):
        """(rows, summary, error)"""
        if not self.ended:
            self._process.send_signal(signal.SIGINT)
        rest = self._process.communicate(timeout=PATIENCE_S)[1]
        self._output.seek(0)
        rows, summary = [], {}
        for line in self._output:
            row = json.loads(line)
            if "summary" in row:
                summary = row["summary"]
            elif "behind" in row:
                rows.append(row)
        self._output.close()
        error = "".join(self._said) + rest if self._process.returncode else ""
        return rows, summary, error.strip()
