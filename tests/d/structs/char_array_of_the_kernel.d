/* SPDX-License-Identifier: Apache-2.0 */
/* comm is an array of char. */
BEGIN
{
	printf("%d %d\n", stringof(curthread->comm) == execname, sizeof (curthread->comm));
	exit(0);
}
/* output:
1 16

*/
