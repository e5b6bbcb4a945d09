/* SPDX-License-Identifier: Apache-2.0 */
/* The value must fit the type. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_INCOMPAT] */
inline int ten = "ten";
BEGIN
{
	exit(0);
}
