/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest number as text. */
BEGIN
{
	x = -9223372036854775807 - 1;
	printf("%s\n", lltostr(x));
	exit(0);
}
/* output:
-9223372036854775808

*/
