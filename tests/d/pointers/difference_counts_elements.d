/* SPDX-License-Identifier: Apache-2.0 */
/* q - p in elements. */
BEGIN
{
	p = (int *)1000;
	q = (int *)1020;
	printf("%d %d\n", q - p, p - q);
	exit(0);
}
/* output:
5 -5

*/
