/* SPDX-License-Identifier: Apache-2.0 */
/* Two arrays with the same keys. */
BEGIN
{
	a[1] = 1;
	b[1] = 2;
	self->a[1] = 3;
	printf("%d %d %d\n", a[1], b[1], self->a[1]);
	exit(0);
}
/* output:
1 2 3

*/
