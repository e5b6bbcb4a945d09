/* SPDX-License-Identifier: Apache-2.0 */
/* Both are numbers. */
BEGIN
{
	printf("%d %d\n", sizeof (ipl), sizeof (epid));
	exit(0);
}
/* output:
4 4

*/
