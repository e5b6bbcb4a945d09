/* SPDX-License-Identifier: Apache-2.0 */
/* uid and gid of root. */
BEGIN
{
	printf("%d %d\n", uid, gid);
	exit(0);
}
/* output:
0 0

*/
