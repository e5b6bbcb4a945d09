/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34: ascending by value. */
BEGIN
{
	@["a"] = sum(30);
	@["b"] = sum(-1);
	@["c"] = sum(7);
	exit(0);
}
/* output:

  b                                                                -1
  c                                                                 7
  a                                                                30
*/
