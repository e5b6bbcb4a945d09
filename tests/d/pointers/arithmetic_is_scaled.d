/* SPDX-License-Identifier: Apache-2.0 */
/* p + 1 is the next element. */
BEGIN
{
	p = (int *)1000;
	q = (char *)1000;
	r = (int64_t *)1000;
	printf("%d %d %d %d\n", (long)(p + 1), (long)(q + 1), (long)(r + 2), (long)(p - 2));
	exit(0);
}
/* output:
1004 1001 1016 992

*/
