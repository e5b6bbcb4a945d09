/* SPDX-License-Identifier: Apache-2.0 */
/* A string can be indexed. */
BEGIN
{
	s = "hello";
	i = 1;
	printf("%c%c %d\n", s[0], s[i], s[5]);
	exit(0);
}
/* output:
he 0

*/
