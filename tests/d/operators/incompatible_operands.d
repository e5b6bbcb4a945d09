/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 50: a string and an integer cannot be compared. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_INCOMPAT] */
/* stderr: operands have incompatible types:  */
BEGIN
{
	x = "a";
	trace(x == 5);
	exit(0);
}
