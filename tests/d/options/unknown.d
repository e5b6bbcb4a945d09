/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 46. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_INVAL] */
#pragma D option nosuchoption=1
BEGIN
{
	exit(0);
}
