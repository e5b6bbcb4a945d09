# SPDX-License-Identifier: Apache-2.0
"""Scripts about processes, the scheduler, memory, disks and the network."""

import re
import subprocess

from bench import (count_is, expect, lines_are, number, quantized, row, section, Skip,
                   total_quantized, usage)


def execs(bench):
    output, _ = bench.around("execs", "sh -c '/bin/echo d_first word; /bin/echo d_second; :'")
    lines_are(output, r"^ *\d+ +\d+ +0 /bin/echo d_first word *$", 1)
    lines_are(output, r"^ *\d+ +\d+ +0 /bin/echo d_second *$", 1)


def exec_failures(bench):
    output, _ = bench.around_victim("exec_failures", "misses", 6)
    count_is(output, r"^d_victim +2 /no/such/program +(\d+)$", 6)


def exits(bench):
    output, _ = bench.around_victim("exits", "forks", 4)
    lines_are(output, r"^ *\d+ d_victim +\d+ exited +3$", 4)
    output, _ = bench.around_victim("exits", "kills", 4)
    lines_are(output, r"^ *\d+ d_victim +\d+ killed +15$", 4)


def forks(bench):
    output, _ = bench.around_victim("forks", "forks", 30)
    count_is(output, r"^d_victim +\d+ +(\d+)$", 30)


def signals(bench):
    output, _ = bench.around_victim("signals", "kills", 4)
    lines_are(output, r"^d_victim +\d+ +15 d_victim +\d+$", 4)


def run_queue_latency(bench):
    output, _ = bench.around_victim("run_queue_latency", "sleeps", 40)
    got = total_quantized(section(output, "^  d_victim|\n  d_victim"))
    expect(40 <= got <= 80, "a wakeup for each of 40 sleeps", output)


def on_cpu(bench):
    output, errors = bench.around_victim("on_cpu", "sleeps", 40)
    times, _, total = map(int, row(output, r"^d_victim +\d+ +\d+ +(\d+) +(\d+) +(\d+)$").groups())
    cpu_us = usage(errors)["cpu_us"]
    expect(40 <= times <= 120, "on a CPU after each of 40 sleeps", output)
    expect(total <= 2 * cpu_us + 20000, f"about {cpu_us} us", output)


def off_cpu(bench):
    output, _ = bench.around_victim("off_cpu", "sleeps", 40)
    waits = [int(it) for it in re.findall(r"^ +(\d+)$", output, re.MULTILINE)]
    expect(waits and max(waits) >= 80000, "80 ms of sleep", output)


def context_switches(bench):
    output, errors = bench.around_victim("context_switches", "sleeps", 60)
    slept = number(output, r"^d_victim +\d+ +(\d+) +\d+$")
    truth = usage(errors)["slept"]
    expect(60 <= slept <= truth + 5, f"60 to {truth} sleeps, as getrusage(2) says", output)


def wakeups(bench):
    output, _ = bench.around_victim("wakeups", "serves", 1)
    got = number(output, r"^d_victim +d_client +(\d+)$")
    expect(50 <= got <= 110, "a wakeup for each of 50 replies", output)


def futex_waits(bench):
    output, _ = bench.around_victim("futex_waits", "waits", 20)
    waits, total = map(int, row(output, r"^\S+ +(20) +(\d+)$").groups())
    expect(waits == 20 and total >= 20000, "20 waits of 1 ms", output)


def page_faults(bench):
    output, errors = bench.around_victim("page_faults", "faults", 300)
    faults, truth = number(output, r"^d_victim +\d+ +(\d+)$"), usage(errors)["faults"]
    expect(300 <= faults <= truth + 40, f"300 to {truth} faults, as getrusage(2) says", output)


def memory_maps(bench):
    output, _ = bench.around_victim("memory_maps", "maps", 15)
    lines_are(output, r"^ +[0-9a-f]{12} +12288 +1 *$", 15)


def own_allocator(bench):
    """A program with an allocator that is part of it, as jemalloc may be."""
    source = bench.folder / "own.c"
    source.write_text("""
#include <stddef.h>
#include <sys/mman.h>
__attribute__((noinline)) void *je_malloc(size_t size)
{
  return mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, (long)(size & 0));
}
int main(void) { for (int i = 0; i < 50; ++i) *(char *)je_malloc(1000) = 1; return 0; }
""")
    subprocess.run(["cc", "-O1", "-o", str(bench.folder / "own"), str(source)], check=True)
    return str(bench.folder / "own")


def heap_growth(bench):
    output, _ = bench.around_victim("heap_growth", "grows", 10)
    sums = [int(it) for it in re.findall(r"^ +(\d+)$", output, re.MULTILINE)]
    expect(sum(sums) >= 10 * 65536, "655360 bytes", output)
    output, _ = bench.around("heap_growth", own_allocator(bench))
    expect(str(50 * 4096) in output, "204800 bytes by mmap()", output)
    output, _ = bench.around("heap_growth", "/bin/sleep 0")
    expect("\n" in output.strip(), "growth, or that there was none", output)


def malloc_sizes(bench):
    output, _ = bench.around_victim("malloc_sizes", "allocations", 400)
    table = dict(quantized(output))
    expect(400 <= table.get(65536, 0) <= 402, "400 of 70000 bytes", output)


def malloc_samples(bench):
    output, _ = bench.around_victim("malloc_samples", "allocations", 400)
    counts = [int(it) for it in re.findall(r"^ *\d+ +70000 +(\d+)$", output, re.MULTILINE)]
    expect(counts == [1 << it for it in range(9)], "the 1st to the 256th of 70000 bytes", output)


def malloc_stacks(bench):
    output, _ = bench.around_victim("malloc_stacks", "allocations", 400)
    sums = [int(it) for it in re.findall(r"^ +(\d+)$", output, re.MULTILINE)]
    expect(400 * 70000 in sums, "28000000 bytes from one place", output)
    output, _ = bench.around("malloc_stacks", own_allocator(bench))
    expect("je_malloc" in output and str(50 * 1000) in output, "50000 bytes", output)


def direct_writes(bench, count):
    dd = bench.copy_of("dd")
    return (f"{dd} if=/dev/zero of={bench.folder}/written bs=64k count={count} oflag=direct "
            "conv=notrunc status=none")


def needs_disk(bench):
    probe = subprocess.run(["dd", "if=/dev/zero", f"of={bench.folder}/written", "bs=64k", "count=1",
                            "oflag=direct", "status=none"], check=False, capture_output=True)
    kind = subprocess.run(["stat", "-f", "-c", "%T", str(bench.folder)], check=False, text=True,
                          capture_output=True).stdout.strip()
    if probe.returncode != 0 or kind in ("tmpfs", "overlayfs"):
        raise Skip(f"no disk below {bench.folder} ({kind})")


def block_sizes(bench):
    needs_disk(bench)
    output, _ = bench.around("block_sizes", direct_writes(bench, 24))
    table = dict(quantized(section(output, r"\S+ +d_victim +W")))
    expect(table.get(65536) == 24, "24 writes of 64 kB", output)


def block_latency(bench):
    needs_disk(bench)
    output, _ = bench.around("block_latency", direct_writes(bench, 24))
    expect(total_quantized(output) >= 24, "24 requests", output)


CONNECTS = """
import socket
import sys
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
for _ in range(3):
    client = socket.create_connection(("127.0.0.1", port))
    server.accept()[0].close()
    client.close()
server.close()
try:
    socket.create_connection(("127.0.0.1", port))
except ConnectionRefusedError:
    print("port", port, file=sys.stderr)
"""


def around_connects(bench, script):
    program = bench.folder / "connects.py"
    program.write_text(CONNECTS)
    output, errors = bench.around(script, f"{bench.copy_of('/usr/bin/python3')} {program}")
    return output, number(errors, r"^port (\d+)$")


def tcp_connects(bench):
    output, port = around_connects(bench, "tcp_connects")
    lines_are(output, rf"^ *\d+ d_victim +127\.0\.0\.1 +{port} ok +\d+$", 3)
    lines_are(output, rf"^ *\d+ d_victim +127\.0\.0\.1 +{port} refused +\d+$", 1)


def tcp_accepts(bench):
    output, _ = around_connects(bench, "tcp_accepts")
    lines_are(output, r"^ *\d+ d_victim +\d+ 127\.0\.0\.1 +\d+$", 3)


def tcp_states(bench):
    output, port = around_connects(bench, "tcp_states")
    count_is(output, rf"^SYN_RECV +ESTABLISHED +{port} +(\d+)$", 3)
    count_is(output, rf"^CLOSE +LISTEN +{port} +(\d+)$", 1)


CASES = (execs, exec_failures, exits, forks, signals, run_queue_latency, on_cpu, off_cpu,
         context_switches, wakeups, futex_waits, page_faults, memory_maps, heap_growth,
         malloc_sizes, malloc_samples, malloc_stacks, block_sizes, block_latency, tcp_connects,
         tcp_accepts, tcp_states)
