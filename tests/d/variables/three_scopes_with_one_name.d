/* SPDX-License-Identifier: Apache-2.0 */
/* x, self->x and this->x are three variables. */
BEGIN
{
	x = 1;
	self->x = 2;
	this->x = 3;
	printf("%d %d %d\n", x, self->x, this->x);
	exit(0);
}
/* output:
1 2 3

*/
