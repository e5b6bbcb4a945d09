/* SPDX-License-Identifier: Apache-2.0 */
/* Unary plus promotes and has no other effect. */
char c;
BEGIN
{
	c = 3;
	printf("%d %d\n", +c, sizeof (+c));
	exit(0);
}
/* output:
3 4

*/
