/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: each clause starts at the same place. */
BEGIN
{
	a = (uint64_t)alloca(8);
}
BEGIN
{
	b = (uint64_t)alloca(100);
	c = (uint64_t)alloca(1);
	printf("%d %d\n", a == b, c >= b + 100);
	exit(0);
}
/* output:
1 1

*/
