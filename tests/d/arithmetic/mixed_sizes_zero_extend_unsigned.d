/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: an unsigned int that meets a long is zero-extended. */
BEGIN
{
	u = 0xffffffff;
	l = 1ll;
	printf("%d\n", u + l);
	exit(0);
}
/* output:
4294967296

*/
