/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: an int that meets a long is sign-extended. */
BEGIN
{
	i = -1;
	l = 0x100000000;
	printf("%d %x\n", i + l, i | l);
	exit(0);
}
/* output:
4294967295 ffffffffffffffff

*/
