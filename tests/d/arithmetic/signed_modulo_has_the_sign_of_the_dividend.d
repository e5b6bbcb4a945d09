/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: a % b = a - a / b * b. */
BEGIN
{
	a = -7;
	b = 3;
	printf("%d %d %d %d\n", a % b, a % -b, -a % b, -a % -b);
	exit(0);
}
/* output:
-1 -1 1 1

*/
