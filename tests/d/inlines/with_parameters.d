/* SPDX-License-Identifier: Apache-2.0 */
/* An inline with parameters is used like an array. */
inline int product[int a, int b] = a * b;
BEGIN
{
	x = 6;
	printf("%d %d\n", product[x, 7], product[x + 1, 1]);
	exit(0);
}
/* output:
42 7

*/
