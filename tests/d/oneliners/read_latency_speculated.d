/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and could be enabled. */
/* flags: -q -e */
#pragma D option nspec=16
syscall::read:entry
{
	self->spec = speculation();
	self->t = timestamp;
	speculate(self->spec);
	printf("%s fd %d\n", execname, arg0);
}
syscall::read:return
/self->spec && timestamp - self->t > 1000000/
{
	commit(self->spec);
	self->spec = 0;
}
syscall::read:return
/self->spec/
{
	discard(self->spec);
	self->spec = 0;
}
