/* SPDX-License-Identifier: Apache-2.0 */
/* yes, true, on and their like, in any case. */
/* flags: -x flowindent=FALSE -x quiet=Enabled -x droptags=No */
#pragma D option zdefs=Yes
nosuch:::probe
{
	exit(1);
}
BEGIN
{
	printf("quiet\n");
	exit(0);
}
/* output:
quiet

*/
