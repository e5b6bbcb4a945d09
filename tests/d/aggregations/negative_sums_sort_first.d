/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34: values are compared signed. */
BEGIN
{
	@["x"] = sum(1);
	@["y"] = sum(-1);
	@["z"] = sum(-100);
	exit(0);
}
/* output:

  z                                                              -100
  y                                                                -1
  x                                                                 1
*/
