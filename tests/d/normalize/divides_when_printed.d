/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: normalize() divides. */
BEGIN
{
	@["a"] = sum(50);
	@["b"] = sum(105);
	exit(0);
}
END
{
	normalize(@, 10);
}
/* output:

  a                                                                 5
  b                                                                10
*/
