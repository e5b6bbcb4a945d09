/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11: with defaultargs missing ones are 0 and the empty string. */
/* flags: -q -xdefaultargs */
BEGIN
{
	printf("%d [%s]\n", $1, $$2);
	exit(0);
}
/* output:
0 []

*/
