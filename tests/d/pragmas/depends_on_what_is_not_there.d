/* SPDX-License-Identifier: Apache-2.0 */
/* A program can say what it cannot do without. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRAGMA_DEPEND] line 6: program requires provider nosuchprovider */
#pragma D depends_on provider nosuchprovider
BEGIN
{
	exit(0);
}
