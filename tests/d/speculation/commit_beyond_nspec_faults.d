/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: an id beyond nspec is an illegal operation and ends the clause. */
/* flags: -q -xnspec=8 */
/* stderr: for probe ID 1 (dtrace:::BEGIN): illegal operation at BPF pc */
BEGIN
{
	commit(1024);
	x = 1;
}
BEGIN
{
	printf("%d\n", x);
	exit(0);
}
ERROR
{
	printf("fault %d\n", arg4);
}
/* output:
fault 3
0

*/
