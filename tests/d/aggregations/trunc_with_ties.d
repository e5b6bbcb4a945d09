/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34 and 41: equal values are told apart by key; the last ones in that order are kept. */
BEGIN
{
	@["a"] = count();
	@["b"] = count();
	@["c"] = count();
	exit(0);
}
END
{
	trunc(@, 2);
}
/* output:

  b                                                                 1
  c                                                                 1
*/
