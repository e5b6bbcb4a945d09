/* SPDX-License-Identifier: Apache-2.0 */
/* One processor's firings alone, BEGIN's and END's and those of clocks with them. */
/* flags: -q -x cpu=1 */
/* output:
BEGIN on 1
END on 1
all on 1, some elsewhere: 1 0 0

*/
BEGIN
{
	printf("BEGIN on %d\n", cpu);
}
profile-1ms
/cpu == 1/
{
	here++;
}
profile-1ms,
tick-1ms,
sched:::on-cpu,
syscall:::entry
/cpu != 1/
{
	elsewhere++;
}
tick-1ms
/here >= 20 && ++ticks >= 20/
{
	exit(0);
}
END
{
	printf("END on %d\nall on 1, some elsewhere: %d %d %d\n", cpu, here >= 20, elsewhere,
	    ticks < 20);
}
