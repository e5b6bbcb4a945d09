/* SPDX-License-Identifier: Apache-2.0 */
/* From the first occurrence of the second string on; the empty one is found at once. */
BEGIN
{
	s = "fooeyfooeyfoo";
	printf("%s %s %s\n", strstr(s, "eyf"), strstr(s, "foo"), strstr(s, ""));
	exit(0);
}
/* output:
eyfooeyfoo fooeyfooeyfoo fooeyfooeyfoo

*/
