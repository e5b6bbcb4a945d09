/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11: root's numbers. */
BEGIN
{
	printf("%d %d %d %d\n", $uid, $euid, $uid == uid, $gid == gid);
	exit(0);
}
/* output:
0 0 1 1

*/
