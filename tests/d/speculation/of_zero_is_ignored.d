/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: speculate(0), commit(0) and discard(0) do nothing and do not fault. */
BEGIN
{
	speculate(0);
	printf("wrong\n");
}
BEGIN
{
	commit(0);
}
BEGIN
{
	discard(0);
}
BEGIN
{
	printf("done\n");
	exit(0);
}
ERROR
{
	printf("fault\n");
}
/* output:
done

*/
