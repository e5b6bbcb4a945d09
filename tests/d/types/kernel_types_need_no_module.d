/* SPDX-License-Identifier: Apache-2.0 */
/* A struct of the kernel may be named without a module. */
BEGIN
{
	printf("%d\n", sizeof (struct list_head) == 2 * sizeof (void *));
	exit(0);
}
/* output:
1

*/
