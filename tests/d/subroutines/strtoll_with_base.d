/* SPDX-License-Identifier: Apache-2.0 */
/* Text in another base. */
BEGIN
{
	printf("%d %d %d\n", strtoll("ff", 16), strtoll("-101", 2), strtoll("777", 8));
	exit(0);
}
/* output:
255 -5 511

*/
