/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: the type of the value is fixed by the first assignment. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_INCOMPAT] */
BEGIN
{
	a[1] = 3;
	a[2] = "x";
	exit(0);
}
