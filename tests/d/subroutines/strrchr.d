/* SPDX-License-Identifier: Apache-2.0 */
/* From the last occurrence on. */
BEGIN
{
	s = "fooeyfooeyfoo";
	printf("%s %s %d\n", strrchr(s, 'e'), strrchr(s, 'f'), strrchr(s, 'z') == NULL);
	exit(0);
}
/* output:
eyfoo foo 1

*/
