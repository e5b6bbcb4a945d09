/* SPDX-License-Identifier: Apache-2.0 */
/* ~ of signed and unsigned values. */
BEGIN
{
	x = 0;
	u = 5u;
	printf("%d %d %x\n", ~x, ~5, ~u);
	exit(0);
}
/* output:
-1 -6 fffffffa

*/
