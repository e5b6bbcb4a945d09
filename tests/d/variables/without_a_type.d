/* SPDX-License-Identifier: Apache-2.0 */
/* self, this and a name declare an int. */
self x;
this y;
self z, w;
BEGIN
{
	self->x = -1;
	this->y = 1 << 31;
	printf("%d %d %d %d\n", self->x, this->y, sizeof (self->z), sizeof (self->w));
	exit(0);
}
/* output:
-1 -2147483648 4 4

*/
