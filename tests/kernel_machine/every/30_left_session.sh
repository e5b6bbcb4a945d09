#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A session that is killed leaves jumps that go on working; `clew ps` names it and `clew detach`
# takes all of it out, as `clew doctor -p` confirms.
# output:
# while it runs: 1 session
# killed: walled_work 70, 1 session left
# detached: walled_work 170, 0 sessions, 0 mappings
/usr/bin/python3 - <<'END'
import json, os, subprocess

clew = os.environ["CLEW"]
victim = subprocess.Popen([os.environ["VICTIMS"] + "/walled"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True)


def ask(command, last="end"):
    if command:
        victim.stdin.write(command + "\n")
        victim.stdin.flush()
    lines = []
    for line in victim.stdout:
        if line.strip() == last:
            return lines
        lines.append(line.strip())


def sessions():
    output = subprocess.run([clew, "ps", "--json"], capture_output=True, text=True).stdout
    return sum(json.loads(line).get("pid") == victim.pid for line in output.splitlines())


ask("", "ready")
tracer = subprocess.Popen([clew, "run", "-p", str(victim.pid),
                           'from e in entry("walled!walled_work") select count()'],
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
for line in tracer.stderr:
    if "tracing" in line:
        break
print("while it runs:", sessions(), "session")
tracer.kill()
tracer.wait()
ask("run 50")
ask("threads 20")
print(f"killed: {ask('counts')[0]}, {sessions()} session left")
subprocess.run([clew, "detach", str(victim.pid)], stdout=subprocess.DEVNULL)
ask("run 100")
maps = open(f"/proc/{victim.pid}/maps").read().count("/memfd:clew")
print(f"detached: {ask('counts')[0]}, {sessions()} sessions, {maps} mappings")
END
