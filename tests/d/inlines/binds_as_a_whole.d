/* SPDX-License-Identifier: Apache-2.0 */
/* An inline is one operand, not text. */
inline int sum_of = 1 + 2;
BEGIN
{
	printf("%d\n", sum_of * 2);
	exit(0);
}
/* output:
6

*/
