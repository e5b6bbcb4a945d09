/* SPDX-License-Identifier: Apache-2.0 */
/* A predicate may name a variable that only its own clause assigns. */
tick-1ms
/n < 3/
{
	printf("%d\n", n++);
}
tick-1ms
/n == 3/
{
	exit(0);
}
/* output:
0
1
2

*/
