/* SPDX-License-Identifier: Apache-2.0 */
/* No fault: the quotient wraps. */
BEGIN
{
	x = -9223372036854775807 - 1;
	y = -1;
	printf("%d %d\n", x / y, x % y);
	exit(0);
}
/* output:
-9223372036854775808 0

*/
