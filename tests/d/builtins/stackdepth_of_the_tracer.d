/* SPDX-License-Identifier: Apache-2.0 */
/* BEGIN and END are on nobody's stack. */
BEGIN
{
	printf("%d ", stackdepth);
	exit(0);
}
END
{
	printf("%d\n", stackdepth);
}
/* output:
0 0

*/
