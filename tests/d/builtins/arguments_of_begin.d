/* SPDX-License-Identifier: Apache-2.0 */
/* BEGIN's arguments are numbers; arg0 to arg9 can be read. */
BEGIN
{
	x = arg0 + arg1 + arg2 + arg3 + arg4 + arg5 + arg6 + arg7 + arg8 + arg9;
	printf("%d\n", sizeof (arg0));
	exit(0);
}
/* output:
8

*/
