/* SPDX-License-Identifier: Apache-2.0 */
/* -2^63 survives its way through a variable. */
BEGIN
{
	x = -9223372036854775807 - 1;
	printf("%d %d\n", x, x - 1 > 0);
	exit(0);
}
/* output:
-9223372036854775808 1

*/
