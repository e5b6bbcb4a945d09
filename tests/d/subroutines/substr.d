/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: start and length; without a length to the end. */
BEGIN
{
	s = "foobarbaz";
	printf("%s %s %s\n", substr(s, 3), substr(s, 3, 3), substr(s, 0, 1));
	exit(0);
}
/* output:
barbaz bar f

*/
