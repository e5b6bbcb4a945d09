/* SPDX-License-Identifier: Apache-2.0 */
/* The right operand does not widen the left one. */
BEGIN
{
	printf("%d %d\n", sizeof (1 << 1ll), sizeof (1ll << 1));
	exit(0);
}
/* output:
4 8

*/
