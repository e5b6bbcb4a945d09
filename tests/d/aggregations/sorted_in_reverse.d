/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34: aggsortrev turns the order around. */
/* flags: -q -xaggsortrev */
BEGIN
{
	@["a"] = sum(1);
	@["b"] = sum(3);
	@["c"] = sum(2);
	exit(0);
}
/* output:

  b                                                                 3
  c                                                                 2
  a                                                                 1
*/
