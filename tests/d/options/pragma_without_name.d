/* SPDX-License-Identifier: Apache-2.0 */
/* An option has a name. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_MALFORM] */
#pragma D option
BEGIN
{
	exit(0);
}
