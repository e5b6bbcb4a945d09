/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_EXIT_SPEC] */
BEGIN
{
	speculate(1);
	exit(0);
}
