/* SPDX-License-Identifier: Apache-2.0 */
/* self and this alone declare an int, or several. */
self a;
this b;
self c, d;
BEGIN
{
	self->a = 0x100000001;
	this->b = -1;
	self->d = self->c + 2;
	printf("%d %d %d %d\n", self->a, this->b, self->c, self->d);
	printf("%d %d\n", sizeof (self->a), sizeof (this->b));
	exit(0);
}
/* output:
1 -1 0 2
4 4

*/
