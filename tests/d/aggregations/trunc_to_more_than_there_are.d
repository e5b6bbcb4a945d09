/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: nothing to remove. */
BEGIN
{
	@["a"] = sum(5);
	exit(0);
}
END
{
	trunc(@, 10);
}
/* output:

  a                                                                 5
*/
