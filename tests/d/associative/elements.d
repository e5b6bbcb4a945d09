/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of an associative array are independent. */
BEGIN
{
	a[1] = 10;
	a[2] = 20;
	a[1] += 5;
	printf("%d %d %d\n", a[1], a[2], a[3]);
	exit(0);
}
/* output:
15 20 0

*/
