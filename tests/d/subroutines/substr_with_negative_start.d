/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: a negative start counts from the end. */
BEGIN
{
	s = "foobarbaz";
	printf("%s %s\n", substr(s, -3), substr(s, -6, 3));
	exit(0);
}
/* output:
baz bar

*/
