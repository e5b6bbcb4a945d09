/* SPDX-License-Identifier: Apache-2.0 */
/* The three variables of one name may have three types. */
BEGIN
{
	x = "text";
	self->x = 2ll;
	this->x = (char)3;
	printf("%d %d %d\n", sizeof (x), sizeof (self->x), sizeof (this->x));
	exit(0);
}
/* output:
256 8 1

*/
