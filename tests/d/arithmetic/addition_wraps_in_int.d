/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: a sum of ints is cut back to 32 bits. */
BEGIN
{
	x = 2147483647;
	printf("%d\n", x + 1);
	exit(0);
}
/* output:
-2147483648

*/
