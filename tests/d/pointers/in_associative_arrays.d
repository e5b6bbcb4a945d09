/* SPDX-License-Identifier: Apache-2.0 */
/* Pointers as keys and values. */
BEGIN
{
	a[curthread] = (int *)8;
	printf("%d %d\n", (long)(a[curthread] + 1), a[NULL] == NULL);
	exit(0);
}
/* output:
12 1

*/
