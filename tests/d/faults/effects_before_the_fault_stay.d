/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 43: what the clause stored before stays stored, what it recorded is dropped. */
BEGIN
{
	x = 5;
	printf("wrong\n");
	y = *(int *)NULL;
	x = 6;
}
BEGIN
{
	printf("%d\n", x);
	exit(0);
}
/* output:
5

*/
