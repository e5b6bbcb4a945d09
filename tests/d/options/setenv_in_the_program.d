/* SPDX-License-Identifier: Apache-2.0 */
/* The commands run by then. */
/* flags: -q -xerrtags */
/* status: 1 */
/* stderr: [D_PRAGMA_OPTSET] line 6: failed to set option 'setenv' to 'CLEW_A=1': Option cannot be used from within a D program */
#pragma D option setenv=CLEW_A=1
BEGIN
{
	exit(0);
}
