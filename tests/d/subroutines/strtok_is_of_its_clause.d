/* SPDX-License-Identifier: Apache-2.0 */
/* strtok(NULL, ...) goes on with a text of the same clause alone. */
/* stderr: invalid address (0x0) */
BEGIN
{
	printf("%s", strtok("a b c", " "));
	printf("%s\n", strtok(NULL, " "));
}
BEGIN
{
	printf("%s\n", strtok(NULL, " "));
}
BEGIN
{
	exit(0);
}
ERROR
{
	printf("fault %d %d\n", arg4, arg5);
}
/* output:
ab
fault 1 0

*/
