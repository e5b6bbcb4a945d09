/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: scratch memory is aligned to 8 bytes. */
BEGIN
{
	a = (uint64_t)alloca(1);
	b = (uint64_t)alloca(3);
	printf("%d %d %d\n", a % 8, b % 8, a != b);
	exit(0);
}
/* output:
0 0 1

*/
