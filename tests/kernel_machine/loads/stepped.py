# SPDX-License-Identifier: Apache-2.0
"""The debugger and strace of stepped.sh."""

import json
import subprocess

from pointers import armed, end, tools

STEPS = 150


def tell(victim, command):
    victim.process.stdin.write(command + "\n")
    victim.process.stdin.flush()


def vdso_range(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        places = next(line.split()[0] for line in maps if line.rstrip().endswith("[vdso]"))
    return [int(place, 16) for place in places.split("-")]


def step(pid):
    """Where each of the steps ended."""
    commands = ["set pagination off", "set confirm off"]
    commands += ["stepi", 'printf "at %p\\n", $pc'] * STEPS
    words = [word for command in commands for word in ("-ex", command)]
    done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), *words], capture_output=True,
                          text=True, check=True, stdin=subprocess.DEVNULL)
    lines = [line for line in done.stdout.splitlines() if line.startswith("at 0x")]
    return [int(line.split()[1], 16) for line in lines]


def main():
    victim = tools.Victim("pointers")
    pid = victim.process.pid
    begin, last = vdso_range(pid)
    tracer = armed(pid)
    tell(victim, "steadily")
    places = step(pid)
    if len(places) == STEPS and any(begin <= place < last for place in places):
        print("gdb stepped, also in the vDSO")
    subprocess.run(["timeout", "-s", "INT", "2", "strace", "-o", "/tmp/strace.out", "-p", str(pid)],
                   capture_output=True, check=False)
    print("strace came and went")
    tell(victim, "run 5")
    victim.read_to("end")
    result = victim.read_to("end")
    rows = [json.loads(line) for line in end(tracer).splitlines() if line.startswith("{")]
    calls = int(victim.ask("counts")[0].split()[1])
    hits = sum(row.get("n", 0) for row in rows)
    print("all calls are hits" if hits == calls != 0 else f"{hits} hits of {calls} calls")
    if "errors 0" in result:
        print("the victim's results are right")


main()
