/* SPDX-License-Identifier: Apache-2.0 */
/* sizeof does not evaluate its operand. */
BEGIN
{
	x = 4;
	printf("%d %d\n", sizeof (x++), sizeof x);
	printf("%d\n", x);
	exit(0);
}
/* output:
4 4
4

*/
