/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments may be any expressions. */
BEGIN
{
	x = 3;
	printf("%d %d %s %d\n", x * x, x > 2, x == 3 ? "three" : "other", ++x);
	printf("%d\n", x);
	exit(0);
}
/* output:
9 1 three 4
4

*/
