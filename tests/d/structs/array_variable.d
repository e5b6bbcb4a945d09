/* SPDX-License-Identifier: Apache-2.0 */
/* A variable that is an array. */
int a[3];
BEGIN
{
	a[0] = 5;
	a[1] = 6;
	a[2] = a[0] + a[1];
	printf("%d %d %d\n", a[0], a[1], a[2]);
	exit(0);
}
/* output:
5 6 11

*/
