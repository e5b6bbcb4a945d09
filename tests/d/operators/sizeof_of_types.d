/* SPDX-License-Identifier: Apache-2.0 */
/* sizeof of the base types. */
BEGIN
{
	printf("%d %d %d %d %d %d\n", sizeof (char), sizeof (short), sizeof (int),
	    sizeof (long), sizeof (long long), sizeof (void *));
	exit(0);
}
/* output:
1 2 4 8 8 8

*/
