/* SPDX-License-Identifier: Apache-2.0 */
/* Keys have a limit, and a message. */
/* flags: -q -xerrtags */
/* status: 1 */
/* stderr: [D_NOMEM] keys of 'x' have 6168 bytes; 4096 is the most */
#pragma D option strsize=2k
BEGIN
{
	x["a", "b", "c"] = 1;
	x["a", "b", "d"] = 2;
	printf("%d\n", x["a", "b", "c"]);
	exit(0);
}
