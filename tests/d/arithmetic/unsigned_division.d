/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 13: with an unsigned operand the division is unsigned. */
uint64_t a;
BEGIN
{
	a = 0xfffffffffffffffe;
	printf("%x %d\n", a / 2, a % 10);
	exit(0);
}
/* output:
7fffffffffffffff 4

*/
