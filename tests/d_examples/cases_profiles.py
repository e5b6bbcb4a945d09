# SPDX-License-Identifier: Apache-2.0
"""Scripts that look at regular intervals."""

import os
import re
import subprocess
import time
from pathlib import Path

from bench import expect, number, TIMEOUT_S


def spin(bench, script):
    """The script's output beside a victim that burns a CPU for about half a second."""
    victim = bench.start([str(bench.victim), "spins", "1", "wait"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    victim.stdout.readline()

    def work():
        victim.stdin.write("\n")
        victim.stdin.flush()
        while cpu_seconds(victim.pid) < 0.3:
            time.sleep(0.02)  # lets the CPU time pass; nothing is synchronised by it

    try:
        return bench.beside(script, victim.pid, work)[0]
    finally:
        victim.communicate("\n", timeout=TIMEOUT_S)


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def hot_programs(bench):
    output = spin(bench, "hot_programs")
    got = number(output, r"^d_victim +\d+ +(\d+)$")
    expect(200 <= got <= 600, "about 300 samples", output)


def hot_user_stacks(bench):
    output = spin(bench, "hot_user_stacks")
    expect("d_victim`burn" in output, "d_victim`burn", output)


def hot_functions(bench):
    output = spin(bench, "hot_functions")
    got = number(output, r"^  d_victim`burn +(\d+)$")
    expect(200 <= got <= 600, "about 300 samples", output)


def hot_kernel_stacks(bench):
    dd = bench.copy_of("dd")
    output, _ = bench.around("hot_kernel_stacks",
                             f"{dd} if=/dev/zero of=/dev/null bs=1 count=400000 status=none")
    expect(re.search(r"^  d_victim *\n( +vmlinux`\S+\n)+ +\d+$", output, re.MULTILINE),
           "a kernel stack of dd", output)


def softirqs(bench):
    output, _ = bench.around_victim("softirqs", "sleeps", 50)
    expect(re.search(r"^(timer|sched|rcu|hrtimer) +\d+ +\d+$", output, re.MULTILINE),
           "timers", output)


CASES = (hot_programs, hot_user_stacks, hot_functions, hot_kernel_stacks, softirqs)
