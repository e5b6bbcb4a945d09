/* SPDX-License-Identifier: Apache-2.0 */
/* A pragma without anything behind D. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_MALFORM] */
#pragma D
BEGIN
{
	exit(0);
}
