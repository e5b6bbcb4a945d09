/* SPDX-License-Identifier: Apache-2.0 */
/* One variable has one type. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_IDRED] */
int x;
string x;
BEGIN
{
	exit(0);
}
