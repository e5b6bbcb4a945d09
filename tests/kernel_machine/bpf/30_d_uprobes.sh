#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pid probes as uprobes count what those in the process count, of the same calls; both find who
# called.
# output:
# inline: entries 5, returns 5
# CLEW_B 2
# CLEW_A 3
# a user stack begins at setenv
# uprobes: entries 5, returns 5
# CLEW_B 2
# CLEW_A 3
# a user stack begins at setenv
cat > /tmp/texts.py <<'END'
import os
for name in ("CLEW_A",) * 3 + ("CLEW_B",) * 2:
    os.putenv(name, "1")
END
ask() {
  printf '%s: ' "$1"
  shift
  "$CLEW" dtrace "$@" -q -c "/usr/bin/python3 /tmp/texts.py" -n '
  pid$target:libc.so.6:setenv:entry { this->name = copyinstr(arg0); }
  pid$target:libc.so.6:setenv:entry /strstr(this->name, "CLEW_") != NULL/
  { entries++; self->in = 1; @[this->name] = count(); }
  pid$target:libc.so.6:setenv:return /self->in/ { returns++; self->in = 0; }
  END {
    printf("entries %d, returns %d\n", entries, returns);
    printa("%s %@d\n", @);
  }' | grep .
  "$CLEW" dtrace "$@" -q -c "/usr/bin/python3 /tmp/texts.py" -n '
  pid$target:libc.so.6:setenv:entry /!n++/ { ustack(2); }' |
    sed -n 's/^ *libc.so.6`\(setenv\).*/a user stack begins at \1/p'
}
ask inline
ask uprobes -x useruprobes
