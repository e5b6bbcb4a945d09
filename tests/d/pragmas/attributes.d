/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes are accepted. */
#pragma D attributes Stable/Stable/Common ten
inline int ten = 10;
BEGIN
{
	printf("%d\n", ten);
	exit(0);
}
/* output:
10

*/
