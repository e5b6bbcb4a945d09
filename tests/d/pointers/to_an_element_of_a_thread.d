/* SPDX-License-Identifier: Apache-2.0 */
/* What lies in a table is copied when its address is taken. */
self int a[3];
BEGIN
{
	self->a[1] = 5;
	this->p = &self->a[1];
	this->other = "a statement between";
	printf("%d\n", *this->p);
	exit(0);
}
/* output:
5

*/
