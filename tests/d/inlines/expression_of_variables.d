/* SPDX-License-Identifier: Apache-2.0 */
/* An inline is evaluated where it is used. */
int x;
inline int next = x + 1;
BEGIN
{
	x = 4;
	printf("%d ", next);
	x = 7;
	printf("%d\n", next);
	exit(0);
}
/* output:
5 8

*/
