/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
syscall::read:entry,
syscall::write:entry
{
	self->t = timestamp;
}
syscall::read:return,
syscall::write:return
/self->t/
{
	@time[execname, probefunc] = sum((timestamp - self->t) / 1000);
	self->t = 0;
}
