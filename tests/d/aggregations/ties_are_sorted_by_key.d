/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34: equal values in the order of the keys. */
BEGIN
{
	@["pear"] = count();
	@["apple"] = count();
	@["fig"] = count();
	exit(0);
}
/* output:

  apple                                                             1
  fig                                                               1
  pear                                                              1
*/
