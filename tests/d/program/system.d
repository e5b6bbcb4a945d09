/* SPDX-License-Identifier: Apache-2.0 */
/* system() runs a command of the shell. */
/* flags: -q -w */
BEGIN
{
	x = 3;
	system("echo %s %d", "text", x);
	exit(0);
}
/* output:
text 3

*/
