/* SPDX-License-Identifier: Apache-2.0 */
/* The result has the type of the usual conversions of both sides. */
BEGIN
{
	t = 1;
	printf("%d %d\n", sizeof (t ? 1 : 1ll), (t ? -1 : 0u) > 0);
	exit(0);
}
/* output:
8 1

*/
