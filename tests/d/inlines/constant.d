/* SPDX-License-Identifier: Apache-2.0 */
/* An inline stands for its value. */
inline int ten = 10;
BEGIN
{
	printf("%d\n", ten + 1);
	exit(0);
}
/* output:
11

*/
