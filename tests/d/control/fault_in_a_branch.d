/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 43: a fault in a branch ends the whole clause. */
BEGIN
{
	if (1) {
		x = *(int *)NULL;
	}
	printf("wrong\n");
}
BEGIN
{
	printf("next\n");
	exit(0);
}
/* output:
next

*/
