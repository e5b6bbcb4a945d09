/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 46: sizes with k, m and g. */
#pragma D option bufsize=512k
#pragma D option aggsize=2m
#pragma D option dynvarsize=1M
#pragma D option specsize=64K
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* output:
ok

*/
