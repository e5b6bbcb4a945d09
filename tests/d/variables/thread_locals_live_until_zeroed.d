/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 19: self->x is seen by later firings on the same thread; BEGIN and END share one. */
BEGIN
{
	self->x = 5;
	exit(0);
}
END
{
	printf("%d ", self->x);
	self->x = 0;
	printf("%d\n", self->x);
}
/* output:
5 0

*/
