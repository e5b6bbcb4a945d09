/* SPDX-License-Identifier: Apache-2.0 */
/* An inline may use another one. */
inline int two = 2;
inline int four = two * two;
BEGIN
{
	printf("%d\n", four * four);
	exit(0);
}
/* output:
16

*/
