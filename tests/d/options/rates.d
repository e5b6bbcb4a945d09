/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 46: rates in hertz and as times. */
#pragma D option switchrate=10hz
#pragma D option statusrate=500ms
#pragma D option aggrate=1sec
#pragma D option cleanrate=100us
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* output:
ok

*/
