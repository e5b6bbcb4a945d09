/* SPDX-License-Identifier: Apache-2.0 */
/* The option allows what -w allows. */
#pragma D option destructive
#pragma D option quiet
BEGIN
{
	system("echo allowed");
	exit(0);
}
/* output:
allowed

*/
