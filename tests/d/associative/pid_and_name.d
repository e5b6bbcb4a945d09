/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of built-in variables. */
BEGIN
{
	a[pid, execname] = 3;
	printf("%d\n", a[$pid, execname]);
	exit(0);
}
/* output:
3

*/
