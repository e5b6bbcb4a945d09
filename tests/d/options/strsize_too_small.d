/* SPDX-License-Identifier: Apache-2.0 */
/* A string has one character at least. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_OPTSET] line 6: failed to set option 'strsize' to '0': Invalid value */
#pragma D option strsize=0
BEGIN
{
	exit(0);
}
