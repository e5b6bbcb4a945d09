#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A call takes its time, whatever the kernel's clock is: a sleep of 20 ms by both languages.
# output:
# {"n":3}
# as long 3
sleeps='import time
for i in range(3): time.sleep(0.02)'
"$CLEW" run --json -c "python3 -c '$sleeps'" \
  'from x in return("libc.so.6!clock_nanosleep")
   where x.elapsed >= 20ms and x.elapsed < 1s select count() as n' |
  grep -v summary
"$CLEW" dtrace -q -c "python3 -c '$sleeps'" -n '
pid$target:libc.so.6:clock_nanosleep:entry { self->t = timestamp; }
pid$target:libc.so.6:clock_nanosleep:return
/self->t && timestamp - self->t >= 20000000 && timestamp - self->t < 1000000000/ { @ = count(); }
END { printa("as long %@d\n", @); }' | grep .
