/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 42 and 47. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_AGG_SPEC] */
BEGIN
{
	speculate(1);
	@a = count();
}
