/* SPDX-License-Identifier: Apache-2.0 */
/* vtimestamp ascends. */
BEGIN
{
	a = vtimestamp;
	b = vtimestamp;
	printf("%d\n", b >= a);
	exit(0);
}
/* output:
1

*/
