/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 34 and 40: averages are sorted by the average. */
BEGIN
{
	@["many"] = avg(1);
	@["many"] = avg(2);
	@["many"] = avg(3);
	@["one"] = avg(4);
	exit(0);
}
/* output:

  many                                                              2
  one                                                               4
*/
