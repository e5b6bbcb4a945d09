#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Queries on system calls, tracepoints and clocks of the kernel, and on a process and the kernel at
# once.
# output:
# {"n":3,"bytes":3000,"most":1000}
# {"call":"write","n":3,"timed":3}
# {"path":"/clew/one","n":2}
# {"path":"/clew/two","n":1}
# {"error":-2,"n":3}
# {"n":1,"named":1}
# {"from":"call","n":1}
# {"from":"function","n":1}
# clocks: True
cat > /tmp/calls.py <<'END'
import os
null = os.open("/dev/null", os.O_WRONLY)
for turn in range(3):
    os.write(null, b"x" * 1000)
for path in ("one", "two", "one"):
    try:
        os.chdir("/clew/" + path)
    except FileNotFoundError:
        pass
child = os.fork()
if child == 0:
    os._exit(7)
os.waitpid(child, 0)
os.putenv("CLEW_X", "1")
END
ask() {
  "$CLEW" run --json -q -c "/usr/bin/python3 /tmp/calls.py" "$1" | grep -v '"summary"'
}
ask 'from s in syscall("write") where s.count == 1000
     select count() as n, sum(s.count) as bytes, max(s.count) as most'
ask 'from s in syscall_return("write") where s.retval == 1000
     group by s.function select s.function as call, count() as n, sum(s.elapsed > 0) as timed'
ask 'from s in syscall("chdir") group by str(s.filename)
     select str(s.filename) as path, count() as n orderby str(s.filename)'
ask 'from s in syscall_return("chdir") group by s.retval select s.retval as error, count() as n'
ask 'from t in tracepoint("sched:sched_process_exit")
     where t.comm == "python3" select count() as n, sum(t.args.pid > 1) as named'
ask 'from c in entry("libc.so.6!setenv") as "function" { mine = str(arg0) == "CLEW_X" },
          syscall("wait4") as "call" { mine = arg0 > 0 }
     where c.mine group by c.probe select c.probe as from, count() as n orderby c.probe'
cat > /tmp/busy.py <<'END'
import time
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
END
"$CLEW" run --json -q -c "/usr/bin/python3 /tmp/busy.py" \
  'from t in profile(49hz) select count() as n' |
  grep -v '"summary"' >/tmp/clocks
echo "clocks: $(/usr/bin/python3 -c 'import json; print(json.load(open("/tmp/clocks"))["n"] > 3)')"
