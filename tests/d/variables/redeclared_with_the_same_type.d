/* SPDX-License-Identifier: Apache-2.0 */
/* A declaration may be repeated. */
int x;
int x;
BEGIN
{
	x = 3;
	printf("%d\n", x);
	exit(0);
}
/* output:
3

*/
