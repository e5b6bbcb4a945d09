/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 19: the idle threads of all CPUs have number 0, and are as many threads. Ends when
   enough of them were seen, or when the machine had no time to be idle. */
sched:::on-cpu
/tid == 0/
{
	self->place = cpu + 1;
}
sched:::off-cpu
/tid == 0 && self->place == cpu + 1/
{
	++seen;
}
sched:::off-cpu
/tid == 0 && self->place && self->place != cpu + 1/
{
	@wrong = count();
}
tick-100ms
/seen > 1000 || ++ticks == 20/
{
	exit(0);
}
/* output:

*/
