/* SPDX-License-Identifier: Apache-2.0 */
/* A name is declared once. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_IDRED] */
inline int ten = 10;
inline int ten = 11;
BEGIN
{
	exit(0);
}
