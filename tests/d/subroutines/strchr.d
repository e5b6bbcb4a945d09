/* SPDX-License-Identifier: Apache-2.0 */
/* From the first occurrence on. */
BEGIN
{
	s = "fooeyfooeyfoo";
	printf("%s %s\n", strchr(s, 'o'), strchr(s, 'y'));
	exit(0);
}
/* output:
ooeyfooeyfoo yfooeyfoo

*/
