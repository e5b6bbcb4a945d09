# SPDX-License-Identifier: Apache-2.0
"""Scripts about files and system calls."""

import re
import shutil
import subprocess

from bench import count_is, expect, lines_are, quantized, row, section, Skip, usage


def opens(bench):
    output, _ = bench.around_victim("opens", "opens", 20)
    lines_are(output, r"^ *\d+ d_victim +3 /dev/null$", 20)
    lines_are(output, r"^ *\d+ d_victim +-2 /no/such/file/of/victim$", 20)


def failed_opens(bench):
    output, _ = bench.around_victim("failed_opens", "opens", 20)
    lines_are(output, r"^d_victim\[\d+\] opens /no/such/file/of/victim$", 20)
    lines_are(output, r"^    flags 0x0, errno 2 after \d+ ns$", 20)
    lines_are(output, r"/dev/null", 0)


def syscalls(bench):
    output, _ = bench.around_victim("syscalls", "fails", 321)
    count_is(output, r"^  close +(\d+)$", 321)
    count_is(output, r"^  exit_group +(\d+)$", 1)


def strace_total(bench, command):
    """How many calls strace sees, without the execve(2) that begins the program and belongs to
    another name; nor does strace count exit_group(2), which does not return."""
    if not shutil.which("strace"):
        raise Skip("no strace")
    log = bench.folder / "strace.out"
    subprocess.run(["strace", "-c", "-o", str(log), *command], check=True, capture_output=True,
                   env=bench.environment)
    rows = [line.split() for line in log.read_text().splitlines()]
    return sum(int(it[3]) for it in rows if len(it) >= 5 and it[3].isdigit() and
               it[-1] not in ("total", "execve"))


def syscalls_by_program(bench):
    command = [bench.copy_of("dd"), "if=/dev/zero", "of=/dev/null", "bs=1", "count=500",
               "status=none"]
    output, _ = bench.around("syscalls_by_program", f"sh -c '{' '.join(command)}; :'")
    count_is(output, r"^  d_victim +(\d+)$", 1 + strace_total(bench, command))


def syscall_rate(bench):
    # The table has the ten busiest programs of the machine.
    output, errors = bench.around("syscall_rate", f"{bench.victim} hurries 250")
    expect(re.search(r"^\d{4} \w{3} .\d \d\d:\d\d:\d\d$", output, re.MULTILINE), "the time", output)
    rates = [int(it) for it in re.findall(r"^d_victim +(\d+)$", output, re.MULTILINE)]
    made = usage(errors)["calls"]
    expect(rates and made / 10 < sum(rates) < made + 500, f"rates of {made} calls", output)


def syscall_latency(bench):
    output, _ = bench.around_victim("syscall_latency", "sleeps", 30)
    last = row(output, r"^clock_nanosleep +(\d+) +(\d+) +(\d+) +(\d+)$")
    calls, average, longest, total = map(int, last.groups())
    expect(calls == 30 and average >= 2000000 and longest >= average and total >= 60000,
           "30 sleeps of 2 ms", output)


def syscall_errors(bench):
    output, _ = bench.around_victim("syscall_errors", "fails", 123)
    count_is(output, r"^d_victim +close +9 +(\d+)$", 123)


def rw_sizes(bench):
    output, _ = bench.around_victim("rw_sizes", "writes", 50)
    table = dict(quantized(section(output, "d_victim +write")))
    expect(table.get(1) == 50 and table.get(2048) == 50, "50 of 1 byte, 50 of 3000", output)


def small_writes(bench):
    output, _ = bench.around_victim("small_writes", "writes", 40, ["16"])
    expect(re.search(r"^ +3 *\n(.*\n)+? +40$", output, re.MULTILINE), "40 at descriptor 3", output)


def bytes_by_file(bench):
    output, _ = bench.around_victim("bytes_by_file", "copies", 30)
    count_is(output, r"^d_victim +r +3 /dev/zero +(\d+)$", 30000)
    count_is(output, r"^d_victim +w +4 /dev/null +(\d+)$", 30000)


def deletions(bench):
    output, _ = bench.around_victim("deletions", "removes", 12)
    lines_are(output, r"^ *\d+ d_victim +unlink +0 removed$", 12)


def fsyncs(bench):
    output, _ = bench.around_victim("fsyncs", "syncs", 5)
    lines_are(output, r"^ *\d+ d_victim +fsync +\d+ " + str(bench.folder / "synced") + "$", 5)


def said(bench):
    output, _ = bench.around_victim("said", "says", 7)
    lines_are(output, "^spoken$", 7)


def idle_polls(bench):
    output, _ = bench.around_victim("idle_polls", "polls", 25)
    polls, idle = map(int, row(output, r"^d_victim +\d+ poll +(\d+) +(\d+)$").groups())
    expect(polls == 25 and idle == 25, "25 idle polls", output)


def sleeps(bench):
    output, _ = bench.around_victim("sleeps", "sleeps", 25)
    table = quantized(section(output, "d_victim +clock_nanosleep"))
    expect(sum(count for _, count in table) == 25, "25 sleeps", output)
    expect(not any(count for value, count in table if value < 1024), "none below 2 ms", output)


CASES = (opens, failed_opens, syscalls, syscalls_by_program, syscall_rate, syscall_latency,
         syscall_errors, rw_sizes, small_writes, bytes_by_file, deletions, fsyncs, said,
         idle_polls, sleeps)
