/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: a length of 0 gives the empty string. */
BEGIN
{
	printf("[%s]\n", substr("foobar", 2, 0));
	exit(0);
}
/* output:
[]

*/
