/* SPDX-License-Identifier: Apache-2.0 */
/* Several commits and discards may stand in one clause. */
/* flags: -q */
#pragma D option nspec=2
BEGIN
{
	self->a = speculation();
	self->b = speculation();
}
BEGIN
{
	speculate(self->a);
	printf("first\n");
}
BEGIN
{
	speculate(self->b);
	printf("second\n");
}
BEGIN
{
	commit(self->a);
	commit(self->b);
	discard(self->a);
	discard(self->b);
}
BEGIN
{
	exit(0);
}
/* output:
first
second

*/
