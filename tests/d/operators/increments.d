/* SPDX-License-Identifier: Apache-2.0 */
/* Prefix and postfix ++ and --. */
BEGIN
{
	x = 5;
	printf("%d ", x++);
	printf("%d ", ++x);
	printf("%d ", x--);
	printf("%d ", --x);
	printf("%d\n", x);
	exit(0);
}
/* output:
5 7 7 5 5

*/
