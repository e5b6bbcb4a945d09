#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The doctor finds by trying what the machine can do; the kernel's release and the processor's flags
# say what it should find.
# output:
# as the release says: True
# as the processor says: True
"$CLEW" doctor >/tmp/doctor
/usr/bin/python3 - <<'END'
import os, sys
release = tuple(int(part) for part in os.uname().release.replace("-", ".").split(".")[:2])
flags = next(line for line in open("/proc/cpuinfo") if line.startswith("flags")).split()
said = open("/tmp/doctor").read()
words = {(6, 1): ("programs are taken", "is older than 6.1"),
         (6, 6): ("uprobe multi", "one at a time: older than 6.6"),
         (6, 9): ("with open loops", "this kernel is older than 6.9")}
tells = {since: (newer in said, older in said) for since, (newer, older) in words.items()}
if release < (6, 1):
    expected = {(6, 1): (False, True), (6, 6): (False, False), (6, 9): (False, False)}
else:
    expected = {since: (release >= since, release < since) for since in words}
print("as the release says:", tells == expected)
may_set = "fsgsbase" in flags and "CLEW_NO_FSGSBASE" not in os.environ
print("as the processor says:", ("programs may set gs" in said) == may_set)
print(said, file=sys.stderr)
END
