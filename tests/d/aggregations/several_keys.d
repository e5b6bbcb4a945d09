/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 35: the columns of all keys, then the value. */
BEGIN
{
	@["b", 1] = sum(1);
	@["a", 2] = sum(1);
	@["a", 1] = sum(1);
	exit(0);
}
/* output:

  a                                                         1                1
  a                                                         2                1
  b                                                         1                1
*/
