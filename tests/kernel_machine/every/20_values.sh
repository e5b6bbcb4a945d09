#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Counts, texts, results and times of a program's own calls, and each call as a row.
# output:
# {"str(c.arg0)":"CLEW_A","n":3,"most":1}
# {"str(c.arg0)":"CLEW_B","n":2,"most":0}
# {"n":5}
# {"n":3,"results":0}
# {"name":"CLEW_B","value":"x y"}
# {"name":"CLEW_B","value":"x y"}
cat > /tmp/values.py <<'END'
import os, select
for turn in range(3):
    os.putenv("CLEW_A", str(turn))
    select.select([], [], [], 0.02)
for turn in range(2):
    os.putenv("CLEW_B", "x y")
END
ask() {
  "$CLEW" run --json -q -c "/usr/bin/python3 /tmp/values.py" "$1" | grep -v '"summary"'
}
ask 'from c in entry("libc.so.6!setenv") where str(c.arg0) like "CLEW_%"
     group by str(c.arg0)
     select str(c.arg0), count() as n, max(str(c.arg1) == "2") as most orderby str(c.arg0)'
ask 'from c in return("libc.so.6!setenv") where startswith(str(c.entry.arg0), "CLEW_")
     select count() as n'
ask 'from c in return("libc.so.6!select") where c.elapsed >= 20ms and c.elapsed < 5s
     select count() as n, sum(c.retval) as results'
ask 'from c in entry("libc.so.6!setenv") where str(c.arg0) == "CLEW_B"
     select str(c.arg0) as name, str(c.arg1) as value'
