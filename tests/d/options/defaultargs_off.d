/* SPDX-License-Identifier: Apache-2.0 */
/* What says off is off, and the last word counts. */
/* flags: -q -xerrtags */
/* status: 1 */
/* stderr: [D_MACRO_UNDEF] */
#pragma D option defaultargs
#pragma D option defaultargs=unset
BEGIN
{
	trace($1);
	exit(0);
}
