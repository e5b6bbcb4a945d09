/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 46. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_OPTSET] */
#pragma D option bufsize=many
BEGIN
{
	exit(0);
}
