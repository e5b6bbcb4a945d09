/* SPDX-License-Identifier: Apache-2.0 */
/* timestamp ascends, walltimestamp is after 2020. */
BEGIN
{
	a = timestamp;
	b = timestamp;
	printf("%d %d %d\n", a > 0, b >= a, walltimestamp > 1577836800000000000);
	exit(0);
}
/* output:
1 1 1

*/
