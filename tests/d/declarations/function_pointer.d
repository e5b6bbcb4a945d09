/* SPDX-License-Identifier: Apache-2.0 */
/* A pointer to a function can be declared and compared. */
int (*f)(int, char *);
BEGIN
{
	printf("%d %d\n", f == NULL, sizeof (f));
	exit(0);
}
/* output:
1 8

*/
