/* SPDX-License-Identifier: Apache-2.0 */
/* A string of a tebibyte is refused, in the words of who asked for it. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_OPTSET] */
/* stderr: failed to set option 'strsize' to '1t': strings have 4096 bytes at most */
#pragma D option strsize=1t
BEGIN
{
	exit(0);
}
