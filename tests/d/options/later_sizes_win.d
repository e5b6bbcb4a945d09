/* SPDX-License-Identifier: Apache-2.0 */
/* The last word counts, with k, m and g. */
/* flags: -q -b 1k -x bufsize=64k -b 1m -x strsize=2k -x strsize=4 */
BEGIN
{
	x = "123456789";
	printf("%d\n", strlen(x) <= 4);
	exit(0);
}
/* output:
1

*/
