/* SPDX-License-Identifier: Apache-2.0 */
/* a = b = 3 sets both. */
BEGIN
{
	a = b = 3;
	printf("%d %d\n", a, b);
	exit(0);
}
/* output:
3 3

*/
