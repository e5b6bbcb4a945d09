/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of the constant with its end; a variable has room for strsize. */
string s;
BEGIN
{
	printf("%d %d\n", sizeof ("abc"), sizeof (s));
	exit(0);
}
/* output:
4 256

*/
