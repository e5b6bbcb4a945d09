/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 33: all aggregations have one key signature. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRINTA_AGGKEY] */
BEGIN
{
	@a["x"] = count();
	@b["x", 1] = count();
	printa(@a, @b);
	exit(0);
}
