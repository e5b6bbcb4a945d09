# SPDX-License-Identifier: Apache-2.0
"""The sessions of sessions.sh on one victim, and what its vDSO is between them."""

import os
import signal
import subprocess

from pointers import armed, end, tools


def main():
    victim = tools.Victim("pointers")
    pid = victim.process.pid
    before = tools.vdso_of(pid)

    def say(when):
        victim.ask("run 5")
        print(f"{when}:", "as it was" if tools.vdso_of(pid) == before else "changed")

    first = armed(pid)
    say("first")
    second = armed(pid)
    say("both")
    end(first)
    say("one left")
    end(second)
    say("none left")
    third = armed(pid)
    third.kill()
    third.communicate()
    say("killed")
    subprocess.run([os.environ["CLEW"], "detach", str(pid)], check=True, capture_output=True)
    say("taken out")
    print(victim.ask("counts")[0].split()[1], "calls")


main()
