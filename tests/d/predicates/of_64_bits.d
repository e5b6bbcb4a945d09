/* SPDX-License-Identifier: Apache-2.0 */
/* A value whose low half is 0 is still true. */
BEGIN
{
	x = 0x100000000;
}
BEGIN
/x/
{
	printf("true\n");
	exit(0);
}
/* output:
true

*/
