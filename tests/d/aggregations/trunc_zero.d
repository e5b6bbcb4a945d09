/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 41: trunc(@, 0) removes all. */
BEGIN
{
	@["a"] = count();
	exit(0);
}
END
{
	trunc(@, 0);
}
/* output:

*/
