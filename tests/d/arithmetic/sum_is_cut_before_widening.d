/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: the sum is an int before it becomes a long long. */
BEGIN
{
	x = 1 << 30;
	printf("%x\n", (long long)(x + x));
	exit(0);
}
/* output:
ffffffff80000000

*/
