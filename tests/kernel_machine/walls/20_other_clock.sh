#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A call takes its time, whatever the kernel's clock is: a wait of 20 ms by both languages. The wait
# is one from the call on; time.sleep() would wait until a moment, and what passes between the
# reading of that moment and the call is time that the call does not take.
# output:
# {"n":3}
# as long 3
waits='import select
for i in range(3): select.select([], [], [], 0.02)'
"$CLEW" run --json -c "python3 -c '$waits'" \
  'from x in return("libc.so.6!select")
   where x.elapsed >= 20ms and x.elapsed < 1s select count() as n' |
  grep -v summary
"$CLEW" dtrace -q -c "python3 -c '$waits'" -n '
pid$target:libc.so.6:select:entry { self->t = timestamp; }
pid$target:libc.so.6:select:return
/self->t && timestamp - self->t >= 20000000 && timestamp - self->t < 1000000000/ { @ = count(); }
END { printa("as long %@d\n", @); }' | grep .
