/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 12: a variable that is an int cannot become a string. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_OP_INCOMPAT] */
BEGIN
{
	x = 5;
	x = "five";
	exit(0);
}
