/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: an int and a long key are the same element. */
BEGIN
{
	a[(int32_t)1] = 3;
	printf("%d %d\n", a[(int64_t)1], a[(char)1]);
	exit(0);
}
/* output:
3 3

*/
