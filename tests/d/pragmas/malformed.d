/* SPDX-License-Identifier: Apache-2.0 */
/* A pragma without what it wants. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_MALFORM] */
#pragma D option
BEGIN
{
	exit(0);
}
