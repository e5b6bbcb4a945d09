/* SPDX-License-Identifier: Apache-2.0 */
/* short long is no type. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_COMBO] */
short float x;
BEGIN
{
	exit(0);
}
