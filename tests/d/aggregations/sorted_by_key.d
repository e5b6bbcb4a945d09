/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34: aggsortkey sorts by key. */
/* flags: -q -xaggsortkey */
BEGIN
{
	@["b"] = sum(1);
	@["c"] = sum(3);
	@["a"] = sum(2);
	exit(0);
}
/* output:

  a                                                                 2
  b                                                                 1
  c                                                                 3
*/
