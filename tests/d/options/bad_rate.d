/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 46: a rate wants a number. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_OPTSET] */
#pragma D option switchrate=fast
BEGIN
{
	exit(0);
}
