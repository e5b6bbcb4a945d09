/* SPDX-License-Identifier: Apache-2.0 */
/* An aggregation that no clause assigns. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTA_AGGBAD] */
BEGIN
{
	printa(@never);
	exit(0);
}
