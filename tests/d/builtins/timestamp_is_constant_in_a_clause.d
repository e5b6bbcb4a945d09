/* SPDX-License-Identifier: Apache-2.0 */
/* timestamp is taken once in a clause. */
BEGIN
{
	a = timestamp;
	s = strjoin("a", "b");
	printf("%d\n", timestamp == a);
	exit(0);
}
/* output:
1

*/
