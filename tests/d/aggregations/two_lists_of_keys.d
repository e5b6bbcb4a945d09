/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of an aggregation are one list. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_AGG_MDIM] */
BEGIN
{
	@a[1][2] = count();
	exit(0);
}
