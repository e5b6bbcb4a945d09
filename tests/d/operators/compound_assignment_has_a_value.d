/* SPDX-License-Identifier: Apache-2.0 */
/* The value of x += y is the new x. */
BEGIN
{
	x = 1;
	printf("%d\n", (x += 4) * 2);
	exit(0);
}
/* output:
10

*/
