/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 42: an aggregation has no value in a predicate. */
/* status: 1 */
/* stderr: line */
BEGIN
{
	@a = count();
}
BEGIN
/@a > 0/
{
	exit(0);
}
