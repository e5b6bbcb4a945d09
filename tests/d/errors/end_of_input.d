/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 49: the program ends in a clause. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	exit(0);
