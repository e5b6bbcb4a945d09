#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The time of day jumps by a day, forth and back, while a program is traced: calls take as long as
# they do, and a session of one second neither ends at once nor goes on for a day.
# output:
# {"n":3}
# as long 3
# ended
waits='import select, time
for jump in (86400, -86400, 0):
  time.clock_settime(time.CLOCK_REALTIME, time.time() + jump)
  select.select([], [], [], 0.02)'
"$CLEW" run --json -c "python3 -c '$waits'" \
  'from x in return("libc.so.6!select")
   where x.elapsed >= 20ms and x.elapsed < 1s select count() as n' |
  grep -v summary
"$CLEW" dtrace -q -c "python3 -c '$waits'" -n '
pid$target:libc.so.6:select:entry { self->t = timestamp; }
pid$target:libc.so.6:select:return
/self->t && timestamp - self->t >= 20000000 && timestamp - self->t < 1000000000/ { @ = count(); }
END { printa("as long %@d\n", @); }' | grep .
jumps='import time
while True:
  for jump in (86400, -86400):
    time.clock_settime(time.CLOCK_REALTIME, time.time() + jump)
    time.sleep(0.01)'
python3 -c "$jumps" &
"$CLEW" run --json --for 1s 'from e in syscall("clock_settime") select count() as n' |
  grep -q '{"n":' && echo ended
kill $!
