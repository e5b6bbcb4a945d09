/* SPDX-License-Identifier: Apache-2.0 */
/* There and back. */
BEGIN
{
	x = -123456789012;
	printf("%d\n", strtoll(lltostr(x)) == x);
	exit(0);
}
/* output:
1

*/
