/* SPDX-License-Identifier: Apache-2.0 */
/* Macros in a predicate and a rate. */
/* arguments: 20 3 */
tick-$1ms
/++n == $2/
{
	printf("%s %d\n", probename, n);
	exit(0);
}
/* output:
tick-20ms 3

*/
