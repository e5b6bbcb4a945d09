/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 42: an aggregation has no value. */
/* status: 1 */
/* stderr: line */
BEGIN
{
	@a = count();
	x = @a + 1;
	exit(0);
}
