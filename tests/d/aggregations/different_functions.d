/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 40: one name, one function. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_AGG_REDEF] */
/* stderr: aggregation redefined: @a */
BEGIN
{
	@a = count();
	@a = sum(1);
	exit(0);
}
