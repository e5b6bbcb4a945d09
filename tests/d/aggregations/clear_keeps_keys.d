/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: clear() sets values to 0. */
BEGIN
{
	@["b"] = sum(5);
	@["a"] = sum(6);
	exit(0);
}
END
{
	clear(@);
}
/* output:

  a                                                                 0
  b                                                                 0
*/
