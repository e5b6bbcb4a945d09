/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 44: more than there is is a fault with code 5. */
/* stderr: out of scratch space */
BEGIN
{
	n = 100000000;
	p = alloca(n);
	printf("wrong\n");
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("%d\n", arg4);
}
/* output:
5

*/
