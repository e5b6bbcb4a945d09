/* SPDX-License-Identifier: Apache-2.0 */
/* Thread-local variables keep their values apart. */
BEGIN
{
	self->a = 1;
	self->b = 2ll;
	self->c = "three";
	self->d = (char)4;
	self->a = 0;
	printf("%d %d %s %d\n", self->a, self->b, self->c, self->d);
	exit(0);
}
/* output:
0 2 three 4

*/
