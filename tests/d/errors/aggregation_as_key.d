/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 42: an aggregation is no key. */
/* status: 1 */
/* stderr: line */
BEGIN
{
	@a = count();
	@b[@a] = count();
	exit(0);
}
