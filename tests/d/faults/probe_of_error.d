/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 44: in ERROR the names are those of ERROR. */
BEGIN
{
	x = *(int *)NULL;
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("%s:%s %d\n", probeprov, probename, id);
}
/* output:
dtrace:ERROR 3

*/
