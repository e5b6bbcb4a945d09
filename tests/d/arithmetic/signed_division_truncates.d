/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: division is toward zero, as in C. */
BEGIN
{
	a = -7;
	b = 2;
	printf("%d %d %d %d\n", a / b, a / -b, -a / b, -a / -b);
	exit(0);
}
/* output:
-3 3 3 -3

*/
