/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 46: sizes with k, m, g and t; more than there is memory is as much as Clew has. */
/* flags: -q -b 1t */
#pragma D option bufsize=512k
#pragma D option aggsize=1t
#pragma D option dynvarsize=1G
#pragma D option specsize=1T
BEGIN
{
	spec = speculation();
	a[spec] = 1;
	@ = sum(a[spec]);
	printa("%@d\n", @);
	exit(0);
}
/* output:
1

*/
