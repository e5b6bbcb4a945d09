/* SPDX-License-Identifier: Apache-2.0 */
/* What a body assigns may be read by the predicate of the same clause. */
tick-1ms
/n < 3/
{
	printf("%d\n", n++);
}
tick-1ms
/n >= 3/
{
	exit(0);
}
/* output:
0
1
2

*/
