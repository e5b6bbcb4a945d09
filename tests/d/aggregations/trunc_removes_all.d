/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: trunc(@) removes all keys. */
BEGIN
{
	@["a"] = sum(5);
	@["b"] = sum(6);
	exit(0);
}
END
{
	trunc(@);
}
/* output:

*/
