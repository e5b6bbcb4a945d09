# SPDX-License-Identifier: Apache-2.0
"""The scripts of the DTrace paper."""

import re
import signal
import subprocess

from bench import (count_is, expect, lines_are, number, quantized, section, TIMEOUT_S,
                   total_quantized, usage)


def fig1_time_in_read(bench):
    output, errors = bench.around_victim("paper/fig1_time_in_read", "copies", 700, flags=["-q"])
    pid = usage(errors)["pid"]
    lines_are(output, rf"^{pid}/{pid} spent \d+ nsecs in read$", 700)


def fig2_follow_function(bench):
    victim = bench.start([str(bench.victim), "crossings", "3", "wait"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    victim.stdout.readline()
    started = 'BEGIN { printf("on %d %s", $1, $$2); }'
    process = bench.start(
        bench.command("paper/fig2_follow_function", ["-n", started],
                      [str(victim.pid), "system_calls"]),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = process.stdout.readline() and process.stdout.readline()  # the header, then BEGIN
    victim.communicate("\n", timeout=TIMEOUT_S)
    if first:
        process.send_signal(signal.SIGINT)
    output, _ = bench.finish(process)
    events = [(it[1], it[2], it[3]) for it in
              re.finditer(r"([-=]>|<[-=]) (\S+) +([UK])$", output, re.MULTILINE)]
    inner = [("->", "innermost", "U"), ("<-", "innermost", "U")]
    once = [("->", "system_calls", "U"), ("=>", "getppid", "K"), ("<=", "getppid", "K"),
            ("->", "middle", "U"), *inner, *inner, ("<-", "middle", "U"),
            ("<-", "system_calls", "U")]
    events = [it for it in events if it[1] != "syscall"]  # libc's
    expect(events == once * 3, "three calls with their crossings", output)


def fig4_failing_ioctl(bench):
    output, _ = bench.around_victim("paper/fig4_failing_ioctl", "ioctls", 1)
    lines_are(output, r"=> ioctl +d_victim: 0$", 1)
    lines_are(output, r"<= ioctl +d_victim: 25$", 1)


def sec5_associative_array(bench):
    process = bench.start(bench.command("paper/sec5_associative_array", ["-q"]),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, _ = bench.finish(process)
    expect(output.strip() == "456 0", "456 0", output)


def sec6_writes_by_program(bench):
    output, _ = bench.around_victim("paper/sec6_writes_by_program", "writes", 250)
    count_is(output, r"^  d_victim +(\d+)$", 501)  # and the victim's own line


def sec6_write_sizes(bench):
    output, _ = bench.around_victim("paper/sec6_write_sizes", "writes", 250, ["d_victim"])
    table = dict(quantized(section(output, r"\n +3 *\n")))
    expect(table.get(1) == 250 and table.get(2048) == 250, "250 of each size", output)


def sec6_write_stacks(bench):
    output, _ = bench.around_victim("paper/sec6_write_stacks", "writes", 250, ["d_victim", "3"])
    expect(total_quantized(output) == 500, "500 writes", output)


def sec7_opened_files(bench):
    output, _ = bench.around_victim("paper/sec7_opened_files", "opens", 60)
    count_is(output, r"^  /no/such/file/of/victim +(\d+)$", 60)


def sec9_1_cross_calls(bench):
    output, _ = bench.around_victim("paper/sec9_1_cross_calls", "interrupts", 100)
    got = number(output, r"^  d_victim +(\d+)$")
    # An idle CPU that polls is told without an interrupt, so how many there are is its matter.
    expect(got >= 1, "cross calls of 100 counters", output)


def sec9_2_by_system_call(bench):
    output, _ = bench.around_victim("paper/sec9_2_by_system_call", "interrupts", 100, ["d_victim"])
    got = number(output, r"^  perf_event_open +(\d+)$")
    expect(got >= 1, "cross calls of 100 counters", output)


def sec9_3_mapped_descriptors(bench):
    output, errors = bench.around_victim("paper/sec9_3_mapped_descriptors", "maps", 44,
                                         ["d_victim"], ["-q"])
    got = number(output, rf"^ +{usage(errors)['pid']} +-1 +(\d+)$")
    expect(44 <= got <= 46, "44 maps without a file", output)


def sec9_4_mapping_stacks(bench):
    output, _ = bench.around_victim("paper/sec9_4_mapping_stacks", "maps", 44, ["d_victim"])
    sums = [int(it) for it in re.findall(r"^ +(\d+)$", output, re.MULTILINE)]
    expect(44 in sums, "44 from one place", output)


def sec9_5_for_whom(bench):
    output, _ = bench.around_victim("paper/sec9_5_for_whom", "serves", 1, ["d_victim"])
    got = number(output, r"^  d_client +(\d+)$")
    expect(50 <= got <= 110, "a wakeup for each of 50 replies", output)


CASES = (fig1_time_in_read, fig2_follow_function, fig4_failing_ioctl, sec5_associative_array,
         sec6_writes_by_program, sec6_write_sizes, sec6_write_stacks, sec7_opened_files,
         sec9_1_cross_calls, sec9_2_by_system_call, sec9_3_mapped_descriptors,
         sec9_4_mapping_stacks, sec9_5_for_whom)
