/* SPDX-License-Identifier: Apache-2.0 */
/* What is decided before a program is read cannot be said in it. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_OPTSET] line 6: failed to set option 'define' to 'A=1': Option cannot be used from within a D program */
#pragma D option define=A=1
BEGIN
{
	exit(0);
}
