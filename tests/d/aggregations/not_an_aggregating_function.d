/* SPDX-License-Identifier: Apache-2.0 */
/* An aggregation takes only aggregating functions. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_AGG_FUNC] */
BEGIN
{
	@a = 5;
	exit(0);
}
