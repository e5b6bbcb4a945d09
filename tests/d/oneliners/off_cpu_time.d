/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
sched:::off-cpu
{
	self->ts = timestamp;
}
sched:::on-cpu
/self->ts/
{
	@[execname] = lquantize((timestamp - self->ts) / 1000, 0, 10000, 100);
	self->ts = 0;
}
