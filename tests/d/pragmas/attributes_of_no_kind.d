/* SPDX-License-Identifier: Apache-2.0 */
/* Three words, of names, data and dependency. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_INVAL] */
#pragma D attributes Certain/Stable/Common x
int x;
BEGIN
{
	exit(0);
}
