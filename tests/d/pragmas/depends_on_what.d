/* SPDX-License-Identifier: Apache-2.0 */
/* depends_on of something unknown. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_INVAL] */
#pragma D depends_on weather sunshine
BEGIN
{
	exit(0);
}
