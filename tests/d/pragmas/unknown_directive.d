/* SPDX-License-Identifier: Apache-2.0 */
/* A pragma of D that does not exist. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_INVAL] */
#pragma D nonsense
BEGIN
{
	exit(0);
}
