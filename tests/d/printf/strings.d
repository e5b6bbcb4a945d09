/* SPDX-License-Identifier: Apache-2.0 */
/* %s with width, precision and alignment. */
BEGIN
{
	printf("[%s] [%6s] [%-6s] [%.2s] [%6.2s]\n", "abc", "abc", "abc", "abc", "abc");
	exit(0);
}
/* output:
[abc] [   abc] [abc   ] [ab] [    ab]

*/
