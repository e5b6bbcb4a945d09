/* SPDX-License-Identifier: Apache-2.0 */
/* Increments of one scope leave the others alone. */
BEGIN
{
	x = 10;
	self->x = 20;
	this->x = 30;
	x++;
	self->x++;
	this->x++;
	x += self->x + this->x;
	printf("%d %d %d\n", x, self->x, this->x);
	exit(0);
}
/* output:
63 21 31

*/
