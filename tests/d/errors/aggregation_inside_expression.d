/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 42: an aggregation is assigned in a statement of its own. */
/* status: 1 */
/* stderr: line */
BEGIN
{
	x = (@a = count());
	exit(0);
}
