/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_COMM_DREC] */
BEGIN
{
	printf("x");
	commit(1);
}
