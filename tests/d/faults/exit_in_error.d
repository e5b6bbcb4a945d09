/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 2 and 43: exit() in an ERROR clause ends BEGIN. */
/* status: 3 */
BEGIN
{
	x = *(int *)NULL;
}
BEGIN
{
	printf("wrong\n");
}
ERROR
{
	exit(3);
}
END
{
	printf("end\n");
}
/* output:
end

*/
