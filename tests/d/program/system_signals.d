/* SPDX-License-Identifier: Apache-2.0 */
/* What system() starts has no signal blocked. */
/* flags: -q -w */
BEGIN
{
	system("grep SigBlk /proc/self/status; yes | head -1");
	exit(0);
}
/* output:
SigBlk:	0000000000000000
y

*/
