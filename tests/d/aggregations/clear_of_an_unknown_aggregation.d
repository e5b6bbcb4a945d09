/* SPDX-License-Identifier: Apache-2.0 */
/* clear() of a name that nothing fills. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_CLEAR_AGGBAD] */
BEGIN
{
	clear(@never);
	exit(0);
}
