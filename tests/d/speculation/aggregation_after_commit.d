/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 42 and 47. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_AGG_COMM] */
BEGIN
{
	commit(1);
	@a = count();
}
