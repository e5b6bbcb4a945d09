/* SPDX-License-Identifier: Apache-2.0 */
/* Several probes before one clause. */
BEGIN, END
{
	n++;
	printf("%d\n", n);
}
BEGIN
{
	exit(0);
}
/* output:
1
2

*/
