/* SPDX-License-Identifier: Apache-2.0 */
/* The time off the CPU of a process that sleeps 60 ms: a little less, as it is on it when it sets
 * the timer, and then until it is woken. */
/* flags: -q -c "/bin/sleep 0.06" */
sched:::off-cpu
/pid == $target/
{
	self->t = timestamp;
}
sched:::on-cpu
/self->t/
{
	@longest = max((timestamp - self->t) / 1000000);
	self->t = 0;
}
END
{
	normalize(@longest, 50);
	printa("%@d\n", @longest);
}
/* output:
1

*/
