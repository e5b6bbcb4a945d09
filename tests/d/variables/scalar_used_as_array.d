/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: a scalar cannot be indexed like an associative array. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_INCOMPAT] */
BEGIN
{
	a = 2;
	a["x"] = 1;
	exit(0);
}
