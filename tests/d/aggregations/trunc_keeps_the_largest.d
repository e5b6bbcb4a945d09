/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: trunc(@, 2). */
BEGIN
{
	@["a"] = sum(5);
	@["b"] = sum(6);
	@["c"] = sum(4);
	@["d"] = sum(7);
	exit(0);
}
END
{
	trunc(@, 2);
}
/* output:

  b                                                                 6
  d                                                                 7
*/
