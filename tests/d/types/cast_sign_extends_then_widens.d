/* SPDX-License-Identifier: Apache-2.0 */
/* A cast to a wider type extends by the sign of the source. */
BEGIN
{
	c = (char)-2;
	u = (unsigned char)-2;
	printf("%d %d\n", (int64_t)c, (int64_t)u);
	printf("%x\n", (uint64_t)c);
	exit(0);
}
/* output:
-2 254
fffffffffffffffe

*/
