/* SPDX-License-Identifier: Apache-2.0 */
/* Elements may be strings. */
BEGIN
{
	a[1] = "one";
	a[2] = "two";
	printf("%s %s %d\n", a[1], a[2], a[3] == NULL);
	exit(0);
}
/* output:
one two 1

*/
